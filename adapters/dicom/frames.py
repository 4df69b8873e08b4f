"""Frames out of a dataset, and pixels out of frames: what PS3.5 8 and annex A say of pixel data.

pydicom does it, with the core's codecs as one more plugin of its decoders. Where pydicom has none
of its own (PS3.5 A.4.2, A.4.3, A.4.6, A.4.14, ...) they are the only one.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from pydicom.dataset import Dataset
from pydicom.encaps import generate_fragments, generate_frames, parse_basic_offsets
from pydicom.pixels import get_decoder
from pydicom.pixels.decoders.base import Decoder
from pydicom.tag import BaseTag
from pydicom.uid import UID, ExplicitVRBigEndian, RLELossless

from ... import _native
from . import plugin, schema
from .model import PIXEL_ELEMENTS

#: How frames begin as JPEG and JPEG-LS, JPEG 2000, and JPEG XL, the last two also in containers.
_STARTS = (
    b"\xff\xd8\xff",
    b"\xff\x4f\xff\x51",
    b"\0\0\0\x0cjP  ",
    b"\xff\x0a",
    b"\0\0\0\x0cJXL ",
)

_KEYWORDS = {PIXEL_ELEMENTS[1]: "FloatPixelData", PIXEL_ELEMENTS[2]: "DoubleFloatPixelData"}


def known(syntax: str) -> UID:
    """The transfer syntax as a UID that knows how it is encoded."""
    return next((uid for uid in plugin.JPEG_XL_SYNTAXES if uid == syntax), UID(syntax))


def pixel_element(ds: Dataset) -> BaseTag | None:
    """The tag of the dataset's pixels, None where it has none."""
    return next((tag for tag in PIXEL_ELEMENTS if tag in ds), None)


@dataclass(frozen=True)
class ImagePixel:
    """What the Image Pixel module says of every frame: PS3.3 C.7.6.3."""

    transfer_syntax: UID
    rows: int
    columns: int
    samples_per_pixel: int
    photometric_interpretation: str
    planar_configuration: int
    bits_allocated: int
    bits_stored: int
    high_bit: int
    pixel_representation: int
    pixel_keyword: str = "PixelData"

    @classmethod
    def of(cls, ds: Dataset) -> ImagePixel:
        """That of a dataset with pixels. Raises ValueError where something is missing or not what
        it has to be, and for a frame without pixels.
        """
        keyword = _KEYWORDS.get(pixel_element(ds), "PixelData")
        rows, columns = _integer(ds, "Rows"), _integer(ds, "Columns")
        samples, bits = _integer(ds, "SamplesPerPixel"), _integer(ds, "BitsAllocated")
        if min(rows, columns, samples, bits) < 1:
            raise ValueError("its frames have no pixels")
        if not ds[keyword].value:
            raise ValueError("its pixels are empty")
        small = {
            "samples_per_pixel": samples,
            "planar_configuration": _integer(ds, "PlanarConfiguration", 0),
            "bits_allocated": bits,
            "bits_stored": _integer(ds, "BitsStored", bits),
            "high_bit": _integer(ds, "HighBit", bits - 1),
            "pixel_representation": _integer(ds, "PixelRepresentation", 0),
        }
        for name, number in small.items():
            if not 0 <= number < 256:
                raise ValueError(f"its {name} is {number}")
        interpretation = ds.PhotometricInterpretation
        if not isinstance(interpretation, str | None):
            raise ValueError("its PhotometricInterpretation is not one value")
        return cls(
            transfer_syntax=known(ds.file_meta.TransferSyntaxUID),
            rows=rows,
            columns=columns,
            photometric_interpretation=interpretation or "",
            pixel_keyword=keyword,
            **small,
        )

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of its pixels as arrays, in native byte order."""
        if self.pixel_keyword != "PixelData":
            return np.dtype(np.float32 if self.pixel_keyword[0] == "F" else np.float64)
        sign = "i" if self.pixel_representation and self.bits_allocated > 1 else "u"
        return np.dtype(f"{sign}{max(self.bits_allocated // 8, 1)}")

    def shape(self) -> tuple[int, ...]:
        """The shape of a frame as an array."""
        samples = () if self.samples_per_pixel == 1 else (self.samples_per_pixel,)
        return (self.rows, self.columns, *samples)

    def frame_bits(self) -> int:
        """How many bits a native frame takes."""
        samples = self.rows * self.columns * self.samples_per_pixel
        if self.photometric_interpretation == "YBR_FULL_422":
            samples = samples // 3 * 2  # PS3.3 C.7.6.3.1.2
        return samples * self.bits_allocated

    def options(self) -> dict[str, Any]:
        """What pydicom's decoders want to know of bytes without a dataset."""
        floats = self.pixel_keyword != "PixelData"
        options: dict[str, Any] = {
            "rows": self.rows,
            "columns": self.columns,
            "samples_per_pixel": self.samples_per_pixel,
            "photometric_interpretation": self.photometric_interpretation,
            "bits_allocated": self.bits_allocated,
            "bits_stored": self.bits_stored,
            "number_of_frames": 1,
            "pixel_keyword": self.pixel_keyword,
        }
        if not floats:
            options["pixel_representation"] = self.pixel_representation
        if self.samples_per_pixel > 1:
            options["planar_configuration"] = self.planar_configuration
        return options


