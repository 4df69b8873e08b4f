"""Compressed frames in fragments, with offset tables right, wrong or missing: PS3.5 A.4."""

import itertools
import re
import struct

import numpy as np
import pytest
from dicoms import build, file_of, pack_of, pixels_of, slice_of
from pydicom.pixels import get_encoder
from pydicom.uid import UID, RLELossless

import iac_query as iac

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:pydicom")
SYNTAXES = {
    "rle": RLELossless,
    "jpegls": "1.2.840.10008.1.2.4.80",
    "jpeg2000": "1.2.840.10008.1.2.4.90",
    "jxl": "1.2.840.10008.1.2.4.110",
}
ARRAYS = [pixels_of(number, (12, 16), "uint16") for number in range(3)]


def encoded(codec: str) -> list[bytes]:
    """Each of the arrays as a frame of an even length."""
    if codec == "rle":
        ds = slice_of(pixels=ARRAYS[0], NumberOfFrames=3, PixelData=np.stack(ARRAYS).tobytes())
        return [get_encoder(RLELossless).encode(ds, index=i) for i in range(3)]
    options = {} if codec == "jpegls" else {"lossless": True}
    frames = [iac.Codec.create(codec, **options).encode(array) for array in ARRAYS]
    return [frame + b"\0" * (len(frame) % 2) for frame in frames]


def items(*fragments: bytes) -> bytes:
    return b"".join(b"\xfe\xff\x00\xe0" + struct.pack("<I", len(f)) + f for f in fragments)


def file_with(syntax: str, value: bytes, **elements) -> bytes:
    """A file of three frames whose pixels are that value, of undefined length."""
    ds = slice_of(pixels=ARRAYS[0], **{"NumberOfFrames": 3, **elements})
    del ds.PixelData
    ds.file_meta.TransferSyntaxUID = UID(syntax)
    start = b"\xe0\x7f\x10\x00OB\0\0\xff\xff\xff\xff"
    return file_of(ds) + start + value + b"\xfe\xff\xdd\xe0\0\0\0\0"


def offsets_of(frames: list[bytes]) -> list[int]:
    return [*itertools.accumulate((8 + len(frame) for frame in frames[:-1]), initial=0)]


def basic(offsets) -> bytes:
    return struct.pack(f"<{len(offsets)}I", *offsets)


def extended(offsets, lengths) -> dict[str, bytes]:
    tables = [struct.pack(f"<{len(numbers)}Q", *numbers) for numbers in (offsets, lengths)]
    return dict(zip(("ExtendedOffsetTable", "ExtendedOffsetTableLengths"), tables, strict=True))


