"""Writes data/series.iac: one patient's CT and MR series, and a report, as iatro-iac-adapters does.

    python tests/make_series.py

Each CT slice is water with a ball of bone in air, so that Hounsfield units have known means.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
from iatro.iac.adapters.dicom import build_dicom_patient_package_from_files
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import UID, CTImageStorage, ExplicitVRLittleEndian, MRImageStorage

ROOT = "1.2.826.0.1.3680043.8.498.1"
SIZE = 32


def instance(storage: UID, modality: str, series: int, number: int, pixels: np.ndarray) -> Dataset:
    ds = Dataset()
    ds.SOPClassUID = storage
    ds.SOPInstanceUID = f"{ROOT}.{series}.{number}"
    ds.StudyInstanceUID = ROOT
    ds.SeriesInstanceUID = f"{ROOT}.{series}"
    ds.PatientID = "P-01"
    ds.PatientName = "Synthetic^One"
    ds.Modality = modality
    ds.InstanceNumber = number
    ds.Rows, ds.Columns = pixels.shape
    ds.SamplesPerPixel = 1
    ds.PhotometricInterpretation = "MONOCHROME2"
    ds.BitsAllocated = ds.BitsStored = 16
    ds.HighBit = 15
    ds.PixelRepresentation = int(pixels.dtype.kind == "i")
    ds.PixelData = pixels.tobytes()
    ds["PixelData"].VR = "OW"
    return ds


def ct(series: int, number: int, count: int, thickness: float) -> Dataset:
    """Stored values are Hounsfield units + 1024."""
    y, x = np.mgrid[:SIZE, :SIZE] - (SIZE - 1) / 2
    z = (number - (count + 1) / 2) * thickness
    hounsfield = np.full((SIZE, SIZE), -1000)
    hounsfield[x**2 + y**2 < 14**2] = 0
    hounsfield[x**2 + y**2 + z**2 < 8**2] = 700
    ds = instance(CTImageStorage, "CT", series, number, (hounsfield + 1024).astype(np.int16))
    ds.SeriesDescription = f"Chest {thickness:g} mm"
    ds.SliceThickness = thickness
    ds.PixelSpacing = [1.0, 1.0]
    ds.ImagePositionPatient = [0.0, 0.0, z]
    ds.ImageOrientationPatient = [1, 0, 0, 0, 1, 0]
    ds.RescaleIntercept, ds.RescaleSlope, ds.RescaleType = -1024, 1, "HU"
    return ds


def mr(series: int, number: int) -> Dataset:
    pixels = np.add.outer(np.arange(SIZE), np.arange(SIZE)).astype(np.uint16) * number
    ds = instance(MRImageStorage, "MR", series, number, pixels)
    ds.SeriesDescription = "Head"
    ds.SliceThickness = 3
    return ds


def report() -> Dataset:
    ds = instance(UID("1.2.840.10008.5.1.4.1.1.88.11"), "SR", 4, 1, np.zeros((1, 1), np.uint16))
    for keyword in ("PixelData", "Rows", "Columns", "BitsAllocated", "SamplesPerPixel"):
        del ds[keyword]
    return ds


def file_bytes(ds: Dataset) -> bytes:
    ds.file_meta = FileMetaDataset()
    ds.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    buffer = BytesIO()
    ds.save_as(buffer, enforce_file_format=True)
    return buffer.getvalue()


def instances() -> list[Dataset]:
    return [
        *(ct(1, number, 9, 1.25) for number in range(1, 10)),
        *(ct(2, number, 4, 5.0) for number in range(1, 5)),
        *(mr(3, number) for number in range(1, 6)),
        report(),
    ]


if __name__ == "__main__":
    build_dicom_patient_package_from_files(
        [file_bytes(ds) for ds in instances()],
        Path(__file__).parent / "data" / "series.iac",
        effort=3,
        workers=1,
        overwrite=True,
    )
