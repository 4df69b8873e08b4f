"""Slides from the image files that Pillow opens."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._tile_images import pillow
from .sources import AssociatedImage, Source, SourceError, micrometres, plain

_GRAY_16 = ("I;16", "I;16B", "I;16L", "I;16N")
_TURNED = (5, 6, 7, 8)  # orientations of EXIF that swap width and height


class _Whole:
    """A raster in memory."""

    def __init__(self, pixels: npt.NDArray[Any]) -> None:
        self._pixels = pixels

    def read(self, x: int, y: int, width: int, height: int, workers: int | None) -> Any:
        return self._pixels[y : y + height, x : x + width]


def open_slide(path: Path) -> Source:
    """The largest frame of an image file, turned as EXIF says, alpha laid on white.

    Gray of 16 bits stays what it is, all else becomes RGB of 8. The image is held in memory.
    """
    image_module = pillow()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", image_module.DecompressionBombWarning)
            with image_module.open(path) as image:
                return _source(path, image)
    except SourceError:
        raise
    except Exception as error:
        text = str(error).replace(str(path), "it")
        raise SourceError(
            f"{path}: is no image that can be read ({type(error).__name__}: {text})"
        ) from error


def _source(path: Path, image: Any) -> Source:
    from PIL import ImageOps

    _seek_largest(image)
    orientation = int(image.getexif().get(0x0112, 1) or 1)
    mpp = _mpp(image.info.get("dpi"))
    if mpp is not None and orientation in _TURNED:
        mpp = mpp[::-1]
    mode, info = image.mode, dict(image.info)
    deep = any(";16" in str(tile) for tile in getattr(image, "tile", ()))
    turned = ImageOps.exif_transpose(image)
    if mode in _GRAY_16:
        pixels = np.array(turned).astype(np.uint16)[:, :, np.newaxis]
    elif deep or mode in ("I", "F"):
        raise SourceError(
            f"{path}: is of mode {mode} with more than 8 bits, of which Pillow gives 8; save it as "
            "TIFF"
        )
    else:
        pixels, _ = rgb_on_white(turned)
    size = path.stat().st_size
    return Source(
        path=path,
        width=pixels.shape[1],
        height=pixels.shape[0],
        channels=pixels.shape[2],
        dtype=pixels.dtype,
        pixels=_Whole(pixels),
        backend="Pillow",
        format=(image.format or path.suffix[1:]).lower(),
        mode=mode,
        mpp=mpp,
        icc_profile=info.get("icc_profile") or None,
        orientation=orientation,
        info={k: plain(v) for k, v in info.items() if isinstance(v, str | int | float | tuple)},
        storage={
            "codec": (image.format or path.suffix[1:]).lower(),
            "lossy": None,
            "native_compressed_bytes": size,
            "native_tile_height": None,
            "native_tile_width": None,
            "nominal_quality": None,
            "source_bytes": size,
            "tiff_compression": None,
        },
    )


def _seek_largest(image: Any) -> None:
    areas = []
    for frame in range(getattr(image, "n_frames", 1)):
        image.seek(frame)
        areas.append(image.size[0] * image.size[1])
    image.seek(areas.index(max(areas)))


def _mpp(dpi: Any) -> tuple[float, float] | None:
    try:
        x, y = (25400 / float(value) for value in dpi)
    except (TypeError, ValueError, ZeroDivisionError):
        return None
    return micrometres(x, y)


def rgb_on_white(image: Any) -> tuple[npt.NDArray[np.uint8], str]:
    """Pillow's image as RGB, and what became of its alpha."""
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        rgba = image.convert("RGBA")
        white = pillow().new("RGBA", image.size, (255, 255, 255, 255))
        composite = pillow().alpha_composite(white, rgba).convert("RGB")
        return np.array(composite), "composited_on_white"
    return np.array(image.convert("RGB")), "none"


def associated_image(name: str, image: Any) -> AssociatedImage:
    """Pillow's image as one that lies beside a raster."""
    pixels, alpha = rgb_on_white(image)
    info = {k: plain(v) for k, v in image.info.items() if isinstance(v, str | int | float | tuple)}
    return AssociatedImage(
        name, pixels, image.mode, alpha, info, image.info.get("icc_profile") or None
    )
