"""Slides that OpenSlide opens: MIRAX, Hamamatsu VMS, Sakura, Zeiss, and the TIFF family as well."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

try:
    import openslide
except ImportError as error:
    raise ImportError("OpenSlide is missing: pip install iac-query[openslide]") from error

from .pillow_source import associated_image
from .sources import Source, SourceError, micrometres, on_colour, plain
from .tiled import TiledPixels

#: Of the regions that are read at a time.
_SIDE = 1024


def open_slide(path: Path) -> Source:
    """The finest level, laid on the background colour that the slide names, or white.

    What the scanner stored and whether it lost anything is not known of what OpenSlide reads.
    """
    try:
        slide = openslide.OpenSlide(path)
    except openslide.OpenSlideError as error:
        raise SourceError(f"{path}: is no slide that OpenSlide reads ({error})") from error
    try:
        return _source(path, slide)
    except BaseException as error:
        slide.close()
        if isinstance(error, SourceError | OSError) or not isinstance(error, Exception):
            raise
        name = type(error).__name__  # of any kind: properties without a value are KeyErrors
        raise SourceError(f"{path}: OpenSlide cannot read it ({name}: {error})") from error


def _source(path: Path, slide: openslide.OpenSlide) -> Source:
    facts = {key: plain(value) for key, value in sorted(slide.properties.items())}
    images = (associated_image(*item) for item in slide.associated_images.items())
    size = slide.dimensions
    regions = _Regions(path, slide)
    dtype = np.dtype(np.uint8)
    stored = path.stat().st_size
    return Source(
        path=path,
        width=size[0],
        height=size[1],
        channels=3,
        dtype=dtype,
        pixels=TiledPixels(size, (_SIDE, _SIDE), 3, dtype, regions.read),
        backend="OpenSlide",
        format=path.suffix[1:].lower(),
        mode="RGBA",
        mpp=micrometres(facts.get("openslide.mpp-x"), facts.get("openslide.mpp-y")),
        icc_profile=slide.read_region((0, 0), 0, (1, 1)).info.get("icc_profile"),
        orientation=1,
        info=facts,
        storage={
            "codec": facts.get("openslide.vendor", "unknown"),
            "lossy": None,
            "native_compressed_bytes": stored,
            "native_tile_height": None,
            "native_tile_width": None,
            "nominal_quality": None,
            "source_bytes": stored,
            "tiff_compression": None,
        },
        associated=tuple(images),
        keeps_associated=True,
        close=slide.close,
    )


class _Regions:
    """Squares of the finest level, for any number of threads at once."""

    def __init__(self, path: Path, slide: openslide.OpenSlide) -> None:
        self._path, self._slide = path, slide
        self._size = slide.dimensions
        colour = slide.properties.get("openslide.background-color", "FFFFFF")
        self._background = tuple(bytes.fromhex(colour))

    def read(self, column: int, row: int) -> npt.NDArray[np.uint8]:
        place = column * _SIDE, row * _SIDE
        size = tuple(min(_SIDE, s - at) for s, at in zip(self._size, place, strict=True))
        try:
            pixels = np.asarray(self._slide.read_region(place, 0, size))
        except openslide.OpenSlideError as error:
            raise SourceError(
                f"{self._path}: region {size[0]} x {size[1]} at {place[0]}, {place[1]} cannot be "
                f"read ({error})"
            ) from error
        if (pixels[:, :, 3] == 255).all():
            return pixels[:, :, :3]
        return on_colour(pixels, self._background)
