"""The same index in 1, 10 and 100 packs, and in 3,000: how long a scan of them all takes.

The 3,000 are smaller in sum; they are compared with nothing, and their time is that of opening.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import pyarrow as pa

import iac_query

from ._measure import interleaved, print_table
from .scan import answer, make_index

ROWS = 3_000_000
TINY_PACKS = 3_000
TARGET = 1.3  # of the time of one pack

QUERIES = {
    "count(*)": "SELECT count(*) FROM {}",
    "sum(double)": "SELECT round(sum(d), 3) FROM {}",
    "filter and group, max(int32)": "SELECT g, max(i) FROM {} WHERE g < 50 GROUP BY g ORDER BY g",
    "group, max(utf8 of 20)": "SELECT g, max(s20) FROM {} GROUP BY g ORDER BY g",
    "max(stamp of record)": "SELECT max(record.stamp) FROM {}",
}


def write(folder: Path, index: pa.Table, packs: int) -> Path:
    """Packs of empty records, each with its part of the index."""
    folder.mkdir()
    slides = pa.table({"slide_id": ["slide-001"], "patient_id": ["patient-001"]})
    header = {"payload_type": "benchmark", "codec": "none"}
    rows = index.num_rows // packs
    for i in range(packs):
        part = index.slice(i * rows, rows)
        iac_query.build_pack_streaming(
            folder / f"{i:04}.iac", header, slides, part, (b"" for _ in range(rows))
        )
    return folder / "*.iac"


def main(rows: int = ROWS, rounds: int = 9) -> None:
    with tempfile.TemporaryDirectory() as folder:
        index = make_index(rows)
        packs = {n: write(Path(folder) / str(n), index, n) for n in (1, 10, 100)}
        tiny = write(Path(folder) / "tiny", index.slice(0, TINY_PACKS), TINY_PACKS)
        for threads in (1, 2):
            with iac_query.connect(threads=threads) as con:
                lines = []
                for name, query in QUERIES.items():
                    runs = {str(n): partial(answer, con, query, path) for n, path in packs.items()}
                    if len({str(run()) for run in runs.values()}) > 1:
                        raise AssertionError(f"{name}: the packs give different results")
                    runs["tiny"] = partial(answer, con, query, tiny)
                    times = interleaved(runs, rounds)
                    lines.append(
                        [
                            name,
                            *(times.median(n) * 1e3 for n in runs),
                            times.ratio("10", to="1"),
                            times.ratio("100", to="1"),
                        ]
                    )
            title = f"{rows:,} rows, {threads} thread(s), milliseconds; target ratio {TARGET}"
            columns = [
                "query",
                "1 pack",
                "10",
                "100",
                f"{TINY_PACKS:,} tiny",
                "10 to 1",
                "100 to 1",
            ]
            print_table(title, columns, lines)


if __name__ == "__main__":
    main()
