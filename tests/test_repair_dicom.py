"""Repair of packs of DICOM instances: what is left is such a pack, for both packages."""

import zlib

import pytest
from damaged_packs import changed, errors_of, refused
from dicom_packs import with_delta, with_template
from iac_query.adapters.dicom import DicomPatientReader
from iatro.iac.adapters import dicom as peer
from iatro.iac.adapters.validate import validate_package as peer_validate
from packs import flip_payload, replaced

import iac_query as iac


@pytest.fixture
def pack(imaged):
    return lambda name="patient": imaged(name)


def repaired(path, dropped: list[int]):
    """The pack without these rows; all others are what they were, files and pixels too."""
    out = path.with_name("out.iac")
    report = iac.repair(path, out, overwrite=True)
    was, now = DicomPatientReader(path), DicomPatientReader(out)
    kept = [row for row in range(len(was)) if row not in dropped]
    assert (report.kept, report.dropped, report.changes) == (len(kept), len(dropped), ())
    assert errors_of(out) == []
    assert iac.validate(out, max_decode=0).findings == ()
    for row, old in enumerate(kept):
        assert now.read_dicom(row) == was.read_dicom(old)
        assert now.read_tags(row) == was.read_tags(old)
    frames = [row for row in range(len(now)) if now.instance_table["has_pixel_data"][row].as_py()]
    for row in frames:
        assert (now.read_pixel_array(row) == was.read_pixel_array(kept[row])).all()
    for uid in now.series_table["series_uid"].to_pylist():
        assert [kept[row] for row in now.rows_of_series(uid)] == [
            row for row in was.rows_of_series(uid) if row in kept
        ]
    if now.header["dicom_schema_version"] == 1:
        theirs = peer.DicomPatientReader(out)
        found = peer_validate(out, 0, 0)
        assert (found["records"], found["series"]) == (len(now), now.series_table.num_rows)
        for row in range(len(now)):
            theirs.read_dicom(row, verify=True)
        for row in frames:
            assert (theirs.read_pixel_array(row, verify=True) == now.read_pixel_array(row)).all()
    return now


@pytest.mark.parametrize("name", ["patient", "dicom_patient.iac", "series.iac"])
def test_damaged_records(pack, name):
    path = pack(name)
    flip_payload(path, 1)
    out = repaired(path, [1])
    assert out.series_table["instance_count"][0].as_py() == {"series.iac": 8}.get(
        name, 3 if name == "patient" else 2
    )


@pytest.mark.parametrize("name", ["patient", "dicom_patient.iac"])
def test_a_series_without_instances_goes(pack, name):
    path = pack(name)
    rows = [row for row in range(len(iac.PackReader(path))) if row < 3 + (name == "patient")]
    for row in rows:
        flip_payload(path, row)
    out = repaired(path, rows)
    assert out.series_table["series_idx"].to_pylist() == [1, 2]
    with iac.connect() as con:
        query = f"SELECT series_uid, count(*) FROM '{path.with_name('out.iac')}' GROUP BY ALL"
        found = sorted(con.sql(query).fetchall())
    names = ("series_uid", "instance_count")
    counted = zip(*(out.series_table[name].to_pylist() for name in names), strict=True)
    assert found == sorted(counted)


def test_a_damaged_template_takes_its_series(pack, tmp_path):
    path = with_template(pack(), tmp_path / "y.iac", b"no json")
    assert repaired(path, [0, 1, 2, 3]).series_table.num_rows == 2


CELLS = [
    ("dicom_delta", b"none"),
    ("dicom_delta_crc32", 5),
    ("dicom_delta", None),
    ("series_idx", 9),
    ("pixel_dtype", "int8"),
    ("rows", 3),
    ("has_pixel_data", False),
    ("sop_instance_uid", "1.2"),
    ("offset", 1 << 40),
]


@pytest.mark.parametrize("cell", CELLS, ids=[f"{column} {value}" for column, value in CELLS])
def test_rows_that_are_wrong(pack, cell):
    # Read as they were, the others are the same.
    column, value = cell
    path = changed(pack(), index=replaced(column, 2, value))
    repaired(path, [2])


def test_counts_are_made_anew(pack):
    path = changed(pack(), slides=replaced("instance_count", 0, 70))
    assert repaired(path, []).series_table["instance_count"].to_pylist() == [4, 1, 1]


def test_instances_go_with_all_their_frames(pack):
    path = pack("frames")
    flip_payload(path, 3)
    out = repaired(path, [0, 1, 2, 3])
    assert out.series_table["instance_count"].to_pylist() == [2, 1, 1]


@pytest.mark.parametrize(
    ("cell", "dropped"),
    [
        (("frame_index", 2, 7), [0, 1, 2, 3]),
        (("frame_index", 4, 1), [4, 5, 6]),
        (("number_of_frames", 5, 9), [4, 5, 6]),
        (("dicom_header", 4, b"none"), [4, 5, 6]),
        (("codec_id", 9, 77), [9]),
    ],
    ids=str,
)
def test_frames_that_are_wrong(pack, cell, dropped):
    path = pack("frames")
    sound = DicomPatientReader(path)
    files = [sound.read_dicom(row) for row in range(len(sound)) if row not in dropped]
    out = path.with_name("out.iac")
    report = iac.repair(changed(path, index=replaced(*cell)), out)
    assert report.dropped == len(dropped)
    assert errors_of(out) == []
    now = DicomPatientReader(out)
    assert [now.read_dicom(row) for row in range(len(now))] == files


def test_frames_that_pydicom_cannot_decode(pack):
    path = pack("frames")
    with iac.PackReader(path) as reader:
        row = len(reader) - 1
        data = bytearray(reader.read_data_span(0, reader.header["data_length"]))
        offset, length = (reader.index_table[name][row].as_py() for name in ("offset", "length"))
    data[offset : offset + length] = bytes(length)
    cell = replaced("crc32", row, zlib.crc32(bytes(length)))
    repaired(changed(path, index=cell, data=bytes(data)), [row])


def test_several_patients(pack):
    path = pack("patients")
    flip_payload(path, 0)
    out = repaired(path, [0])
    assert out.series_table["patient_id"].to_pylist() == ["P-1", "P-2"]


def test_what_is_refused(pack):
    model = {
        "dataset": {"00100020": {"vr": "LO", "Value": ["P-9"]}},
        "file_meta": {},
        "preamble": None,
    }
    path = changed(pack(), index=with_delta(2, model))
    refused(path, "cannot be repaired: row 2: is of another patient than row 0")
    path = changed(pack(), slides=lambda table: table.drop(["template_crc32"]))
    refused(path, "cannot be repaired: the slide table has no column 'template_crc32'")
    path = changed(pack(), codec_params={})
    refused(path, "cannot be repaired: its records are no lossless JPEG XL in containers")
    path = pack("series.iac")
    for row in range(18):
        flip_payload(path, row)
    changed(path, index=replaced("dicom_delta_crc32", 18, 0))
    refused(path, "no record is whole")
