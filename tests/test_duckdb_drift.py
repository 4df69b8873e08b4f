"""The columns that packs with different ones have together."""

import itertools
import random
from datetime import date
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from duckdb_columns import COLUMNS
from duckdb_many import described, union_of, write


@pytest.mark.asan
def test_columns_of_packs_that_drift_are_those_of_union_by_name(con, tmp_path: Path):
    chooser = random.Random(11)
    makers = {
        "n": lambda n: pa.array(range(n), chooser.choice([pa.int8(), pa.uint16(), pa.int64()])),
        "N_2": lambda n: pa.array([i / 4 for i in range(n)], chooser.choice([pa.float32()])),
        "mixed": lambda n: pa.array(range(n), chooser.choice([pa.uint8(), pa.float64()])),
        "text": lambda n: pa.array(["t" * i for i in range(n)], chooser.choice(TEXTS)),
        "flag": lambda n: pa.array([None, True, False][:n] * n, pa.bool_())[:n],
        "list": lambda n: pa.array([[i] * i for i in range(n)], pa.list_(pa.int32())),
        "struct": lambda n: pa.array([{"a": i, "b": ["x"]} for i in range(n)]),
        "patient_id": lambda n: pa.array([f"index {i}" for i in range(n)]),
        "nothing": lambda n: pa.nulls(n),
    }
    paths = []
    for i in range(100):
        rows = chooser.choice([0, 1, 3, 7])
        chosen = chooser.sample(sorted(makers), chooser.randrange(1, len(makers)))
        columns = {chooser.choice([name, name.upper()]): makers[name](rows) for name in chosen}
        paths.append(write(tmp_path / f"{i:03}.iac", **columns))
    # Types are compared below; the first names count, whatever their case.
    joined, union = f"FROM iac_scan('{tmp_path}/*.iac')", union_of(paths)
    types, wanted = described(con, joined), described(con, union)
    wanted = {name.lower(): type for name, type in wanted.items()}
    assert {name.lower(): type for name, type in types.items()} == wanted
    names = list(types)
    assert names[-1] == "record"
    columns = ", ".join(f'"{name}"' for name in names)
    assert (
        con.sql(f"SELECT {columns} {joined}").fetchall()
        == con.sql(f"SELECT {columns} FROM ({union})").fetchall()
    )


TEXTS = [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string()), pa.string_view()]


@pytest.mark.asan
def test_index_columns_come_before_slide_columns(con, tmp_path: Path):
    write(tmp_path / "a.iac", a=[1])
    write(tmp_path / "b.iac", b=[1], patient_id=["of the index"])
    query = f"FROM iac_scan('{tmp_path}/*.iac', filename := true)"
    assert con.sql(query).columns == [
        *("a", "slide_idx", "b", "patient_id", "slide_id", "patient_id_1", "record", "filename")
    ]
    rows = con.sql(f"SELECT patient_id, patient_id_1 {query}").fetchall()
    assert rows == [("patient-000", None), ("of the index", "patient-000")]


@pytest.mark.asan
def test_what_a_pack_lacks_is_null_in_every_type(con, tmp_path: Path):
    rows = 40
    columns = {
        name: pa.chunked_array([column.array] * rows).slice(0, rows)
        for name, column in COLUMNS.items()
        if name != "run_ends"
    }
    paths = [write(tmp_path / "a.iac", **columns), write(tmp_path / "b.iac", rows=3, n=[1, 2, 3])]
    for order in (paths, paths[::-1]):
        joined = con.sql(f"FROM iac_scan({list(map(str, order))})")
        names = ", ".join(f'"{name}"::VARCHAR' for name in joined.columns)
        assert set(columns) < set(joined.columns)
        assert joined.project(names).fetchall() == (
            con.sql(f"SELECT {names} FROM ({union_of(order)})").fetchall()
        )


