"""Colours of a slide as its ICC profile means them."""

from __future__ import annotations

import functools
import io
from typing import Any

import numpy as np
import numpy.typing as npt


def to_srgb(pixels: npt.NDArray[Any], profile: bytes) -> npt.NDArray[np.uint8]:
    """Pixels (height, width, 3) of uint8 in the colours of ``profile`` as sRGB, perceptually.

    Raises ValueError for a profile that is none of RGB, or pixels of another kind.
    """
    if pixels.shape[2] != 3 or pixels.dtype != np.uint8:
        raise ValueError("only RGB of 8 bits can be converted to sRGB")
    try:
        from PIL import Image, ImageCms
    except ImportError as error:
        raise ImportError("colour profiles need Pillow: pip install iac-query[wsi]") from error
    return np.array(ImageCms.applyTransform(Image.fromarray(pixels), _transform(profile)))


@functools.lru_cache(maxsize=8)  # making one takes longer than a tile
def _transform(profile: bytes) -> Any:
    from PIL import ImageCms

    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        return ImageCms.buildTransform(source, ImageCms.createProfile("sRGB"), "RGB", "RGB")
    except (ImageCms.PyCMSError, OSError) as error:
        raise ValueError(f"the ICC profile cannot be applied: {error}") from error