def number_of_frames(ds: Dataset) -> int:
    """Number of Frames (0028,0008), 1 where it is absent, and where it is 0 as pydicom takes it.

    Raises ValueError below that, and for what is no integer.
    """
    count = _integer(ds, "NumberOfFrames", 1) or 1
    if count < 1:
        raise ValueError(f"Number of Frames is {count}")
    return count


def _integer(ds: Dataset, keyword: str, default: int | None = None) -> int:
    """The one integer of an element, ``default`` where there is none. Raises ValueError."""
    try:
        value = ds.get(keyword)
        number = default if value is None else int(value)
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"its {keyword} is not one integer: {error}") from error
    if number is None:
        raise ValueError(f"has no {keyword}")
    if value is not None and number != value:
        raise ValueError(f"its {keyword} is not one integer")
    return number


def encoded_frames(ds: Dataset, pixel: ImagePixel) -> list[bytes] | None:
    """Each frame's bytes as they stand in the dataset, fragments of a frame joined; None where
    frames share bytes. Raises ValueError where there are fewer or more than the dataset says.
    """
    count = number_of_frames(ds)
    value = ds[pixel_element(ds)].value
    if pixel.transfer_syntax.is_encapsulated:
        offsets = _extended_offsets(ds, len(value))
        frames = list(generate_frames(value, number_of_frames=count, extended_offsets=offsets))
        if len(frames) != count:
            raise ValueError(f"holds {len(frames)} frames, Number of Frames says {count}")
        return frames
    bits = pixel.frame_bits()
    # Bits are packed without regard to frames, and bytes may be swapped in pairs: PS3.5 8.1.1, 7.3.
    swapped = pixel.transfer_syntax == ExplicitVRBigEndian and pixel.bits_allocated == 8
    if swapped or (bits % 8 and count > 1):
        return None
    size = (bits + 7) // 8
    if size * count > len(value):
        raise ValueError(f"holds {len(value)} bytes of pixels, {count} frames are {size * count}")
    return [value[size * i : size * (i + 1)] for i in range(count)]


def _extended_offsets(ds: Dataset, size: int) -> tuple[bytes, bytes] | None:
    """The Extended Offset Table and its lengths (PS3.3 C.7.6.3.1.8), None where they are absent.

    Raises ValueError where they are not of the same frames, or those not inside ``size`` bytes.
    """
    tables = ds.get("ExtendedOffsetTable"), ds.get("ExtendedOffsetTableLengths")
    if not all(tables):
        return None
    offsets, lengths = tables
    if len(offsets) != len(lengths) or len(offsets) % 8:
        raise ValueError("its Extended Offset Table and the lengths are not of the same frames")
    for (offset,), (length,) in zip(*map(struct.Struct("<Q").iter_unpack, tables), strict=True):
        if offset + length > size:
            raise ValueError("its Extended Offset Table points outside the pixels")
    return offsets, lengths


def decoded_frames(ds: Dataset, pixel: ImagePixel) -> Iterator[npt.NDArray[Any]]:
    """Each frame of a dataset as pydicom's pixel_array has it, in native byte order.

    (rows, columns) for one sample a pixel, else (rows, columns, samples); YBR_FULL and
    YBR_FULL_422 as RGB. Raises what pydicom raises for pixels that cannot be decoded.
    """
    count = number_of_frames(ds)
    _require_no_more(ds, pixel, count)
    if pixel.transfer_syntax.is_encapsulated:
        # Each for itself: pydicom would take the colours that it converted one to for the next's.
        yield from (decoded_frame(frame, pixel) for frame in encoded_frames(ds, pixel))
        return
    decoder = _decoder(pixel.transfer_syntax)
    if pixel.bits_allocated == 1 or pixel.photometric_interpretation == "YBR_FULL_422":
        # Frame by frame pydicom fails where frames share bytes or colours.
        together = decoder.as_array(ds)[0].reshape(count, *pixel.shape())
        yield from (_checked(array, pixel) for array in together)
        return
    found = 0
    for array, _ in decoder.iter_array(ds):
        if found == count:
            raise ValueError(f"holds more than the {count} frames that Number of Frames says")
        found += 1
        yield _checked(array, pixel)
    if found < count:
        raise ValueError(f"holds {found} frames, Number of Frames says {count}")


