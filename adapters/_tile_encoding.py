"""How tiles are encoded, and what shape and dtype they have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..codec import Codec, ImageCodec
from ..images import as_image
from .manifests import TileRecord

#: Height, width, channels and dtype of every tile of a pack.
TileType = tuple[tuple[int, int, int], np.dtype[Any]]


class TileEncoding:
    """How tiles are encoded, and what the header says of it."""

    def __init__(
        self,
        codec: Codec | None,
        lossless: bool,
        distance: float | None,
        effort: int | None,
        extended: bool,
    ) -> None:
        self.extended = extended
        if codec is None:
            given = {"distance": distance, "effort": effort}
            params = {name: value for name, value in given.items() if value is not None}
            codec = Codec.create(Codec.JXL, lossless=lossless, **params)
        elif not extended:
            raise ValueError("codec is for extended=True, image_tiles are of JPEG XL")
        if not isinstance(codec, ImageCodec):
            raise TypeError(f"codec is {codec!r}, expected a built-in codec of images")
        self.codec = codec
        #: The header's codec_params.
        self.params = codec.parameters()
        if not extended:
            self.params = {
                "mode": "lossless" if lossless else "lossy",
                "lossless": bool(lossless),
                "distance": distance,
                "effort": effort,
                "tile_color_space": "RGB",
                "input_dtype": "uint8",
            }

    def checked_type(self, tile_type: TileType, record: TileRecord) -> TileType:
        """The type if the schema holds it."""
        if not self.extended and (tile_type[0][2], tile_type[1].name) != (3, "uint8"):
            raise ValueError(
                f"tile {record.tile_id!r}: is {type_text(tile_type)}, image_tiles hold 3 "
                "channels of uint8; extended=True writes a schema of our own that holds more"
            )
        return tile_type

    def encode(self, record: TileRecord, array: npt.NDArray[Any]) -> bytes:
        return _of_tile(record, self.codec.encode, array)

    def decode(self, record: TileRecord, payload: Any) -> None:
        _of_tile(record, self.codec.decode, payload)

    def payload_type(self, record: TileRecord, payload: Any) -> TileType:
        shape, dtype = _of_tile(record, self.codec.shape_and_dtype, payload)
        return _with_channels(shape), dtype


def _of_tile(record: TileRecord, function: Callable[[Any], Any], value: Any) -> Any:
    """function(value), whose error names the tile."""
    try:
        return function(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"tile {record.tile_id!r}: {error}") from error


def array_type(record: TileRecord, array: Any) -> TileType:
    """The type of an array. Raises ValueError naming the tile for one that is no image."""
    image = _of_tile(record, as_image, array)
    return _with_channels(image.shape), image.dtype


def _with_channels(shape: tuple[int, ...]) -> tuple[int, int, int]:
    return (shape[0], shape[1], shape[2] if len(shape) == 3 else 1)


def check_same_type(record: TileRecord, found: TileType, expected: TileType) -> None:
    """Raises ValueError for a tile that is not as the first."""
    if found != expected:
        raise ValueError(
            f"tile {record.tile_id!r}: is {type_text(found)}, the first tile is "
            f"{type_text(expected)}"
        )


def type_text(tile_type: TileType) -> str:
    """The type in words."""
    (height, width, channels), dtype = tile_type
    return f"{width} x {height} pixels of {channels} channels of {dtype}"
