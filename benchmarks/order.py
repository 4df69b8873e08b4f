"""What it costs when DuckDB decodes rows before it filters them: one note in a hundred is wanted.

The same question in several words, against the first, which decodes just those notes.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pyarrow as pa

import iac_query

from ._measure import interleaved, print_table

NOTES = 20_000
SMALLEST, LARGEST = 300, 600  # words

WANTED = "k = 7"
FOUND = "LIKE '%margin%'"
QUERIES = {
    "CASE": f"SELECT count(*) FROM {{}} WHERE CASE WHEN {WANTED} THEN iac_text(record) {FOUND} END",
    "macro": f"SELECT count(*) FROM {{}} WHERE iac_text_where({WANTED}, record) {FOUND}",
    "sub-select": f"SELECT count(*) FROM (SELECT record FROM {{}} WHERE {WANTED})"
    f" WHERE iac_text(record) {FOUND}",
    "AND": f"SELECT count(*) FROM {{}} WHERE {WANTED} AND iac_text(record) {FOUND}",
    "AND, with IN": f"SELECT count(*) FROM {{}} WHERE k IN (7) AND iac_text(record) {FOUND}",
    "top 3 of a sub-select": "SELECT iac_text(record) FROM"
    " (SELECT record FROM {} ORDER BY k, id LIMIT 3)",
    "top 3": "SELECT iac_text(record) FROM {} ORDER BY k, id LIMIT 3",
}


def write(path: Path, notes: int) -> None:
    chance = random.Random(3)
    words = [f"{chance.choice('bcdfgl')}{n:x}" for n in range(3000)] + ["margin"]
    texts = (
        " ".join(chance.choices(words, k=chance.randint(SMALLEST, LARGEST))).encode()
        for _ in range(notes)
    )
    index = pa.table({"id": range(notes), "k": pa.array([n % 100 for n in range(notes)])})
    iac_query.VariableRecordPack.build(
        path,
        payload_type="note",
        slide_table=pa.table({"slide_id": ["slide-001"]}),
        index_table=index,
        objects=texts,
        codec=iac_query.Codec.create("zstd", level=3),
        streaming=True,
    )


def main(notes: int = NOTES, rounds: int = 9) -> None:
    with tempfile.TemporaryDirectory() as folder, iac_query.connect() as con:
        pack = Path(folder) / "notes.iac"
        write(pack, notes)
        runs = {
            name: lambda query=query: con.execute(query.format(f"'{pack}'")).fetchall()
            for name, query in QUERIES.items()
        }
        for name in ("macro", "sub-select", "AND", "AND, with IN"):
            if runs[name]() != runs["CASE"]():
                raise AssertionError(f"{name}: another count")
        times = interleaved(runs, rounds)
        lines = [
            [
                name,
                times.median(name) * 1e3,
                times.ratio(name, to="CASE" if "top" not in name else "top 3 of a sub-select"),
            ]
            for name in runs
        ]
        title = f"{notes:,} notes, milliseconds; ratio to the words that decode just what is wanted"
        print_table(title, ["", "median", "ratio"], lines)


if __name__ == "__main__":
    main()
