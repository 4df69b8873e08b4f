"""Slides from TIFF files: SVS, NDPI, SCN, BIF, OME-TIFF, generic tiled ones."""

from __future__ import annotations

import base64
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...codec import Codec
from .pillow_source import associated_image
from .sources import AssociatedImage, NativeTiles, Source, SourceError, on_colour, plain
from .tiled import TiledPixels

_MAX_TABLES = 16 << 10
#: Values of the tag Compression.
_JPEG = 7
_APERIO_YCBCR, _APERIO_RGB = 33003, 33005
_JPEG2000 = (_APERIO_YCBCR, _APERIO_RGB, 34712)
_LOSSLESS = (1, 5, 8, 32773, 32946, 34925, 50000)
#: What Aperio's descriptions say of codec and quality: "JPEG/RGB Q=70".
_APERIO_CODEC = re.compile(r"(\w+/\w+) Q=(\d+)")
#: Values of the tag PhotometricInterpretation.
_WHITE_IS_ZERO, _BLACK_IS_ZERO, _RGB, _YCBCR = 0, 1, 2, 6


def open_slide(path: Path) -> Source:
    """The largest raster of a TIFF file; metadata and associated images by TiffSlide."""
    try:
        import tifffile
    except ImportError as error:
        raise ImportError("TIFF slides need tifffile: pip install iac-query[wsi]") from error
    try:
        with tifffile.TiffFile(path) as file:
            page = _largest(file, path)
            return _source(path, file, page)
    except (SourceError, OSError):
        raise
    except Exception as error:
        raise SourceError(
            f"{path}: is no TIFF slide that can be read ({type(error).__name__}: {error})"
        ) from error


def _largest(file: Any, path: Path) -> Any:
    """The page of the largest raster."""
    levels = [level for series in file.series for level in series.levels[:1]]
    if not levels:
        raise SourceError(f"{path}: has no images")
    level = max(levels, key=lambda level: level.keyframe.imagewidth * level.keyframe.imagelength)
    if len(level.pages) != 1 or level.keyframe.imagedepth != 1:
        raise SourceError(
            f"{path}: its raster is of {len(level.pages)} planes ({level.axes}), a slide has one "
            "of gray or RGB"
        )
    return level.pages[0].aspage()


def _source(path: Path, file: Any, page: Any) -> Source:
    tiles = _TiffTiles(path, page)
    facts, images, backend = _slide_facts(path)
    icc = page.tags.get(34675)
    compression = _name(page.compression)
    described = _APERIO_CODEC.search(page.description)
    size, dtype = (page.imagewidth, page.imagelength), page.dtype.newbyteorder("=")
    return Source(
        path=path,
        width=size[0],
        height=size[1],
        channels=tiles.channels,
        dtype=dtype,
        pixels=TiledPixels(size, tiles.size, tiles.channels, dtype, tiles.tile),
        backend=backend,
        format=path.suffix[1:].lower(),
        mode="RGB" if tiles.channels == 3 else "L" if dtype.itemsize == 1 else "I;16",
        mpp=_mpp(facts, page),
        icc_profile=bytes(icc.value) if icc is not None else None,
        orientation=1,
        info=facts,
        storage={
            "codec": described[1] if described else compression,
            "lossy": _is_lossy(page),
            "native_compressed_bytes": int(sum(page.databytecounts)),
            "native_tile_height": page.tilelength if page.is_tiled else None,
            "native_tile_width": page.tilewidth if page.is_tiled else None,
            "nominal_quality": int(described[2]) if described else None,
            "source_bytes": path.stat().st_size,
            "tiff_compression": compression,
        },
        native=tiles.native,
        associated=images,
        keeps_associated=backend == "TiffSlide",
    )


def _name(compression: Any) -> str:
    return getattr(compression, "name", str(compression))


def _is_lossy(page: Any) -> bool | None:
    if page.compression in (_JPEG, 6, *_JPEG2000, 50001):
        return True
    return False if page.compression in _LOSSLESS else None


def _slide_facts(path: Path) -> tuple[dict[str, Any], tuple[AssociatedImage, ...], str]:
    """What TiffSlide knows of the slide; nothing of files that it does not open."""
    try:
        import tiffslide
    except ImportError as error:
        raise ImportError("TIFF slides need tiffslide: pip install iac-query[wsi]") from error
    try:
        # A file of ours: TiffSlide leaves it open where it fails.
        with open(path, "rb") as file, tiffslide.TiffSlide(file) as slide:
            facts = {str(key): plain(value) for key, value in slide.properties.items()}
            images = tuple(
                associated_image(name, image)
                for name, image in sorted(slide.associated_images.items())
            )
            return facts, images, "TiffSlide"
    except Exception:  # of any kind: a generic TIFF file is a slide all the same
        return {}, (), "tifffile"


def _mpp(facts: dict[str, Any], page: Any) -> tuple[float, float] | None:
    x, y = facts.get("tiffslide.mpp-x"), facts.get("tiffslide.mpp-y")
    if x is None or y is None:
        unit = getattr(page.tags.get("ResolutionUnit"), "value", 2)
        length = {2: 25400.0, 3: 10000.0}.get(int(unit))
        found = [getattr(page.tags.get(f"{axis}Resolution"), "value", None) for axis in "XY"]
        if length is None or None in found:
            return None
        ratios = [top / bottom if bottom else 0 for top, bottom in found]
        if min(ratios) <= 0:
            return None
        x, y = (length / ratio for ratio in ratios)
    try:
        mpp = float(x), float(y)
    except (TypeError, ValueError):
        return None
    return mpp if min(mpp) > 0 and max(mpp) < float("inf") else None


