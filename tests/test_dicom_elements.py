"""Elements that are not what the standard says, and what becomes of their files."""

import struct
import zlib

import numpy as np
import pytest
from dicoms import build, file_of, pack_of, pixels_of, read, slice_of
from pydicom.dataelem import RawDataElement
from pydicom.tag import Tag
from pydicom.uid import DeflatedExplicitVRLittleEndian

import iac_query as iac

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:pydicom")


def with_raw(keyword: str, vr: str, value: bytes) -> bytes:
    """A file with those bytes for an element."""
    ds, tag = read(file_of(slice_of())), Tag(keyword)
    ds[tag] = RawDataElement(tag, vr, len(value), value, 0, False, True)
    return file_of(ds)


@pytest.mark.parametrize("storage", ["jxl", "original"])
@pytest.mark.parametrize(
    ("keyword", "vr", "value"),
    [
        ("Rows", "US", b"\x0c\0\x0c\0"),
        ("Rows", "US", b""),
        ("Rows", "LO", b"12"),
        ("Rows", "DS", b"12.5"),
        ("Columns", "DS", b"nan "),
        ("SamplesPerPixel", "IS", b"1\\1 "),
        ("BitsAllocated", "DS", b"inf "),
        ("BitsStored", "US", b"\x0c\0\x0c\0"),
        ("PlanarConfiguration", "US", b"\0\0\0\0"),
        ("NumberOfFrames", "IS", b"1.5 "),
        ("NumberOfFrames", "IS", b"1\\2 "),
        ("NumberOfFrames", "IS", b"inf "),
        ("NumberOfFrames", "IS", b"AB"),
    ],
)
def test_what_has_to_be_one_integer(tmp_path, keyword, vr, value, storage):
    file = with_raw(keyword, vr, value)
    result = build(tmp_path / "x.iac", file, slice_of(1), storage=storage)
    (failure,) = result.failures
    assert isinstance(failure.error, ValueError)
    assert str(failure.error).startswith((f"its {keyword} is not one", f"has no {keyword}"))


def test_colours_are_one_value(tmp_path):
    file = with_raw("PhotometricInterpretation", "CS", b"RGB\\MONOCHROME2 ")
    with pytest.raises(ValueError, match="its PhotometricInterpretation is not one value"):
        build(tmp_path / "x.iac", file)


@pytest.mark.parametrize("value", [b"1.5 ", b"inf ", b"nan ", b"99999999999 ", b"x ", b"1\\2 "])
def test_instance_numbers_that_are_none(tmp_path, value):
    with pack_of(tmp_path / "x.iac", with_raw("InstanceNumber", "IS", value)) as pack:
        assert pack.instance_table["instance_number"].to_pylist() == [-1]
    assert iac.validate(tmp_path / "x.iac", max_decode=0).ok


def test_several_values_where_one_belongs(con, tmp_path):
    file = with_raw("Modality", "CS", b"CT\\MR ")
    with pack_of(tmp_path / "x.iac", file) as pack:
        assert pack.series_table["modality"].to_pylist() == ["CT\\MR"]
    query = f"SELECT modality, iac_tag(record, 'Modality') FROM '{tmp_path / 'x.iac'}'"
    assert con.sql(query).fetchall() == [("CT\\MR", "CT\\MR")]


@pytest.mark.parametrize(
    ("keyword", "vr", "value"),
    [("NumberOfFrames", "IS", b"0 "), ("PhotometricInterpretation", "CS", b"RGB ")],
)
def test_what_pydicom_passes_over_is_sound(tmp_path, keyword, vr, value):
    """No frames for one, and colours of one sample."""
    file = with_raw(keyword, vr, value)
    for storage in ("jxl", "original"):
        with pack_of(tmp_path / "x.iac", file, storage=storage) as pack:
            assert np.array_equal(pack.read_pixel_array(0), pixels_of(0, (12, 16)))
        assert iac.validate(tmp_path / "x.iac", max_decode=0).ok


def test_images_that_end_before_their_pixels(tmp_path):
    """Each is either left out or what pydicom reads, and never a value that was cut."""
    file = file_of(slice_of())
    start, end = file.index(b"\x08\0\x60\0CS"), file.index(b"\xe0\x7f\x10\0OW")
    refused = 0
    for cut in range(start, end):
        result = build(tmp_path / "x.iac", file[:cut], slice_of(1))
        for failure in result.failures:
            assert "before its pixels" in str(failure.error)
        refused += len(result.failures)
        at_the_end = read(file[:cut])
        values = [at_the_end.get_item(tag) for tag in at_the_end.keys()]  # noqa: SIM118
        assert len(result.failures) == any(len(raw.value) < raw.length for raw in values)
    assert refused > (end - start) // 4


def test_elements_behind_the_pixels_stay(tmp_path):
    ds = slice_of()
    ds.add_new(0xFFFCFFFC, "OB", b"\1\2")
    for options in ({"exact": True}, {"storage": "original"}, {}):
        with pack_of(tmp_path / "x.iac", ds, **options) as pack:
            for exact in {False, bool(options)}:
                again = read(pack.read_dicom(0, exact=exact))
                assert again[0xFFFCFFFC].value == b"\1\2"


def test_files_that_cannot_be_written_say_why_in_a_line(tmp_path):
    file = file_of(slice_of(SpecificCharacterSet="ISO_IR 100"))
    bad = file.replace(b"CS\x0a\0ISO_IR 100", b"CS\x0a\0rot13     ")
    with pack_of(tmp_path / "x.iac", bad) as pack:
        with pytest.raises(iac.PackError, match="row 0: its file cannot be put together") as raised:
            pack.read_dicom(0)
        assert "\n" not in str(raised.value)
        assert pack.read_tags(0)["00080060"]["Value"] == ["CT"]
    with pack_of(tmp_path / "x.iac", bad, storage="original") as pack:
        assert pack.read_dicom(0) == bad


def deflated(head: bytes, zeros: int, tail: bytes) -> bytes:
    """A deflated dataset of those bytes."""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
    pieces = [squeeze.compress(head)]
    pieces += [squeeze.compress(b"\0" * (1 << 20)) for _ in range(zeros >> 20)]
    return b"".join([*pieces, squeeze.compress(tail), squeeze.flush()])


@pytest.mark.parametrize("megabytes", [1, 128])
def test_few_bytes_that_are_inflated_to_many(tmp_path, megabytes):
    ds = slice_of()
    file = file_of(ds)
    ds.file_meta.TransferSyntaxUID = DeflatedExplicitVRLittleEndian
    meta = file_of(ds).partition(DeflatedExplicitVRLittleEndian.encode())
    start, at = file.index(b"\x08\0\x16\0UI"), file.index(b"\x10\0\x10\0PN")
    private = b"\x09\0\x01\x10OB\0\0" + struct.pack("<I", megabytes << 20)
    body = deflated(file[start:at] + private, megabytes << 20, file[at:])
    bomb = b"".join(meta[:2]) + body
    result = build(tmp_path / "x.iac", bomb, slice_of(1))
    if megabytes == 1:
        assert result.failures == ()
    else:
        (failure,) = result.failures
        assert "bytes are inflated to more than" in str(failure.error)
