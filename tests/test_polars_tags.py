"""Headers of DICOM instances in Polars: what iac_tag and iac_tags give in SQL."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from dicom_packs import PEER, SERIES, column, rewritten
from packs import replaced, write_pack

import iac_query as iac

pl = pytest.importorskip("polars")
pytest.importorskip("iac_query.engines.polars")  # registers the namespace
TAGS = (
    "SliceThickness",
    "PatientID",
    "PixelSpacing",
    "00100010",
    "(0008,0060)",
    "TransferSyntaxUID",
)


def of_rows(pack: Path, expression: pl.Expr) -> list:
    return iac.scan_iac(pack).select("record", x=expression).collect()["x"].to_list()


@pytest.mark.parametrize("pack", [PEER, SERIES], ids=["peer", "series"])
def test_tags_are_those_of_sql(con, pack: Path):
    for tag in TAGS:
        expected = column(con, pack, f"iac_tag(record, '{tag}')")
        assert of_rows(pack, pl.col("record").iac.tag(tag)) == expected
    headers = of_rows(pack, pl.col("record").iac.tags())
    assert headers == column(con, pack, "iac_tags(record)::VARCHAR")
    assert {json.loads(header)["00080060"]["vr"] for header in headers} == {"CS"}


def test_missing_elements_and_null_references_are_null():
    tag = pl.col("record").iac.tag("PatientComments")
    assert of_rows(PEER, tag) == [None] * 6
    of_some = pl.when(pl.col("row") > 3).then(pl.col("record")).iac.tag("Modality")
    frame = iac.scan_iac(PEER).with_columns(row=pl.col("record").struct.field("row")).collect()
    found = frame.select(of_some.alias("x"))["x"].to_list()
    assert [value is None for value in found] == [True] * 4 + [False] * 2


def test_a_damaged_header_is_an_error_of_its_row(tmp_path: Path):
    pack = rewritten(PEER, tmp_path / "x.iac", index=replaced("dicom_delta", 2, b"none"))
    with pytest.raises(iac.ChecksumError, match=r"x\.iac: row 2"):
        of_rows(pack, pl.col("record").iac.tag("Modality"))
    found = of_rows(pack, pl.col("record").iac.tag("Modality", on_error="null"))
    assert [value is None for value in found] == [row == 2 for row in range(6)]


def test_what_is_no_tag_and_no_dicom(tmp_path: Path):
    with pytest.raises(ValueError, match="did you mean 'SliceThickness'"):
        of_rows(PEER, pl.col("record").iac.tag("SliceThicknes"))
    with pytest.raises(TypeError, match="tag is 5, expected a str"):
        pl.col("record").iac.tag(5)
    plain = write_pack(tmp_path / "x.iac", [b"a"], pa.table({"n": [1]}))
    with pytest.raises(ValueError, match=r"x\.iac: its payload_type"):
        of_rows(plain, pl.col("record").iac.tags())
