"""Validation of the frames of DICOM instances: their order, and the pixels they decode to."""

import sys
import zlib

import numpy as np
import pytest
from damaged_packs import changed, errors_of, several
from packs import flip_payload, replaced
from pydicom.uid import JPEGLSLossless

import iac_query as iac


@pytest.fixture
def pack(imaged):
    return lambda name="patient": imaged(name)


def test_records_of_other_pixels(pack):
    encode = iac.Codec.create("jxl", lossless=True, effort=1, usecontainer=True).encode
    image = np.zeros((12, 16), np.uint16)
    for pixels, found in (
        (image[:9], "9x16 uint16"),
        (image.astype(np.uint8), "12x16 uint8"),
        (np.stack([image] * 3, 2), "12x16x3 uint16"),
    ):
        path = pack()
        with iac.PackReader(path) as reader:
            header, prefix = reader.header, reader.header["metadata_length"]
            data = reader.read_data_span(0, header["data_length"])
        payload = encode(pixels)
        places = several(
            ("offset", 1, len(data)),
            ("length", 1, len(payload)),
            ("crc32", 1, zlib.crc32(payload)),
        )
        changed(path, index=places, data=data + payload, metadata_length=prefix)
        reason = f"jxl: record is an image of {found}, the index table says 12x16 int16"
        assert errors_of(path) == [(1, "codec", reason)]


FRAMES = [
    (("frame_index", 2, 3), {2: "is not the frame that belongs", 0: "3 frames of its instance"}),
    (("frame_index", 4, 1), {4: "is not the frame that belongs"}),
    (("number_of_frames", 4, 5), {4: "3 frames of its instance are there, of 5"}),
    (("number_of_frames", 5, 5), {5: "number_of_frames is not that of the first frame of its"}),
    (("sop_instance_uid", 5, "1.2"), {5: "sop_instance_uid is not that of the first frame of"}),
    (("rows", 6, 9), {6: "rows is not that of the first frame of its instance"}),
    (("series_idx", 6, 1), {6: "series_idx is not that of the first frame of its instance"}),
    (("codec_id", 6, 77), {6: "its codec_id is not in the header's record_codecs"}),
    (("dicom_header", 4, b"none"), {4: "its dicom_header differs from its crc32"}),
    (("dicom_header_crc32", 8, 1), {8: "its dicom_header differs from its crc32"}),
]


@pytest.mark.parametrize(("change", "expected"), FRAMES, ids=[str(one[:2]) for one, _ in FRAMES])
def test_frames_that_are_wrong(pack, change, expected):
    found = errors_of(changed(pack("frames"), index=replaced(*change)))
    for row, start in expected.items():
        assert any(number == row and text.startswith(start) for number, _, text in found), found
    assert 0 in expected or not [row for row, *_ in found if row in (0, 1, 2, 3)]


def test_frames_of_run_lengths(pack):
    path = pack("frames")
    assert errors_of(path) == []
    with iac.PackReader(path) as reader:
        row = len(reader) - 1
        header = reader.header
        data = bytearray(reader.read_data_span(0, header["data_length"]))
        offset, length = (reader.index_table[name][row].as_py() for name in ("offset", "length"))
    assert header["record_codecs"][-1]["name"] == "none"
    data[offset : offset + length] = bytes(length)
    cells = replaced("crc32", row, zlib.crc32(bytes(length)))
    ((found, check, reason),) = errors_of(changed(path, index=cells, data=bytes(data)))
    assert (found, check) == (row, "codec")
    assert reason and "\n" not in reason


def test_frames_that_only_pydicom_decodes(pack):
    """Of a transfer syntax for which the core has no way from these codecs."""
    path = changed(pack("frames"), index=replaced("source_transfer_syntax", 9, JPEGLSLossless))
    header, pixels = errors_of(path)
    assert header[:2] == (9, "payload")
    assert pixels[:2] == (9, "codec") and "\n" not in pixels[2]


def test_frames_that_pydicom_decodes_where_it_is_missing(pack, monkeypatch):
    """Everything else is checked all the same."""
    for name in [name for name in sys.modules if name.startswith("iac_query.adapters.dicom")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pydicom", None)
    other = several(("rows", 9, 13), ("source_transfer_syntax", 9, JPEGLSLossless))
    path = changed(pack("frames"), index=other)
    report = iac.validate(path, max_decode=0)
    assert (9, "payload", "rows is another one in its header") in errors_of(path)
    (note,) = [finding for finding in report.findings if finding.severity == "note"]
    assert note.row == 9
    assert note.reason.startswith("1 frames were not decoded: DICOM packs need pydicom: pip inst")


def test_flipped_bytes_of_templates_and_records(pack):
    path = pack()
    flip_payload(path, 3)
    assert [one[:2] for one in errors_of(path)] == [(3, "checksum")]
    with iac.PackReader(path) as reader:
        data = bytearray(reader.read_data_span(0, reader.header["data_length"]))
    data[5] ^= 1  # of the first series' template
    found = errors_of(changed(path, data=bytes(data)))
    assert [one[:2] for one in found if one[0] != 3] == [(row, "checksum") for row in range(3)]