def _require_no_more(ds: Dataset, pixel: ImagePixel, count: int) -> None:
    """Raises ValueError where the dataset has pixels of more frames than it says.

    Native ones may be followed by padding, of less than a frame or to an even length (PS3.5 8.1.1).
    Of encapsulated ones offset tables tell the number (A.4), or the fragments that start a frame:
    with RLE and extended offsets each one does (A.4.2), else those that begin with a marker.
    """
    value = ds[pixel_element(ds)].value
    if not pixel.transfer_syntax.is_encapsulated:
        even = -(-pixel.frame_bits() * count // 16) * 2
        if len(value) > even and len(value) * 8 >= pixel.frame_bits() * (count + 1):
            raise ValueError(
                f"holds {len(value)} bytes of pixels, Number of Frames says {count}, which have "
                "fewer"
            )
        return
    fragments = [fragment for fragment in generate_fragments(value) if fragment.strip(b"\0")]
    offsets = parse_basic_offsets(value)
    fragments = fragments[1:] if offsets else fragments
    alone = pixel.transfer_syntax == RLELossless or "ExtendedOffsetTable" in ds
    starts = sum(alone or fragment.startswith(_STARTS) for fragment in fragments)
    extended = len(ds.get("ExtendedOffsetTable") or b"") // 8
    found = max(len(offsets), extended, starts)
    if found > count:
        raise ValueError(f"holds {found} frames, Number of Frames says {count}")


def decoded_frame(frame: bytes, pixel: ImagePixel) -> npt.NDArray[Any]:
    """One encoded frame as :func:`decoded_frames` gives it."""
    if pixel.transfer_syntax == RLELossless and pixel.rows * pixel.columns > 64 * len(frame):
        # At best two bytes are 128; pydicom would take the memory before it looks.
        raise ValueError(f"RLE: {len(frame)} bytes cannot be {pixel.rows} x {pixel.columns} pixels")
    source = _one_fragment(frame) if pixel.transfer_syntax.is_encapsulated else frame
    array, _ = _decoder(pixel.transfer_syntax).as_array(source, index=0, **pixel.options())
    return _checked(array, pixel)


def _one_fragment(frame: bytes) -> bytes:
    """A frame behind an empty offset table (PS3.5 A.4), not padded, which RLE would decode."""
    return struct.pack("<HHIHHI", 0xFFFE, 0xE000, 0, 0xFFFE, 0xE000, len(frame)) + frame


def _checked(array: npt.NDArray[Any], pixel: ImagePixel) -> npt.NDArray[Any]:
    if array.shape != pixel.shape():
        raise ValueError(f"a frame decodes to {array.shape}, expected {pixel.shape()}")
    array = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
    return pixels_of(array, pixel.dtype, pixel.bits_stored)


@functools.cache
def _decoder(syntax: UID) -> Decoder:
    """Pydicom's decoder of a transfer syntax, with the core's codecs before its own plugins.

    Raises NotImplementedError where nobody decodes it.
    """
    if not plugin.is_available(syntax):
        return get_decoder(syntax)
    decoder = Decoder(syntax)
    decoder.add_plugin("iac_query", (plugin.__name__, "decode_frame"))
    if syntax not in plugin.JPEG_XL_SYNTAXES:
        for label in {"gdcm", "pillow"}.intersection(get_decoder(syntax).available_plugins):
            decoder.add_plugin(label, (f"pydicom.pixels.decoders.{label}", "_decode_frame"))
    return decoder


# Frames as they are in the file, decoded by the core in batches


def stored_frame(frame: bytes, array: npt.NDArray[Any], pixel: ImagePixel) -> int:
    """The codec_id under which a frame of these pixels is kept as it is."""
    if not pixel.transfer_syntax.is_encapsulated:
        as_pixels = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes() == frame
        return schema.PIXELS_ZSTD if as_pixels else schema.FRAME_ZSTD
    interpretation = pixel.photometric_interpretation
    try:
        codec_id = plugin.codec_id_of(pixel.transfer_syntax, interpretation, frame)
        if codec_id is None:
            return schema.FRAME_NONE
        found = pixels_of(schema.codec_of(codec_id).decode(frame), array.dtype, pixel.bits_stored)
    except ValueError:
        return schema.FRAME_NONE
    return codec_id if np.array_equal(found, array) else schema.FRAME_NONE


def are_readable(frames: Sequence[bytes], pixel: ImagePixel) -> bool:
    """Whether the core takes frames of RLE, which pydicom also reads where they are longer."""
    if pixel.transfer_syntax != RLELossless:
        return True
    pixels, size = pixel.rows * pixel.columns, pixel.dtype.itemsize
    return all(_native.is_rle(frame, pixels, pixel.samples_per_pixel, size) for frame in frames)


def pixels_of(
    decoded: npt.NDArray[Any], dtype: np.dtype[Any], bits_stored: int
) -> npt.NDArray[Any]:
    """What a codec made of one frame or of many, as pixels of ``dtype``.

    Codecs that know no signs, or were told wrong ones, leave those of ``bits_stored`` bits to be
    restored.
    """
    if decoded.dtype == dtype:
        return decoded
    wide = plugin.widened(decoded, dtype.itemsize).view(dtype)
    shift = 8 * dtype.itemsize - bits_stored
    if dtype.kind != decoded.dtype.kind and shift:
        return (wide << shift) >> shift
    return wide
