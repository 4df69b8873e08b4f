"""JPEG streams taken apart and put together again, for tests."""

from __future__ import annotations

import base64
import struct
from pathlib import Path

import numpy as np

STREAMS = sorted((Path(__file__).parent / "data" / "jpeg").glob("*.jpg"))  # by make_jpegs.cpp
SOF = {0xC0, 0xC1, 0xC2, 0xC3, 0xC9, 0xCA}
JFIF = bytes.fromhex("ffe000104a46494600010100000100010000")


def adobe(transform: int) -> bytes:
    """An Adobe segment."""
    return b"\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00" + bytes([transform])


def segment(marker: int, body: bytes) -> bytes:
    """One marker segment."""
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


def split(stream: bytes) -> list[tuple[int, bytes]]:
    """The segments before the first scan, and (0xDA, everything from there on)."""
    at, parts = 2, []
    while stream[at + 1] != 0xDA:
        (length,) = struct.unpack_from(">H", stream, at + 2)
        parts.append((stream[at + 1], stream[at : at + 2 + length]))
        at += 2 + length
    return [*parts, (0xDA, stream[at:])]


def join(parts: list[tuple[int, bytes]]) -> bytes:
    return b"\xff\xd8" + b"".join(part for _, part in parts)


def without(stream: bytes, *markers: int) -> bytes:
    """The stream but for its segments of these markers."""
    return join([part for part in split(stream) if part[0] not in markers])


def with_front(stream: bytes, front: bytes) -> bytes:
    """The stream with segments put behind its SOI."""
    return stream[:2] + front + stream[2:]


def with_frame(stream: bytes, marker: int | None = None, **fields: int) -> bytes:
    """The stream with another frame header: precision, height, width, ids (of three)."""
    parts = []
    for code, part in split(stream):
        if code in SOF:
            new = bytearray(part)
            new[1] = marker or code
            new[4] = fields.get("precision", new[4])
            new[5:7] = struct.pack(">H", fields.get("height", struct.unpack_from(">H", new, 5)[0]))
            new[7:9] = struct.pack(">H", fields.get("width", struct.unpack_from(">H", new, 7)[0]))
            part = bytes(new)
        parts.append((code, part))
    return join(parts)


def with_ids(stream: bytes, ids: bytes) -> bytes:
    """A stream of one interleaved scan whose three components are called otherwise."""
    parts = []
    for code, part in split(stream):
        new = bytearray(part)
        if code in SOF:
            new[10:19:3] = ids
        elif code == 0xDA:
            new[5:11:2] = ids
        parts.append((code, bytes(new)))
    return join(parts)


def tables_of(stream: bytes) -> str:
    """The stream's tables in base64, as TIFF keeps them."""
    parts = [part for part in split(stream) if part[0] in (0xDB, 0xC4)]
    return base64.b64encode(join(parts) + b"\xff\xd9").decode()


def gradient(height: int, width: int, channels: int = 1, dtype: type = np.uint8) -> np.ndarray:
    """Smooth, with all of the dtype's range."""
    y, x = np.mgrid[0:height, 0:width]
    planes = [x * (3 + c) + y * (5 - c) for c in range(channels)]
    top = np.iinfo(dtype).max
    image = np.stack(planes, -1) * max(1, top // 255 // 4) % (top + 1)
    return image.astype(dtype)[..., 0] if channels == 1 else image.astype(dtype)


def noise(shape: tuple[int, ...], bits: int = 8, seed: int = 0) -> np.ndarray:
    values = np.random.default_rng(seed).integers(0, 1 << bits, shape)
    return values.astype(np.uint8 if bits <= 8 else np.uint16)
