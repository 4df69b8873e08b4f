"""Payloads are decoded for the rows that are left, and no others."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from packs import write_encoded, write_matrix, write_pack

import iac_query as iac
from iac_query import _native

COUNT = 1000
SIZE = 4000


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1,000 records of 4,000 bytes that do not compress; ``per_mille`` counts them."""
    folder = tmp_path_factory.mktemp("large")
    objects = [f"{i:04}".encode() * (SIZE // 4) for i in range(COUNT)]
    path = write_encoded(folder / "plain.iac", objects, "none")
    _, slides, index = iac.read_tables(path)
    index = index.select(["slide_idx"]).append_column(
        "per_mille", pa.array([i * 7 % COUNT for i in range(COUNT)], pa.int32())
    )
    iac.build_pack(folder / "x.iac", {"codec": "none"}, slides, index, objects)
    return folder / "x.iac"


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows of each call that reads records."""
    counts: list[int] = []
    read = _native.Pack.read

    def counting(pack, rows, *options, **more):
        counts.append(len(rows))
        return read(pack, rows, *options, **more)

    monkeypatch.setattr(_native.Pack, "read", counting)
    return counts


def bytes_read() -> int:
    """Bytes that this process has read from files, as the kernel counts them."""
    with open("/proc/self/io") as file:
        return int(file.readline().split()[1])


ENGINES = pytest.mark.parametrize("engine", ["in-memory", "streaming", "arrow"])

#: Header, tables and layout, which a scan reads twice: to find the columns, and the rows.
BESIDE = 170_000


def run(path: Path, engine: str, columns: list[str], below: int | None = None) -> pa.Table:
    if engine == "arrow":
        filter = None if below is None else pc.field("per_mille") < below
        return iac.scan_arrow(path, columns, filter).read_all()
    frame = iac.scan_iac(path)
    frame = frame if below is None else frame.filter(pl.col("per_mille") < below)
    return frame.select(columns).collect(engine=engine).to_arrow()


@ENGINES
@pytest.mark.parametrize("below", [1, 10, 100, 1000])
def test_a_filter_decodes_what_it_leaves(large: Path, counted: list[int], engine: str, below: int):
    run(large, engine, ["per_mille"], below)  # reads the engine's own files
    before = bytes_read()
    table = run(large, engine, ["payload"], below)
    spent = bytes_read() - before
    assert table.num_rows == below == sum(counted)
    assert below * SIZE <= spent < below * SIZE + BESIDE


@ENGINES
def test_without_payload_no_payload_byte_is_read(large: Path, counted: list[int], engine: str):
    before = bytes_read()
    assert run(large, engine, ["per_mille", "record"]).num_rows == COUNT
    assert not counted
    assert bytes_read() - before < BESIDE


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_a_payload_that_is_dropped_is_not_read(large: Path, counted: list[int], engine: str):
    few = iac.scan_iac(large).filter(pl.col("per_mille") < 10)
    cohort = few.drop("payload").collect(engine=engine)
    assert cohort.columns[-1] == "record"
    assert not counted
    assert iac.decode(cohort)["payload"].len() == sum(counted) == 10


@ENGINES
def test_a_filter_that_leaves_nothing(large: Path, counted: list[int], engine: str):
    table = run(large, engine, ["per_mille", "payload"], 0)
    assert table.num_rows == 0
    assert table.column_names == ["per_mille", "payload"]
    assert not counted


def of_head(frame: pl.LazyFrame, count: int) -> pl.LazyFrame:
    return frame.head(count).select("payload")


def of_sorted_head(frame: pl.LazyFrame, count: int) -> pl.LazyFrame:
    top = frame.select("per_mille", "record").sort("per_mille", descending=True).head(count)
    return top.select(pl.col("record").iac.payload())


def of_semi_join(frame: pl.LazyFrame, count: int) -> pl.LazyFrame:
    keys = pl.LazyFrame({"per_mille": [*range(count), 5000]}, schema={"per_mille": pl.Int32})
    joined = frame.select("per_mille", "record").join(keys, on="per_mille", how="semi")
    return joined.select(pl.col("record").iac.payload())


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("query", [of_head, of_sorted_head, of_semi_join])
@pytest.mark.parametrize("count", [1, 10, 100, 1000])
def test_a_query_decodes_what_it_leaves(
    large: Path, counted: list[int], engine: str, query, count: int
):
    lazy = query(iac.scan_iac(large), count)
    lazy.collect(engine=engine)  # reads the engine's own files
    counted.clear()
    before = bytes_read()
    found = lazy.collect(engine=engine).to_series()
    spent = bytes_read() - before
    assert sum(counted) == count
    assert count * SIZE <= spent < count * SIZE + BESIDE
    rows = range(COUNT)
    if query is of_head:
        expected = rows[:count]
    elif query is of_sorted_head:
        expected = sorted(rows, key=lambda row: -(row * 7 % COUNT))[:count]
    else:
        expected = [row for row in rows if row * 7 % COUNT < count]
    assert [int(payload[:4]) for payload in found] == list(expected)


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_conditions_on_payloads_come_last(large: Path, counted: list[int], engine: str):
    says = pl.col("payload").bin.starts_with(b"0001")
    frame = iac.scan_iac(large)
    for condition in (
        says & (pl.col("per_mille") < 20),
        (pl.col("per_mille") < 20) & says,
        pl.col("record").iac.text().str.starts_with("0001") & (pl.col("per_mille") < 20),
    ):
        found = frame.filter(condition).select("per_mille").collect(engine=engine)
        assert found.rows() == [(7,)]
        assert sum(counted) == 20
        counted.clear()


def test_arrow_conditions_on_payloads_come_last(large: Path, counted: list[int]):
    says = pc.starts_with(pc.field("payload"), pattern=b"0001")
    few, many = pc.field("per_mille") < 20, pc.field("slide_idx") == 0
    for condition in (says & few, few & says, many & (says & few), (many & says) & few):
        found = iac.scan_arrow(large, ["per_mille"], condition).read_all()
        assert found.to_pydict() == {"per_mille": [7]}
        assert sum(counted) == 20
        counted.clear()
    assert iac.scan_arrow(large, ["per_mille"], says | few).read_all().num_rows == 20
    assert sum(counted) == COUNT


def test_arrow_conditions_may_be_nested_deeply(large: Path, counted: list[int]):
    few = pc.field("per_mille") < 20
    for _ in range(2000):
        few = ~few
    says = pc.starts_with(pc.field("payload"), pattern=b"0001")
    found = iac.scan_arrow(large, ["per_mille"], says & few).read_all()
    assert found.to_pydict() == {"per_mille": [7]}
    assert sum(counted) == 20


def test_batches_keep_to_their_bytes(large: Path, tmp_path: Path):
    reader = iac.scan_arrow(large, ["payload"], batch_bytes=50 * SIZE)
    sizes = [batch.num_rows for batch in reader]
    assert sum(sizes) == COUNT
    assert sizes == [50] * 20
    # Records that grow a hundred times: no batch is much larger than it should be.
    zeros = write_encoded(tmp_path / "z.iac", [bytes(100_000)] * 400, "zstd")
    reader = iac.scan_arrow(zeros, ["payload"], batch_bytes=2_000_000)
    sizes = [batch.nbytes for batch in reader]
    assert sum(sizes) > 400 * 100_000
    assert max(sizes[1:]) < 2_200_000
    assert len(sizes) < 30
    for batch_bytes in (1, 1 << 40):
        reader = iac.scan_arrow(zeros, ["payload"], batch_bytes=batch_bytes)
        assert sum(batch.num_rows for batch in reader) == 400


def test_where_sizes_are_known_all_batches_are_whole(tmp_path: Path):
    matrix = write_matrix(tmp_path / "m.iac", np.zeros((10, 25), np.float32))
    raw = write_pack(tmp_path / "raw.iac", [b"x" * 100] * 10)
    packed = write_encoded(tmp_path / "packed.iac", [bytes(9000)] * 10, "zstd")
    stored = len(iac.PackReader(packed).read_payload(0))
    for paths, as_, size in (
        ([matrix], "vector", 100),
        ([matrix, raw], "bytes", 100),
        ([packed], "stored", stored),
    ):
        reader = iac.scan_arrow(paths, ["payload"], as_=as_, batch_bytes=4 * size)
        assert [batch.num_rows for batch in reader] == [4, 4, 2] * len(paths)
    # What records of another pack became does not matter.
    reader = iac.scan_arrow([packed, raw], ["payload"], as_="bytes", batch_bytes=400)
    assert [batch.num_rows for batch in reader][-3:] == [4, 4, 2]


def test_a_reader_that_is_dropped_closes_its_pack(pack: Path):
    def is_open() -> bool:
        names = (f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd"))
        return str(pack) in [os.readlink(name) for name in names if os.path.lexists(name)]

    reader = iac.scan_arrow(pack, ["payload"], batch_bytes=1)
    reader.read_next_batch()
    assert is_open()
    del reader
    assert not is_open()
