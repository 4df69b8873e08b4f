"""What a slide is made of, whatever file it comes from."""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from ..._options import PathLike
from ...codec import Codec, ImageCodec
from ...errors import CodecError

#: What opens slides: a module each, ``<backend>_source``.
BACKENDS = ("tifffile", "openslide", "wsidicom", "pillow")
#: Names of files that are read as TIFF, and of those that only OpenSlide reads.
TIFF_SUFFIXES = (".svs", ".ndpi", ".scn", ".bif", ".tif", ".tiff")
OPENSLIDE_SUFFIXES = (".mrxs", ".vms", ".vmu", ".svslide", ".czi")
#: Of a raster: a quarter of a metre square, of 256 x 256 pixels of 0.25 micrometres.
MAX_TILES = 1 << 24
_MAX_SIDE = (1 << 32) - 1
#: Of an associated image, which is decoded and encoded as a whole.
_MAX_ASSOCIATED_BYTES = 1 << 30


#: How tiles are checked that are stored as they are: by their structure, or by decoding them.
Check = Literal["structure", "decode"]


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


class StoredTiles(Protocol):
    """The stored bytes of tiles, by places in the grid (column, row). For any number of threads."""

    def there(self) -> npt.NDArray[np.bool_]:
        """Whether there is a tile, (rows, columns), told without reading any."""

    def read(self, places: Sequence[tuple[int, int]]) -> list[Any]:
        """Bytes-like objects, None for tiles that are missing. Raises SourceError."""