@pytest.mark.parametrize("storage", ["jxl", "original"])
@pytest.mark.parametrize("codec", SYNTAXES)
def test_frames_are_found(tmp_path, codec, storage):
    frames = encoded(codec)
    offsets, sizes = offsets_of(frames), [*map(len, frames)]
    table, body = basic(offsets), items(*frames)
    files = [
        file_with(SYNTAXES[codec], items(b"") + body),
        file_with(SYNTAXES[codec], items(table) + body),
        file_with(SYNTAXES[codec], items(b"") + body, **extended(offsets, sizes)),
        file_with(SYNTAXES[codec], items(b"") + body, **extended([], [])),
    ]
    if codec != "rle":  # a frame of which is one fragment: A.4.2
        halves = [part for f in frames for part in (f[: len(f) // 4 * 2], f[len(f) // 4 * 2 :])]
        starts = [offset + 8 * number for number, offset in enumerate(offsets)]
        files.append(file_with(SYNTAXES[codec], items(basic(starts), *halves)))
        if codec != "jxl":  # whose frames have no end that can be seen
            files.append(file_with(SYNTAXES[codec], items(b"", *halves)))
    for file in files:
        with pack_of(tmp_path / "x.iac", file, storage=storage) as pack:
            assert np.array_equal(pack.read_tensor(range(3)), np.stack(ARRAYS))
            if storage == "original":
                assert pack.read_dicom(0) == file
        assert iac.validate(tmp_path / "x.iac", max_decode=0).ok


OFFSETS = {
    "between fragments": lambda o: [at + 2 for at in o],
    "all the same": lambda o: [0] * len(o),
    "outside": lambda o: [0, 1 << 30, (1 << 32) - 1],
    "too few": lambda o: o[:2],
    "too many": lambda o: [*o, o[-1] + 8],
}


@pytest.mark.parametrize("storage", ["jxl", "original"])
@pytest.mark.parametrize("codec", SYNTAXES)
@pytest.mark.parametrize("wrong", OFFSETS)
def test_wrong_basic_offset_tables(tmp_path, codec, wrong, storage):
    frames = encoded(codec)
    table = basic(OFFSETS[wrong](offsets_of(frames)))
    file = file_with(SYNTAXES[codec], items(table, *frames))
    refused(tmp_path, file, "Number of Frames says 3|Unable to decode|bytes cannot be", storage)


LENGTHS = "are not of the same frames"
OUTSIDE = "points outside the pixels"
EXTENDED = [
    (lambda o, n: extended([0, 1 << 62, (1 << 64) - 1], n), OUTSIDE),
    (lambda o, n: extended(o, [*n[:2], n[2] + 100]), OUTSIDE),
    (lambda o, n: extended(o, [1 << 62] * 3), OUTSIDE),
    (lambda o, n: extended(o, n[:1]), LENGTHS),
    (lambda o, n: {**extended(o, n), "ExtendedOffsetTable": b"\0" * 22}, LENGTHS),
    (lambda o, n: extended(o[:2], n[:2]), "holds 2 frames, Number of Frames says 3"),
    (lambda o, n: extended([at + 2 for at in o], n), "."),
    (lambda o, n: extended(o, [4] * 3), "."),
    (lambda o, n: extended(o, [0] * 3), "."),
]


@pytest.mark.parametrize("storage", ["jxl", "original"])
@pytest.mark.parametrize("codec", SYNTAXES)
@pytest.mark.parametrize("wrong", range(len(EXTENDED)))
def test_wrong_extended_offset_tables(tmp_path, codec, wrong, storage):
    frames = encoded(codec)
    make, reason = EXTENDED[wrong]
    tables = make(offsets_of(frames), [*map(len, frames)])
    refused(tmp_path, file_with(SYNTAXES[codec], items(b"", *frames), **tables), reason, storage)


FRAGMENTS = {
    "none": lambda f: [],
    "one frame missing": lambda f: f[:2],
    "all in one": lambda f: [b"".join(f)],
    "one cut": lambda f: [f[0], f[1][: len(f[1]) // 4 * 2], f[2]],
    "one of zeros": lambda f: [f[0], b"\0" * len(f[1]), f[2]],
    "one empty": lambda f: [f[0], b"", f[2]],
}


@pytest.mark.parametrize("storage", ["jxl", "original"])
@pytest.mark.parametrize("codec", SYNTAXES)
@pytest.mark.parametrize("wrong", FRAGMENTS)
def test_fragments_that_are_no_frames(tmp_path, codec, wrong, storage):
    fragments = FRAGMENTS[wrong](encoded(codec))
    refused(tmp_path, file_with(SYNTAXES[codec], items(b"", *fragments)), ".", storage)


@pytest.mark.parametrize("storage", ["jxl", "original"])
def test_run_lengths_of_more_pixels_than_memory_holds(tmp_path, storage):
    sizes = {"Rows": 65535, "Columns": 65535, "NumberOfFrames": 1}
    file = file_with(RLELossless, items(b"", encoded("rle")[0]), **sizes)
    refused(tmp_path, file, "bytes cannot be 65535 x 65535 pixels", storage)


@pytest.mark.parametrize("storage", ["jxl", "original"])
def test_run_lengths_are_not_padded(tmp_path, storage):
    """A frame that lacks its last byte is no frame with a zero there."""
    frames = encoded("rle")
    cut = next(frame for frame in frames if frame[-1] != 0)[:-1]
    file = file_with(RLELossless, items(b"", cut), NumberOfFrames=1)
    refused(tmp_path, file, "decoded RLE segment data doesn't match", storage)


@pytest.mark.parametrize("storage", ["jxl", "original"])
def test_run_lengths_may_be_followed_by_anything(tmp_path, storage):
    """As for pydicom, and what is built can be read."""
    frame = encoded("rle")[0] + b"\x07abcdefgh\xffx\0"
    file = file_with(RLELossless, items(b"", frame), NumberOfFrames=1)
    with pack_of(tmp_path / "x.iac", file, storage=storage) as pack:
        assert np.array_equal(pack.read_pixel_array(0), ARRAYS[0])
        if storage == "original":
            assert pack.read_dicom(0) == file
    assert iac.validate(tmp_path / "x.iac", max_decode=0).ok


def refused(tmp_path, file: bytes, reason: str, storage: str) -> None:
    """That a file is left out for that reason, and the one beside it is not."""
    result = build(tmp_path / "x.iac", file, slice_of(9), storage=storage)
    assert (result.instances, len(result.failures)) == (1, 1)
    assert re.search(reason, str(result.failures[0].error))