VALUES = {
    "BOOLEAN": pa.array([True, None, False]),
    "TINYINT": pa.array([-128, None, 127], pa.int8()),
    "SMALLINT": pa.array([-(2**15), None, 2**15 - 1], pa.int16()),
    "INTEGER": pa.array([-(2**31), None, 2**31 - 1], pa.int32()),
    "BIGINT": pa.array([-(2**63), None, 2**63 - 1], pa.int64()),
    "UTINYINT": pa.array([0, None, 255], pa.uint8()),
    "USMALLINT": pa.array([0, None, 2**16 - 1], pa.uint16()),
    "UINTEGER": pa.array([0, None, 2**32 - 1], pa.uint32()),
    "UBIGINT": pa.array([0, None, 2**64 - 1], pa.uint64()),
    "FLOAT": pa.array([0.1, None, 1e20], pa.float32()),
    "DOUBLE": pa.array([0.1, None, 1e300], pa.float64()),
    "VARCHAR": pa.array(["text", None, "long text of more bytes than fit"]),
    "DATE": pa.array([date(1969, 12, 31), None, date(2024, 2, 29)]),
    "TIMESTAMP_S": pa.array([-1, None, 10**9], pa.timestamp("s")),
    "TIMESTAMP_MS": pa.array([-1, None, 10**12 + 5], pa.timestamp("ms")),
    "TIMESTAMP": pa.array([-1, None, 10**15 + 5], pa.timestamp("us")),
    "TIMESTAMP_NS": pa.array([-1, None, 10**18 + 5], pa.timestamp("ns")),
    "NULL": pa.nulls(3),
    "TIME": pa.array([1, None, 2], pa.time64("us")),
    "BLOB": pa.array([b"x", None, b""]),
    "DECIMAL(5,2)": pa.array([1, None, 2], pa.decimal128(5, 2)),
    "DECIMAL(6,2)": pa.array([1, None, 2], pa.decimal128(6, 2)),
    "INTEGER[]": pa.array([[1], None, []], pa.list_(pa.int32())),
    "BIGINT[]": pa.array([[1], None, []], pa.list_(pa.int64())),
    "TIMESTAMP WITH TIME ZONE": pa.array([1, None, 2], pa.timestamp("us", "UTC")),
}
NUMBERS = list(VALUES)[:11]
MOMENTS = ["DATE", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP", "TIMESTAMP_NS"]


def go_together(a: str, b: str) -> bool:
    widened = [{*NUMBERS, "VARCHAR"}, {*MOMENTS, "VARCHAR"}]
    return a == b or "NULL" in (a, b) or any({a, b} <= types for types in widened)


@pytest.fixture(scope="module")
def typed_packs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("types")
    return {
        name: write(folder / f"{i}.iac", v=values, n=[1, 2, 3])
        for i, (name, values) in enumerate(VALUES.items())
    }


@pytest.mark.asan
@pytest.mark.parametrize("name", VALUES)
def test_types_are_widened_as_union_does_or_named(con, typed_packs, name: str):
    for other in VALUES:
        paths = [typed_packs[name], typed_packs[other]]
        joined = f"FROM iac_scan(['{paths[0]}', '{paths[1]}'])"
        if go_together(name, other):
            query = "SELECT v::VARCHAR, v"
            union = f"FROM ({union_of(paths)})"
            assert described(con, joined)["v"] == described(con, union)["v"]
            if {name, other} == {"UBIGINT", "FLOAT"}:  # Python's own repr of 1.8e19 differs
                query = "SELECT v::VARCHAR"
            assert con.sql(f"{query} {joined}").fetchall() == (
                con.sql(f"{query} {union}").fetchall()
            ), other
        else:
            assert con.sql(f"SELECT sum(n) {joined}").fetchall() == [(12,)]
            with pytest.raises(duckdb.Error) as error:
                con.sql(f"SELECT v {joined}").fetchall()
            for part in ("column 'v'", name, other, *map(str, paths)):
                assert part in str(error.value)


@pytest.mark.asan
def test_three_types_do_not_depend_on_their_order(con, typed_packs):
    for names, wanted in [
        (("UBIGINT", "TINYINT", "NULL"), "HUGEINT"),
        (("UTINYINT", "TINYINT", "SMALLINT"), "SMALLINT"),
        (("BIGINT", "DATE", "VARCHAR"), "VARCHAR"),
        (("FLOAT", "UBIGINT", "DOUBLE"), "DOUBLE"),
    ]:
        for order in itertools.permutations(names):
            paths = [str(typed_packs[name]) for name in order]
            assert described(con, f"FROM iac_scan({paths})")["v"] == wanted


def test_moments_out_of_range_and_infinite(con, tmp_path: Path):
    days = pa.array([2**31 - 1, -(2**31) + 1, 0], pa.int32()).cast(pa.date32())
    paths = [
        str(write(tmp_path / "a.iac", v=days)),
        str(write(tmp_path / "b.iac", v=pa.array([0], pa.timestamp("us")))),
    ]
    rows = con.sql(f"SELECT v::VARCHAR FROM iac_scan({paths})").fetchall()
    assert [text for (text,) in rows[:2]] == ["infinity", "-infinity"]
    far = write(tmp_path / "c.iac", v=pa.array([5_000_000], pa.int32()).cast(pa.date32()))
    nanoseconds = write(tmp_path / "d.iac", v=pa.array([0], pa.timestamp("ns")))
    with pytest.raises(duckdb.Error, match=r"c\.iac: column 'v': value 5000000 is outside"):
        con.sql(f"SELECT v FROM iac_scan(['{far}', '{nanoseconds}'])").fetchall()


def test_layout_columns_of_all_packs(con, tmp_path: Path):
    paths = [str(write(tmp_path / f"{i}.iac")) for i in range(2)]
    rows = con.sql(f'SELECT "offset", length FROM iac_scan({paths}, layout := true)').fetchall()
    assert rows == [(0, 3), (0, 3)]
