"""Packs whose records tell where they are, and what scans over many of them give."""

from pathlib import Path

import pyarrow as pa
from packs import write_pack


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
