"""Headers and whole files out of packs."""

import os

import numpy as np
import pytest
from dicoms import BUNDLED, file_of, pack_of, read, slice_of

import iac_query as iac


@pytest.fixture(params=["jxl", "original"])
def pack(request, tmp_path):
    slices = [slice_of(number) for number in range(5)]
    return pack_of(tmp_path / "x.iac", *slices, storage=request.param)


def test_the_numbers_of_a_header_keep_their_text(tmp_path):
    source = slice_of(0, SliceThickness="0.500", RescaleSlope="1.0E0")
    source.add_new(0x00091001, "DS", "07.10")
    file = file_of(source)
    assert b"0.500" in file
    plain = pack_of(tmp_path / "x.iac", file)
    assert b"0.500" not in plain.read_dicom(0)
    with pytest.raises(ValueError, match="exact=True"):
        plain.read_dicom(0, exact=True)
    exact = pack_of(tmp_path / "y.iac", file, exact=True)
    assert exact.header["dicom_schema_version"] == 2
    written = exact.read_dicom(0, exact=True)
    for text in (b"0.500 ", b"1.0E0 ", b"07.10 "):
        assert text in written
    head, tail = file.index(b"\x08\x00\x16\x00"), file.index(b"\xe0\x7f\x10\x00")
    assert file[head:tail] in written
    assert np.array_equal(
        pack_of(tmp_path / "z.iac", written).read_pixel_array(0), exact.read_pixel_array(0)
    )


def test_bytes_behind_the_pixels(tmp_path):
    source = slice_of(0)
    source.add_new(0xFFFCFFFC, "OB", b"\0" * 64)
    file = file_of(source)
    pack = pack_of(tmp_path / "x.iac", file, storage="original")
    assert pack.read_dicom(0) == file
    pack = pack_of(tmp_path / "x.iac", file[:-40] + b"", storage="original", strict=False)
    assert pack.read_dicom(0) == file[:-40]


def test_files_are_written_whole_or_not_at_all(pack, tmp_path):
    path = tmp_path / "out.dcm"
    pack.write_dicom(1, path)
    assert path.read_bytes() == pack.read_dicom(1)
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask
    with pytest.raises(FileExistsError, match="overwrite=True"):
        pack.write_dicom(2, path)
    pack.write_dicom(2, path, overwrite=True)
    assert read(path).InstanceNumber == 3
    with pytest.raises(iac.PackIndexError):
        pack.write_dicom(99, tmp_path / "no.dcm")
    assert sorted(os.listdir(tmp_path)) == ["out.dcm", "x.iac"]


def test_headers_come_as_json_and_as_datasets(pack):
    tags = pack.read_tags(4)
    assert tags["00200013"] == {"Value": [5], "vr": "IS"}
    assert "7FE00010" not in tags
    ds = pack.read_dataset(4)
    assert (ds.InstanceNumber, ds.PatientName, ds.file_meta.TransferSyntaxUID.is_deflated) == (
        5,
        "Made^Up",
        False,
    )


def test_headers_in_odd_character_sets(tmp_path):
    paths = sorted((BUNDLED / "charset_files").glob("*.dcm"))
    for path in paths:
        written = pack_of(tmp_path / "x.iac", path).read_dicom(0)
        assert read(written).get("PatientName") == read(path).get("PatientName"), path.name
    unknown = slice_of(0, SpecificCharacterSet="ISO_IR 9999")
    pack = pack_of(tmp_path / "x.iac", unknown, storage="original")
    assert pack.read_dicom(0) == file_of(unknown)
    assert pack.read_tags(0)["00080005"]["Value"] == ["ISO_IR 9999"]


def test_values_that_break_their_representation(tmp_path):
    """Kept as raw bytes, and put back."""
    file = file_of(slice_of(0, SliceThickness="2.50", StudyID="17"))
    file = file.replace(b"DS\x04\x002.50", b"DS\x04\x00much").replace(
        b"IS\x02\x001 ", b"IS\x02\x00no"
    )
    pack = pack_of(tmp_path / "x.iac", file)
    assert pack.header["errors"] == [{"code": "invalid_numeric_value", "count": 2}]
    assert pack.instance_table["instance_number"].to_pylist() == [-1]
    written = pack.read_dicom(0)
    assert b"DS\x04\x00much" in written
    assert b"IS\x02\x00no" in written
