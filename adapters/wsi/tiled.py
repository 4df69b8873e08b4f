"""Rasters that lie in a file as tiles, read as rectangles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from .._parallel import in_order

Place = tuple[int, int]


class TiledPixels:
    """A raster of ``size`` (width, height) that comes tile by tile.

    ``tile(column, row)`` gives the pixels of one, (height, width, channels), cut to the raster; it
    is called by several threads at once.
    """

    def __init__(
        self,
        size: tuple[int, int],
        tile_size: tuple[int, int],
        channels: int,
        dtype: np.dtype[Any],
        tile: Callable[[int, int], npt.NDArray[Any]],
    ) -> None:
        self._size, self._tile_size = size, tile_size
        self._channels, self._dtype = channels, dtype
        self._tile = tile
        # Tiles that the next band begins with as well.
        self._carried: dict[Place, npt.NDArray[Any]] = {}

    def read(self, x: int, y: int, width: int, height: int, workers: int | None) -> Any:
        """Pixels (height, width, channels) of a rectangle inside the raster."""
        across, down = self._tile_size
        out = np.empty((height, width, self._channels), self._dtype)
        places = [
            (column, row)
            for row in range(y // down, -(-(y + height) // down))
            for column in range(x // across, -(-(x + width) // across))
        ]
        carried, self._carried = self._carried, {}

        def pixels_of(place: Place) -> npt.NDArray[Any]:
            return carried[place] if place in carried else self._tile(*place)

        tiles = in_order(pixels_of, places, workers)
        for (column, row), tile in zip(places, tiles, strict=True):
            if (row + 1) * down > y + height and width == self._size[0]:
                self._carried[column, row] = tile
            left, top = column * across, row * down
            right = min(left + tile.shape[1], x + width)
            bottom = min(top + tile.shape[0], y + height)
            at_x, at_y = max(left, x), max(top, y)
            out[at_y - y : bottom - y, at_x - x : right - x] = tile[
                at_y - top : bottom - top, at_x - left : right - left
            ]
        return out
