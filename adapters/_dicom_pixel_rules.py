"""That the records of DICOM instances decode to pixels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._native import PIXEL_TYPES
from ..errors import PackError
from ..images import ImageBatch
from ..validation.checked_pack import Batch, CheckedPack, Rows
from ..validation.report import Finding


def check_pixels(pack: CheckedPack, rows: Rows, batch: Batch) -> Iterator[Finding]:
    """What the core decodes is what the index says. Frames that only pydicom decodes are decoded
    here.
    """
    needed = ("rows", "columns", "pixel_dtype")
    if not isinstance(batch, ImageBatch) or any(pack.column("index", n) is None for n in needed):
        return  # said of the header and the tables
    names = ("has_pixel_data", "pixel_dtype")
    frames = [
        at
        for at, said in enumerate(pack.index_rows(names, rows))
        if said.get("has_pixel_data", True)
        and said["pixel_dtype"] in PIXEL_TYPES
        and batch.shapes[at] is None
    ]
    yield from _check_frames(pack, rows[frames], [batch.records[at] for at in frames])


def _check_frames(
    pack: CheckedPack, rows: Rows, frames: list[memoryview | None]
) -> Iterator[Finding]:
    """Frames as they stand in files of transfer syntaxes that the core has no codec for."""
    if not frames:
        return
    try:
        from .dicom.model import quiet
        from .dicom.pixels import PixelRows
    except ImportError as error:
        reason = f"{len(rows)} frames were not decoded: {error}"
        yield pack.finding("codec", reason, rows[0], "note")
        return
    pixels = PixelRows(pack)  # of a pack it asks for the reader and the number of rows
    with quiet():
        for row, frame in zip(rows.tolist(), frames, strict=True):
            try:
                pixels.single(row, np.frombuffer(frame, np.uint8), None)
            except PackError as error:
                reason = " ".join(pack.reason(error).split())  # pydicom's has lines
                yield pack.finding("codec", reason, row)
