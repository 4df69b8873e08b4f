"""Frames whose bytes are not what they should be: an error, or the pixels that pydicom gives."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from dicoms import pixels_of, slice_of
from iac_query.adapters.dicom.frames import ImagePixel, decoded_frame
from packs import write_pack
from pydicom.encaps import generate_frames
from pydicom.uid import ExplicitVRLittleEndian, RLELossless
from test_dicom_encodings import colour, gray, rle

import iac_query as iac

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:pydicom")
NONE = [{"id": 3, "name": "none", "params": {}}]
SMALL = ("samples_per_pixel", "pixel_representation", "bits_allocated", "bits_stored")


def pack_of(path: Path, frames: list[bytes], pixel: ImagePixel) -> Path:
    """A pack of frames that are described alike."""
    columns: dict[str, Any] = {
        "series_idx": pa.array([0] * len(frames), pa.uint16()),
        "codec_id": pa.array([3] * len(frames), pa.uint8()),
        "rows": pa.array([pixel.rows] * len(frames), pa.uint32()),
        "columns": pa.array([pixel.columns] * len(frames), pa.uint32()),
        "pixel_dtype": [pixel.dtype.name] * len(frames),
        "photometric_interpretation": [pixel.photometric_interpretation] * len(frames),
        "source_transfer_syntax": [str(pixel.transfer_syntax)] * len(frames),
    }
    for name in (*SMALL, "planar_configuration"):
        columns[name] = pa.array([getattr(pixel, name)] * len(frames), pa.uint8())
    index = pa.table(columns)
    write_pack(path, frames, index, payload_type="dicom_patient", codec=None, record_codecs=NONE)
    return path


def read_all(pack: Path) -> tuple[list[np.ndarray | None], list[iac.RecordFailure]]:
    report: list[iac.RecordFailure] = []
    with iac.VariableRecordPack(pack) as reader:
        rows = range(len(reader))
        return list(reader.read_many_contiguous(rows, on_error="null", report=report)), report


def rle_frame(ds: Any) -> tuple[bytes, ImagePixel]:
    ds = rle(ds)
    return next(generate_frames(ds.PixelData, number_of_frames=1)), ImagePixel.of(ds)


@pytest.mark.parametrize(
    "make",
    [
        lambda: gray("uint8"),
        lambda: slice_of(pixels=np.repeat(pixels_of(0, (6, 2)), 9, axis=1)),
        lambda: colour("uint8", 0),
    ],
    ids=["uint8", "int16 with runs", "RGB"],
)
def test_damaged_rle_is_an_error_or_what_pydicom_gives(tmp_path: Path, make):
    good, pixel = rle_frame(make())
    dice = random.Random(5)
    frames = [good, b"", good[:63], good[:64]]
    for _ in range(400):
        frame = bytearray(good)
        for _ in range(dice.choice([1, 1, 4])):
            end = len(frame) if dice.random() < 0.6 else 64
            frame[dice.randrange(end)] = dice.randrange(256)
        if dice.random() < 0.3:
            del frame[dice.randrange(len(frame)) :]
        frames.append(bytes(frame))
    arrays, report = read_all(pack_of(tmp_path / "x.iac", frames, pixel))
    assert {failure.row for failure in report} == {i for i, a in enumerate(arrays) if a is None}
    assert all(isinstance(failure.error, iac.PackError) for failure in report)
    assert sum(array is not None for array in arrays) > 20
    assert sum(array is None for array in arrays[4:]) > 20
    for array, frame in zip(arrays, frames, strict=True):
        if array is not None:
            assert np.array_equal(array, decoded_frame(frame, pixel))


@pytest.mark.parametrize(
    ("segments", "reason"),
    [
        ([b"\x02abc"] * 2, "a frame of 2 segments, the index table says 1"),
        ([], "a frame of 0 segments, the index table says 1"),
        ([b"\x02abc"] * 16, "a frame of 16 segments, the index table says 1"),
        ([b"\x02abc"], "a segment of 3 bytes, the index table says 6"),
        ([b"\x07abcdefgh"], "a segment of 8 bytes, the index table says 6"),
        ([b"\x07abc"], "a segment of 3 bytes, the index table says 6"),
        ([b"\x80\x80\x80"], "a segment of 0 bytes, the index table says 6"),
        ([b"\xfb"], "a segment of 0 bytes, the index table says 6"),
        ([b"\x06abcdefg"], None),  # a byte of padding
        ([b"\x80\xfba\x80"], None),  # 128 is nothing
    ],
    ids=str,
)
def test_segments_that_do_not_fit(tmp_path: Path, segments: list[bytes], reason: str | None):
    pixel = ImagePixel(RLELossless, 2, 3, 1, "MONOCHROME2", 0, 8, 8, 7, 0)
    starts = [64 + sum(map(len, segments[:i])) for i in range(len(segments))][:15]
    header = struct.pack("<16I", len(segments), *starts, *[0] * (15 - len(starts)))
    frame = header + b"".join(segments)
    (array,), report = read_all(pack_of(tmp_path / "x.iac", [frame], pixel))
    if reason is None:
        assert np.array_equal(array, decoded_frame(frame, pixel))
    else:
        assert array is None
        assert str(report[0].error).endswith(f"x.iac: row 0: RLE: {reason}")


@pytest.mark.parametrize("start", [0, 63, 1 << 31, (1 << 32) - 1])
def test_segments_outside_of_the_frame(tmp_path: Path, start: int):
    pixel = ImagePixel(RLELossless, 2, 3, 1, "MONOCHROME2", 0, 8, 8, 7, 0)
    frame = struct.pack("<16I", 1, start, *[0] * 14) + b"\x05abcdef"
    (array,), report = read_all(pack_of(tmp_path / "x.iac", [frame], pixel))
    assert array is None
    assert "segment 1 lies outside the frame" in str(report[0].error)


@pytest.mark.parametrize("syntax", [RLELossless, ExplicitVRLittleEndian])
def test_few_bytes_that_claim_to_be_many_pixels(tmp_path: Path, syntax):
    pixel = ImagePixel(syntax, 65535, 65535, 1, "MONOCHROME2", 0, 16, 16, 15, 0)
    frame = struct.pack("<16I", 2, 64, 66, *[0] * 13) + b"\x81a\x81b"
    (array,), report = read_all(pack_of(tmp_path / "x.iac", [frame], pixel))
    assert array is None
    assert "x.iac: row 0: " in str(report[0].error)


@pytest.mark.parametrize("length", [0, 1, 11, 13, 1000])
def test_native_frames_of_another_length(tmp_path: Path, length: int):
    pixel = ImagePixel(ExplicitVRLittleEndian, 2, 3, 1, "MONOCHROME2", 0, 16, 16, 15, 0)
    (array,), report = read_all(pack_of(tmp_path / "x.iac", [bytes(length)], pixel))
    assert array is None
    assert f"record has {length} bytes, the index table says 2x3 uint16, which has 12" in str(
        report[0].error
    )