@dataclass(frozen=True)
class NativeTiles:
    """Tiles of RGB that can be stored as they are."""

    path: Path
    codec: str  # "jpeg" or "jpeg2000"
    params: dict[str, Any]  # raster_codec_params but for the associated images' effort
    decoder: ImageCodec
    tile_width: int
    tile_height: int
    stored: StoredTiles
    #: Whether readers of schema version 1 see the right colours.
    plain: bool

    @classmethod
    def create(
        cls,
        path: Path,
        codec: str,
        decoding: dict[str, Any],
        source_compression: str,
        tile_size: tuple[int, int],
        stored: StoredTiles,
    ) -> NativeTiles:
        """Tiles of a file that ``decoding`` tells how to decode."""
        decoder = Codec.create(codec, **decoding)
        assert isinstance(decoder, ImageCodec)
        is_jpeg = codec == Codec.JPEG
        params = {
            "codestream": "tiff_jpeg" if is_jpeg else "j2k",
            "source_compression": source_compression,
            **decoding,
        }
        return cls(path, codec, params, decoder, *tile_size, stored, is_jpeg or not decoding)

    def pixels(self, tile_x: int, tile_y: int) -> npt.NDArray[np.uint8]:
        """A tile (tile_height, tile_width, 3), white where it is missing.

        Raises SourceError for one that is broken or of another shape.
        """
        place = tile_x, tile_y
        (payload,) = self.stored.read([place])
        if payload is None:
            return np.full(self._shape, 255, np.uint8)
        return self._decoded(place, payload)

    def payloads(self, places: Sequence[tuple[int, int]], check: Check) -> list[Any]:
        """The stored bytes of tiles that are there, once they are checked.

        Raises SourceError for one that is broken or of another shape.
        """
        payloads = self.stored.read(places)
        try:
            found = self.decoder.check_whole(payloads, 1)
        except CodecError as error:
            assert error.row is not None
            raise self._undecodable(places[error.row], error) from error
        if set(found) != {(self._shape, np.dtype(np.uint8))}:
            for place, (shape, dtype) in zip(places, found, strict=True):
                self._check_shape(place, shape, dtype)
        if check == "decode":
            for place, payload in zip(places, payloads, strict=True):
                self._decoded(place, payload)
        return payloads

    @property
    def _shape(self) -> tuple[int, int, int]:
        return self.tile_height, self.tile_width, 3

    def _decoded(self, place: tuple[int, int], payload: Any) -> npt.NDArray[np.uint8]:
        try:
            tile = self.decoder.decode(payload)
        except CodecError as error:
            raise self._undecodable(place, error) from error
        self._check_shape(place, tile.shape, tile.dtype)
        return tile

    def _undecodable(self, place: tuple[int, int], error: CodecError) -> SourceError:
        reason = str(error).removeprefix(f"row {error.row}: ")  # of the payloads in hand
        return broken_tile(self.path, *place, f"cannot be decoded: {reason}")

    def _check_shape(
        self, place: tuple[int, int], shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        if shape != self._shape or dtype != np.uint8:
            reason = f"is {shape} of {dtype}, expected {self._shape} of uint8"
            raise broken_tile(self.path, *place, reason)


def broken_tile(path: Path, tile_x: int, tile_y: int, reason: object) -> SourceError:
    """The error of a tile."""
    return SourceError(f"{path}: tile {tile_x}, {tile_y} {reason}")


def check_extent(path: Path, size: tuple[int, int], tile_size: tuple[int, int]) -> None:
    """Raises SourceError for a raster of no pixels, or of more than can be stored.

    Both are width and height.
    """
    if min(*size, *tile_size) < 1 or max(size) > _MAX_SIDE:
        raise SourceError(f"{path}: claims a raster of {size[0]} x {size[1]} pixels")
    columns, rows = (-(-s // t) for s, t in zip(size, tile_size, strict=True))
    if columns * rows > MAX_TILES:
        raise SourceError(
            f"{path}: claims {size[0]} x {size[1]} pixels, {columns} x {rows} tiles of "
            f"{tile_size[0]} x {tile_size[1]}, at most {MAX_TILES} can be stored"
        )


def check_memory(path: Path, what: str, size: tuple[int, int], pixel_bytes: int) -> None:
    """Raises SourceError for pixels, width and height, that no memory of this machine holds."""
    needed = math.prod(size) * pixel_bytes
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > there:
        raise SourceError(
            f"{path}: {what} of {size[0]} x {size[1]} pixels needs {needed >> 20} MiB of memory, "
            f"there are {there >> 20}"
        )


def check_associated(path: Path, name: str, size: tuple[int, int]) -> None:
    """Raises SourceError for an image beside the raster of no pixels, or of too many."""
    if min(size) < 1 or math.prod(size) * 3 > _MAX_ASSOCIATED_BYTES:
        raise SourceError(
            f"{path}: {name} is of {size[0]} x {size[1]} pixels, expected some, at most "
            f"{_MAX_ASSOCIATED_BYTES >> 20} MiB of RGB"
        )


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
    #: Lets go of the files that it is read from.
    close: Callable[[], object] = field(default=lambda: None)

    @property
    def bits_per_pixel(self) -> float:
        """Stored bits for each pixel of the raster."""
        return self.storage["native_compressed_bytes"] * 8 / (self.width * self.height)

    def __post_init__(self) -> None:
        size = self.width, self.height
        check_extent(self.path, size, size)
        for image in self.associated:
            height, width, _ = image.pixels.shape
            check_associated(self.path, image.name, (width, height))

    def band(self, y: int, height: int, workers: int | None) -> npt.NDArray[Any]:
        """The raster's rows from ``y`` on, ``height`` of them if there are as many."""
        return self.pixels.read(0, y, self.width, min(height, self.height - y), workers)


def open_source(path: PathLike, backend: str | None = None) -> Source:
    """The slide in a file or folder, opened by one of ``BACKENDS``, or the one that fits its name.

    Raises SourceError (a ValueError) for what is no slide or of a kind that cannot be stored, the
    OSError of a file that cannot be opened, and ImportError where a library is not installed.
    """
    path = Path(os.path.abspath(os.fsdecode(path)))
    if path.is_dir():
        os.listdir(path)
    else:
        with open(path, "rb"):
            pass
    name = backend or _backend(path)
    if name not in BACKENDS:
        raise ValueError(f"backend is {backend!r}, expected one of {', '.join(BACKENDS)}")
    module = importlib.import_module(f".{name}_source", __package__)
    try:
        source: Source = module.open_slide(path)
    except OSError as error:
        if error.filename is not None:
            raise  # a file that cannot be opened
        raise SourceError(f"{path}: cannot be read ({error})") from error
    return source


def _backend(path: Path) -> str:
    suffix = path.suffix.lower()
    if path.is_dir() or suffix == ".dcm":
        return "wsidicom"
    if suffix in TIFF_SUFFIXES:
        return "tifffile"
    return "openslide" if suffix in OPENSLIDE_SUFFIXES else "pillow"


def micrometres(x: Any, y: Any) -> tuple[float, float] | None:
    """Lengths of a pixel along x and y; None where these are none."""
    try:
        pair = float(x), float(y)
    except (TypeError, ValueError):
        return None
    return pair if all(0 < length < math.inf for length in pair) else None


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


def on_colour(
    pixels: npt.NDArray[np.uint8], colour: Sequence[int] = (255, 255, 255)
) -> npt.NDArray[np.uint8]:
    """RGBA (height, width, 4) laid on a colour: RGB."""
    alpha = pixels[:, :, 3:].astype(np.uint32)
    mixed = pixels[:, :, :3] * alpha + np.array(colour, np.uint32) * (255 - alpha)
    return ((mixed + 127) // 255).astype(np.uint8)
