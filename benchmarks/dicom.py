"""DICOM: building packs of CT slices, and reading shuffled slices, against the peer."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from iac_query.adapters import dicom
from iatro.iac.adapters import dicom as peer
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian

from ._measure import interleaved, print_table
from .images import smooth

SLICES, SIZE = 300, 512
READ = 200


def ct_slice(number: int, field: np.ndarray, generator: np.random.Generator) -> Dataset:
    """A round body of soft tissue in air, 12 bits with noise, and some fifty header elements."""
    y, x = np.mgrid[-1 : 1 : SIZE * 1j, -1 : 1 : SIZE * 1j]
    body = x**2 + (1.3 * y) ** 2 < 0.7 + 0.1 * np.sin(number / 20)
    values = np.where(body, 940 + 260 * np.roll(field, number, axis=0), 20)
    values = values + generator.normal(0, np.where(body, 14, 4))
    ds = Dataset()
    ds.file_meta = FileMetaDataset()
    ds.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    ds.SOPClassUID = "1.2.840.10008.5.1.4.1.1.2"
    ds.SOPInstanceUID = f"1.2.826.0.1.3680043.8.498.9.{number}"
    ds.StudyInstanceUID = ds.SeriesInstanceUID = "1.2.826.0.1.3680043.8.498.9"
    ds.PatientID, ds.PatientName, ds.Modality = "P-1", "Made^Up", "CT"
    ds.InstanceNumber = number + 1
    ds.ImagePositionPatient = [-180, -180, 1.25 * number]
    ds.ImageOrientationPatient = [1, 0, 0, 0, 1, 0]
    ds.PixelSpacing, ds.SliceThickness = [0.703125, 0.703125], "1.25"
    ds.RescaleSlope, ds.RescaleIntercept = "1", "-1024"
    ds.WindowCenter, ds.WindowWidth = "40", "400"
    for element in range(0x10, 0x30):
        ds.add_new(0x00191000 + element, "LO", f"private {element}")
    ds.add_new(0x00190010, "LO", "MADE UP")
    ds.Rows = ds.Columns = SIZE
    ds.SamplesPerPixel, ds.PhotometricInterpretation = 1, "MONOCHROME2"
    ds.BitsAllocated, ds.BitsStored, ds.HighBit, ds.PixelRepresentation = 16, 16, 15, 1
    ds.PixelData = values.clip(0, 4095).astype("<i2").tobytes()
    return ds


def write_slices(folder: Path, count: int) -> list[Path]:
    generator = np.random.default_rng(5)
    field = smooth(generator, (SIZE, SIZE), 40)
    paths = []
    for number in range(count):
        paths.append(folder / f"{number:04}.dcm")
        ct_slice(number, field, generator).save_as(paths[-1], enforce_file_format=True)
    return paths


def builders(paths: list[Path], output: Path) -> dict[str, Callable[[], Any]]:
    def ours(name: str, workers: int) -> Any:
        return dicom.build_dicom_patient_package_from_files(
            paths, output / f"{name}.iac", workers=workers, overwrite=True, strict=True
        )

    def theirs() -> None:
        peer.build_dicom_patient_package_from_files(
            paths, output / "peer.iac", workers=2, overwrite=True
        )

    return {"one": partial(ours, "one", 1), "two": partial(ours, "two", 2), "peer": theirs}


def readers(output: Path, count: int) -> dict[str, Callable[[], Any]]:
    rows = list(range(count))
    random.Random(3).shuffle(rows)
    ours = dicom.DicomPatientReader(output / "two.iac")
    theirs = peer.DicomPatientReader(str(output / "two.iac"))

    def loop() -> np.ndarray:
        return np.stack([theirs.read_pixel_array(row) for row in rows])

    tensor = partial(ours.read_tensor, rows)
    if not np.array_equal(tensor(), loop()):
        raise AssertionError("other pixels")
    return {
        "one": partial(tensor, workers=1),
        "two": partial(tensor, workers=2),
        "hounsfield": partial(tensor, workers=2, modality_lut=True),
        "peer": loop,
    }


def main(slices: int = SLICES, build_rounds: int = 1, read_rounds: int = 9) -> None:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder)
        paths = write_slices(output, slices)
        columns = ["", "seconds", "times as fast as the peer", "as our one worker", "target"]

        times = interleaved(builders(paths, output), build_rounds)
        size = (output / "two.iac").stat().st_size / (output / "peer.iac").stat().st_size
        rows = [
            [f"{name} workers", times.median(key), times.ratio("peer", to=key), ratio, target]
            for name, key, ratio, target in (
                ("1", "one", 1.0, ""),
                ("2", "two", times.ratio("one", to="two"), "1 and 1.8"),
            )
        ]
        title = f"Building {slices} slices of {SIZE}, the peer with 2 workers"
        print_table(f"{title}; our pack is {size:.3f} times as large", columns, rows)

        count = min(READ, slices)
        times = interleaved(readers(output, count), read_rounds)
        rows = [
            [name, times.median(key), times.ratio("peer", to=key), times.ratio("one", to=key), t]
            for name, key, t in (
                ("1 worker", "one", ""),
                ("2 workers", "two", 1.8),
                ("2 workers, after the modality LUT", "hounsfield", ""),
            )
        ]
        print_table(f"{count} shuffled slices to one tensor, the peer in a loop", columns, rows)


if __name__ == "__main__":
    main()
