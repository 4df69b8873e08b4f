"""Packs of DICOM instances and of whole slides, in all their kinds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dicoms
import numpy as np
import pyarrow as pa
from dicoms import encapsulated, pixels_of, set_pixels, slice_of
from iac_query.adapters.wsi import WsiImageReader
from pydicom.dataset import Dataset
from pydicom.pixels import get_encoder
from pydicom.uid import RLELossless
from slides import ICC, build, tissue, write_svs, write_tiff

import iac_query as iac

ZSTD = iac.Codec.create("zstd", level=3)
#: The row of the scanner's metadata in ``slide``.
METADATA = 8

#: Of a file with pixels alone.
_IMAGE_ELEMENTS = (
    *("PixelData", "Rows", "Columns", "SamplesPerPixel", "PhotometricInterpretation"),
    *("BitsAllocated", "BitsStored", "HighBit", "PixelRepresentation"),
)


def report() -> Dataset:
    """An instance without pixels, in a series of its own."""
    ds = slice_of(9, series=3, Modality="SR")
    for keyword in _IMAGE_ELEMENTS:
        delattr(ds, keyword)
    return ds


def frames_of(number: int, count: int) -> Dataset:
    """An instance of many frames."""
    ds = slice_of(number)
    set_pixels(ds, pixels_of(number, (count, 12, 16)), frames=True)
    return ds


def run_lengths(number: int) -> Dataset:
    """A slice that only pydicom decodes when its frame is kept."""
    ds = slice_of(number, series=4)
    options = {
        "rows": 12,
        "columns": 16,
        "samples_per_pixel": 1,
        "bits_allocated": 16,
        "bits_stored": 16,
        "pixel_representation": 1,
        "number_of_frames": 1,
        "photometric_interpretation": "MONOCHROME2",
    }
    encoded = get_encoder(RLELossless).encode(ds.PixelData, index=0, **options)
    return encapsulated(ds, RLELossless, [encoded])


def patient(path: Path) -> Path:
    """Version 1: slices 0 to 3 of series 1, colour in row 4, and a report in row 5."""
    colour = slice_of(4, series=2, pixels=pixels_of(1, (9, 11, 3), "uint8"))
    dicoms.build(path, *map(slice_of, range(4)), colour, report(), strict=True)
    return path


def frames(path: Path) -> Path:
    """Version 2, files kept: 4 frames, 3 frames, a slice, a report, a slice of run lengths."""
    files = [frames_of(0, 4), frames_of(1, 3), slice_of(2), report(), run_lengths(5)]
    dicoms.build(path, *files, storage="original", strict=True)
    return path


def patients(path: Path) -> Path:
    """Version 2, pixels as JPEG XL: series of two patients."""
    files = [slice_of(0), slice_of(1), slice_of(2, series=5, PatientID="P-2")]
    dicoms.build(path, *files, patients="many", exact=True, strict=True)
    return path


def slide(path: Path) -> Path:
    """Version 1: 8 of 12 tiles, metadata and a profile in rows 8 and 9, label, macro and thumbnail
    behind them, and in row 13 the macro's profile.
    """
    source = write_svs(path.with_suffix(".svs"), tissue(200, 150))
    path = build(source, lossless=True, tile_size=64).rename(path)
    with iac.PackReader(path) as pack:
        payloads = pack.read_payloads(range(len(pack)))
        header, slides, index = pack.header, pack.slide_table, pack.index_table
    more = {**index.slice(9, 1).to_pylist()[0], "kind": 4, "name": "macro"}
    index = pa.concat_tables([index, pa.Table.from_pylist([more], index.schema)])
    metadata = metadata_of(path)
    metadata["associated_images"][1]["icc_profile_present"] = True
    payloads[METADATA] = ZSTD.encode(json.dumps(metadata).encode())
    iac.build_pack(path, header, slides, index, [*payloads, ICC], overwrite=True)
    return path


def metadata_of(path: Path) -> dict[str, Any]:
    """What the scanner said, by the reader."""
    with WsiImageReader(path) as reader:
        return reader.scanner_metadata


def kept_slide(path: Path) -> Path:
    """Version 1: the source's own JPEG tiles, all of them."""
    source = write_svs(path.with_suffix(".svs"), tissue(200, 150))
    return build(source).rename(path)


def levels(path: Path) -> Path:
    """Version 2: gray of 16 bits, and a coarser raster."""
    source = write_tiff(path.with_suffix(".tif"), tissue(200, 150, 1, np.uint16), iccprofile=ICC)
    return build(source, lossless=True, tile_size=64, levels=(2,)).rename(path)


DICOM: dict[str, Callable[[Path], Path]] = {
    "patient": patient,
    "frames": frames,
    "patients": patients,
}
SLIDES: dict[str, Callable[[Path], Path]] = {
    "slide": slide,
    "kept slide": kept_slide,
    "levels": levels,
}
