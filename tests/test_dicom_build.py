"""Files into packs: which are taken, which are left out, and which cannot be together."""

import io
import os
import pickle
import threading

import iac_query.adapters.dicom.spool as spool_module
import numpy as np
import pyarrow as pa
import pytest
from dicoms import BUNDLED, build, file_of, pack_of, pixels_of, slice_of
from iac_query.adapters import dicom
from iac_query.adapters.dicom import columns
from iatro.iac.adapters import dicom as peer

import iac_query as iac
from iac_query import Codec

CT = BUNDLED / "test_files" / "CT_small.dcm"


def test_paths_bytes_and_streams(tmp_path):
    (tmp_path / "a.dcm").write_bytes(file_of(slice_of(0)))
    sources = [
        tmp_path / "a.dcm",
        file_of(slice_of(1)),
        memoryview(file_of(slice_of(2))),
        io.BytesIO(file_of(slice_of(3))),
        str(CT),
    ]
    result = build(tmp_path / "x.iac", *sources, patients="many")
    assert (result.instances, result.frames, result.series) == (5, 5, 2)
    assert result.failures == ()


def test_a_folder_with_folders(tmp_path):
    for name in ("b.dcm", "a/one.DCM", "a/b/two.dcm", "a/three", "four.txt"):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file_of(slice_of(len(name))))
    folder = tmp_path / "in"
    options = {"effort": 1, "overwrite": True}
    result = dicom.build_dicom_patient_package(folder, tmp_path / "x.iac", **options)
    assert result.instances == 3
    result = dicom.build_dicom_patient_package(
        folder, tmp_path / "x.iac", pattern="*", storage="original", tags=["Modality"], **options
    )
    assert result.instances == 5
    with pytest.raises(ValueError, match="pattern"):
        dicom.build_dicom_patient_package(folder / "a", tmp_path / "x.iac", pattern="*.ima")
    with pytest.raises(NotADirectoryError):
        dicom.build_dicom_patient_package(folder / "b.dcm", tmp_path / "x.iac")


def test_rows_are_sorted_and_frames_follow_each_other(tmp_path):
    movie = slice_of(5, series=2, NumberOfFrames=3)
    movie.PixelData = np.stack([pixels_of(i, (12, 16)) for i in range(3)]).tobytes()
    order = [slice_of(2), movie, slice_of(0), slice_of(4, series=2), slice_of(1)]
    pack = pack_of(tmp_path / "x.iac", *order)
    table = pack.instance_table
    assert table["instance_number"].to_pylist() == [1, 2, 3, 5, 6, 6, 6]
    assert table["frame_index"].to_pylist() == [0, 0, 0, 0, 0, 1, 2]
    assert table["number_of_frames"].to_pylist() == [1, 1, 1, 1, 3, 3, 3]
    assert [len(delta) > 0 for delta in table["dicom_delta"].to_pylist()] == [True] * 5 + [
        False
    ] * 2
    assert pack.series_table["instance_count"].to_pylist() == [3, 2]
    for row, number in enumerate([0, 1, 2, 4, 0, 1, 2]):
        assert np.array_equal(pack.read_pixel_array(row), pixels_of(number, (12, 16)))


def test_copies_are_kept_once_and_conflicts_name_both(tmp_path):
    (tmp_path / "one").write_bytes(file_of(slice_of(0)))
    (tmp_path / "two").write_bytes(file_of(slice_of(0, PatientName="Other")))
    result = build(tmp_path / "x.iac", tmp_path / "one", slice_of(1), slice_of(0), slice_of(0))
    assert (result.instances, result.duplicates) == (2, 2)
    header = dicom.DicomPatientReader(tmp_path / "x.iac").header
    assert header["errors"] == [{"code": "duplicate_sop_identical", "count": 2}]
    with pytest.raises(dicom.DicomConflictError, match=r"one and .*two differ") as raised:
        build(tmp_path / "y.iac", tmp_path / "one", tmp_path / "two")
    assert "Other" not in str(raised.value)
    assert not (tmp_path / "y.iac").exists()


def test_all_conflicts_of_a_run_are_named_at_once(tmp_path):
    names = [f"{number}{version}" for number in range(12) for version in "abc"]
    for name in names:
        ds = slice_of(int(name[:-1]), PatientName=f"Secret^{name[-1]}")
        (tmp_path / name).write_bytes(file_of(ds))
    files = [tmp_path / name for name in names]
    with pytest.raises(dicom.DicomConflictError) as raised:
        build(tmp_path / "x.iac", *files, b"no file", tmp_path / "0a")
    error = raised.value
    assert error.count == len(error.conflicts) == 24
    assert error.paths == tuple(str(tmp_path / name) for name in names if name[-1] != "a")
    assert error.conflicts[1].first == str(tmp_path / "0a")
    lines = str(error).splitlines()
    assert lines[0].startswith("24 files conflict with earlier ones: leave one of the two out")
    assert (len(lines), lines[-1]) == (12, "and 14 more")
    assert "Secret" not in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    left = [file for file in files if str(file) not in error.paths]
    assert build(tmp_path / "x.iac", *left).instances == 12


