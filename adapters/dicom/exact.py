"""A DICOM file without its frames, and the file again.

What is kept is ``u32 n``, n times ``u64 position, u64 length``, then the bytes of the file that
belong to no frame. The frames, one behind the other, are parted by the lengths and put back at the
positions, which count those bytes. All little-endian. A file that cannot be parted so is kept whole
(n = 0).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from pydicom.dataset import Dataset

from .frames import pixel_element

Span = tuple[int, int]


def cut(data: bytes, ds: Dataset, frames: Sequence[bytes], *, encapsulated: bool) -> bytes:
    """What is left of a file when the frames are taken out."""
    spans = _frame_spans(data, ds, sum(map(len, frames)), encapsulated)
    kept, splices, at, position = [], [], 0, 0
    for start, length in spans:
        kept.append(data[at:start])
        position += len(kept[-1])
        splices.append((position, length))
        at = start + length
    kept.append(data[at:])
    header = _joined(splices, b"".join(kept))
    try:
        return header if restore(header, frames) == data else whole(data)
    except ValueError:  # fragments that are longer than the frames
        return whole(data)


def whole(data: bytes) -> bytes:
    """A file that has no frames."""
    return _joined([], data)


def restore(header: bytes, frames: Sequence[bytes]) -> bytes:
    """The file. Raises ValueError where the header was not made by :func:`cut`."""
    splices, kept = _parted(header)
    pixels = memoryview(b"".join(frames))
    pieces, at, used = [], 0, 0
    for position, length in splices:
        if position < at or length > len(pixels) - used:
            raise ValueError("its dicom_header is damaged")
        pieces += [kept[at:position], pixels[used : used + length]]
        at, used = position, used + length
    return b"".join([*pieces, kept[at:]])


def without_pixels(header: bytes) -> bytes:
    """The file as far as its pixels, or the whole of it where those were not cut out."""
    splices, kept = _parted(header)
    return bytes(kept[: splices[0][0]] if splices else kept)


def _joined(splices: Sequence[Span], kept: bytes) -> bytes:
    table = b"".join(struct.pack("<QQ", *splice) for splice in splices)
    return struct.pack("<I", len(splices)) + table + kept


def _parted(header: bytes) -> tuple[list[Span], memoryview]:
    count = struct.unpack_from("<I", header)[0] if len(header) >= 4 else 1
    if 4 + 16 * count > len(header):
        raise ValueError("its dicom_header is damaged")
    view = memoryview(header)[4:]
    return list(struct.iter_unpack("<QQ", view[: 16 * count])), view[16 * count :]


def _frame_spans(data: bytes, ds: Dataset, size: int, encapsulated: bool) -> list[Span]:
    """Where the file holds the bytes of its frames, ``size`` in all; nowhere if that is unclear."""
    raw = ds.get_item(pixel_element(ds))
    start = getattr(raw, "value_tell", None) or getattr(raw, "file_tell", None) or 0
    if data[start : start + len(raw.value)] != raw.value:
        return []
    if not encapsulated:
        return [(start, size)]
    # Items of PS3.5 A.4: the offset table, then fragments.
    spans, at, end = [], start, start + len(raw.value)
    while at + 8 <= end and data[at : at + 4] == b"\xfe\xff\x00\xe0":
        (length,) = struct.unpack_from("<I", data, at + 4)
        spans.append((at + 8, length))
        at += 8 + length
    return spans[1:]
