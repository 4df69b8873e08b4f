"""iac_scan over many packs: how they are named, what columns they have together, how they are
opened."""

import itertools
import os
import random
import subprocess
import sys
from datetime import date
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from duckdb_columns import COLUMNS
from packs import write_pack

import iac_query as iac


def write(path: Path, rows: int = 1, **columns) -> Path:
    """A pack whose records are its name and the row."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if columns:
        rows = len(next(iter(columns.values())))
    index = pa.table({**columns, "slide_idx": pa.array([0] * rows, pa.uint8())})
    return write_pack(path, [f"{path.stem} {i}".encode() for i in range(rows)], index)


def union_of(paths: list[Path]) -> str:
    return " UNION ALL BY NAME ".join(f"FROM iac_scan('{path}')" for path in paths)


def described(con, query: str) -> dict[str, str]:
    return dict(con.sql(f"SELECT column_name, column_type FROM (DESCRIBE {query})").fetchall())


def texts(con, source: str) -> list[str]:
    return [text for (text,) in con.sql(f"SELECT iac_text(record) FROM {source}").fetchall()]


# How packs are named.


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (
        *("x.iac", "A.iac", "a-b.iac", "ü.iac", "[x].iac", "{q}.iac", ".hidden.iac", "^.iac"),
        *("b/x.iac", "b/c/y.iac", "b/c/d/y.iac", ".hid/z.iac", "b.iac/inside.iac", "b2/x.iac"),
    ):
        write(tmp_path / "t" / name)
    os.symlink("..", tmp_path / "t" / "b" / "loop")
    os.symlink("nowhere.iac", tmp_path / "t" / "dangling.iac")
    os.symlink("x.iac", tmp_path / "t" / "link.iac")
    os.symlink("b", tmp_path / "t" / "linked")
    os.mkfifo(tmp_path / "t" / "pipe.iac")
    (tmp_path / "t" / "b" / "not a pack.txt").write_text("x")
    monkeypatch.chdir(tmp_path / "t")
    return tmp_path / "t"


@pytest.mark.parametrize(
    "pattern",
    [
        *("*.iac", "?.iac", "?-?.iac", "[!x].iac", "[a-z].iac", "[[]x].iac", "{q}.ia*"),
        *("**/*.iac", "**/y.iac", "b/**/*.iac", "b/c/**", "b**/x.iac", "**/c/*.iac", "b/**/d/*"),
        *("*/*.iac", "*/x.iac", "./*/x.iac", "b/../*/x.iac", "b//*.iac", "linked/*.iac", "*/*/*"),
        *(
            "b/loop/*/x.iac",
            "b/l*/*.iac",
            "linked/**/*.iac",
            ".h*/*.iac",
        ),
    ],
)
def test_patterns_find_what_those_of_duckdb_find(con, tree: Path, pattern: str):
    for given in (pattern, f"{tree}/{pattern}"):
        wanted = con.execute("SELECT file FROM glob(?) WHERE file LIKE '%.iac'", [given]).fetchall()
        assert wanted
        found = con.execute("SELECT filename FROM iac_scan(?, filename := true)", [given])
        rows = found.fetchall()
        if "**" in pattern:  # DuckDB has an order of its own
            rows, wanted = sorted(rows), sorted(wanted)
        assert rows == wanted


@pytest.mark.parametrize("pattern", ["*.nothing", "b/*/", "nowhere/*.iac", "x.iac/*", "[x.iac"])
def test_a_pattern_that_finds_nothing_is_an_error(con, tree: Path, pattern: str):
    for argument in (f"'{pattern}'", f"['x.iac', '{pattern}']"):
        with pytest.raises(duckdb.Error, match="no file matches this pattern"):
            con.sql(f"FROM iac_scan({argument})")
    with pytest.raises(duckdb.Error, match="No such file"):
        con.sql("FROM 'nowhere/x.iac'")
    with pytest.raises(duckdb.Error, match=r"a pattern can have only one \*\*"):
        con.sql("FROM iac_scan('**/**/x.iac')")


def test_a_file_of_just_that_name_comes_first(con, tree: Path):
    assert texts(con, "'[x].iac'") == ["[x] 0"]
    write(tree / "*.iac")
    assert texts(con, "'*.iac'") == ["* 0"]
    assert con.sql("SELECT record.pack FROM '*.iac'").fetchall() == [(f"{tree}/*.iac",)]


def test_names_that_are_no_text(con, tree: Path, monkeypatch: pytest.MonkeyPatch):
    folder = os.fsencode(tree) + b"/\xff"
    os.mkdir(folder)
    write(tree / "b" / "x.iac").rename(os.fsdecode(folder) + "/x.iac")
    write(tree / "c.iac").rename(tree / os.fsdecode(b"c\xff.iac"))
    functions = ("iac_scan", "iac_slides", "iac_info", "iac_check")
    patterns = ("*/x.iac", "c*.iac", f"{tree}/**/*.iac")
    for function, pattern in itertools.product(functions, patterns):
        with pytest.raises(duckdb.Error, match="the path is not UTF-8 text"):
            con.sql(f"FROM {function}('{pattern}')").fetchall()
    monkeypatch.chdir(folder)
    for query in ("FROM 'x.iac'", "FROM '*.iac'", "SELECT iac_text({'pack': 'x.iac', 'row': 0})"):
        with pytest.raises(duckdb.Error, match="the path is not UTF-8 text"):
            con.sql(query).fetchall()


def test_lists_keep_their_order_and_what_stands_twice(con, tree: Path):
    query = "FROM iac_scan(['x.iac', 'b*/*.iac', 'x.iac', './b/../A.iac'], filename := true)"
    rows = con.sql(f"SELECT filename, record.pack {query}").fetchall()
    names = ["x.iac", "b/x.iac", "b.iac/inside.iac", "b2/x.iac", "x.iac", "A.iac"]
    assert rows == [(name, f"{tree}/{name}") for name in names]


def test_what_is_no_path(con, tree: Path):
    for argument, reason in [
        ("NULL", "the path is NULL"),
        ("[]", "the list of paths is empty"),
        ("[NULL]", "a path in the list is NULL"),
        ("['x.iac', NULL]", "a path in the list is NULL"),
        ("getvariable('unset')", "the path is NULL"),
        ("47", "expected a path or a list of paths"),
        ("[47]", "expected a path or a list of paths"),
        ("[['x.iac']]", "expected a path or a list of paths"),
        ("{'path': 'x.iac'}", "expected a path or a list of paths"),
        ("'x.iac'::BLOB", "expected a path or a list of paths"),
        ("['x.iac', '']", "the path of a pack is empty"),
        ("'x.iac' || chr(0) || '*'", "zero byte"),
        ("['x.iac' || chr(0)]", "zero byte"),
        ("'x.iac', filename := 3", "filename takes true, false or the name"),
    ]:
        with pytest.raises(duckdb.Error, match=reason):
            con.sql(f"FROM iac_scan({argument})")


def test_the_home_directory_and_folders_above(con, tree: Path, monkeypatch: pytest.MonkeyPatch):
    con.execute(f"SET home_directory = '{tree}'")
    monkeypatch.chdir(tree / "b" / "c")
    for pattern, filename in (("~/b2/*.iac", f"{tree}/b2/x.iac"), ("../../b2/*", "../../b2/x.iac")):
        query = f"SELECT filename, record.pack FROM iac_scan('{pattern}', filename := true)"
        assert con.sql(query).fetchall() == [(filename, f"{tree}/b2/x.iac")]


def test_parameters_and_variables(con, tree: Path):
    query = "SELECT count(*) FROM iac_scan(?)"
    assert con.execute(query, ["b*/x.iac"]).fetchall() == [(2,)]
    assert con.execute(query, [["x.iac", "b*/x.iac"]]).fetchall() == [(3,)]
    con.execute("PREPARE many AS SELECT count(*) FROM iac_scan(?) WHERE slide_idx = ?")
    assert con.execute("EXECUTE many('b*/x.iac', 0)").fetchall() == [(2,)]
    assert con.execute("EXECUTE many(['x.iac'], 1)").fetchall() == [(0,)]
    with pytest.raises(duckdb.Error, match="the path is NULL"):
        con.execute("EXECUTE many(NULL, 1)")
    con.execute("SET VARIABLE files = (SELECT list(file) FROM glob('b*/x.iac'))")
    assert con.sql("SELECT count(*) FROM iac_scan(getvariable('files'))").fetchall() == [(2,)]


# Columns.


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


# Columns that the options add.


def test_the_filename_column(con, tmp_path: Path):
    path = write(tmp_path / "x.iac", filename=["its own"])
    with pytest.raises(duckdb.Error, match="filename adds the column 'filename', but there is one"):
        con.sql(f"FROM iac_scan('{path}', filename := true)")
    for option in ("FileName", "RECORD", "Slide_ID"):
        with pytest.raises(duckdb.Error, match="but there is one of that name"):
            con.sql(f"FROM iac_scan('{path}', filename := '{option}')")
    query = f"SELECT filename, f FROM iac_scan('{path}', filename := 'f')"
    assert con.sql(query).fetchall() == [("its own", str(path))]
    for off in ("false", "NULL"):
        assert "f" not in con.sql(f"FROM iac_scan('{path}', filename := {off})").columns


@pytest.mark.parametrize(
    "values",
    [
        *(["1", "2"], ["-1", "20"], ["007", "1"], ["1.5"], ["1e3"], ["9223372036854775808"]),
        *(["9223372036854775807"], ["+1"], ["1_000"], ["x", "1"], ["1", "2024-01-01"], ["true"]),
        *(["2024-01-02", "1969-12-31"], ["2024-13-02"], ["2024-01-02 10%3A00%3A00"], ["infinity"]),
        *(["__HIVE_DEFAULT_PARTITION__", "1"], ["__HIVE_DEFAULT_PARTITION__"], ["", "1"]),
        *(["a%20b", "c%3Dd", "bad%zz", "%4"], ["NULL"], ["%E6%97%A5", "ü"], ["12024-01-02"]),
        *(["20240102"], ["2024-01-02T00"]),
    ],
)
def test_hive_columns_are_those_of_read_parquet(con, tmp_path: Path, values: list[str]):
    for value in values:
        folder = tmp_path / f"year={value}" / "B=x" / "a=1=2"
        write(folder / "x.iac", n=[1])
        con.execute(f"COPY (SELECT 1 AS n) TO '{folder}/x.parquet'")
    packs = f"FROM iac_scan('{tmp_path}/**/*.iac', hive_partitioning := true)"
    files = f"FROM read_parquet('{tmp_path}/**/*.parquet', hive_partitioning = true)"
    assert con.sql(packs).columns[-3:] == ["record", "B", "year"]
    query = 'SELECT typeof(year), year::VARCHAR, typeof("B"), "B" '
    assert con.sql(query + packs).fetchall() == con.sql(query + files).fetchall()


def test_dates_that_duckdb_would_write_otherwise_stay_texts(con, tmp_path: Path):
    write(tmp_path / "day=2024-1-2" / "x.iac")
    query = f"SELECT day FROM iac_scan('{tmp_path}/*/*.iac', hive_partitioning := true)"
    assert con.sql(query).fetchall() == [("2024-1-2",)]


@pytest.mark.parametrize("folder", [b"k=%FF", b"k=%c3(", b"k=\xff"])
def test_a_hive_value_that_is_no_text_is_an_error(con, tmp_path: Path, folder: bytes):
    os.mkdir(os.path.join(os.fsencode(tmp_path), folder))
    write_pack(tmp_path / os.fsdecode(folder) / "x.iac", [b"a"])
    with pytest.raises(duckdb.Error, match="not UTF-8"):
        con.sql(f"FROM iac_scan('{tmp_path}/*/x.iac', hive_partitioning := true)")


def test_hive_columns_beside_those_of_the_packs(con, tmp_path: Path):
    write(tmp_path / "N=9" / "k=1" / "x.iac", n=["own"], m=[2])
    query = f"FROM iac_scan('{tmp_path}/**/*.iac', hive_partitioning := true, filename := true)"
    assert con.sql(query).columns == [
        *("N", "m", "slide_idx", "slide_id", "patient_id", "record", "filename", "k")
    ]
    assert con.sql(f"SELECT n, k {query}").fetchall() == [(9, 1)]
    write(tmp_path / "k=1" / "y.iac")
    with pytest.raises(duckdb.Error, match=r"other keys than those of .*[xy]\.iac"):
        con.sql(query)
    write(tmp_path / "record=1" / "z.iac")
    with pytest.raises(duckdb.Error, match="hive_partitioning adds the column 'record'"):
        con.sql(f"FROM iac_scan('{tmp_path}/record=1/*.iac', hive_partitioning := true)")


def test_every_projection_under_every_filter(con, tmp_path: Path):
    for year, site in itertools.product((2023, 2024), ("a", "b")):
        for i in range(3):
            columns = {"n": list(range(i, i + 4))} if i else {"extra": ["x"] * 4}
            write(tmp_path / f"year={year}" / f"site={site}" / f"{i}.iac", **columns)
    scan = f"iac_scan('{tmp_path}/**/*.iac', filename := true, hive_partitioning := true)"
    con.execute(f"CREATE TABLE copy AS FROM {scan}")
    columns = ["n", "extra", "slide_id", "record", "filename", "site", "year"]
    filters = [
        *(
            "true",
            "n > 2",
            "n IS NULL",
            "extra = 'x'",
            "year = 2024",
            "site <> 'a'",
            "year IS NULL",
        ),
        *("filename LIKE '%1.iac'", "record.row = 3", "record.pack = filename AND n = 3"),
        *("year = 2023 AND site = 'b' AND n IS NOT NULL", "slide_id IS NULL", "site || n = 'a3'"),
    ]
    for size in (1, 2, len(columns)):
        for chosen in itertools.permutations(columns, size) if size < 3 else [columns]:
            for condition in filters:
                query = f"SELECT {', '.join(chosen)} FROM {{}} WHERE {condition}"
                found = con.sql(query.format(scan)).fetchall()
                assert found == con.sql(query.format("copy")).fetchall(), query
    for query in (
        "SELECT count(*), count(n), sum(n), max(year), min(site) FROM {}",
        "SELECT year, site, count(*) FROM {} GROUP BY ALL ORDER BY ALL",
        "SELECT count(DISTINCT record.pack), count(DISTINCT filename) FROM {}",
        "SELECT a.filename FROM {0} a JOIN {0} b USING (n, year) WHERE b.site = 'a' ORDER BY ALL",
        "SELECT n FROM {} ORDER BY filename DESC, n DESC LIMIT 5",
    ):
        assert con.sql(query.format(scan)).fetchall() == con.sql(query.format("copy")).fetchall()


# Opening them.


@pytest.mark.asan
def test_references_name_the_pack_of_each_row(con, tmp_path: Path):
    for i in range(40):
        write(tmp_path / f"{i:02}.iac", rows=i % 4)
    wanted = [f"{i:02} {row}" for i in range(40) for row in range(i % 4)]
    assert texts(con, f"'{tmp_path}/*.iac'") == wanted


@pytest.mark.asan
def test_large_and_small_packs_on_several_threads(con, tmp_path: Path):
    rows = [0, 500_000, 3, 0, 130_000, *[100] * 30]
    for i, count in enumerate(rows):
        write(tmp_path / f"{i:02}.iac", n=pa.array(range(count), pa.int64()))
    query = (
        f"SELECT n, record.row AS row, filename FROM iac_scan('{tmp_path}/*.iac', filename := true)"
    )
    assert f"~{sum(rows):,} rows" in con.sql(f"EXPLAIN {query}").fetchall()[0][1]
    wanted = [n for count in rows for n in range(count)]
    table = con.sql(query).to_arrow_table()
    assert table["n"].to_pylist() == wanted
    assert table["row"].to_pylist() == wanted
    for threads in (1, 2, 8):
        con.execute(f"SET threads = {threads}")
        found = con.sql(f"SELECT count(*), sum(n), sum(row) FROM ({query})").fetchall()
        assert found == [(sum(rows), sum(wanted), sum(wanted))]


def test_one_damaged_pack_among_a_hundred_is_named(con, tmp_path: Path):
    for i in range(100):
        write(tmp_path / f"{i:02}.iac")
    damaged = tmp_path / "57.iac"
    damaged.write_bytes(damaged.read_bytes()[:66_000])
    query = f"FROM '{tmp_path}/*.iac'"
    for statement in (
        query,
        f"DESCRIBE {query}",
        f"SELECT count(*) {query}",
        f"PREPARE p AS {query}",
    ):
        with pytest.raises(duckdb.Error, match=r"/57\.iac: "):
            con.sql(statement)
    damaged.write_bytes(b"")
    with pytest.raises(duckdb.Error, match=r"/57\.iac: "):
        con.sql(query)


@pytest.mark.asan
def test_packs_replaced_after_a_statement_was_prepared(con, tmp_path: Path):
    for i in range(3):
        write(tmp_path / f"{i}.iac", n=[i])
    con.execute(f"PREPARE sums AS SELECT count(*), max(n) FROM '{tmp_path}/*.iac'")
    assert con.execute("EXECUTE sums").fetchall() == [(3, 2)]
    many = 300_000
    write(tmp_path / "1.iac", n=[1] * many)
    assert con.execute("EXECUTE sums").fetchall() == [(many + 2, 2)]
    write(tmp_path / "1.iac", n=pa.array([], pa.int64()))
    assert con.execute("EXECUTE sums").fetchall() == [(2, 2)]
    write(tmp_path / "1.iac", n=["text"])
    try:
        assert con.execute("EXECUTE sums").fetchall()
    except duckdb.Error as error:  # how the version of DuckDB has it
        assert "1.iac" in str(error)
    (tmp_path / "1.iac").unlink()
    try:
        assert con.execute("EXECUTE sums").fetchall() == [(2, 2)]
    except duckdb.Error as error:
        assert "1.iac" in str(error)


TINY = """
import os, resource, sys
import iac_query

resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
pattern = sys.argv[1]

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

con = iac_query.connect(threads=8)
con.execute("SET enable_progress_bar = false")
con.execute(f"CREATE TEMP TABLE refs AS SELECT record FROM '{pattern}'")
sizes = []
for _ in range(3):
    for query in (
        "DESCRIBE FROM {}",
        "SELECT count(*), sum(n), count(slide_id), count(DISTINCT record.pack) FROM {}",
        "SELECT count(DISTINCT iac_text(record)), sum(octet_length(iac_stored(record))) FROM {}",
        "SELECT count(DISTINCT iac_text(record)) FROM (FROM refs ORDER BY hash(record))",
        "SELECT count(*) FROM (FROM {} LIMIT 10)",
    ):
        print(con.execute(query.format(f"'{pattern}'")).fetchall()[-1])
    sizes.append(resident())
open_files = len(os.listdir("/proc/self/fd"))
assert open_files < 200, open_files
assert sizes[-1] - sizes[0] < 20 << 20, sizes
"""


def test_three_thousand_packs_with_256_descriptors(tmp_path: Path):
    (tmp_path / "packs").mkdir()
    pack = write(tmp_path / "packs" / "0000.iac", n=[7])
    for i in range(1, 3000):
        os.link(pack, tmp_path / "packs" / f"{i:04}.iac")
    run = subprocess.run(
        [sys.executable, "-c", TINY, f"{tmp_path}/packs/*.iac"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    lines = run.stdout.splitlines()
    assert lines[1::5] == ["(3000, 21000, 3000, 3000)"] * 3
    assert lines[2::5] == ["(1, 18000)"] * 3
    assert lines[3::5] == ["(1,)"] * 3
    assert lines[4::5] == ["(10,)"] * 3


# Access.


def test_listing_follows_the_access_rules(con, tmp_path: Path):
    allowed = tmp_path / "allowed"
    write(allowed / "x.iac")
    write(allowed / "in" / "y.iac")
    write(tmp_path / "outside" / "o.iac")
    os.symlink("../outside", allowed / "link")
    con.execute(f"PREPARE prepared AS SELECT count(*) FROM '{tmp_path}/**/*.iac'")
    con.execute(f"SET allowed_directories = ['{allowed}/']")
    con.execute("SET enable_external_access = false")
    refused = "disabled by configuration"
    assert texts(con, f"'{allowed}/*.iac'") == ["x 0"]
    assert texts(con, f"'{allowed}/**/*.iac'") == ["x 0", "y 0"]
    assert texts(con, f"'{allowed}/in/../*.iac'") == ["x 0"]
    for pattern in (
        *("../*/x.iac", "../outside/*.iac", "../outside/nothing*.iac", "link/*.iac"),
        *("*/o.iac", "*/nothing.iac", "l*/*.iac", "*/../../outside/*.iac", "link/**/*.iac"),
    ):
        with pytest.raises(duckdb.Error, match=refused):
            con.sql(f"FROM '{allowed}/{pattern}'")
    with pytest.raises(duckdb.Error, match=refused):
        con.execute("EXECUTE prepared").fetchall()


def test_nothing_is_listed_without_external_access(tmp_path: Path):
    write(tmp_path / "x.iac")
    for setting in ("enable_external_access = false", "disabled_filesystems = 'LocalFileSystem'"):
        with iac.connect() as con:
            con.execute(f"SET {setting}")
            messages = set()
            for name in ("*.iac", "x*.iac", "nothing*.iac", "**/*.iac", "nowhere/*.iac"):
                for query in ("FROM iac_scan(['{}'])", "DESCRIBE FROM '{}'"):
                    with pytest.raises(duckdb.Error, match="disabled by configuration") as error:
                        con.sql(query.format(tmp_path / name))
                    messages.add(str(error.value).split("LINE")[0].replace(name, "").strip())
            assert len(messages) == 1
