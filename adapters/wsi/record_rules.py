"""That the records of a whole slide are what the index says they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...errors import PackError
from ...images import ImageBatch, image_text
from ...validation.checked_pack import Batch, CheckedPack, Rows
from ...validation.report import Finding
from .schema import Kind, Slide, read_slide

_NAMES = ("kind", "valid_width", "valid_height", "image_width", "image_height")
_PROFILES = (Kind.ICC_PROFILE, Kind.ASSOCIATED_ICC_PROFILE)
#: The header of a profile, and where it is marked as one: ICC.1:2022 7.2.
_PROFILE_BYTES, _PROFILE_MARK = 128, slice(36, 40)


def check_records(pack: CheckedPack, rows: Rows, batch: Batch) -> Iterator[Finding]:
    """Sizes and pixels of images. Tiles come cut to their valid size."""
    try:
        slide = read_slide(pack.reader)
    except PackError:
        return  # said of the header
    if any(pack.column("index", name) is None for name in _NAMES):
        return  # said of the tables
    if isinstance(batch, ImageBatch):
        records, shapes, dtypes = batch.records, batch.shapes, batch.dtypes
    else:
        records, shapes, dtypes = batch, [None] * len(rows), [None] * len(rows)
    for at, (row, said) in enumerate(zip(rows, pack.index_rows(_NAMES, rows), strict=True)):
        if said["kind"] in _PROFILES:
            if not _is_profile(records[at]):
                yield pack.finding("payload", "is no ICC profile", row, "note")
        elif said["kind"] in (Kind.TILE, Kind.ASSOCIATED_IMAGE):
            shape, dtype = _image(said, slide)
            found = shapes[at], dtypes[at]
            if found[0] is None:
                yield pack.finding("payload", "the record is no image", row)
            elif found != (shape, dtype):
                reason = f"the image is {image_text(*found)}, expected {image_text(shape, dtype)}"
                yield pack.finding("payload", reason, row)


def _image(said: Mapping[str, Any], slide: Slide) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and dtype of the image that a row is to be."""
    tile = said["kind"] == Kind.TILE
    size = ("valid_height", "valid_width") if tile else ("image_height", "image_width")
    channels, dtype = (slide.channels, slide.dtype) if tile else (3, np.dtype(np.uint8))
    samples = () if channels == 1 else (channels,)
    return (*(said[name] for name in size), *samples), dtype


def _is_profile(data: memoryview | bytes) -> bool:
    return len(data) >= _PROFILE_BYTES and bytes(data[_PROFILE_MARK]) == b"acsp"