class _TiffTiles:
    """Tiles or strips of a page, read by positions in the file: any number of threads at once."""

    def __init__(self, path: Path, page: Any) -> None:
        self._path = path
        self._page = page
        self._check()
        self.channels = 1 if page.samplesperpixel == 1 else 3
        height, width = page.imagelength, page.imagewidth
        if page.is_tiled:
            self.size = page.tilewidth, page.tilelength
        else:
            self.size = width, min(page.rowsperstrip or height, height)
        self._grid = -(-width // self.size[0]), -(-height // self.size[1])
        planes = page.samplesperpixel if page.planarconfig == 2 else 1
        if len(page.dataoffsets) < self._grid[0] * self._grid[1] * planes:
            raise SourceError(
                f"{path}: its directory lists {len(page.dataoffsets)} tiles, the raster has "
                f"{self._grid[0]} x {self._grid[1]}"
            )
        self._planes = planes
        # The file is closed when they are needed.
        self._offsets, self._lengths = page.dataoffsets, page.databytecounts
        self._decode, self._tables = page.decode, page.jpegtables
        self.native = self._native()

    def _check(self) -> None:
        page, path = self._page, self._path
        gray = page.photometric in (_BLACK_IS_ZERO, _WHITE_IS_ZERO) and page.samplesperpixel == 1
        colour = page.photometric in (_RGB, _YCBCR) and page.samplesperpixel in (3, 4)
        if page.photometric == _YCBCR and page.compression not in (_JPEG, _APERIO_YCBCR):
            colour = page.compression in _JPEG2000
        eight = page.dtype == np.uint8
        if not (gray or colour) or not (eight or page.dtype == np.uint16):
            photometric = getattr(page.photometric, "name", page.photometric)
            raise SourceError(
                f"{path}: pixels are {page.samplesperpixel} samples of {page.dtype}, "
                f"{photometric}; gray and RGB of uint8 and uint16 can be stored"
            )
        if page.samplesperpixel == 4 and not eight:
            raise SourceError(f"{path}: has alpha of more than 8 bits")

    def _native(self) -> NativeTiles | None:
        """The tiles as our codecs read them, where they do."""
        page = self._page
        whole = page.is_tiled and self._planes == 1 and page.jpegheader is None
        if not whole or page.dtype != np.uint8 or page.samplesperpixel != 3:
            return None
        decoding: dict[str, Any]
        if page.compression == _JPEG:
            tables = self._tables
            if tables is not None and len(tables) > _MAX_TABLES:
                return None
            codec = Codec.JPEG
            decoding = {
                "encoded_color_space": "YCbCr" if page.photometric == _YCBCR else "RGB",
                "tables_base64": None if tables is None else base64.b64encode(tables).decode(),
            }
        elif page.compression in _JPEG2000:
            codec = Codec.JPEG2000
            is_ycbcr = page.compression == _APERIO_YCBCR or page.photometric == _YCBCR
            decoding = {"encoded_color_space": "YCbCr"} if is_ycbcr else {}
        else:
            return None
        name = _name(page.compression)
        try:
            return NativeTiles.create(codec, decoding, name, self.size, self._stored_tile)
        except ValueError as error:
            raise SourceError(f"{self._path}: {error}") from error

    def _stored_tile(self, tile_x: int, tile_y: int) -> bytes | None:
        return self._stored(tile_y * self._grid[0] + tile_x)

    def _stored(self, index: int) -> bytes | None:
        """The bytes of a tile or strip; None where the file has none."""
        offset, length = self._offsets[index], self._lengths[index]
        if length == 0:
            return None
        descriptor = os.open(self._path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        try:
            there = max(os.fstat(descriptor).st_size - offset, 0)
            data = os.pread(descriptor, min(length, there), offset) if there else b""
        finally:
            os.close(descriptor)
        if len(data) != length:
            raise self._broken(index, f"ends after {len(data)} of {length} bytes")
        return data

    def _broken(self, index: int, reason: object) -> SourceError:
        per_plane = self._grid[0] * self._grid[1]
        y, x = divmod(index % per_plane, self._grid[0])
        what = f"tile {x}, {y}" if self._page.is_tiled else f"strip {y}"
        return SourceError(f"{self._path}: {what} {reason}")

    def tile(self, column: int, row: int) -> npt.NDArray[Any]:
        """The pixels of a tile or strip, (height, width, channels), cut to the raster."""
        width = min(self.size[0], self._page.imagewidth - column * self.size[0])
        height = min(self.size[1], self._page.imagelength - row * self.size[1])
        first = row * self._grid[0] + column
        if self.native is not None:
            try:
                return self.native.pixels(column, row)[:height, :width]
            except SourceError:
                raise
            except ValueError as error:
                raise self._broken(first, error) from error
        per_plane = self._grid[0] * self._grid[1]
        planes = [self._decoded(first + plane * per_plane) for plane in range(self._planes)]
        if planes[0] is None:
            shape = (height, width, self.channels)
            return np.full(shape, np.iinfo(self._page.dtype).max, self._page.dtype)
        tile = np.concatenate([plane[:height, :width] for plane in planes], axis=2)
        if self._page.photometric == _WHITE_IS_ZERO:
            tile = np.iinfo(tile.dtype).max - tile
        return on_colour(tile) if tile.shape[2] == 4 else tile

    def _decoded(self, index: int) -> npt.NDArray[Any] | None:
        data = self._stored(index)
        if data is None:
            return None
        try:
            tile, _, _ = self._decode(
                data, index, jpegtables=self._tables, jpegheader=self._page.jpegheader
            )
        except Exception as error:
            raise self._broken(
                index, f"cannot be decoded ({type(error).__name__}: {error})"
            ) from error
        if tile is None or tile.ndim != 4 or tile.shape[0] != 1:
            raise self._broken(index, "cannot be decoded")
        return tile[0]
