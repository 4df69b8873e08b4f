"""Scans of DICOM packs show the patient of their headers, as SQL does."""

from pathlib import Path

import pyarrow as pa
import pytest
from packs import DATA

import iac_query as iac

PACK = DATA / "dicom_patient.iac"
SCALARS = "series_uid, instance_number, patient_id, record.row AS row"


@pytest.fixture
def in_sql() -> pa.Table:
    with iac.connect() as con:
        return con.sql(f"SELECT {SCALARS} FROM '{PACK}'").to_arrow_table()


def test_patients_come_from_the_headers(in_sql):
    table = iac.scan_arrow(PACK, columns=["series_uid", "instance_number", "patient_id", "record"])
    found = table.read_all()
    assert found["patient_id"].to_pylist() == in_sql["patient_id"].to_pylist()
    assert found["instance_number"].to_pylist() == in_sql["instance_number"].to_pylist()
    assert None not in found["patient_id"].to_pylist()


def test_patients_are_where_sql_has_them():
    with iac.connect() as con:
        names = con.sql(f"SELECT * FROM '{PACK}' LIMIT 0").columns
    assert iac.scan_iac(PACK).collect_schema().names() == [*names, "payload"]


def test_filters_on_the_patient(in_sql):
    pl = pytest.importorskip("polars")
    patient = in_sql["patient_id"][0].as_py()
    frame = iac.scan_iac(PACK)
    assert frame.filter(pl.col("patient_id") == patient).collect().height == len(in_sql)
    assert frame.filter(pl.col("patient_id") == "another").collect().height == 0


def test_a_damaged_header_is_an_error(tmp_path: Path):
    with iac.PackReader(PACK) as reader:
        start = reader.header["data_offset"]
    raw = bytearray(PACK.read_bytes())
    raw[start + 20] ^= 1
    (tmp_path / "x.iac").write_bytes(raw)
    with pytest.raises(iac.ChecksumError, match=r"x\.iac"):
        iac.scan_arrow(tmp_path / "x.iac", columns=["patient_id"]).read_all()
