"""Numbers and moments that become text among packs are written as SQL writes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from packs import payloads_of, write_pack

import iac_query as iac


@pytest.fixture(scope="module")
def con():
    with iac.connect() as con:
        yield con


def texts(con, tmp_path: Path, values: pa.Array) -> tuple[list[str], list[str]]:
    """Of a pack's column beside a text column of another: by scan_arrow, and by DuckDB's CAST."""
    for name, column in (("a", values), ("b", pa.array(["text"]))):
        index = pa.table({"slide_idx": pa.array([0] * len(column), pa.uint8()), "v": column})
        write_pack(tmp_path / f"{name}.iac", payloads_of(len(column)), index)
    paths = [str(tmp_path / "a.iac"), str(tmp_path / "b.iac")]
    scanned = iac.scan_arrow(paths, ["v"]).read_all()["v"].to_pylist()
    con.register("given", pa.table({"v": values}))
    cast = [text for (text,) in con.sql("SELECT v::VARCHAR FROM given").fetchall()]
    return scanned[:-1], cast


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_of_all_magnitudes(con, tmp_path: Path, dtype):
    chance = np.random.default_rng(7)
    bits = np.dtype(f"u{dtype().itemsize}")
    powers = np.array([10.0**power for power in range(-12, 24)], dtype)
    values = np.concatenate(
        [
            chance.integers(0, np.iinfo(bits).max, 2000, dtype=bits).view(dtype),
            (chance.standard_normal(2000) * 10.0 ** chance.integers(-8, 20, 2000)).astype(dtype),
            *(powers, np.nextafter(powers, dtype(0)), np.nextafter(powers, dtype(np.inf))),
            np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 16777216, 1e15, 0.0001], dtype),
        ]
    )
    scanned, cast = texts(con, tmp_path, pa.array(values))
    different = [
        (value, mine, sql)
        for value, mine, sql in zip(values, scanned, cast, strict=True)
        if mine != sql
    ]
    # Of some FLOATs DuckDB writes as many digits as would tell a DOUBLE apart.
    for value, mine, sql in different:
        assert dtype is np.float32
        assert sql == repr(float(value))
        assert dtype(mine) == value
        assert len(mine.rstrip("0")) <= len(sql)
    assert len(different) < len(values) // 50


def test_moments_of_all_years(con, tmp_path: Path):
    days = [-5_000_000, -719_529, -719_163, -719_162, 0, None, 2_932_897, 5_000_000]
    scanned, cast = texts(con, tmp_path, pa.array(days, pa.int32()).cast(pa.date32()))
    assert scanned == cast
    for unit, scale in (("s", 1), ("ms", 1000), ("us", 1_000_000)):
        seconds = [-99_999_999_999, -62_135_596_801, -62_135_596_800, 1, None, 10**12]
        moments = [None if second is None else second * scale for second in seconds]
        more = [] if unit == "s" else [-62_135_596_800 * scale - scale // 2]
        values = pa.array(moments + more, pa.int64()).cast(pa.timestamp(unit))
        path = tmp_path / unit
        path.mkdir()
        scanned, cast = texts(con, path, values)
        assert scanned == cast
