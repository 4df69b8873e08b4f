"""Where the tiles of a whole slide lie: columns that neither table has, as the grid gives them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import PackError
from ..pack import PackReader

#: The upper left native pixel, the same in micrometres, and micrometres a pixel of the tile.
PLACES = ("x", "y", "x_um", "y_um", "mpp_x", "mpp_y")
PLACE_TYPES = (*[pa.int64()] * 2, *[pa.float64()] * 4)


def has_places(header: Mapping[str, Any], index: pa.Schema) -> bool:
    """Whether a pack is one of a slide whose tiles lie in a grid."""
    if header.get("payload_type") != "wsi_image":
        return False
    return all(
        name in index.names and pa.types.is_integer(index.field(name).type)
        for name in ("tile_x", "tile_y")
    )


def place_values(reader: PackReader, place: int) -> pa.ChunkedArray:
    """One of PLACES for each row; NULL for records that are no tiles.

    Raises PackError for a header that does not tell the grid.
    """
    axis = "xy"[place % 2]
    header = reader.header
    side = int(_number(reader, header, "tile_width" if axis == "x" else "tile_height"))
    mpp = _number(reader, header, f"native_mpp_{axis}")
    tiles = reader.read_index_table([f"tile_{axis}"])[f"tile_{axis}"].cast(pa.int64())
    down = _downsamples(reader, header)
    if place >= 4:
        factors = pc.multiply(down, mpp)
        return pc.if_else(tiles.is_valid(), factors, pa.scalar(None, pa.float64()))
    pixels = pc.multiply_checked(pc.multiply_checked(tiles, side), down)
    return pixels if place < 2 else pc.multiply(pixels.cast(pa.float64()), mpp)


def _downsamples(reader: PackReader, header: Mapping[str, Any]) -> pa.Array:
    """Native pixels for one of each row's level."""
    stored = header.get("levels", [])
    factors = [1, *(int(_number(reader, level, "downsample")) for level in stored)]
    levels = np.zeros(len(reader), np.int64)
    if len(factors) > 1:
        column = reader.read_index_table(["level"])["level"]
        levels = pc.fill_null(column.cast(pa.int64()), 0).to_numpy()
    return pa.array(np.array(factors, np.int64)[levels])


def _number(reader: PackReader, fields: Mapping[str, Any], name: str) -> float:
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise PackError(f"{reader.package_path}: the header's {name} is missing or wrong")
    return value