def test_the_first_of_conflicting_files_may_be_kept(tmp_path):
    files = [slice_of(0), slice_of(1), slice_of(0, PatientName="B"), slice_of(2, PatientID="P-2")]
    result = build(tmp_path / "x.iac", *files, conflicts="first")
    assert (result.instances, result.duplicates) == (2, 0)
    assert [failure.source for failure in result.failures] == ["input 2", "input 3"]
    for failure in result.failures:
        assert isinstance(failure.error, dicom.DicomConflictError)
        assert failure.error.conflicts[0].first == "input 0"
    pack = dicom.DicomPatientReader(tmp_path / "x.iac")
    assert pack.header["errors"] == [{"code": "conflicting_file", "count": 2}]
    assert pack.read_dataset(0).PatientName == "Made^Up"
    with pytest.raises(ValueError, match="conflicts is 'last', expected 'error' or 'first'"):
        build(tmp_path / "x.iac", *files, conflicts="last")


def test_a_patient_without_an_id_is_null(tmp_path):
    build(tmp_path / "x.iac", slice_of(0, PatientID=""))
    with iac.connect() as con:
        query = f"SELECT patient_id, iac_tag(record, 'PatientID') FROM '{tmp_path}/x.iac'"
        assert con.sql(query).fetchall() == [(None, None)]
    assert iac.scan_arrow(tmp_path / "x.iac").read_all()["patient_id"].to_pylist() == [None]
    assert peer.DicomPatientReader(tmp_path / "x.iac").read_pixel_array(0).shape == (12, 16)


def test_one_patient_or_many(tmp_path):
    files = [
        slice_of(0),
        slice_of(1, PatientID=" p-\N{FULLWIDTH DIGIT ONE}", SpecificCharacterSet="ISO_IR 192"),
        slice_of(2, PatientID=""),
    ]
    pack = pack_of(tmp_path / "x.iac", *files)
    assert pack.series_table["patient_id"].to_pylist() == ["P-1"]
    assert pack.header["errors"] == [{"code": "patient_id_normalized", "count": 1}]
    other = slice_of(3, series=2, PatientID="P-2")
    with pytest.raises(dicom.DicomConflictError, match=r"input 0 and input 3 .*patients='many'"):
        build(tmp_path / "y.iac", *files, other)
    pack = pack_of(tmp_path / "x.iac", *files, other, patients="many")
    assert pack.series_table["patient_id"].to_pylist() == ["P-1", "P-2"]
    assert pack.header["dicom_schema_version"] == 2
    with pytest.raises(dicom.DicomConflictError, match="one series"):
        build(tmp_path / "y.iac", slice_of(0), slice_of(3, PatientID="P-2"), patients="many")
    assert not (tmp_path / "y.iac").exists()


def test_the_patient_of_a_series_without_one_is_that_of_the_pack(tmp_path):
    pack = pack_of(tmp_path / "x.iac", slice_of(0, series=1, PatientID=""), slice_of(1, series=2))
    assert pack.series_table["patient_id"].to_pylist() == ["P-1", "P-1"]


def test_unreadable_files_are_left_out_or_stop(tmp_path):
    whole = file_of(slice_of(0))
    (tmp_path / "text.dcm").write_text("this is no DICOM file")
    broken = [tmp_path / "text.dcm", tmp_path / "missing.dcm", whole[:-100], b"", 7]
    result = build(tmp_path / "x.iac", *broken, slice_of(1))
    assert result.instances == 1
    assert [f.source for f in result.failures] == [
        *map(str, broken[:2]),
        "input 2",
        "input 3",
        "input 4",
    ]
    assert isinstance(result.failures[1].error, FileNotFoundError)
    header = dicom.DicomPatientReader(tmp_path / "x.iac").header
    assert header["errors"] == [{"code": "unreadable_file", "count": 5}]
    for source in broken:
        with pytest.raises(ValueError, match="cannot be read"):
            build(tmp_path / "y.iac", slice_of(1), source, strict=True)
    with pytest.raises(ValueError, match="none of 5 files can be read, the first: "):
        build(tmp_path / "y.iac", *broken)
    with pytest.raises(ValueError, match="none of 0 files"):
        build(tmp_path / "y.iac")
    assert not (tmp_path / "y.iac").exists()


def test_a_file_that_breaks_in_the_middle_leaves_nothing_behind(tmp_path, monkeypatch):
    """Frames that went to disk before the broken one are not in the pack."""
    monkeypatch.setattr(spool_module, "_BLOCK_FRAMES", 1)
    arrays = [pixels_of(i, (64, 64), "uint16") for i in range(4)]
    frames = [Codec.create("jpegls").encode(array) for array in arrays]
    from dicoms import encapsulated

    ds = slice_of(1, pixels=arrays[0], NumberOfFrames=4)
    ds = encapsulated(ds, "1.2.840.10008.1.2.4.80", [*frames[:3], frames[3][:50]])
    for workers in (1, 2):
        result = build(tmp_path / "x.iac", slice_of(0), ds, slice_of(2), workers=workers)
        assert [f.source for f in result.failures] == ["input 1"]
        with_failure = (tmp_path / "x.iac").stat().st_size
        build(tmp_path / "y.iac", slice_of(0), slice_of(2), workers=workers)
        header = len('"errors":[{"code":"unreadable_file","count":1}]')
        assert abs(with_failure - (tmp_path / "y.iac").stat().st_size) <= header


