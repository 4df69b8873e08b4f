"""Slides from the image files that Pillow opens."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._tile_images import pillow
from .sources import AssociatedImage, Source, SourceError, check_memory, micrometres, plain

_GRAY_16 = ("I;16", "I;16B", "I;16L", "I;16N")
_X_RESOLUTION, _Y_RESOLUTION, _RESOLUTION_UNIT = 0x011A, 0x011B, 0x0128  # of EXIF and TIFF
_TURNED = (5, 6, 7, 8)  # orientations of EXIF that swap width and height

_limit = threading.Lock()


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
        with ExitStack() as opened:
            with _of_any_size(image_module):
                image = opened.enter_context(image_module.open(path))
                _seek_largest(image)
            check_memory(path, "the image", image.size, 4)
            return _source(path, image)
    except SourceError:
        raise
    except Exception as error:
        text = str(error).replace(str(path), "it")
        raise SourceError(
            f"{path}: is no image that can be read ({type(error).__name__}: {text})"
        ) from error


@contextmanager
def _of_any_size(image_module: Any) -> Iterator[None]:
    """Without Pillow's limit of pixels, which is one for all threads: slides are larger."""
    with _limit:
        most, image_module.MAX_IMAGE_PIXELS = image_module.MAX_IMAGE_PIXELS, None
        try:
            yield
        finally:
            image_module.MAX_IMAGE_PIXELS = most


def _source(path: Path, image: Any) -> Source:
    from PIL import ImageOps

    orientation = int(image.getexif().get(0x0112, 1) or 1)
    dpi = _dpi(image)
    mpp = _mpp(dpi)
    if mpp is not None and orientation in _TURNED:
        mpp = mpp[::-1]
    mode, info = image.mode, {**image.info, "dpi": dpi}
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


def _dpi(image: Any) -> Any:
    """Pixels an inch along x and y; None where the file does not say.

    Pillow reads one of both from the EXIF of a JPEG, whatever its unit is, and takes 72 where there
    is none.
    """
    if image.format not in ("JPEG", "MPO") or image.info.get("jfif_unit") in (1, 2):
        return image.info.get("dpi")
    exif = image.getexif()
    inches = {2: 1.0, 3: 2.54}.get(exif.get(_RESOLUTION_UNIT, 2))
    found = [exif.get(tag) for tag in (_X_RESOLUTION, _Y_RESOLUTION)]
    try:
        return tuple(float(value) * inches for value in found)
    except (TypeError, ValueError, ZeroDivisionError):
        return None


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
