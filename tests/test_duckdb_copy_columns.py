"""COPY ... TO 'x.iac': columns of every type, their names, and any number of rows."""

import os
from pathlib import Path

import duckdb
import pytest
from duckdb_columns import COLUMNS, plain
from duckdb_copies import copy, fails, header_of
from iatro import iac as peer
from test_duckdb_types import repeat, write

import iac_query as iac

pytestmark = [pytest.mark.asan, pytest.mark.usefixtures("work")]


@pytest.mark.parametrize("name", sorted(COLUMNS))
def test_every_type_of_a_scan_comes_back(con, tmp_path: Path, name: str):
    array, expected = repeat(COLUMNS[name], 5000)
    source = write(tmp_path / "source.iac", 5000, c=array)
    path = copy(con, f"SELECT c, 'x' AS payload FROM '{source}'")
    shown = COLUMNS[name].sql.format("c")
    values = con.sql(f"SELECT {shown} FROM '{path}'").fetchall()
    assert [plain(value) for (value,) in values] == expected
    assert con.sql(f"SELECT c FROM '{path}'").types == con.sql(f"SELECT c FROM '{source}'").types
    for reader in (iac.PackReader, peer.PackReader):
        table = reader(path).index_table
        table.validate(full=True)
        assert table.column_names == ["c", "offset", "length", "crc32"]


@pytest.mark.parametrize("name", sorted(COLUMNS))
def test_every_type_can_be_a_slide_column(con, tmp_path: Path, name: str):
    array, expected = repeat(COLUMNS[name], 3000)
    source = write(tmp_path / "source.iac", 3000, c=array)
    query = f"SELECT c, 'x' AS payload FROM '{source}'"
    path = copy(con, query, options="LEVEL 1, SLIDE_COLUMNS ['c']")
    shown = COLUMNS[name].sql.format("c")
    values = con.sql(f"SELECT {shown} FROM '{path}'").fetchall()
    assert [plain(value) for (value,) in values] == expected
    assert header_of(path)["num_slides"] <= len(COLUMNS[name].array)


TYPES = {
    "HUGEINT": ("(i - 5)::HUGEINT * 1000000000000000000000000000000::HUGEINT", "DECIMAL(38,0)"),
    "UHUGEINT": ("i::UHUGEINT * 7", "DECIMAL(38,0)"),
    "UUID": ("md5(i::VARCHAR)::UUID", "VARCHAR"),
    "ENUM": ("['red', 'green'][1 + i % 2]::ENUM('green', 'red')", "VARCHAR"),
    "list of ENUM": ("[['red', 'green'][1 + i % 2]::ENUM('green', 'red')]", "VARCHAR[]"),
    "JSON": ("json_object('i', i)", "VARCHAR"),
    "UNION": ("union_value(n := i)", "UNION(n BIGINT)"),
    "list_reverse": ("list_reverse([i, i + 1])", "BIGINT[]"),
    "list_sort": ("list_sort([3, i, 1])", "BIGINT[]"),
    "list_select": ("list_select([i, 7, 8], [3, 1])", "BIGINT[]"),
    "list slice": ("[1, i, 3][2:3]", "BIGINT[]"),
    "list_transform": ("list_transform([1, 2], lambda x: x + i)", "BIGINT[]"),
    "list of structs": ("[{'a': i, 'b': 'constant'}]", "STRUCT(a BIGINT, b VARCHAR)[]"),
    "constant": ("{'a': ['constant', NULL]}", "STRUCT(a VARCHAR[])"),
    "map": ("map_from_entries([('z', i), ('y', NULL)])", "MAP(VARCHAR, BIGINT)"),
    "NULL struct": ("CASE WHEN i % 3 > 0 THEN {'a': i, 'b': [i]} END", None),
    "NULL array": ("CASE WHEN i % 3 > 0 THEN [i, NULL]::BIGINT[2] END", "BIGINT[2]"),
    "infinity": ("'infinity'::TIMESTAMP", "TIMESTAMP"),
}