def test_workers_and_blocks_change_no_byte(tmp_path, monkeypatch):
    files = [slice_of(number) for number in (3, 1, 2, 0)]
    build(tmp_path / "one.iac", *files, workers=1)
    before = threading.active_count()
    for frames in (1, 3):
        monkeypatch.setattr(spool_module, "_BLOCK_FRAMES", frames)
        build(tmp_path / "x.iac", *files, workers=3, verify=True)
        assert (tmp_path / "x.iac").read_bytes() == (tmp_path / "one.iac").read_bytes()
    assert threading.active_count() == before


def test_an_old_pack_stays_unless_told_otherwise(tmp_path):
    path = tmp_path / "x.iac"
    build(path, slice_of(0))
    old = path.read_bytes()
    with pytest.raises(FileExistsError, match="overwrite=True"):
        build(path, slice_of(1), overwrite=False)
    with pytest.raises(ValueError, match="cannot be read"):
        build(path, slice_of(1), b"", strict=True)
    assert path.read_bytes() == old
    build(path, slice_of(1))
    assert path.read_bytes() != old
    assert os.listdir(tmp_path) == ["x.iac"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"storage": "raw"}, "storage"),
        ({"patients": "two"}, "patients"),
        ({"effort": 0}, "effort"),
        ({"workers": 0}, "workers"),
        ({"tags": ["NoSuchThing"]}, "NoSuchThing"),
        ({"tags": ["PixelData"]}, "PixelData"),
        ({"tags": ["OtherPatientIDsSequence"]}, "VR SQ"),
        ({"tags": ["Modality", "00080060"]}, "twice"),
    ],
)
def test_impossible_options(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        build(tmp_path / "x.iac", slice_of(0), **options)
    assert list(tmp_path.iterdir()) == []


def test_one_file_is_no_list(tmp_path):
    with pytest.raises(TypeError, match="list"):
        dicom.build_dicom_patient_package_from_files(CT, tmp_path / "x.iac")
    with pytest.raises(TypeError, match="list"):
        build(tmp_path / "x.iac", slice_of(0), tags="Modality")


def test_tags_are_typed_columns(tmp_path):
    tags = {
        "SliceThickness": pa.float64(),
        "00200013": pa.int64(),
        "PatientName": pa.string(),
        "PatientBirthDate": pa.date32(),
        "ImageType": pa.list_(pa.string()),
        "ImagePositionPatient": pa.list_(pa.float64()),
        "Rows": pa.int64(),
        "SmallestImagePixelValue": pa.int64(),
        "KVP": pa.float64(),
    }
    one = slice_of(0, PatientBirthDate="19700102", ImageType=["ORIGINAL", "PRIMARY"], KVP=None)
    two = slice_of(1, PatientBirthDate="unknown", SliceThickness="")
    two.SmallestImagePixelValue = -5
    two["SmallestImagePixelValue"].VR = "SS"
    table = pack_of(tmp_path / "x.iac", one, two, tags=list(tags)).instance_table
    names = ["InstanceNumber" if name == "00200013" else name for name in tags]
    assert table.schema.names[-len(names) - 3 : -3] == names
    found = table.select(names)
    assert found.schema.types == list(tags.values())
    assert found["SliceThickness"].to_pylist() == [2.5, None]
    assert found["InstanceNumber"].to_pylist() == [1, 2]
    assert found["PatientName"].to_pylist() == ["Made^Up"] * 2
    assert [str(d) for d in found["PatientBirthDate"].to_pylist()] == ["1970-01-02", "None"]
    assert found["ImageType"].to_pylist() == [["ORIGINAL", "PRIMARY"], None]
    assert found["ImagePositionPatient"][1].as_py() == [-4.0, -3.0, 2.5]
    assert found["SmallestImagePixelValue"].to_pylist() == [None, -5]
    assert found["KVP"].null_count == 2


def test_numbers_that_a_column_cannot_hold(tmp_path):
    file = file_of(slice_of(0, AcquisitionNumber=1, SeriesNumber="123456789012"))
    file = file.replace(b"123456789012", b"98765432109876543210"[:12])
    tags = ["SeriesNumber", "AcquisitionNumber", "InstanceNumber"]
    table = pack_of(tmp_path / "x.iac", file, tags=tags).instance_table
    assert table["SeriesNumber"].to_pylist() == [987654321098]
    huge = columns.tag_columns(["SeriesNumber"])[0]
    assert huge.value({"00200011": {"vr": "IS", "Value": [10**30]}}) is None
    assert huge.value({"00200011": {"vr": "IS", "Value": [1, 2]}}) is None


def test_progress_is_shown_when_asked_for(tmp_path, capsys):
    build(tmp_path / "x.iac", slice_of(0))
    assert capsys.readouterr().err == ""
    build(tmp_path / "x.iac", slice_of(0), show_progress=True)
    assert "1/1" in capsys.readouterr().err
