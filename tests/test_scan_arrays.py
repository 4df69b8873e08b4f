"""Columns of fixed-size lists, and columns with names that Polars reads as patterns."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import polars.selectors as cs
import pyarrow as pa
import pytest
from packs import payloads_of, write_pack

import iac_query as iac

PAIRS = pa.array([[1, 2], None, [3, 4], None, [5, 6], [7, None]], pa.list_(pa.int32(), 2))
OFFSETS = pa.array([0, 1, 3, 4, 5, 5, 6], pa.int32())
COLUMNS = {
    "pairs": PAIRS,
    "struct": pa.StructArray.from_arrays([PAIRS], ["x"]),
    "list": pa.ListArray.from_arrays(OFFSETS, PAIRS),
    "map": pa.MapArray.from_arrays(OFFSETS, pa.array(list("abcdef")), PAIRS),
    "nested": pa.array(
        [None if i == 2 else [[i, i], None] for i in range(6)],
        pa.list_(pa.list_(pa.int32(), 2), 2),
    ),
}


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_parts_of_arrays_with_nulls(tmp_path: Path, engine):
    index = pa.table({"slide_idx": pa.array([0] * 6, pa.uint8()), "row": range(6), **COLUMNS})
    path = write_pack(tmp_path / "x.iac", payloads_of(6), index)
    frame = iac.scan_iac(path)
    for start, stop in ((0, 6), (0, 3), (1, 4), (3, 4), (5, 6), (6, 6)):
        rows = frame.filter(pl.col("row").is_between(start, stop - 1)).select(*COLUMNS)
        found = rows.collect(engine=engine).to_arrow()
        for name, column in COLUMNS.items():
            assert found[name].to_pylist() == column[start:stop].to_pylist(), (name, start)
    assert frame.head(4).select("pairs").collect(engine=engine).to_series().null_count() == 2


@pytest.mark.parametrize("name", ["^k.*$", "*"])
def test_names_that_are_patterns_to_polars(tmp_path: Path, name: str):
    index = pa.table({"slide_idx": pa.array([0, 0], pa.uint8()), name: [1, 2], "k1": [2, 2]})
    path = write_pack(tmp_path / "x.iac", payloads_of(2), index)
    frame = iac.scan_iac(path)
    assert frame.collect()[name].to_list() == [1, 2]
    with pytest.raises(iac.PackError, match="takes this name for a pattern"):
        frame.filter(cs.by_name(name) > 1).collect()
