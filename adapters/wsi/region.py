"""Rectangles of a raster of tiles: pixel by pixel, or averaged to coarser pixels."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ... import _native
from ..._options import worker_count
from ...pack import PackReader
from .schema import Level, Slide

#: Pixels decoded at a time, in bytes.
_BATCH_BYTES = 64 << 20
#: Beyond, numbers of double precision no longer tell pixels apart.
_MAX_SCALE = 1 << 40

Pair = tuple[float, float]


class _Tiles(NamedTuple):
    """Stored tiles of a raster."""

    rows: npt.NDArray[np.int64]
    #: Their upper left pixels, (n, 2), along y and x.
    places: npt.NDArray[np.int64]
    #: Height and width of what they have of the raster, (n, 2); the rest is padding.
    sizes: npt.NDArray[np.int64]

    def at(self, some: Any) -> _Tiles:
        return _Tiles(*(values[some] for values in self))


class Raster:
    """The tiles of one level.

    ``places`` holds at [tile_y, tile_x] one more than the tile's row, 0 for background.
    ``cache_bytes`` bounds the decoded tiles that are kept, none for 0.
    """

    def __init__(
        self,
        reader: PackReader,
        slide: Slide,
        level: Level,
        places: npt.NDArray[np.int64],
        cache_bytes: int,
    ) -> None:
        self._reader = reader
        self._slide = slide
        self.level = level
        self._places = places
        tile_bytes = level.tile_height * level.tile_width * slide.channels * slide.dtype.itemsize
        self._batch = max(1, _BATCH_BYTES // tile_bytes)
        self._cache_tiles = cache_bytes // tile_bytes
        # Without a lock, which a forked child might find taken: each operation is atomic.
        self._cache: OrderedDict[int, npt.NDArray[Any]] = OrderedDict()

    def read(self, x: int, y: int, width: int, height: int, workers: int | None) -> Any:
        """Pixels (height, width, channels) from x, y on; background outside."""
        slide = self._slide
        worker_count(workers)
        out = np.empty((height, width, slide.channels), slide.dtype)
        if not self._covers(x, y, x + width, y + height):
            out[:] = np.full_like(out[0], slide.background)
        tiles = self._tiles(x, y, x + width, y + height)
        if not self._cache_tiles:
            self._decode(out, tiles, (y, x), workers)
            return out
        for (tile_y, tile_x), tile in chain.from_iterable(self._batches(tiles, workers)):
            top, left = max(tile_y, y), max(tile_x, x)
            bottom = min(tile_y + tile.shape[0], y + height)
            right = min(tile_x + tile.shape[1], x + width)
            out[top - y : bottom - y, left - x : right - x] = tile[
                top - tile_y : bottom - tile_y, left - tile_x : right - tile_x
            ]
        return out

    def average(
        self, start: Pair, scale: Pair, width: int, height: int, workers: int | None
    ) -> npt.NDArray[Any]:
        """Pixels (height, width, channels), of which [i, j] is the mean of the rectangle from
        ``start`` + (j, i) * ``scale`` up to ``start`` + (j + 1, i + 1) * ``scale``, in pixels along
        x and y, background outside; rounded half to even.
        """
        if max(scale) > _MAX_SCALE:
            raise ValueError(f"{max(scale):g} pixels for one are too many")
        if scale == (1, 1) and all(place == int(place) for place in start):
            return self.read(int(start[0]), int(start[1]), width, height, workers)
        slide = self._slide
        sums = np.zeros((height, width, slide.channels))
        end = start[0] + width * scale[0], start[1] + height * scale[1]
        bounds = [int(np.floor(v)) for v in start] + [int(np.ceil(v)) for v in end]
        background = [float(value) for value in slide.background]
        for batch in self._batches(self._tiles(*bounds), workers):
            _native.add_area_sums(
                sums,
                [tile for _, tile in batch],
                np.array([place for place, _ in batch], np.int64),
                start[::-1],
                scale[::-1],
                background,
                worker_count(workers),
            )
        sums /= scale[0] * scale[1]
        sums += background
        np.rint(sums, out=sums)
        return np.clip(sums, 0, np.iinfo(slide.dtype).max, out=sums).astype(slide.dtype)

    def _covers(self, left: int, top: int, right: int, bottom: int) -> bool:
        """Whether each pixel of a window is in a stored tile."""
        level = self.level
        if left < 0 or top < 0 or right > level.width or bottom > level.height:
            return False
        return bool((self._window(left, top, right, bottom)[0] >= 0).all())

    def _window(
        self, left: int, top: int, right: int, bottom: int
    ) -> tuple[npt.NDArray[np.int64], int, int]:
        """The rows of the tiles of a window inside the raster, -1 for background, and the place of
        the first.
        """
        width, height = self.level.tile_width, self.level.tile_height
        x, y = left // width, top // height
        return self._places[y : -(-bottom // height), x : -(-right // width)] - 1, x, y

    def _tiles(self, left: int, top: int, right: int, bottom: int) -> _Tiles:
        """The stored tiles of a window, row by row."""
        level = self.level
        left, top = max(left, 0), max(top, 0)
        right, bottom = max(min(right, level.width), 0), max(min(bottom, level.height), 0)
        rows, first_x, first_y = self._window(left, top, right, bottom)
        at_y, at_x = np.nonzero(rows >= 0)
        y, x = at_y + first_y, at_x + first_x
        places = np.stack([y * level.tile_height, x * level.tile_width], axis=1)
        return _Tiles(rows[at_y, at_x], places, np.stack(level.valid_size(x, y)[::-1], axis=1))

    def _batches(
        self, tiles: _Tiles, workers: int | None
    ) -> Iterator[list[tuple[tuple[int, int], npt.NDArray[Any]]]]:
        """Tiles, some at a time: their upper left pixel, and what they have of the raster, (height,
        width, channels), until the next are asked for.
        """
        largest = tiles.sizes.max(axis=0, initial=0).tolist()
        shape = min(len(tiles.rows), self._batch), *largest, self._slide.channels
        memory = np.empty(shape, self._slide.dtype)
        for begin in range(0, len(tiles.rows), self._batch):
            some = tiles.at(slice(begin, begin + self._batch))
            decoded = self._cached if self._cache_tiles else self._decoded
            places = map(tuple, some.places.tolist())
            yield list(zip(places, decoded(memory, some, workers), strict=True))

    def _cached(
        self, memory: npt.NDArray[Any], tiles: _Tiles, workers: int | None
    ) -> list[npt.NDArray[Any]]:
        """What tiles have of the raster, from the cache or for it."""
        found: dict[int, npt.NDArray[Any]] = {}
        for row in tiles.rows.tolist():
            if (image := self._cache.get(row)) is not None:
                found[row] = image
        missing = tiles.at([row not in found for row in tiles.rows.tolist()])
        images = self._decoded(memory, missing, workers)
        for row, image in zip(missing.rows.tolist(), images, strict=True):
            found[row] = self._cache[row] = image.copy()
            found[row].flags.writeable = False
        for row in found:
            try:
                self._cache.move_to_end(row)
            except KeyError:  # another thread has let go of it
                continue
        while len(self._cache) > self._cache_tiles:
            try:
                self._cache.popitem(last=False)
            except KeyError:
                break
        return [found[row] for row in tiles.rows.tolist()]

    def _decoded(
        self, memory: npt.NDArray[Any], tiles: _Tiles, workers: int | None
    ) -> list[npt.NDArray[Any]]:
        """What tiles have of the raster, decoded to ``memory``, (tiles or more, height, width,
        channels).
        """
        height, width, channels = memory.shape[1:]
        tops = np.arange(len(tiles.rows)) * height
        below = tiles._replace(places=np.stack([tops, np.zeros_like(tops)], axis=1))
        self._decode(memory.reshape(-1, width, channels), below, (0, 0), workers)
        return [
            tile[:valid_height, :valid_width]
            for tile, (valid_height, valid_width) in zip(memory, tiles.sizes.tolist(), strict=False)
        ]

    def _decode(
        self, out: npt.NDArray[Any], tiles: _Tiles, origin: tuple[int, int], workers: int | None
    ) -> None:
        """Decodes tiles to their places in ``out``, which begins at pixel ``origin`` (y, x)."""
        if len(tiles.rows):
            _native.read_tiles(
                self._reader.native,
                out,
                tiles.rows,
                tiles.places - origin,
                tiles.sizes,
                (self.level.tile_height, self.level.tile_width),
                worker_count(workers),
            )
