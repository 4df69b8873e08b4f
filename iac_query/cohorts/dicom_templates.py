"""What the instances of a DICOM series share, which their pack stores once, before all records."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .. import _native
from ..errors import ChecksumError, PackError

PAYLOAD_TYPE = "dicom_patient"


def templates(pack: _native.Pack, slides: pa.Table, index: pa.Table) -> tuple[bytes, pa.Table]:
    """The templates of the series in ``slides``, one behind the other, and the table that says
    where each is now and how many instances of it there are.

    Raises ChecksumError for a damaged one, PackIndexError for one that is not in the pack,
    PackError where ``index`` has not all frames of each instance.
    """
    _require_whole(pack, index)
    found = []
    names = ("template_offset", "template_length", "template_crc32")
    for offset, length, crc32 in zip(*(slides[name].to_pylist() for name in names), strict=True):
        found.append(pack.read_data(offset, length))
        if zlib.crc32(found[-1]) != crc32:
            error = ChecksumError(f"{pack.path}: template of a series: its crc32 is another one")
            error.pack = pack.path
            raise error
    ends = np.cumsum([0, *map(len, found)]).astype(np.uint64)
    instances = index["series_idx"].to_numpy()[_frames(index) == 0]
    series, count = np.unique(instances, return_counts=True)
    counts = dict(zip(series.tolist(), count.tolist(), strict=True))
    of_series = [counts[number] for number in slides["series_idx"].to_pylist()]
    columns = {
        "template_offset": pa.array(ends[:-1]),
        "instance_count": pa.array(of_series, pa.uint32()),
    }
    for name, column in columns.items():
        slides = slides.set_column(slides.schema.get_field_index(name), name, column)
    return b"".join(found), slides


def whole_instances(index: pa.Table, kept: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which rows are kept when an instance that loses a frame goes: readers find the header of all
    its frames in the row of the first, so many rows before as the frame's number.
    """
    firsts = np.arange(index.num_rows) - _frames(index)
    return kept & ~np.isin(firsts, firsts[~kept])


def _require_whole(pack: _native.Pack, index: pa.Table) -> None:
    frames = _frames(index)
    firsts = np.flatnonzero(frames == 0)
    sizes = np.diff(firsts, append=len(frames))
    whole = np.array_equal(frames, np.arange(len(frames)) - np.repeat(firsts, sizes))
    if whole and "number_of_frames" in index.column_names:
        has_pixels = np.asarray(index["has_pixel_data"])[firsts]
        said = np.where(has_pixels, np.asarray(index["number_of_frames"])[firsts], 1)
        whole = np.array_equal(sizes, said)
    if not whole:
        error = PackError(f"{pack.path}: rows are not all frames of each instance in their order")
        error.pack = pack.path
        raise error


def _frames(index: pa.Table) -> npt.NDArray[np.int64]:
    """The number of each row's frame in its instance; 0 in packs of a row an instance."""
    if "frame_index" not in index.column_names:
        return np.zeros(index.num_rows, np.int64)
    return index["frame_index"].to_numpy().astype(np.int64)


def header(of_source: dict[str, Any], prefix: bytes) -> dict[str, Any]:
    """The header of a pack with these templates. What was wrong with instances, which the source
    counts, may be true of none that is left.
    """
    kept = {name: value for name, value in of_source.items() if name != "errors"}
    return {**kept, "metadata_offset": 0, "metadata_length": len(prefix)}
