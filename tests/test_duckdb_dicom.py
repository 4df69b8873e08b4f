"""Scans and pixels of DICOM packs in SQL: iac_scan, iac_image, iac_hu, iac_check."""

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pydicom
import pytest
from dicom_packs import (
    PEER,
    SERIES,
    build,
    column,
    file_of,
    pixel_arrays,
    rewritten,
)
from packs import replaced, write_pack

import iac_query as iac

pytestmark = pytest.mark.asan
FILES = ("CT_small.dcm", "MR_small.dcm", "examples_rgb_color.dcm", "SC_rgb_small_odd.dcm")


def array_of(value: dict) -> np.ndarray:
    array = np.frombuffer(value["data"], value["dtype"])
    array = array.reshape(value["height"], value["width"], value["channels"])
    return array[:, :, 0] if value["channels"] == 1 else array


def assert_same(found: list, expected: list) -> None:
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours is None) == (theirs is None)
        if theirs is not None:
            assert ours.dtype == theirs.dtype and np.array_equal(ours, theirs)


@pytest.fixture
def packs(tmp_path: Path) -> list[Path]:
    return [PEER, SERIES, *(build(tmp_path / f"{n}.iac", file_of(n)) for n in FILES)]


def test_images_are_the_peers_pixel_arrays(con, packs: list[Path]):
    for pack in packs:
        images = column(con, pack, "iac_image(record)")
        assert_same([v and array_of(v) for v in images], pixel_arrays(pack))
    assert column(con, PEER, "iac_image(record).dtype") == ["int16"] * 3 + ["uint8"] * 2 + [None]


def test_images_outside_sql_as_well(con, packs: list[Path]):
    for pack in packs:
        expected = pixel_arrays(pack)
        table = con.sql(f"SELECT record FROM '{pack}' ORDER BY record.row").to_arrow_table()
        images = iac.decode(table, as_="image")["payload"].to_pylist()
        assert_same([v and array_of(v) for v in images], expected)
        with iac.VariableRecordPack(pack) as records:
            assert_same(list(records.read_many_contiguous(range(len(expected)))), expected)
            for row, pixels in enumerate(expected):
                if pixels is not None:
                    assert_same([records.read(row)], [pixels])


def test_a_tensor_has_a_null_for_an_instance_without_pixels(con):
    table = con.sql(f"""
        SELECT record FROM '{PEER}' WHERE modality IN ('CT', 'SR') ORDER BY record.row DESC""")
    payload = iac.decode(table.to_arrow_table(), as_="tensor")["payload"].combine_chunks()
    assert payload.is_valid().to_pylist() == [False, True, True, True]
    values = payload.storage.flatten().to_numpy().reshape(-1, 32, 48)
    expected = pixel_arrays(PEER)
    assert values.dtype == np.int16 and np.array_equal(values[-3:], expected[2::-1])


def test_an_instance_without_pixels(con):
    assert column(con, PEER, "iac_image(record) IS NULL") == [False] * 5 + [True]
    assert column(con, PEER, "iac_hu(record) IS NULL") == [False] * 5 + [True]
    assert column(con, PEER, "iac_payload(record)")[5] == b""
    assert column(con, PEER, "iac_verify(record)") == [True] * 6
    reason = r"dicom_patient\.iac: row 5: the DICOM instance has no pixels"
    with iac.VariableRecordPack(PEER) as pack, pytest.raises(iac.CodecError, match=reason):
        pack.read(5)
    assert con.sql(f"FROM iac_check('{PEER}')").fetchall() == []
    assert con.sql(f"FROM iac_check('{SERIES}')").fetchall() == []


def test_an_empty_record_that_is_to_have_pixels_is_damaged(con, tmp_path: Path):
    pack = rewritten(PEER, tmp_path / "x.iac", index=replaced("has_pixel_data", 5, True))
    with pytest.raises(duckdb.Error, match=r"x\.iac: row 5: pixel_dtype says no type of pixels"):
        column(con, pack, "iac_image(record)")
    found = con.sql(f"SELECT row FROM iac_check('{pack}')").fetchall()
    assert found == [(5,)]


