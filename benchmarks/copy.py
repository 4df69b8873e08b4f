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

COPIES = {
    "pack": "COPY (SELECT s FROM source AS s) TO '{}' (FORMAT iac, CODEC zstd, LEVEL 3)",
    "parquet": "COPY source TO '{}' (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 3)",
}

# Run apart, so that the peak of memory is one COPY's own.
PEAK = """
import sys, iac_query
database, threads, sql = sys.argv[1:]
con = iac_query.connect(database, threads=int(threads))
con.execute("SET enable_progress_bar = false")
con.execute(sql)
status = open("/proc/self/status").read()
print(int(status.split("VmHWM:")[1].split()[0]) / 1024)
"""


def make_database(path: Path, payloads: list[bytes]) -> None:
    rows = len(payloads)
    source = pa.table(
        {
            "note_id": pa.array([f"note-{i:08}" for i in range(rows)]),
            "patient_id": pa.array([f"patient-{i // 30:06}" for i in range(rows)]),
            "payload": pa.array(payloads, pa.binary()),
        }
    )
    with iac_query.connect(str(path)) as con:
        con.register("rows", source)
        con.execute("CREATE TABLE source AS FROM rows")


def peak(database: Path, threads: int, sql: str) -> float:
    """MiB of a process that runs a COPY and nothing else."""
    command = [sys.executable, "-c", PEAK, str(database), str(threads), sql]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure(name: str, payloads: list[bytes], rounds: int) -> None:
    cells = []
    codec = iac_query.Codec.create("zstd", level=3)
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "source.db"
        make_database(database, payloads)
        targets = {kind: Path(folder) / f"copied.{kind}" for kind in COPIES}
        sql = {kind: COPIES[kind].format(path) for kind, path in targets.items()}
        for threads in (1, 2):
            with iac_query.connect(str(database), threads=threads) as con:
                con.execute("SET enable_progress_bar = false")
                runs = {
                    kind: lambda text=text, con=con: con.execute(text).fetchall()
                    for kind, text in sql.items()
                }
                alone = {"codec": lambda n=threads: codec.encode_many(payloads, n)}
                times = interleaved({**runs, **alone}, rounds)
            for kind in runs:
                took = [times.median(kind) * 1e3, times.ratio(kind, "codec")]
                size = targets[kind].stat().st_size / 2**20
                used = peak(database, threads, sql[kind])
                cells.append([f"{kind}, {threads} thread(s)", *took, size, used])
    title = f"{len(payloads):,} {name} of {SIZE:,} bytes; codec: zstd of each payload, nothing else"
    print_table(title, ["", "ms", "times of codec", "MiB", "peak MiB"], cells)


def main(rows: int = ROWS, rounds: int = 5) -> None:
    measure("texts", lines(rows, SIZE), rounds)
    measure("pieces of pixels", tiles(rows, SIZE), rounds)


if __name__ == "__main__":
    main()
