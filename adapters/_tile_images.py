"""Image files as the arrays that tiles are."""

from __future__ import annotations

import os
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

#: Pillow's modes that are stored as they are.
_EXACT_MODES = frozenset({"L", "LA", "RGB", "RGBA", "I;16", "I;16B", "I;16L", "I;16N"})
_DEEP_MODES = ("I", "F")


def open_tile(
    path: str | os.PathLike[str], size: tuple[int, int] | None, exact: bool
) -> npt.NDArray[np.uint8] | npt.NDArray[np.uint16]:
    """The image in a file: (height, width, 3) of uint8, or when ``exact`` as the file has it.

    RGB is as Pillow converts to it: gray replicated, alpha dropped. ``exact`` images are gray or
    RGB, perhaps with alpha, of 8 bits, or gray of 16. ``size`` is the width and height that it must
    have.

    Raises ValueError naming the file where that cannot be, or it is no whole image, and the
    OSError that says why it cannot be read.
    """
    image_module = pillow()
    with open(path, "rb") as file:
        try:
            with image_module.open(file) as image:
                _check(image, size, exact)
                return _pixels(image if exact else image.convert("RGB"))
        except Exception as error:
            raise ValueError(f"{os.fsdecode(path)}: {_reason(error, file.name)}") from error


class _Refused(Exception):
    """An image that is sound, but not as it should be."""


def _check(image: Any, size: tuple[int, int] | None, exact: bool) -> None:
    if size is not None and image.size != size:
        raise _Refused(f"is {_text(image.size)} pixels, the tiles are {_text(size)}")
    # Pillow gives colour of 16 bits as 8: only the name of the raw mode tells.
    deep = any(";16" in str(tile) for tile in getattr(image, "tile", ()))
    if exact:
        if image.mode not in _EXACT_MODES:
            raise _Refused(
                f"is of mode {image.mode}, which is not stored as it is; convert it to gray or RGB"
            )
        if deep and not image.mode.startswith("I;16"):
            raise _Refused("is a colour image of 16 bits, which Pillow cuts to 8; pass its array")
    elif deep or image.mode.startswith(_DEEP_MODES):
        raise _Refused(
            f"is of mode {image.mode} with more than 8 bits, which RGB tiles do not hold; "
            "extended=True keeps gray images of 16 bits"
        )


def _pixels(image: Any) -> npt.NDArray[Any]:
    array = np.array(image)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _reason(error: Exception, name: object) -> str:
    if isinstance(error, _Refused):
        return str(error)
    text = str(error).replace(str(name), "")
    return f"is no image that can be read ({type(error).__name__}: {text})"


def _text(size: tuple[int, int]) -> str:
    return f"{size[0]} x {size[1]}"


def pillow() -> ModuleType:
    """Pillow's Image. Raises ImportError naming the extra."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("image files need Pillow: pip install iac-query[adapters]") from error
    return Image


def rgb(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An image as (height, width, 3): gray replicated, alpha dropped, dtype kept."""
    if array.ndim == 2:
        array = array[:, :, np.newaxis]
    if array.shape[2] < 3:
        return np.repeat(array[:, :, :1], 3, axis=2)
    return np.ascontiguousarray(array[:, :, :3])


def rgb_image(array: npt.NDArray[Any], where: str) -> Any:
    """An image of uint8 as Pillow's RGB. Raises TypeError naming ``where`` for another dtype."""
    if array.dtype != np.uint8:
        raise TypeError(
            f"{where}: tiles of {array.dtype} are no 8-bit RGB images, read them as arrays"
        )
    return pillow().fromarray(rgb(array))
