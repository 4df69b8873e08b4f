"""COPY ... TO 'x.iac': which columns become the slide table."""

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from duckdb_copies import copy, fails, header_of

import iac_query as iac

pytestmark = [pytest.mark.asan, pytest.mark.usefixtures("work")]


def slides_of(path: Path) -> list[dict]:
    with iac.PackReader(path) as pack:
        return pack.slide_table.to_pylist()


def test_each_combination_of_slide_columns_is_a_slide(con):
    query = """SELECT i AS k, ['s1', 's2', NULL][1 + i % 3] AS slide_id, i % 2 AS patient_id,
        'x' AS payload FROM range(12) r(i)"""
    path = copy(con, query)
    slides = slides_of(path)
    assert slides[0] == {"slide_idx": 0, "slide_id": "s1", "patient_id": 0}
    assert slides[2] == {"slide_idx": 2, "slide_id": None, "patient_id": 0}
    assert len(slides) == 6
    found = con.sql(f"SELECT k, slide_id, patient_id FROM '{path}'").fetchall()
    assert found == con.sql(f"SELECT k, slide_id, patient_id FROM ({query})").fetchall()


@pytest.mark.parametrize("name", ["Slide_Idx", "SERIES_IDX"])
def test_the_number_of_a_slide_is_found_in_any_case(con, tmp_path: Path, name: str):
    path = tmp_path / "x.iac"
    con.execute(
        f"""COPY (SELECT t FROM (
            SELECT i // 2 AS "{name}", 's' || (i // 2) AS slide_id, 'x' AS payload
            FROM range(6) AS r(i)) AS t) TO '{path}' (FORMAT iac)"""
    )
    assert con.sql(f"FROM '{path}'").columns == [name.lower(), "slide_id", "record"]


def test_a_link_to_nothing_is_not_followed(con, tmp_path: Path):
    link = tmp_path / "link.iac"
    link.symlink_to(tmp_path / "folder" / "x.iac")
    with pytest.raises(duckdb.Error, match="a link to a file that does not exist"):
        con.execute(f"COPY (SELECT t FROM (SELECT 'x' AS payload) AS t) TO '{link}' (FORMAT iac)")
    assert not (tmp_path / "folder").exists() and link.is_symlink()


def test_slide_columns_are_chosen(con):
    query = "SELECT 'a' AS slide_id, i % 2 AS stain, i AS k, 'x' AS payload FROM range(4) r(i)"
    path = copy(con, query, options="LEVEL 1, SLIDE_COLUMNS ['STAIN']")
    assert slides_of(path) == [{"slide_idx": 0, "stain": 0}, {"slide_idx": 1, "stain": 1}]
    path = copy(con, query, options="LEVEL 1, SLIDE_COLUMNS []")
    assert slides_of(path) == [] and header_of(path)["num_slides"] == 0
    assert con.sql(f"SELECT slide_id, stain, k FROM '{path}'").fetchall()[3] == ("a", 1, 3)
    fails(con, query, "SLIDE_COLUMNS names 'other', which is no column", "SLIDE_COLUMNS ['other']")
    fails(con, query, "'payload' cannot be a slide column", "SLIDE_COLUMNS ['payload']")


def test_slides_keep_the_numbers_they_have(con):
    query = """SELECT (7 - i // 3)::UTINYINT AS slide_idx, 's' || i // 3 AS slide_id, i AS k,
        'x' AS payload FROM range(9) r(i)"""
    path = copy(con, query)
    assert slides_of(path) == [{"slide_idx": 7 - i, "slide_id": f"s{i}"} for i in range(3)]
    with iac.PackReader(path) as pack:
        assert pack.index_table.schema.field("slide_idx").type == pa.uint8()
    wrong = "SELECT i // 3 AS slide_idx, i // 2 AS slide_id, 'x' AS payload FROM range(9) r(i)"
    fails(con, wrong, "row 2: column 'slide_idx': the number of this slide is that of another one")
    wrong = "SELECT NULL::INT AS slide_idx, i AS slide_id, 'x' AS payload FROM range(9) r(i)"
    fails(con, wrong, "row 0: column 'slide_idx': it is NULL, but 'slide_id' is not")


def test_records_without_a_slide(con):
    query = """SELECT CASE WHEN i < 2 THEN i END AS slide_idx,
        CASE WHEN i < 2 THEN 's' END AS slide_id,
        i AS k, 'x' AS payload FROM range(4) r(i)"""
    path = copy(con, query)
    assert len(slides_of(path)) == 2
    found = con.sql(f"SELECT slide_idx, slide_id FROM '{path}' ORDER BY k").fetchall()
    assert found == [(0, "s"), (1, "s"), (None, None), (None, None)]