@pytest.mark.parametrize("name", sorted(TYPES))
def test_types_and_vectors_of_duckdb(con, name: str):
    """Whatever shape vectors have while a query runs."""
    expression, type = TYPES[name]
    query = f"SELECT i, {expression} AS c, 'x' AS payload FROM range(5000) r(i)"
    path = copy(con, query)
    shown = "SELECT c::VARCHAR FROM {} ORDER BY i"
    assert (
        con.sql(shown.format(f"'{path}'")).fetchall()
        == con.sql(shown.format(f"({query})")).fetchall()
    )
    if type:
        assert str(con.sql(f"SELECT c FROM '{path}'").types[0]).replace('"', "") == type


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("'101'::BIT", "column 'c': a pack cannot hold values of type BIT, cast them"),
        ("[TIMETZ '10:00+01']", "column 'c': .* TIME WITH TIME ZONE"),
        ("123::BIGNUM", "column 'c': .* BIGNUM"),
        ("'24:00:00'::TIME", "column 'c': a time is not below 24:00:00"),
        ("170141183460469231731687303715884105727", "column 'c': a HUGEINT has more than the 38"),
        (
            "to_years(300) + to_microseconds(9223372036854775807)",
            "column 'c': an interval has more",
        ),
    ],
)
def test_values_that_packs_cannot_hold(con, expression: str, reason: str):
    fails(con, f"SELECT {expression} AS c, 'x' AS payload", reason)


@pytest.mark.parametrize("rows", [0, 1, 2047, 2048, 2049, 100_000])
def test_every_number_of_rows(con, rows: int):
    query = f"""SELECT i, i // 10 AS patient_id,
        CASE WHEN i % 7 > 0 THEN repeat('s', i % 50) END AS s,
        'payload ' || i AS payload FROM range({rows}) r(i)"""
    path = copy(con, query)
    scan = f"SELECT i, patient_id, s, iac_text(record) FROM '{path}'"
    assert con.sql(scan).fetchall() == con.sql(query).fetchall()
    header = header_of(path)
    assert header["num_records"] == rows
    assert header["num_slides"] == (rows + 9) // 10
    assert [row[0] for row in con.sql(scan).description] == [
        "i",
        "patient_id",
        "s",
        "iac_text(record)",
    ]


def test_a_million_rows(con):
    query = """SELECT i, i // 1000 AS patient_id, 'payload ' || i AS payload
        FROM range(1_000_000) r(i)"""
    path = copy(con, query, options="CODEC 'none'")
    (found,) = con.sql(
        f"""SELECT count(*), sum(i), bool_and(record.row = i AND patient_id = i // 1000),
            bool_and(iac_text(record) = 'payload ' || i) FROM '{path}'"""
    ).fetchall()
    assert found == (1_000_000, 999_999 * 500_000, True, True)
    assert con.sql(f"FROM iac_check('{path}')").fetchall() == []
    theirs = peer.PackReader(path)
    assert theirs.read_payload(999_999) == b"payload 999999"
    assert theirs.header["num_slides"] == 1000


def test_names_come_from_the_struct_or_from_columns(con):
    one = copy(con, "SELECT 1 AS k, 'x' AS payload").read_bytes()
    con.execute("COPY (SELECT 1, 'x') TO 'y.iac' (LEVEL 1, COLUMNS ['k', 'payload'])")
    assert Path("y.iac").read_bytes() == one
    con.execute("CREATE TABLE items AS SELECT 1 AS k, 'x' AS payload")
    con.execute("COPY (SELECT items FROM items) TO 'z.iac' (LEVEL 1)")
    assert Path("z.iac").read_bytes() == one


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT 1 AS k, 'x' AS payload, 1 AS \"Offset\"", "a column is called 'offset'"),
        ("SELECT 1 AS k", "no column is called payload .* or record"),
        ("SELECT {'pack': 'x', 'row': 1} AS record, 'x' AS payload", "leave one of them out"),
        ("SELECT 1 AS payload", "codec zstd is one of bytes, so the payload must be"),
        ("SELECT 1 AS record", "expected a record"),
        ("SELECT 'a' AS slide_idx, 'x' AS payload", "'slide_idx' numbers slides, so it must be"),
    ],
)
def test_columns_that_make_no_pack(con, query: str, reason: str):
    fails(con, query, reason, "")


def test_a_row_that_is_null(con):
    con.execute(
        """CREATE TABLE rows AS
        SELECT CASE WHEN i <> 2500 THEN {'payload': 'x'} END AS t FROM range(5000) r(i)"""
    )
    with pytest.raises(duckdb.Error, match="row 2500: the struct is NULL"):
        con.execute("COPY (SELECT t FROM rows) TO 'x.iac' (LEVEL 1)")
    with pytest.raises(duckdb.Error, match="two columns are called 'K'"):
        con.execute("COPY (SELECT 1, 2, 'x') TO 'x.iac' (COLUMNS ['k', 'K', 'payload'])")
    with pytest.raises(duckdb.Error, match="COLUMNS: the text is empty"):
        con.execute("COPY (SELECT 1, 'x') TO 'x.iac' (COLUMNS ['', 'payload'])")
    assert os.listdir() == []
