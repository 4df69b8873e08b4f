"""A slide as Deep Zoom tiles, what viewers in browsers ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from .arguments import integer, side

if TYPE_CHECKING:
    from .read import WsiImageReader


class DeepZoom:
    """Deep Zoom tiles of a slide, level by level from a single pixel (0) to the native raster.

    Each level is half as large as the next, its pixels are averages of native ones. Tiles overlap
    by ``overlap`` pixels on each inner side.
    """

    def __init__(self, reader: WsiImageReader, tile_size: int = 254, overlap: int = 1) -> None:
        self.tile_size, self.overlap = side("tile_size", tile_size), integer("overlap", overlap)
        if not 0 <= overlap <= tile_size:
            raise ValueError(f"overlap is {overlap}, expected 0 to {tile_size}")
        self._reader = reader
        #: Number of levels.
        self.level_count = (max(reader.dimensions) - 1).bit_length() + 1

    @property
    def level_dimensions(self) -> tuple[tuple[int, int], ...]:
        """Width and height of each level."""
        return tuple(
            tuple(-(-own // (1 << self._shift(level))) for own in self._reader.dimensions)
            for level in range(self.level_count)
        )

    @property
    def level_tiles(self) -> tuple[tuple[int, int], ...]:
        """Number of tile columns and rows of each level."""
        return tuple(
            (-(-w // self.tile_size), -(-h // self.tile_size)) for w, h in self.level_dimensions
        )

    @property
    def tile_count(self) -> int:
        """Number of all tiles."""
        return sum(columns * rows for columns, rows in self.level_tiles)

    def _shift(self, level: int) -> int:
        return self.level_count - 1 - level

    def get_tile(
        self,
        level: int,
        column: int,
        row: int,
        *,
        workers: int | None = None,
        srgb: bool = False,
    ) -> npt.NDArray[Any]:
        """Pixels (height, width, channels) of one tile; those at the edges are smaller.

        ``srgb`` converts them by the slide's ICC profile, if it has one.

        Raises ValueError for a level or a place that is not there.
        """
        if not 0 <= integer("level", level) < self.level_count:
            raise ValueError(f"level is {level}, there are {self.level_count}")
        columns, rows = self.level_tiles[level]
        if not (0 <= integer("column", column) < columns and 0 <= integer("row", row) < rows):
            raise ValueError(
                f"no tile in column {column}, row {row} of level {level}: it has {columns} x {rows}"
            )
        bounds = []
        for place, most in zip((column, row), self.level_dimensions[level], strict=True):
            start = max(place * self.tile_size - self.overlap, 0)
            end = min((place + 1) * self.tile_size + self.overlap, most)
            bounds.append((start, end - start))
        (x, width), (y, height) = bounds
        factor = 1 << self._shift(level)
        return self._reader.average(
            (x * factor, y * factor), (factor, factor), width, height, workers=workers, srgb=srgb
        )

    def get_dzi(self, format: str) -> str:
        """The XML that a viewer reads first, of tiles that are images of ``format``."""
        width, height = self._reader.dimensions
        return (
            '<?xml version="1.0" encoding="utf-8"?>'
            '<Image xmlns="http://schemas.microsoft.com/deepzoom/2008" '
            f'TileSize="{self.tile_size}" Overlap="{self.overlap}" Format="{format}">'
            f'<Size Width="{width}" Height="{height}"/></Image>'
        )
