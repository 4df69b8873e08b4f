"""Many small images as one picture."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

_LABEL = 14  # pixels
_GAP = 6


def contact_sheet(
    images: npt.NDArray[np.uint8], labels: Sequence[str], columns: int = 6, scale: int = 2
) -> Image.Image:
    """A picture of images (n, height, width, 3), each with its label below."""
    count, height, width, _ = images.shape
    width, height = width * scale, height * scale
    across, down = width + _GAP, height + _LABEL + _GAP
    rows = -(-count // columns)
    sheet = Image.new("RGB", (columns * across + _GAP, rows * down + _GAP), "white")
    draw = ImageDraw.Draw(sheet)
    for i, (image, label) in enumerate(zip(images, labels, strict=True)):
        left, top = _GAP + i % columns * across, _GAP + i // columns * down
        large = Image.fromarray(image).resize((width, height), Image.Resampling.NEAREST)
        sheet.paste(large, (left, top))
        draw.text((left, top + height + 1), label, "black")
    return sheet
