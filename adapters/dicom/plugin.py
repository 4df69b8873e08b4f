"""The core's codecs as a plugin of pydicom's decoders.

pydicom hands over a frame and what the dataset says of it, and takes care itself of signs, unused
bits, colour and shape.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from pydicom.pixels.decoders.base import DecodeRunner
from pydicom.uid import (
    UID,
    JPEG2000TransferSyntaxes,
    JPEGBaseline8Bit,
    JPEGExtended12Bit,
    JPEGLossless,
    JPEGLosslessSV1,
    JPEGLSTransferSyntaxes,
)

from ... import _native
from . import schema


class _JpegXlUID(UID):
    """A transfer syntax that pydicom's dictionary does not have yet."""

    @property
    def type(self) -> str:
        return "Transfer Syntax"


#: JPEG XL Lossless, JPEG XL JPEG Recompression, JPEG XL: PS3.6 annex A.
JPEG_XL_SYNTAXES = tuple(_JpegXlUID(f"1.2.840.10008.1.2.4.{number}") for number in (110, 111, 112))

_CODECS = {
    JPEGBaseline8Bit: schema.FRAME_JPEG,
    JPEGExtended12Bit: schema.FRAME_JPEG,
    JPEGLossless: schema.FRAME_JPEG,
    JPEGLosslessSV1: schema.FRAME_JPEG,
    **dict.fromkeys(JPEGLSTransferSyntaxes, schema.FRAME_JPEGLS),
    **dict.fromkeys(JPEG2000TransferSyntaxes, schema.FRAME_JPEG2000),
    **dict.fromkeys(JPEG_XL_SYNTAXES, schema.FRAME_JXL),
}

#: What pydicom asks plugins that are not available for; this one always is.
DECODER_DEPENDENCIES: dict[UID, tuple[str, ...]] = {}


def is_available(syntax: UID) -> bool:
    """Whether the core decodes frames of a transfer syntax."""
    return syntax in _CODECS


def codec_id_of(syntax: UID, photometric_interpretation: str, frame: bytes) -> int | None:
    """The codec_id of frames as they are in a file, None where the core has no codec for them.

    Raises CodecError for a damaged JPEG stream.
    """
    codec_id = _CODECS.get(syntax)
    if codec_id == schema.FRAME_JPEG and photometric_interpretation == "RGB":
        # Without Adobe's marker libjpeg takes three components for YCbCr.
        _, transform = _native.jpeg_colours(frame)
        return schema.FRAME_JPEG_RGB if transform is None else codec_id
    return codec_id


def decode_frame(frame: bytes, runner: DecodeRunner) -> bytearray:
    """A frame's pixels, as wide as Bits Allocated says. Raises CodecError for a damaged one."""
    syntax, interpretation = runner.transfer_syntax, str(runner.photometric_interpretation)
    codec_id = codec_id_of(syntax, interpretation, frame)
    array = schema.codec_of(codec_id).decode(frame)
    if array.ndim == 3 and _gives_rgb(syntax, interpretation, frame):
        runner.set_option("photometric_interpretation", "RGB")
    runner.set_option("planar_configuration", 0)
    # pydicom corrects signs in place.
    return bytearray(widened(array, runner.bits_allocated // 8).tobytes())


def widened(array: npt.NDArray[Any], itemsize: int) -> npt.NDArray[Any]:
    """Integers in more bytes each. Raises ValueError where they need more bytes than that."""
    if array.dtype.itemsize > itemsize:
        raise ValueError(f"pixels of {array.dtype} in a dataset of {8 * itemsize} bits a sample")
    return array.astype(np.dtype(f"{array.dtype.kind}{itemsize}"), copy=False)


def _gives_rgb(syntax: UID, interpretation: str, frame: bytes) -> bool:
    """Whether the codec itself undoes a colour transform: PS3.5 8.2.1, 8.2.4, 8.2.17."""
    if syntax in JPEG2000TransferSyntaxes:
        return interpretation in ("YBR_RCT", "YBR_ICT")
    if syntax in (JPEGBaseline8Bit, JPEGExtended12Bit):
        is_jfif, transform = _native.jpeg_colours(frame)
        return is_jfif or transform != 0
    return syntax in JPEG_XL_SYNTAXES
