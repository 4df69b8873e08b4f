"""How iac_scan opens many packs: their references, damage, replacement, descriptors."""

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from duckdb_many import texts, write


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
