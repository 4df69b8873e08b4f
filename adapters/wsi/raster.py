"""Encoding the raster of a slide in one pass, though its background is known only behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ... import _native
from ..._options import worker_count
from ...codec import Codec
from .._parallel import in_order
from .profile import Profile
from .sources import Check, Source

Pixels = npt.NDArray[Any]
Colour = tuple[int, ...]

#: Kept tiles that are read and checked at a time: about so many bytes, at most so many.
_BATCH_BYTES, _BATCH_TILES = 2 << 20, 1024


class Place(NamedTuple):
    """A tile: of which level, where in its grid, and how much of it is slide."""

    level: int
    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True)
class Raster:
    """The tiles to store."""

    background: Colour
    provenance: str
    places: npt.NDArray[np.int64]  # (n, 5), each a Place
    #: Of each place the payload, in order, in lists of some; they can be taken once.
    blocks: Iterator[list[Any]]


def grid_rows(
    width: int, height: int, tile_size: tuple[int, int], level: int = 0
) -> list[list[Place]]:
    """The grid of a raster, row by row."""
    across, down = tile_size
    return [
        [
            Place(level, x // across, y // down, min(across, width - x), min(down, height - y))
            for x in range(0, width, across)
        ]
        for y in range(0, height, down)
    ]


def kept_raster(
    source: Source, profile: Profile, check: Check, workers: int | None, bar: Any
) -> Raster:
    """The source's own tiles, read as they are taken: each once, and checked."""
    native = profile.native
    assert native is not None
    there = native.stored.there()
    y, x = np.nonzero(there)
    across, down = profile.tile_size
    width = np.minimum(across, source.width - x * across)
    height = np.minimum(down, source.height - y * down)
    found = list(zip(x.tolist(), y.tolist(), strict=True))
    tile_bytes = source.storage["native_compressed_bytes"] // max(1, len(found))
    step = min(max(1, _BATCH_BYTES // max(1, tile_bytes)), _BATCH_TILES)

    def blocks() -> Iterator[list[Any]]:
        bar.update(there.size - len(found))
        batches = [found[start : start + step] for start in range(0, len(found), step)]
        threads = workers if len(batches) > 1 else 1
        for payloads in in_order(partial(native.payloads, check=check), batches, threads):
            bar.update(len(payloads))
            yield payloads

    places = np.stack([np.zeros_like(x), x, y, width, height], axis=1)
    return Raster(_white(source), "default_white", places, blocks())


def encoded_raster(
    source: Source,
    profile: Profile,
    levels: Sequence[int],
    workers: int | None,
    bar: Any,
    file: IO[bytes],
) -> Raster:
    """The raster as JPEG XL, unless the source's own tiles are kept, and coarser ones, each of
    whose pixels is the mean of a square of ``levels`` native ones. Tiles of the most frequent
    single colour are left out.

    What is encoded waits in ``file``; tiles at the edges, which are padded with the background,
    wait for it to be known.
    """
    encoding = _Encoding(source, profile)
    found: list[_Waiting] = []
    for place, colour, data in in_order(
        encoding.first, _tiles(source, profile, levels, workers), workers
    ):
        found.append(_Waiting(place, colour, file.tell(), len(data)))
        file.write(data)
        bar.update()
    background, provenance = _background(source, found)
    stored = [waiting for waiting in found if waiting.colour != background]

    def payloads() -> Iterator[bytes]:
        def with_data(waiting: _Waiting) -> tuple[_Waiting, bytes]:
            file.seek(waiting.offset)
            return waiting, file.read(waiting.length)

        items = map(with_data, stored)
        yield from in_order(lambda item: encoding.second(*item, background), items, workers)

    places = np.array([waiting.place for waiting in stored], np.int64).reshape(-1, 5)
    return Raster(background, provenance, places, ([payload] for payload in payloads()))


@dataclass(frozen=True)
class _Waiting:
    """A tile between the two steps: its colour if it is of one, else where its bytes are."""

    place: Place
    colour: Colour | None
    offset: int
    length: int


class _Encoding:
    """How tiles become payloads, in two steps around knowing the background."""

    def __init__(self, source: Source, profile: Profile) -> None:
        self._shape = (profile.tile_size[1], profile.tile_size[0], source.channels)
        self._dtype = source.dtype
        self._codec = profile.encoder
        self._packed = Codec.create(Codec.ZSTD, level=1)

    def _is_whole(self, place: Place) -> bool:
        return (place.height, place.width) == self._shape[:2]

    def first(self, tile: tuple[Place, Pixels]) -> tuple[Place, Colour | None, bytes]:
        """The colour of a tile of one colour; else its payload, or its pixels if it is padded."""
        place, pixels = tile
        corner = pixels[0, 0]
        if (pixels[0] == corner).all() and (pixels == corner).all():
            return place, tuple(corner.tolist()), b""
        if self._is_whole(place):
            return place, None, self._codec.encode(pixels)
        return place, None, self._packed.encode(np.ascontiguousarray(pixels))

    def second(self, waiting: _Waiting, data: bytes, background: Colour) -> bytes:
        """The payload, ``data`` being what the first step gave."""
        place = waiting.place
        if waiting.colour is None and self._is_whole(place):
            return data
        tile = np.empty(self._shape, self._dtype)
        tile[:] = background
        valid = tile[: place.height, : place.width]
        if waiting.colour is not None:
            valid[:] = waiting.colour
        else:
            valid[:] = np.frombuffer(self._packed.decode(data), self._dtype).reshape(valid.shape)
        return self._codec.encode(tile)


def _white(source: Source) -> Colour:
    return (int(np.iinfo(source.dtype).max),) * source.channels


def _background(source: Source, tiles: Sequence[_Waiting]) -> tuple[Colour, str]:
    """The colour of most native tiles of one colour, the smallest of several; else white."""
    counts = Counter(t.colour for t in tiles if t.colour is not None and t.place.level == 0)
    if not counts:
        return _white(source), "default_white"
    most = max(counts.values())
    return min(colour for colour, count in counts.items() if count == most), "uniform_tile_mode"


def _tiles(
    source: Source, profile: Profile, levels: Sequence[int], workers: int | None
) -> Iterator[tuple[Place, Pixels]]:
    """The tiles to encode, from top to bottom, a row of native ones in memory."""
    coarser = [_Coarser(source, profile.tile_size, *level) for level in enumerate(levels, start=1)]
    for row in grid_rows(source.width, source.height, profile.tile_size):
        band = source.band(row[0].y * profile.tile_size[1], row[0].height, workers)
        if profile.native is None:
            yield from _cut(band, row, profile.tile_size[0])
        for level in coarser:
            yield from level.add(band, workers)


def _cut(band: Pixels, row: list[Place], across: int) -> Iterator[tuple[Place, Pixels]]:
    for place in row:
        left = place.x * across
        yield place, band[:, left : left + place.width]


class _Coarser:
    """A coarser raster, made of the bands of the native one."""

    def __init__(self, source: Source, tile_size: tuple[int, int], level: int, factor: int) -> None:
        self._factor = factor
        self._across = tile_size[0]
        width, height = -(-source.width // factor), -(-source.height // factor)
        self._rows = iter(grid_rows(width, height, tile_size, level))
        self._row = next(self._rows)
        self._means: list[Pixels] = []

    def add(self, band: Pixels, workers: int | None) -> Iterator[tuple[Place, Pixels]]:
        """The tiles that the band completes: bands are as high as some of their rows."""
        self._means.append(self._averaged(band, workers))
        if sum(map(len, self._means)) < self._row[0].height:
            return
        yield from _cut(np.concatenate(self._means), self._row, self._across)
        self._means = []
        self._row = next(self._rows, [])

    def _averaged(self, band: Pixels, workers: int | None) -> Pixels:
        """Means of squares; at the edges of what there is of them."""
        factor = self._factor
        counts = [np.minimum(factor, side - np.arange(0, side, factor)) for side in band.shape[:2]]
        sums = np.zeros((len(counts[0]), len(counts[1]), band.shape[2]))
        scale = float(factor), float(factor)
        _native.add_area_sums(
            sums,
            [band],
            np.zeros((1, 2), np.int64),
            (0.0, 0.0),
            scale,
            [0.0] * band.shape[2],
            worker_count(workers),
        )
        sums /= np.multiply.outer(*counts)[:, :, np.newaxis]
        return np.rint(sums).astype(band.dtype)
