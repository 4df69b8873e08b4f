"""Slides from TIFF files: SVS, NDPI, SCN, BIF, OME-TIFF, generic tiled ones."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .scanners import Lengths, composed, pixel_size
from .sources import (
    AssociatedImage,
    Source,
    SourceError,
    check_associated,
    micrometres,
    plain,
)
from .tiff_tiles import JPEG, JPEG2000, TiffTiles, compression_of, not_stored

_ICC_PROFILE = 34675
#: Values of the tag Compression, beside those of JPEG.
_OLD_JPEG, _WEBP = 6, 50001
_LOSSLESS = (1, 5, 8, 32773, 32946, 34925, 50000)
#: What Aperio's descriptions say of codec and quality: "JPEG/RGB Q=70".
_APERIO_CODEC = re.compile(r"(\w+/\w+) Q=(\d+)")


def open_slide(path: Path) -> Source:
    """The largest raster of a TIFF file, what TiffSlide knows of it, and the images beside it."""
    try:
        import tifffile
    except ImportError as error:
        raise ImportError("TIFF slides need tifffile: pip install iac-query[wsi]") from error
    try:
        with tifffile.TiffFile(path) as file:
            page = _largest(file, path)
            if reason := composed(file, page):
                raise SourceError(
                    f'{path}: its raster {reason}, pass backend="openslide", which lays them '
                    "together"
                )
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
    tiles = TiffTiles(path, page)
    facts, backend = _slide_facts(path)
    beside = [series for series in file.series if series.keyframe.index != page.index]
    images = tuple(_associated(path, beside, "macro" if file.is_scn else None)) if facts else ()
    compression = compression_of(page)
    described = _APERIO_CODEC.search(page.description)
    size, dtype = (page.imagewidth, page.imagelength), page.dtype.newbyteorder("=")
    return Source(
        path=path,
        width=size[0],
        height=size[1],
        channels=tiles.channels,
        dtype=dtype,
        pixels=tiles.pixels(),
        backend=backend,
        format=path.suffix[1:].lower(),
        mode="RGB" if tiles.channels == 3 else "L" if dtype.itemsize == 1 else "I;16",
        mpp=_mpp(facts, page, pixel_size(file, size)),
        icc_profile=_icc_profile(path, page),
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
        keeps_associated=backend == "TiffSlide" and len(images) == len(beside),
    )


def _is_lossy(page: Any) -> bool | None:
    if page.compression in (JPEG, _OLD_JPEG, *JPEG2000, _WEBP):
        return True
    return False if page.compression in _LOSSLESS else None


def _icc_profile(path: Path, page: Any) -> bytes | None:
    value = getattr(page.tags.get(_ICC_PROFILE), "value", None)
    if value is not None and not isinstance(value, bytes):
        raise SourceError(f"{path}: its ICC profile is not of bytes")
    return value


def _slide_facts(path: Path) -> tuple[dict[str, Any], str]:
    """What TiffSlide knows of the slide; nothing of files that it does not open."""
    try:
        import tiffslide
    except ImportError as error:
        raise ImportError("TIFF slides need tiffslide: pip install iac-query[wsi]") from error
    try:
        # A file of ours: TiffSlide leaves it open where it fails.
        with (
            warnings.catch_warnings(),
            open(path, "rb") as file,
            tiffslide.TiffSlide(file) as slide,
        ):
            warnings.simplefilter("ignore", UserWarning)  # of what it knows of a maker
            facts = {str(key): plain(value) for key, value in slide.properties.items()}
            return facts, "TiffSlide"
    except Exception:  # of any kind: a generic TIFF file is a slide all the same
        return {}, "tifffile"


def _associated(path: Path, beside: Sequence[Any], name: str | None) -> Iterator[AssociatedImage]:
    """Images beside the raster, by the names that they have, or ``name``: label, macro, thumbnail.

    Those without a name are left out, and kinds that are neither gray nor RGB of 8 bits. Raises
    SourceError for one that is broken.
    """
    seen: Counter[str] = Counter()
    for series in beside:
        named, page = name or series.name.lower(), series.keyframe
        if not named or len(series.pages) > 1 or page.dtype != np.uint8 or not_stored(page):
            continue
        size = page.imagewidth, page.imagelength
        check_associated(path, named, size)
        try:
            tiles = TiffTiles(path, page)
            pixels = tiles.pixels().read(0, 0, *size, 1)
        except SourceError as error:
            reason = str(error).removeprefix(f"{path}: ")
            raise SourceError(f"{path}: {named} cannot be read: {reason}") from error
        seen[named] += 1
        yield AssociatedImage(
            named if seen[named] == 1 else f"{named}-{seen[named]}",
            np.repeat(pixels, 3 // tiles.channels, axis=2),
            {1: "L", 3: "RGB", 4: "RGBA"}[page.samplesperpixel],
            "composited_on_white" if page.samplesperpixel == 4 else "none",
            {},
            None,
        )


def _mpp(facts: dict[str, Any], page: Any, told: Lengths) -> tuple[float, float] | None:
    """The first that is one, of what the file's XML says, TiffSlide, and the directory."""
    known = facts.get("tiffslide.mpp-x"), facts.get("tiffslide.mpp-y")
    found = (micrometres(*pair) for pair in (told, known, _resolution(page)))
    return next(filter(None, found), None)


def _resolution(page: Any) -> Lengths:
    unit = getattr(page.tags.get("ResolutionUnit"), "value", 2)
    length = {2: 25400.0, 3: 10000.0}.get(int(unit))
    found = [getattr(page.tags.get(f"{axis}Resolution"), "value", None) for axis in "XY"]
    if length is None or None in found:
        return None, None
    x, y = (length * bottom / top if top else None for top, bottom in found)
    return x, y
