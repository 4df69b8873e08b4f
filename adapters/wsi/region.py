"""Rectangles of a raster of tiles: pixel by pixel, or averaged to coarser pixels."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import _native
from ..._options import read_options, worker_count
from ...errors import PackError, row_error
from ...images import ImageBatch
from ...pack import PackReader
from .schema import Level, Slide

#: Pixels decoded at a time, in bytes.
_BATCH_BYTES = 64 << 20
#: Beyond, numbers of double precision no longer tell pixels apart.
_MAX_SCALE = 1 << 40

Pair = tuple[float, float]


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
        self._tile_samples = level.tile_width * level.tile_height * slide.channels
        tile_bytes = self._tile_samples * slide.dtype.itemsize
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
            out[:] = slide.background
        batches = self._batches(x, y, x + width, y + height, workers)
        for (tile_y, tile_x), tile in chain.from_iterable(batches):
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
        for batch in self._batches(*bounds, workers):
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

    def _batches(
        self, left: int, top: int, right: int, bottom: int, workers: int | None
    ) -> Iterator[list[tuple[tuple[int, int], npt.NDArray[Any]]]]:
        """The stored tiles of a window, some at a time: their upper left pixel, and what they have
        of the raster, (height, width, channels).
        """
        level = self.level
        left, top = max(left, 0), max(top, 0)
        right, bottom = min(right, level.width), min(bottom, level.height)
        if left >= right or top >= bottom:
            return
        rows, first_x, first_y = self._window(left, top, right, bottom)
        at_y, at_x = np.nonzero(rows >= 0)
        for begin in range(0, len(at_y), self._batch):
            some = slice(begin, begin + self._batch)
            batch_rows = rows[at_y[some], at_x[some]]
            ys, xs = at_y[some] + first_y, at_x[some] + first_x
            images = self._decoded(batch_rows, workers)
            yield [
                ((y * level.tile_height, x * level.tile_width), self._checked(image, row, x, y))
                for image, row, x, y in zip(
                    images, batch_rows.tolist(), xs.tolist(), ys.tolist(), strict=True
                )
            ]

    def _decoded(self, rows: npt.NDArray[np.int64], workers: int | None) -> list[npt.NDArray[Any]]:
        if not self._cache_tiles:
            return self._decode(rows, workers)
        found: dict[int, npt.NDArray[Any]] = {}
        for row in rows.tolist():
            if (image := self._cache.get(row)) is not None:
                found[row] = image
        missing = [row for row in rows.tolist() if row not in found]
        for row, image in zip(
            missing, self._decode(np.array(missing, np.int64), workers), strict=True
        ):
            # Of its own, so that it does not keep a whole batch in memory.
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
        return [found[row] for row in rows.tolist()]

    def _decode(self, rows: npt.NDArray[np.int64], workers: int | None) -> list[npt.NDArray[Any]]:
        if len(rows) == 0:
            return []
        options = read_options(True, workers, max_samples=self._tile_samples)
        batch = self._reader.native.read(rows, *options)
        if batch.images is None:
            raise PackError(f"{self._reader.package_path}: raster_codec decodes to no images")
        return list(ImageBatch.from_native(batch, "raise"))

    def _checked(self, image: Any, row: int, tile_x: int, tile_y: int) -> npt.NDArray[Any]:
        """A decoded tile, which the core has cut to what it has of the raster."""
        slide = self._slide
        if image is not None and image.ndim == 2:
            image = image.reshape(*image.shape, 1)
        width, height = self.level.valid_size(tile_x, tile_y)
        wanted = (int(height), int(width), slide.channels)
        if image is None or image.shape != wanted or image.dtype != slide.dtype:
            found = "no image" if image is None else f"{image.shape} of {image.dtype}"
            raise row_error(
                PackError,
                str(self._reader.package_path),
                row,
                f"the tile is {found}, header and index say {wanted} of {slide.dtype}",
            )
        return image