def test_pixels_of_another_width_than_the_index_says(con, tmp_path: Path):
    pack = rewritten(PEER, tmp_path / "x.iac", index=replaced("pixel_dtype", 1, "int8"))
    reason = r"x\.iac: row 1: bits_allocated is 16, pixel_dtype says int8"
    with pytest.raises(duckdb.Error, match=reason):
        column(con, pack, "iac_image(record)")
    assert column(con, pack, "TRY(iac_image(record)) IS NULL")[:3] == [False, True, False]


@pytest.mark.parametrize("bits", [1, 12, 16])
def test_signs_of_other_codecs_stand_in_the_bits_that_are_in_use(con, tmp_path: Path, bits: int):
    values = np.arange(-(1 << (bits - 1)), 1 << (bits - 1), max(1, 1 << bits >> 8))
    pixels = values.astype(np.int16).reshape(1, -1)
    stored = (pixels.view(np.uint16) & ((1 << bits) - 1)).astype(np.uint16)
    index = pa.table(
        {
            "series_idx": pa.array([0], pa.uint16()),
            "has_pixel_data": [True],
            "rows": pa.array([1], pa.uint32()),
            "columns": pa.array([pixels.size], pa.uint32()),
            "pixel_dtype": ["int16"],
            "bits_stored": pa.array([bits], pa.uint8()),
        }
    )
    codec = iac.Codec.create("jpegls")
    path = tmp_path / "x.iac"
    write_pack(path, [codec.encode(stored)], index, payload_type="dicom_patient", codec="jpegls")
    (image,) = column(con, path, "iac_image(record)")
    assert_same([array_of(image)], [pixels])


def test_the_patient_id_comes_from_the_headers(con):
    columns = con.sql(f"DESCRIBE FROM '{PEER}'").fetchall()
    names = [name for name, *_ in columns]
    assert names[-2:] == ["patient_id", "record"]
    assert ("patient_id", "VARCHAR") in [(name, type) for name, type, *_ in columns]
    assert column(con, PEER, "patient_id") == ["SYNTH-1"] * 6
    assert column(con, SERIES, "patient_id") == ["P-01"] * 19
    query = f"SELECT count(*) FROM '{SERIES}' WHERE patient_id = 'P-01' AND modality = 'CT'"
    assert con.sql(query).fetchall()[0] == (13,)


def test_a_patient_id_that_differs_is_each_instances_own(con, tmp_path: Path):
    files = []
    for number, patient in enumerate(["p 1", " P 1", "", "p 1"]):
        ds = pydicom.dcmread(file_of("CT_small.dcm"))
        ds.InstanceNumber, ds.PatientID = number, patient
        ds.SOPInstanceUID = ds.file_meta.MediaStorageSOPInstanceUID = f"1.2.3.{number}"
        files.append(tmp_path / f"{number}.dcm")
        ds.save_as(files[-1])
    pack = build(tmp_path / "x.iac", *files)
    assert column(con, pack, "patient_id") == ["p 1", " P 1", None, "p 1"]
    assert column(con, pack, "iac_tag(record, 'PatientID')") == column(con, pack, "patient_id")


def test_a_patient_id_that_is_there_stays(con, tmp_path: Path):
    def named(table: pa.Table) -> pa.Table:
        return table.append_column("Patient_ID", pa.array(["x"] * len(table)))

    of_series = rewritten(PEER, tmp_path / "s.iac", series=named)
    of_rows = rewritten(PEER, tmp_path / "i.iac", index=named)
    for pack in (of_series, of_rows):
        names = [name for name, *_ in con.sql(f"DESCRIBE FROM '{pack}'").fetchall()]
        assert [name for name in names if name.lower() == "patient_id"] == ["Patient_ID"]
        assert column(con, pack, "patient_id") == ["x"] * 6


def test_packs_are_joined_by_the_patient_id(con, tmp_path: Path):
    notes = write_pack(tmp_path / "notes.iac", [b"one", b"two"])
    found = con.sql(f"""
        SELECT patient_id, count(*) FROM iac_scan(['{PEER}', '{SERIES}', '{notes}'])
        GROUP BY ALL ORDER BY ALL""").fetchall()
    assert found == [("P-01", 19), ("SYNTH-1", 6), ("patient-000", 2)]
