"""Images and streams for the tests of JPEG 2000, also streams put together by hand."""

import struct

import imagecodecs
import numpy as np

from iac_query import Codec

PROFILES = ("classic", "ht")
CODECS = {profile: Codec.create("jpeg2000", profile=profile) for profile in PROFILES}
CLASSIC, HT = CODECS["classic"], CODECS["ht"]


def image(height: int, width: int, channels: int, bits: int, kind: str, seed: int = 0):
    random = np.random.default_rng(seed)
    if kind == "noise":
        values = random.integers(0, 1 << bits, (height, width, channels))
    else:
        y, x, c = np.ogrid[:height, :width, :channels]
        values = (37 * y + 11 * x + 5 * c) % (1 << bits)
    array = values.astype(np.uint8 if bits <= 8 else np.uint16)
    return array[..., 0] if channels == 1 else array


def assert_same(actual: np.ndarray, expected: np.ndarray) -> None:
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(actual, expected)


def foreign(array: np.ndarray, **options) -> bytes:
    options = {"level": 0, "codecformat": "j2k", "reversible": True, "mct": False, **options}
    return imagecodecs.jpeg2k_encode(array, **options)


def segments(stream: bytes) -> dict[int, bytes]:
    """The main header's segments, with the offset of the first tile part under 0xFF90."""
    found, at = {}, 2
    while (marker := int.from_bytes(stream[at : at + 2])) != 0xFF90:
        end = at + 2 + int.from_bytes(stream[at + 2 : at + 4])
        found[marker] = stream[at:end]
        at = end
    return found


def body(stream: bytes) -> bytes:
    return stream[stream.index(b"\xff\x93") + 2 : -2]


def siz(size, components, tile=None, offset=(0, 0)) -> bytes:
    """``size`` and ``tile`` as (width, height), a component as (depth, dx, dy)."""
    tile = tile or (size[0] + offset[0], size[1] + offset[1])
    extent = [side + start for side, start in zip(size, offset, strict=True)]
    text = struct.pack(">H8IH", 0, *extent, *offset, *tile, 0, 0, len(components))
    text += b"".join(bytes(component) for component in components)
    return b"\xff\x51" + struct.pack(">H", len(text) + 2) + text


def tile_part(index: int, content: bytes, part: int = 0, parts: int = 1) -> bytes:
    return struct.pack(">HHHIBB", 0xFF90, 10, index, len(content) + 14, part, parts) + (
        b"\xff\x93" + content
    )


def box(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content) + 8) + kind + content


def jp2(stream: bytes, *boxes: bytes, space: int = 16) -> bytes:
    colour = box(b"colr", struct.pack(">BBBI", 1, 0, 0, space))
    width, height = struct.unpack(">2I", stream[8:16])
    image_header = box(b"ihdr", struct.pack(">2IH4B", height, width, stream[41], 7, 7, 0, 0))
    header = box(b"jp2h", image_header + colour + b"".join(boxes))
    start = box(b"jP  ", b"\r\n\x87\n") + box(b"ftyp", b"jp2 \0\0\0\0jp2 ")
    return start + header + box(b"jp2c", stream)


def sampled(planes: list[np.ndarray], steps: list[tuple[int, int]]) -> bytes:
    """One component of each plane, sampled at each (dx, dy)."""
    streams = [foreign(plane, resolutions=1) for plane in planes]
    parts = segments(streams[0])
    height, width = planes[0].shape
    size = (width * steps[0][0], height * steps[0][1])
    header = b"\xff\x4f" + siz(size, [(7, *step) for step in steps])
    header += parts[0xFF52] + parts[0xFF5C]
    return header + tile_part(0, b"".join(map(body, streams))) + b"\xff\xd9"
