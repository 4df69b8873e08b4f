"""Where the tiles of a whole slide lie: columns that neither table has, as the grid gives them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import PackError, row_error
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

    Raises PackError for a header that does not tell the grid, and tiles that lie in none.
    """
    axis = "xy"[place % 2]
    header = reader.header
    side = _count(reader, header, "tile_width" if axis == "x" else "tile_height")
    mpp = _length(reader, header, f"native_mpp_{axis}")
    try:
        tiles = reader.read_index_table([f"tile_{axis}"])[f"tile_{axis}"].cast(pa.int64())
        down = _downsamples(reader, header)
        if place >= 4:
            factors = pc.multiply(down, mpp)
            return pc.if_else(tiles.is_valid(), factors, pa.scalar(None, pa.float64()))
        pixels = pc.multiply_checked(pc.multiply_checked(tiles, side), down)
    except pa.ArrowInvalid as error:
        raise PackError(f"{reader.package_path}: a tile lies beyond 64 bits") from error
    return pixels if place < 2 else pc.multiply(pixels.cast(pa.float64()), mpp)


def _downsamples(reader: PackReader, header: Mapping[str, Any]) -> pa.Array:
    """Native pixels for one of each row's level."""
    stored = header.get("levels", [])
    if not isinstance(stored, list) or not all(isinstance(level, Mapping) for level in stored):
        raise _wrong(reader, "levels")
    factors = np.array([1, *(_count(reader, level, "downsample") for level in stored)], np.int64)
    levels = _levels(reader)
    bad = np.flatnonzero((levels < 0) | (levels >= len(factors)))
    if len(bad):
        row = int(bad[0])
        reason = f"its level is {levels[row]}, there are {len(factors)}"
        raise row_error(PackError, str(reader.package_path), row, reason)
    return pa.array(factors[levels])


def _levels(reader: PackReader) -> npt.NDArray[np.int64]:
    """Of each row the raster, 0 for the native one."""
    try:
        column = reader.read_index_table(["level"])["level"]
    except KeyError:
        return np.zeros(len(reader), np.int64)
    if not pa.types.is_integer(column.type):
        return np.zeros(len(reader), np.int64)
    return pc.fill_null(column.cast(pa.int64()), 0).to_numpy()


def _count(reader: PackReader, fields: Mapping[str, Any], name: str) -> int:
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 1 << 32:
        raise _wrong(reader, name)
    return value


def _length(reader: PackReader, fields: Mapping[str, Any], name: str) -> float:
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise _wrong(reader, name)
    return float(value)


def _wrong(reader: PackReader, name: str) -> PackError:
    return PackError(f"{reader.package_path}: the header's {name} is missing or wrong")
