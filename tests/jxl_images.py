"""Images for the tests of JPEG XL."""

import numpy as np
import numpy.typing as npt
from iatro import iac as peer

from iac_query import Codec

DTYPES = ["uint8", "uint16", "float16", "float32"]
CHANNELS = [1, 2, 3, 4]
CODESTREAM = b"\xff\x0a"
CONTAINER = b"\x00\x00\x00\x0cJXL \r\n\x87\n"
LOSSY = Codec.create("jxl")
LOSSLESS = Codec.create("jxl", lossless=True, effort=3)

Image = npt.NDArray


def noise(dtype: str, *shape: int, seed: int = 0) -> Image:
    random = np.random.default_rng(seed)
    if dtype.startswith("float"):
        return random.random(shape).astype(dtype)
    return random.integers(0, np.iinfo(dtype).max + 1, shape).astype(dtype)


def gradient(dtype: str, *shape: int) -> Image:
    """Smooth in the image, another brightness in each channel."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    values = (y / shape[0] + x / shape[1]) / 2
    if len(shape) == 3:
        values = values[..., None] * (1 - np.arange(shape[2]) / 8)
    return (values * (1 if dtype.startswith("float") else np.iinfo(dtype).max)).astype(dtype)


def shaped(height: int, width: int, channels: int) -> tuple[int, ...]:
    return (height, width) if channels == 1 else (height, width, channels)


def assert_same(decoded: Image, image: Image) -> None:
    """Bit by bit, so that NaN is itself and 0 is not -0."""
    assert decoded.dtype == image.dtype.newbyteorder("=")
    assert decoded.shape == image.shape
    assert decoded.tobytes() == image.astype(decoded.dtype).tobytes()


def difference(one: Image, other: Image) -> float:
    assert (one.dtype, one.shape) == (other.dtype, other.shape)
    return np.abs(one.astype(float) - other.astype(float)).max()


def peer_codec(**params: object) -> peer.Codec:
    return peer.Codec.create("jxl", **params)
