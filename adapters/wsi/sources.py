"""What a slide is made of, whatever file it comes from."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..._options import PathLike
from ...codec import ImageCodec

#: Names of files that are read as TIFF.
TIFF_SUFFIXES = (".svs", ".ndpi", ".scn", ".bif", ".tif", ".tiff")


class SourceError(ValueError):
    """A source that is broken, or of a kind that cannot be stored, with the file's name."""


@dataclass(frozen=True)
class AssociatedImage:
    """An image beside the raster: label, macro, thumbnail."""

    name: str
    pixels: npt.NDArray[np.uint8]  # (height, width, 3)
    source_mode: str
    alpha_handling: str  # "none" or "composited_on_white"
    info: dict[str, Any]
    icc_profile: bytes | None


@dataclass(frozen=True)
class NativeTiles:
    """Tiles that can be stored as they are."""

    codec: str  # "jpeg" or "jpeg2000"
    params: dict[str, Any]  # raster_codec_params but for the associated images' effort
    decoder: ImageCodec
    tile_width: int
    tile_height: int
    #: The stored bytes of the tile in a place of the grid, None for one that is missing.
    read: Callable[[int, int], bytes | None]
    #: Whether readers of schema version 1 see the right colours.
    plain: bool


class Pixels(Protocol):
    """A raster that is read by rectangles."""

    def read(self, x: int, y: int, width: int, height: int, workers: int | None) -> Any:
        """Pixels (height, width, channels) of a rectangle inside the raster."""


@dataclass(frozen=True)
class Source:
    """A slide's raster, and what its file tells of it."""

    path: Path
    width: int
    height: int
    channels: int  # 1 or 3
    dtype: np.dtype[Any]  # uint8 or uint16
    pixels: Pixels
    backend: str
    format: str
    mode: str
    mpp: tuple[float, float] | None
    icc_profile: bytes | None
    orientation: int
    info: Mapping[str, Any]
    #: source_storage of the scanner metadata: codec, lossy (None: unknown), sizes.
    storage: Mapping[str, Any]
    native: NativeTiles | None = None
    associated: tuple[AssociatedImage, ...] = field(default=())
    keeps_associated: bool = False

    @property
    def bits_per_pixel(self) -> float:
        """Stored bits for each pixel of the raster."""
        return self.storage["native_compressed_bytes"] * 8 / (self.width * self.height)

    def band(self, y: int, height: int, workers: int | None) -> npt.NDArray[Any]:
        """The raster's rows from ``y`` on, ``height`` of them if there are as many."""
        return self.pixels.read(0, y, self.width, min(height, self.height - y), workers)


def open_source(path: PathLike) -> Source:
    """The slide in a file.

    Raises SourceError (a ValueError) for what is no slide or of a kind that cannot be stored, and
    the OSError of a file that cannot be opened.
    """
    from .pillow_source import open_pillow
    from .tiff_source import open_tiff

    path = Path(os.path.abspath(os.fsdecode(path)))
    with open(path, "rb"):
        pass
    return open_tiff(path) if path.suffix.lower() in TIFF_SUFFIXES else open_pillow(path)


def plain(value: Any) -> Any:
    """A value as JSON has it: numbers that are not finite are None, what JSON lacks is text."""
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    return number if math.isfinite(number) else None


def on_white(pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """RGBA (height, width, 4) laid on white: RGB."""
    alpha = pixels[:, :, 3:].astype(np.uint32)
    mixed = pixels[:, :, :3] * alpha + 255 * (255 - alpha)
    return ((mixed + 127) // 255).astype(np.uint8)
