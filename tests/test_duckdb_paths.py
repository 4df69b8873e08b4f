"""Columns that the paths of packs give: filename and Hive partitions."""

import itertools
import os
from pathlib import Path

import duckdb
import pytest
from duckdb_many import write
from packs import write_pack


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
