"""That the records of DICOM instances are the pixels that the index says they are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._native import PIXEL_TYPES
from ..errors import PackError
from ..images import ImageBatch, image_text
from ..validation.checked_pack import Batch, CheckedPack, Rows
from ..validation.report import Finding

_NAMES = ("has_pixel_data", "rows", "columns", "samples_per_pixel", "pixel_dtype")


def check_pixels(pack: CheckedPack, rows: Rows, batch: Batch) -> Iterator[Finding]:
    """Shapes and dtypes. Frames that only pydicom decodes are decoded here."""
    needed = ("rows", "columns", "pixel_dtype")
    if not isinstance(batch, ImageBatch) or any(pack.column("index", n) is None for n in needed):
        return  # said of the header and the tables
    frames: list[int] = []
    shapes, dtypes = batch.shapes, batch.dtypes
    for at, said in enumerate(pack.index_rows(_NAMES, rows)):
        dtype = said["pixel_dtype"]
        if not said.get("has_pixel_data", True) or dtype not in PIXEL_TYPES:
            continue
        if shapes[at] is None:
            frames.append(at)
            continue
        samples = said.get("samples_per_pixel", 1)
        shape = (said["rows"], said["columns"], *(() if samples == 1 else (samples,)))
        if (shapes[at], dtypes[at].name) != (shape, dtype):
            found, expected = image_text(shapes[at], dtypes[at]), image_text(shape, dtype)
            reason = f"the frame is {found}, expected {expected}"
            yield pack.finding("payload", reason, rows[at])
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
