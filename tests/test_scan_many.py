"""Scans over many packs from Python: files, columns and types are those of iac_scan in SQL."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest
import test_duckdb_paths
import test_duckdb_patterns
from duckdb_columns import COLUMNS, plain
from duckdb_many import write
from packs import payloads_of, write_pack
from test_duckdb_drift import VALUES, go_together

import iac_query as iac

tree = test_duckdb_patterns.tree


@pytest.fixture(scope="module")
def con():
    with iac.connect() as con:
        yield con


def parameters(test):
    """What a test is parametrized with."""
    (mark,) = (mark for mark in test.pytestmark if mark.name == "parametrize")
    return mark.args[1]


PATTERNS = parameters(test_duckdb_patterns.test_patterns_find_what_those_of_duckdb_find)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_find_what_those_of_sql_find(con, tree: Path, pattern: str):
    for given in (pattern, f"{tree}/{pattern}"):
        columns = ["filename", "record"]
        query = f"SELECT filename, record FROM iac_scan('{given}', filename := true)"
        try:
            expected = con.sql(query).to_arrow_table()
        except duckdb.Error as error:  # a file that is no pack is one of the matches
            message = str(error)
            with pytest.raises(iac.PackError) as ours:
                iac.scan_arrow(given)
            assert Path(ours.value.pack).name in message
            continue
        found = iac.scan_arrow(given, columns, filename=True).read_all()
        assert found.to_pylist() == expected.to_pylist()


@pytest.mark.parametrize("pattern", ["*.nothing", "b/*/", "nowhere/*.iac", "x.iac/*", "[x.iac"])
def test_a_pattern_that_finds_nothing_is_an_error(tree: Path, pattern: str):
    for paths in (pattern, ["x.iac", pattern]):
        with pytest.raises(iac.PackNotFoundError, match="no file matches this pattern"):
            iac.scan_arrow(paths)
    with pytest.raises(iac.PackNotFoundError, match="No such file"):
        iac.scan_arrow("nowhere/x.iac")
    with pytest.raises(ValueError, match=r"a pattern can have only one \*\*"):
        iac.scan_arrow("**/**/x.iac")


def test_lists_and_names(tree: Path, monkeypatch: pytest.MonkeyPatch):
    paths = ["x.iac", "b*/*.iac", Path("x.iac"), "./b/../A.iac"]
    table = iac.scan_arrow(paths, ["filename", "record"], filename=True).read_all()
    names = ["x.iac", "b/x.iac", "b.iac/inside.iac", "b2/x.iac", "x.iac", "A.iac"]
    assert table["filename"].to_pylist() == names
    assert [r["pack"] for r in table["record"].to_pylist()] == [f"{tree}/{name}" for name in names]
    write(tree / "*.iac")
    assert iac.scan_arrow("*.iac").read_all()["payload"].to_pylist() == [b"* 0"]
    assert iac.scan_arrow(os.fsencode(tree / "b.iac" / "inside.iac")).read_all().num_rows == 1
    monkeypatch.setenv("HOME", str(tree))
    assert iac.scan_arrow("~/b2/*.iac").read_all().num_rows == 1


@pytest.mark.parametrize(
    ("paths", "error", "message"),
    [
        ([], ValueError, "the list of paths is empty"),
        (47, TypeError, "int"),
        ([47], TypeError, "expected a path"),
        ([None], TypeError, "expected a path"),
        ("", ValueError, "the path of a pack is empty"),
        ("x\0y.iac", ValueError, "NUL"),
    ],
)
def test_what_is_no_path(paths, error, message):
    with pytest.raises(error, match=message):
        iac.scan_arrow(paths)


def test_paths_that_references_cannot_hold(tmp_path: Path):
    path = os.fsencode(tmp_path) + b"/by\xff.iac"
    os.rename(write(tmp_path / "x.iac"), path)
    for paths in (path, os.fsdecode(path), f"{tmp_path}/*.iac"):
        for scan in (iac.scan_iac, iac.scan_arrow):
            with pytest.raises(iac.PackError, match=r"by\\xff\.iac': the path is not UTF-8"):
                scan(paths)


HIVE = parameters(test_duckdb_paths.test_hive_columns_are_those_of_read_parquet)


# Dates that Python lacks stay text.
@pytest.mark.parametrize("values", [v for v in HIVE if v not in (["infinity"], ["12024-01-02"])])
def test_hive_columns_are_those_of_sql(con, tmp_path: Path, values: list[str]):
    for value in values:
        write(tmp_path / f"year={value}" / "B=x" / "a=1=2" / "x.iac", n=[1])
    pattern = f"{tmp_path}/**/*.iac"
    expected = con.sql(
        f"SELECT * EXCLUDE record FROM iac_scan('{pattern}', hive_partitioning := true)"
    ).to_arrow_table()
    found = iac.scan_arrow(pattern, expected.column_names, hive_partitioning=True).read_all()
    assert found.to_pylist() == expected.to_pylist()
    assert found.schema.field("year").type == expected.schema.field("year").type
    frame = iac.scan_iac(pattern, hive_partitioning=True)
    assert frame.filter(pl.col("B") == "x").collect().height == len(values)


def test_hive_columns_beside_those_of_the_packs(con, tmp_path: Path):
    write(tmp_path / "N=9" / "k=1" / "x.iac", n=["own"], m=[2])
    pattern = f"{tmp_path}/**/*.iac"
    options = {"hive_partitioning": True, "filename": True}
    table = iac.scan_arrow(pattern, **options).read_all()
    assert table.column_names == [
        *("N", "m", "slide_idx", "slide_id", "patient_id", "record", "filename", "k", "payload")
    ]
    assert (table["N"][0].as_py(), table["k"][0].as_py()) == (9, 1)
    write(tmp_path / "k=1" / "y.iac")
    with pytest.raises(ValueError, match=r"other keys than those of .*[xy]\.iac"):
        iac.scan_arrow(pattern, **options)
    write(tmp_path / "record=1" / "z.iac")
    with pytest.raises(ValueError, match="hive_partitioning adds the column 'record'"):
        iac.scan_arrow(f"{tmp_path}/record=1/*.iac", hive_partitioning=True)
    os.mkdir(tmp_path / "k=%FF")
    write_pack(tmp_path / "k=%FF" / "x.iac", [b"a"])
    with pytest.raises(ValueError, match="not UTF-8"):
        iac.scan_arrow(f"{tmp_path}/k=%FF/*.iac", hive_partitioning=True)


@pytest.fixture(scope="module")
def typed_packs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("types")
    return {
        name: str(write(folder / f"{i}.iac", v=values, n=[1, 2, 3]))
        for i, (name, values) in enumerate(VALUES.items())
    }


@pytest.mark.parametrize("name", VALUES)
def test_types_are_joined_as_in_sql_or_named(con, typed_packs, name: str):
    for other in VALUES:
        paths = [typed_packs[name], typed_packs[other]]
        frame = iac.scan_iac(paths)
        if go_together(name, other):
            expected = con.sql(f"SELECT v FROM iac_scan({paths})").to_arrow_table()
            found = iac.scan_arrow(paths, ["v"]).read_all()
            assert found.to_pydict() == expected.to_pydict(), other
            assert con.from_arrow(found).types == con.from_arrow(expected).types, other
            assert frame.select("v").collect().equals(pl.from_arrow(found))
        else:
            assert frame.select(pl.col("n").sum()).collect().item() == 12
            with pytest.raises(iac.PackError) as error:
                frame.select("v").collect()
            for part in ("column 'v'", *paths):
                assert part in str(error.value)
            with pytest.raises(iac.PackError, match="column 'v'"):
                iac.scan_arrow(paths, ["v"])


def test_three_types_do_not_depend_on_their_order(typed_packs):
    for names, wanted in [
        (("UBIGINT", "TINYINT", "NULL"), pa.decimal128(38, 0)),
        (("UTINYINT", "TINYINT", "SMALLINT"), pa.int16()),
        (("BIGINT", "DATE", "VARCHAR"), pa.large_string()),
        (("FLOAT", "UBIGINT", "DOUBLE"), pa.float64()),
    ]:
        for order in itertools.permutations(names):
            paths = [typed_packs[name] for name in order]
            assert iac.scan_arrow(paths).schema.field("v").type == wanted


def test_a_moment_out_of_range(tmp_path: Path):
    days = pa.array([5_000_000], pa.int32()).cast(pa.date32())
    far = write(tmp_path / "c.iac", v=days)
    nanoseconds = write(tmp_path / "d.iac", v=pa.array([0], pa.timestamp("ns")))
    with pytest.raises(iac.PackError, match=r"c\.iac: column 'v': a value is outside the range"):
        iac.scan_arrow([far, nanoseconds], ["v"]).read_all()


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_of_every_type_come_with_their_values(tmp_path: Path, name: str):
    column = COLUMNS[name]
    path = write(tmp_path / "x.iac", v=column.array)
    lacking = write(tmp_path / "y.iac", rows=2)
    expected = column.array.to_pylist()
    for paths, more in ((path, 0), ([path, lacking], 2)):
        table = iac.scan_arrow(paths, ["v"]).read_all()
        table.validate(full=True)
        assert plain(table["v"].to_pylist()) == plain(expected + [None] * more)
        frame = iac.scan_iac(paths)
        if name in ("interval", "dense_union", "sparse_union"):
            assert frame.collect_schema()["v"] == pl.String
            with pytest.raises(iac.PackError, match="column 'v': Polars has no type for"):
                frame.select("v").collect()
        else:
            values = frame.select("v").collect()
            assert values["v"].null_count() == table["v"].null_count
            assert values.schema["v"] == pl.from_arrow(table).schema["v"]
        assert frame.select("payload").collect().height == len(expected) + more


def test_columns_of_one_name_in_a_pack(con, tmp_path: Path):
    columns = [pa.array([0, 0], pa.uint8()), *([pa.array([i, i + 1]) for i in (1, 3, 5)])]
    index = pa.Table.from_arrays(columns, ["slide_idx", "a", "A", "record"])
    path = write_pack(tmp_path / "x.iac", payloads_of(2), index)
    expected = con.sql(f"SELECT * EXCLUDE record FROM '{path}'").to_arrow_table()
    assert (
        iac.scan_arrow(path, expected.column_names).read_all().to_pydict() == expected.to_pydict()
    )
    assert expected.column_names[1:4] == ["a", "A_1", "record_1"]


def test_layout_columns(con, tmp_path: Path):
    path = write(tmp_path / "x.iac", rows=3)
    expected = con.sql(f"FROM iac_scan('{path}', layout := true)").to_arrow_table()
    found = iac.scan_arrow(path, expected.column_names, layout=True).read_all()
    assert found.to_pydict() == expected.to_pydict()
    assert {"offset", "length", "crc32"} < set(found.column_names)


TINY = """
import os, resource, sys
import polars as pl
import iac_query

resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
frame = iac_query.scan_iac(sys.argv[1])
print(frame.select(pl.col("payload").n_unique(), pl.len().alias("n")).collect().row(0))
print(frame.select(pl.col("record").iac.text().n_unique()).collect().item())
print(frame.head(10).collect().height, len(os.listdir("/proc/self/fd")) < 100)
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
    assert run.stdout.splitlines() == ["(1, 3000)", "1", "10 True"]
