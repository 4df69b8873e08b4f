"""What the instances of a DICOM series share, which their pack stores once, before all records."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pyarrow as pa

from .. import _native
from ..errors import ChecksumError

PAYLOAD_TYPE = "dicom_patient"


def templates(pack: _native.Pack, slides: pa.Table, index: pa.Table) -> tuple[bytes, pa.Table]:
    """The templates of the series in ``slides``, one behind the other, and the table that says
    where each is now and how many instances of it there are.

    Raises ChecksumError for a damaged one, PackIndexError for one that is not in the pack.
    """
    found = []
    names = ("template_offset", "template_length", "template_crc32")
    for offset, length, crc32 in zip(*(slides[name].to_pylist() for name in names), strict=True):
        found.append(pack.read_data(offset, length))
        if zlib.crc32(found[-1]) != crc32:
            error = ChecksumError(f"{pack.path}: template of a series: its crc32 is another one")
            error.pack = pack.path
            raise error
    ends = np.cumsum([0, *map(len, found)]).astype(np.uint64)
    series, count = np.unique(index["series_idx"].to_numpy(), return_counts=True)
    counts = dict(zip(series.tolist(), count.tolist(), strict=True))
    instances = [counts[number] for number in slides["series_idx"].to_pylist()]
    columns = {
        "template_offset": pa.array(ends[:-1]),
        "instance_count": pa.array(instances, pa.uint32()),
    }
    for name, column in columns.items():
        slides = slides.set_column(slides.schema.get_field_index(name), name, column)
    return b"".join(found), slides


def header(of_source: dict[str, Any], prefix: bytes) -> dict[str, Any]:
    """The header of a pack with these templates. What was wrong with instances, which the source
    counts, may be true of none that is left.
    """
    kept = {name: value for name, value in of_source.items() if name != "errors"}
    return {**kept, "metadata_offset": 0, "metadata_length": len(prefix)}
