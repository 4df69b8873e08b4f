"""Records of 1 KiB written by SQL: COPY to a pack, and to Parquet, both of zstd level 3."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa

import iac_query

from ._measure import interleaved, print_table
from ._packs import lines, tiles

ROWS = 300_000
SIZE = 1024
DISTINCT = 20_000  # payloads are made so many and used again, none near itself

COPIES = {
    "pack": "COPY (SELECT s FROM source AS s) TO '{}' (FORMAT iac, CODEC zstd, LEVEL 3)",
    "parquet": "COPY source TO '{}' (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 3)",
}

# Run apart, so that the peak of memory is one COPY's own.
PEAK = """
import resource, sys, iac_query
database, threads, sql = sys.argv[1:]
con = iac_query.connect(database, threads=int(threads))
con.execute("FROM source").fetchmany(1)
con.execute("SELECT sum(octet_length(payload)) FROM source").fetchall()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
con.execute(sql)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def make_database(path: Path, payloads: list[bytes], rows: int) -> None:
    order = [(i * 7919) % len(payloads) for i in range(rows)]
    source = pa.table(
        {
            "note_id": pa.array([f"note-{i:08}" for i in range(rows)]),
            "patient_id": pa.array([f"patient-{i // 30:06}" for i in range(rows)]),
            "payload": pa.array([payloads[i] for i in order], pa.binary()),
        }
    )
    with iac_query.connect(str(path)) as con:
        con.register("rows", source)
        con.execute("CREATE TABLE source AS FROM rows")


def peak(database: Path, threads: int, sql: str) -> float:
    """MiB that a COPY takes above a scan of the same table."""
    command = [sys.executable, "-c", PEAK, str(database), str(threads), sql]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure(name: str, payloads: list[bytes], rows: int, rounds: int) -> None:
    cells = []
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "source.db"
        make_database(database, payloads, rows)
        for threads in (1, 2):
            targets = {kind: Path(folder) / f"copied.{kind}" for kind in COPIES}
            sql = {kind: COPIES[kind].format(path) for kind, path in targets.items()}
            with iac_query.connect(str(database), threads=threads) as con:
                runs = {
                    kind: lambda text=text, con=con: con.execute(text).fetchall()
                    for kind, text in sql.items()
                }
                times = interleaved(runs, rounds)
            ratio = times.ratio("parquet", to="pack")
            for kind, path in targets.items():
                cells.append(
                    [
                        f"{kind}, {threads} thread(s)",
                        times.median(kind) * 1e3,
                        ratio if kind == "pack" else 1.0,
                        path.stat().st_size / 2**20,
                        peak(database, threads, sql[kind]),
                    ]
                )
    title = f"{rows:,} {name} of {SIZE:,} bytes; target 1.5 times as fast as Parquet"
    print_table(title, ["", "ms", "times as fast", "MiB", "peak MiB"], cells)


def main(rows: int = ROWS, rounds: int = 5) -> None:
    count = min(rows, DISTINCT)
    measure("texts", lines(count, SIZE), rows, rounds)
    measure("pieces of pixels", tiles(count, SIZE), rows, rounds)


if __name__ == "__main__":
    main()
