"""The tiles or strips of one image in a TIFF file."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...codec import Codec
from .schema import MAX_TILE_SIDE
from .sources import NativeTiles, SourceError, broken_tile, check_memory, on_colour
from .tiled import TiledPixels

_MAX_TABLES = 16 << 10
#: Of tiles that lie one behind the other, read at once.
_READ_BYTES = 4 << 20
#: Values of the tag Compression.
JPEG = 7
_APERIO_YCBCR, _APERIO_RGB = 33003, 33005
JPEG2000 = (_APERIO_YCBCR, _APERIO_RGB, 34712)
#: Values of the tag PhotometricInterpretation.
_WHITE_IS_ZERO, _BLACK_IS_ZERO, _RGB, _YCBCR = 0, 1, 2, 6


def compression_of(page: Any) -> str:
    """The name of a page's compression, or its number."""
    return getattr(page.compression, "name", str(page.compression))


def not_stored(page: Any) -> str | None:
    """Why pixels of a page's kind cannot be stored; None where they can."""
    gray = page.photometric in (_BLACK_IS_ZERO, _WHITE_IS_ZERO) and page.samplesperpixel == 1
    colour = page.photometric in (_RGB, _YCBCR) and page.samplesperpixel in (3, 4)
    if page.photometric == _YCBCR and page.compression not in (JPEG, _APERIO_YCBCR):
        colour = page.compression in JPEG2000
    eight = page.dtype == np.uint8
    if not (gray or colour) or not (eight or page.dtype == np.uint16):
        photometric = getattr(page.photometric, "name", page.photometric)
        return (
            f"pixels are {page.samplesperpixel} samples of {page.dtype}, {photometric}; gray and "
            "RGB of uint8 and uint16 can be stored"
        )
    return "has alpha of more than 8 bits" if page.samplesperpixel == 4 and not eight else None


