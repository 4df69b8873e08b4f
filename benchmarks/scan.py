"""An index of three million rows in SQL: scanned from a pack, and from the same table as Parquet.

Rows are in random order, so that Parquet's statistics cannot answer.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

import iac_query

from ._measure import interleaved, print_table

ROWS = 3_000_000
TARGET = 0.6  # of Parquet's time

QUERIES = {
    "filter and group, max(int32)": "SELECT g, max(i) FROM {} WHERE g < 50 GROUP BY g ORDER BY g",
    "group, max(utf8 of 7)": "SELECT g, max(s7) FROM {} GROUP BY g ORDER BY g",
    "group, max(utf8 of 20)": "SELECT g, max(s20) FROM {} GROUP BY g ORDER BY g",
    "sum(double)": "SELECT round(sum(d), 3) FROM {}",
    "utf8 of 20 equals": "SELECT count(*) FROM {} WHERE s20 = 'specimen-00000001234'",
    "count(*)": "SELECT count(*) FROM {}",
}


def make_index(rows: int) -> pa.Table:
    random = np.random.default_rng(7)
    numbers = random.integers(0, 1 << 30, rows)
    return pa.table(
        {
            "g": pa.array(random.integers(0, 100, rows), pa.uint8()),
            "i": pa.array(numbers, pa.int32()),
            "s7": pa.array([f"s{n % 1_000_000:06}" for n in numbers.tolist()]),
            "s20": pa.array([f"specimen-{n % 1_000_000:011}" for n in numbers.tolist()]),
            "d": pa.array(random.random(rows)),
        }
    )


def write(folder: Path, rows: int) -> tuple[Path, Path]:
    """The index as a pack of empty records, and as Parquet written by DuckDB."""
    index = make_index(rows)
    slides = pa.table({"slide_id": ["slide-001"], "patient_id": ["patient-001"]})
    header = {"payload_type": "benchmark", "codec": "none"}
    pack, parquet = folder / "index.iac", folder / "index.parquet"
    iac_query.build_pack_streaming(pack, header, slides, index, (b"" for _ in range(rows)))
    with iac_query.connect() as con:
        con.register("source", index)
        con.execute(f"COPY source TO '{parquet}'")
    return pack, parquet


def answer(con: duckdb.DuckDBPyConnection, query: str, path: Path) -> list[tuple[object, ...]]:
    """What a query says of a file, or of those that a pattern names."""
    return con.execute(query.format(f"'{path}'")).fetchall()


def main(rows: int = ROWS, rounds: int = 9) -> None:
    with tempfile.TemporaryDirectory() as folder:
        pack, parquet = write(Path(folder), rows)
        for threads in (1, 2):
            with iac_query.connect(threads=threads) as con:
                lines = []
                for name, query in QUERIES.items():
                    runs = {
                        "pack": partial(answer, con, query, pack),
                        "parquet": partial(answer, con, query, parquet),
                    }
                    if runs["pack"]() != runs["parquet"]():
                        raise AssertionError(f"{name}: pack and Parquet give different results")
                    times = interleaved(runs, rounds)
                    lines.append(
                        [
                            name,
                            times.median("pack") * 1e3,
                            times.median("parquet") * 1e3,
                            times.ratio("pack", to="parquet"),
                        ]
                    )
            title = f"{rows:,} rows, {threads} thread(s), milliseconds; target ratio {TARGET}"
            print_table(title, ["query", "pack", "parquet", "ratio"], lines)


if __name__ == "__main__":
    main()
