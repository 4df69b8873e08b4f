"""What packs of image tiles must hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from .._native import PIXEL_TYPES
from ..cohorts.adapter_packs import ADAPTERS
from ..images import ImageBatch, array_shape, image_text
from ..validation.checked_pack import Batch, CheckedPack, Rows
from ..validation.report import Finding
from ._table_rules import check_columns, check_counts, check_ids, check_slide_numbers, is_count
from ._tile_reader import EXTENDED_PAYLOAD_TYPE, PAYLOAD_TYPE
from ._tile_tables import EXTENDED_LIMITS, LIMITS, TileLimits

_SCHEMA = ADAPTERS[PAYLOAD_TYPE]


def check_tables(pack: CheckedPack) -> Iterator[Finding]:
    """The header and the tables."""
    extended = pack.payload_type == EXTENDED_PAYLOAD_TYPE
    if extended:
        if _tile_type(pack.header) is None:
            yield pack.finding("schema", "the header does not tell the tiles' shape and dtype")
        if not pack.native.decodes_to_images:
            yield pack.finding("schema", "its codec does not decode to images")
    else:
        yield from check_counts(pack, ("tile_width", "tile_height"))
        if pack.header.get("codec") != _SCHEMA.codec:
            yield pack.finding("schema", f"its codec is not {_SCHEMA.codec!r}")
    if pack.native.kind != "variable":
        yield pack.finding("schema", "the index does not say where records are stored")
    yield from check_grid(pack, EXTENDED_LIMITS if extended else LIMITS, _SCHEMA.index)


def check_grid(
    pack: CheckedPack, limits: TileLimits, index: Mapping[str, pa.DataType]
) -> Iterator[Finding]:
    """What all packs with a row a tile have: slides, and places on their grid."""
    if pack.header.get("coordinate_mode") == "tile_grid":
        yield from check_counts(pack, ("stride_x", "stride_y"))
    types = {"slide_idx": limits.slide_idx, "tile_x": limits.tile_xy, "tile_y": limits.tile_xy}
    slides = {**_SCHEMA.slides, "slide_idx": limits.slide_idx}
    yield from check_columns(pack, "slide", slides)
    yield from check_columns(pack, "index", {**index, **types})
    if pack.native.num_slides > limits.max_slides:
        reason = f"{pack.native.num_slides} slides, the schema allows {limits.max_slides}"
        yield pack.finding("schema", reason)
    for name in ("slide_idx", "slide_id"):
        yield from check_ids(pack, "slide", name)
    yield from check_ids(pack, "index", "tile_id")
    yield from check_slide_numbers(pack)


def check_tiles(pack: CheckedPack, rows: Rows, batch: Batch) -> Iterator[Finding]:
    """That decoded tiles are of the shape and dtype that the header says."""
    expected = _tile_type(pack.header)
    if expected is None or not isinstance(batch, ImageBatch):
        return  # said of the header
    for row, found in zip(rows, zip(batch.shapes, batch.dtypes, strict=True), strict=True):
        if found != expected:
            reason = f"the tile is {image_text(*found)}, expected {image_text(*expected)}"
            yield pack.finding("payload", reason, row)


def _tile_type(header: Mapping[str, Any]) -> tuple[tuple[int, ...], np.dtype[Any]] | None:
    """Shape and dtype of every tile as an array; None where the header does not tell."""
    shape, dtype = [header.get("tile_height"), header.get("tile_width"), 3], "uint8"
    if header.get("payload_type") == EXTENDED_PAYLOAD_TYPE:
        shape, dtype = header.get("tile_shape"), header.get("tile_dtype")
    if not isinstance(shape, list) or len(shape) != 3 or not all(map(is_count, shape)):
        return None
    return (array_shape(shape), np.dtype(dtype)) if dtype in PIXEL_TYPES else None