class TiffTiles:
    """Tiles or strips of a page, read by positions in the file: any number of threads at once."""

    def __init__(self, path: Path, page: Any) -> None:
        self._path = path
        self._page = page
        if reason := not_stored(page):
            raise SourceError(f"{path}: {reason}")
        self.channels = 1 if page.samplesperpixel == 1 else 3
        height, width = page.imagelength, page.imagewidth
        if page.is_tiled:
            self.size = page.tilewidth, page.tilelength
        else:
            self.size = width, min(page.rowsperstrip or height, height)
        check_memory(path, "a tile", self.size, page.samplesperpixel * page.dtype.itemsize)
        self._grid = -(-width // self.size[0]), -(-height // self.size[1])
        planes = page.samplesperpixel if page.planarconfig == 2 else 1
        self._planes = planes
        self._check_directory()
        # The file is closed when they are needed.
        self._offsets, self._lengths = page.dataoffsets, page.databytecounts
        self._decode, self._tables = page.decode, page.jpegtables
        encoding = self._encoding()
        try:
            self._codec = Codec.create(encoding[0], **encoding[1]) if encoding else None
        except ValueError as error:
            raise SourceError(f"{path}: {error}") from error
        self.native = self._native(*encoding) if encoding else None

    def _check_directory(self) -> None:
        """That it says of each tile where it is."""
        page, (columns, rows) = self._page, self._grid
        for listed in (page.dataoffsets, page.databytecounts):
            if len(listed) < columns * rows * self._planes:
                raise SourceError(
                    f"{self._path}: its directory lists {len(listed)} tiles, the raster has "
                    f"{columns} x {rows}"
                )
            if not all(hasattr(kind, "__index__") for kind in set(map(type, listed))):
                raise SourceError(f"{self._path}: its directory lists tiles by other than integers")

    def _encoding(self) -> tuple[str, dict[str, Any]] | None:
        """What our codecs need for the tiles that they decode: tifffile passes damaged ones."""
        page = self._page
        is_colour = page.samplesperpixel == 3 and self._planes == 1
        decoding: dict[str, Any] = {}
        if page.compression == JPEG and page.dtype == np.uint8 and page.samplesperpixel in (1, 3):
            if is_colour:
                space = "YCbCr" if page.photometric == _YCBCR else "RGB"
                decoding["encoded_color_space"] = space
            tables = self._tables
            decoding["tables_base64"] = base64.b64encode(tables).decode() if tables else None
            return Codec.JPEG, decoding
        if page.compression in JPEG2000:
            if is_colour and (page.compression == _APERIO_YCBCR or page.photometric == _YCBCR):
                decoding["encoded_color_space"] = "YCbCr"
            return Codec.JPEG2000, decoding
        return None

    def _native(self, codec: str, decoding: dict[str, Any]) -> NativeTiles | None:
        """The tiles to store as they are, where they can be."""
        page = self._page
        whole = page.is_tiled and self._planes == 1 and page.jpegheader is None
        if not whole or page.dtype != np.uint8 or page.samplesperpixel != 3:
            return None
        if max(self.size) > MAX_TILE_SIDE:
            return None
        if self._tables is not None and len(self._tables) > _MAX_TABLES:
            return None
        name = compression_of(page)
        return NativeTiles.create(self._path, codec, decoding, name, self.size, self)

    def pixels(self) -> TiledPixels:
        size = self._page.imagewidth, self._page.imagelength
        dtype = self._page.dtype.newbyteorder("=")
        return TiledPixels(size, self.size, self.channels, dtype, self.tile)

    def there(self) -> npt.NDArray[np.bool_]:
        """Whether there is a tile, (rows, columns)."""
        columns, rows = self._grid
        lengths = self._lengths[: rows * columns]
        return np.array([length != 0 for length in lengths]).reshape(rows, columns)

    def read(self, places: Sequence[tuple[int, int]]) -> list[Any]:
        """The bytes of tiles in places (column, row), None where the file has none."""
        return self._stored([row * self._grid[0] + column for column, row in places])

    def _stored(self, indexes: Sequence[int]) -> list[Any]:
        """The bytes of tiles or strips; None where the file has none."""
        found: list[Any] = []
        with open(self._path, "rb", buffering=0) as file:
            end = os.fstat(file.fileno()).st_size
            for run in self._runs(indexes):
                offset, lengths = self._offsets[run[0]], [self._lengths[index] for index in run]
                there = 0 <= offset < end and lengths[0] > 0
                size = min(sum(lengths), end - offset)
                data: Any = os.pread(file.fileno(), size, offset) if there else b""
                if len(run) > 1:
                    data = memoryview(data)
                for index, length in zip(run, lengths, strict=True):
                    piece, data = data[:length], data[length:]
                    if len(piece) != length:
                        raise self._broken(index, f"ends after {len(piece)} of {length} bytes")
                    found.append(piece if length else None)
        return found

    def _runs(self, indexes: Sequence[int]) -> Iterator[list[int]]:
        """What lies one behind the other in the file, within bounds; what is missing by itself."""
        run: list[int] = []
        start = end = 0
        for index in indexes:
            offset, length = self._offsets[index], self._lengths[index]
            if run and (offset != end or length <= 0 or offset + length > start + _READ_BYTES):
                yield run
                run = []
            if not run:
                start = offset
            run.append(index)
            end = offset + length if length > 0 else -1
        if run:
            yield run

    def _broken(self, index: int, reason: object) -> SourceError:
        per_plane = self._grid[0] * self._grid[1]
        y, x = divmod(index % per_plane, self._grid[0])
        if self._page.is_tiled:
            return broken_tile(self._path, x, y, reason)
        return SourceError(f"{self._path}: strip {y} {reason}")

    def tile(self, column: int, row: int) -> npt.NDArray[Any]:
        """The pixels of a tile or strip, (height, width, channels), cut to the raster."""
        width = min(self.size[0], self._page.imagewidth - column * self.size[0])
        height = min(self.size[1], self._page.imagelength - row * self.size[1])
        first = row * self._grid[0] + column
        if self.native is not None:
            return self.native.pixels(column, row)[:height, :width]
        per_plane = self._grid[0] * self._grid[1]
        planes = [self._decoded(first + plane * per_plane) for plane in range(self._planes)]
        if all(plane is None for plane in planes):
            shape = (height, width, self.channels)
            return np.full(shape, np.iinfo(self._page.dtype).max, self._page.dtype)
        if any(plane is None for plane in planes):
            raise self._broken(first, "lacks some of its planes")
        tile = np.concatenate([plane[:height, :width] for plane in planes], axis=2)
        shape = (height, width, self._page.samplesperpixel)
        if tile.shape != shape or tile.dtype != self._page.dtype:
            raise self._broken(first, f"is {tile.shape} of {tile.dtype}, expected {shape}")
        if self._page.photometric == _WHITE_IS_ZERO:
            tile = np.iinfo(tile.dtype).max - tile
        return on_colour(tile) if tile.shape[2] == 4 else tile

    def _decoded(self, index: int) -> npt.NDArray[Any] | None:
        (data,) = self._stored([index])
        if data is None:
            return None
        try:
            if self._codec is not None:
                tile = self._codec.decode(self._as_stream(data))
                return tile.reshape(*tile.shape[:2], -1)
            tile, _, _ = self._decode(data, index, jpegtables=self._tables)
        except Exception as error:
            raise self._broken(
                index, f"cannot be decoded ({type(error).__name__}: {error})"
            ) from error
        if tile is None or tile.ndim != 4 or tile.shape[0] != 1:
            raise self._broken(index, "cannot be decoded")
        return tile[0]

    def _as_stream(self, data: bytes) -> bytes:
        """An interval of an NDPI file's one JPEG as a JPEG of its own, which ends with no restart
        marker; other tiles are such already.
        """
        header = self._page.jpegheader
        return data if header is None else header + data[: data.rfind(b"\xff")] + b"\xff\xd9"
