"""Damaged packs in SQL: errors or values, never a crash."""

import random
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from duckdb_columns import COLUMNS
from packs import assemble, layout_index, segments_of

import iac_query as iac

pytestmark = pytest.mark.asan

# Runs in a process of its own, so that a crash is a failed test and not the end of them all.
READ_DAMAGED = """
import random, sys
import duckdb
import iac_query

path, start, end, flips = sys.argv[1], *map(int, sys.argv[2:])
whole = open(path, "rb").read()
chooser = random.Random(start)
outcomes = {"values": 0, "errors": 0}
con = iac_query.connect()
for _ in range(flips):
    damaged = bytearray(whole)
    for _ in range(chooser.choice([1, 1, 2, 8])):
        damaged[chooser.randrange(start, end)] ^= 1 << chooser.randrange(8)
    open(path, "wb").write(damaged)
    for query in (
        "CREATE OR REPLACE TABLE copy AS FROM iac_scan('{}', layout := true)",
        "SELECT count(iac_payload(record)) FROM '{}'",
        "SELECT COLUMNS(*)::VARCHAR FROM '{}'",
    ):
        try:
            con.execute(query.format(path)).fetchall()
            outcomes["values"] += 1
        except duckdb.InternalException:
            raise
        except (duckdb.Error, UnicodeDecodeError):
            outcomes["errors"] += 1
print(outcomes["values"], outcomes["errors"])
"""


def write_everything(path: Path) -> Path:
    """Every type, in the index and in the slide table."""
    rows = 24
    columns = {}
    for name, column in COLUMNS.items():
        array = column.array
        if name != "run_ends":
            chunks = pa.chunked_array([array] * (rows // len(array) + 1))
            columns[name] = chunks.slice(0, rows)
    index = layout_index([0] * rows, [8] * rows, slide_idx=list(range(rows)), **columns)
    slides = pa.table({"slide_idx": range(rows), **columns})
    slides = slides.rename_columns(
        [name if name == "slide_idx" else f"s_{name}" for name in slides.column_names]
    )
    return assemble(path, index, b"12345678", slides=slides)


@pytest.mark.parametrize(("table", "flips"), [("index_table", 300), ("slide_table", 100)])
def test_flipped_bits_in_a_table(tmp_path: Path, table: str, flips: int):
    path = write_everything(tmp_path / "x.iac")
    header = segments_of(path)[0]
    start = header[f"{table}_offset"]
    run = subprocess.run(
        [
            sys.executable,
            "-c",
            READ_DAMAGED,
            path,
            str(start),
            str(start + header[f"{table}_length"]),
            str(flips),
        ],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    values, errors = map(int, run.stdout.split())
    assert values + errors == 3 * flips
    assert values > 0
    assert errors > 0


def test_cut_packs_are_errors(tmp_path: Path):
    path = write_everything(tmp_path / "x.iac")
    whole = path.read_bytes()
    chooser = random.Random(3)
    with iac.connect() as con:
        for length in [0, 100, 65536, *(chooser.randrange(65536, len(whole)) for _ in range(40))]:
            path.write_bytes(whole[:length])
            with pytest.raises(duckdb.Error, match=r"x\.iac"):
                con.sql(f"FROM '{path}'").fetchall()
