"""That the records of a whole slide are what the index says they are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...errors import PackError
from ...images import ImageBatch
from ...validation.checked_pack import Batch, CheckedPack, Rows, as_indices
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
    index = pack.read_columns("index", list(_NAMES)).take(as_indices(rows)).to_pylist()
    images = isinstance(batch, ImageBatch)
    shapes, dtypes = (batch.shapes, batch.dtypes) if images else ([None] * len(rows),) * 2
    records = batch.records if images else batch
    for at, (row, said) in enumerate(zip(rows, index, strict=True)):
        if said["kind"] in (Kind.TILE, Kind.ASSOCIATED_IMAGE):
            found = None if shapes[at] is None else (*shapes[at], dtypes[at])
            if found != _image(said, slide):
                yield pack.finding("payload", "is no image of its size and pixels", row)
        elif said["kind"] in _PROFILES and not _is_profile(records[at]):
            yield pack.finding("payload", "is no ICC profile", row, "note")


def _image(said: dict[str, int], slide: Slide) -> tuple[object, ...]:
    """Shape and dtype of the image that a row is to be."""
    tile = said["kind"] == Kind.TILE
    prefix = "valid" if tile else "image"
    channels, dtype = (slide.channels, slide.dtype) if tile else (3, np.dtype(np.uint8))
    size = (said[f"{prefix}_height"], said[f"{prefix}_width"])
    return (*size, *((channels,) if channels > 1 else ()), dtype)


def _is_profile(data: memoryview | bytes) -> bool:
    return len(data) >= _PROFILE_BYTES and bytes(data[_PROFILE_MARK]) == b"acsp"
