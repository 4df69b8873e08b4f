"""What scans and payload functions take of memory: bounded by DuckDB's memory_limit and by
iac_max_batch_bytes, however many packs were read before."""

import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from packs import assemble, bytes_read, ipc_stream, write_encoded, write_pack

import iac_query as iac

MEASURED = """
import resource, sys
import iac_query as iac

def peak():  # MiB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10

con = iac.connect(threads=2, memory_limit=sys.argv[1])
first, *queries = sys.argv[2:]
con.sql(first).fetchall()
before = peak()
for query in queries * 2:
    con.sql(query).fetchall()
print(peak() - before)
"""


def growth(limit: str, first: str, *queries: str) -> int:
    """By how many MiB queries raise the peak of a process that has run the first one."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, limit, first, *queries],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1])  # behind a progress bar, where it took long


def write_index(path: Path, mebibytes: int, rows_a_batch: int | None = None) -> Path:
    """A pack of a matrix without columns whose index has two columns of so many MiB together."""
    rows = mebibytes << 16
    values = np.arange(rows)
    index = pa.table({"a": values, "b": values})
    stream = ipc_stream(pa.Table.from_batches(index.to_batches(rows_a_batch)))
    fields = {"feature_dim": 1, "feature_record_bytes": 1, "dtype": "uint8"}
    return assemble(path, stream, bytes(rows), rows=(1, rows), **fields)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty packs of tables of 480 MiB together."""
    folder = tmp_path_factory.mktemp("many")
    path = write_index(folder / "00.iac", 8)
    for i in range(1, 60):
        (folder / f"{i:02}.iac").hardlink_to(path)
    return folder


def test_scans_do_not_grow_with_the_packs_they_read(many: Path):
    query = f"SELECT sum(a), sum(b) FROM '{many}/{{}}.iac'"
    assert growth("100MB", query.format("0[012]"), query.format("*")) < 100


def test_columns_that_are_read_again_stay(con, tmp_path: Path):
    values = pa.array(range(100_000), pa.int64())
    path = tmp_path / "x.iac"
    slides = pa.table({"slide_id": ["s"]})
    header = {"payload_type": "numbers", "codec": "none"}
    iac.build_pack(path, header, slides, pa.table({"k": values}), [b""] * len(values))
    read = [
        bytes_read(lambda: con.sql(f"SELECT sum(k) FROM '{path}'").fetchall()) for _ in range(3)
    ]
    assert read[0] > 800_000 and read[1] >= 800_000 and read[2] < 50_000


def test_scans_of_packs_that_are_not_kept(many: Path):
    query = f"SELECT sum(a), sum(b) FROM '{many}/{{}}.iac'"
    first = f"SET iac_cache_packs = 2; {query.format('0[012]')}"
    assert growth("100MB", first, query.format("*")) < 50


def test_references_to_many_packs(many: Path):
    query = f"SELECT count(iac_payload(record)) FROM '{many}/{{}}.iac' WHERE record.row % 20000 = 0"
    assert growth("100MB", query.format("0[012]"), query.format("*")) < 100


def test_a_large_index_is_read_batch_by_batch(tmp_path: Path):
    path = write_index(tmp_path / "x.iac", 160, rows_a_batch=1 << 16)
    small = write_index(tmp_path / "small.iac", 1)
    query = "SELECT sum(a), sum(b) FROM '{}'"
    assert growth("100MB", query.format(small), query.format(path)) < 100


def test_columns_that_are_larger_than_the_limit(tmp_path: Path):
    path = write_index(tmp_path / "x.iac", 64)
    with iac.connect(memory_limit="100MiB") as con:
        assert con.sql(f"SELECT count(a) FROM '{path}'").fetchall() == [(64 << 16,)]
        with pytest.raises(duckdb.Error, match=r"x\.iac: .* half of DuckDB's memory_limit"):
            con.sql(f"SELECT sum(a), sum(b) FROM '{path}'").fetchall()
        con.execute("SET memory_limit = '1GB'")
        (sums,) = con.sql(f"SELECT sum(a), sum(b) FROM '{path}'").fetchall()
        assert sums == (sum(range(64 << 16)),) * 2


def test_payloads_take_what_a_vector_may_take(tmp_path: Path):
    path = write_encoded(tmp_path / "x.iac", [bytes(1 << 20)] * 40, "zstd", level=1)
    query = f"SELECT sum(octet_length(iac_payload(record))) FROM '{path}'"
    small = write_pack(tmp_path / "small.iac", [b"a"])
    first = f"SELECT iac_payload(record) FROM '{small}'"
    assert growth("1GB", first, query) < 100
    with iac.connect() as con:
        con.execute(f"SET iac_max_batch_bytes = {20 << 20}")
        with pytest.raises(duckdb.Error, match="iac_max_batch_bytes"):
            con.sql(query).fetchall()


@pytest.mark.parametrize("codec", ["none", "zstd", "brotli"])
def test_payloads_are_held_once(tmp_path: Path, codec: str):
    params = {"quality": 1} if codec == "brotli" else {}
    path = write_encoded(tmp_path / "x.iac", [bytes(256 << 10)] * 1600, codec, **params)
    small = write_pack(tmp_path / "small.iac", [b"a"])
    query = f"SELECT sum(octet_length(iac_payload(record))) FROM '{path}'"
    # One thread, since each keeps some of what it has freed.
    first = f"SET threads = 1; SELECT iac_payload(record) FROM '{small}'"
    assert growth("1GB", first, query) < 400 + 200


# DuckDB refuses limits below what it holds already, so none is near that
@pytest.mark.parametrize("limit", ["20000KB", "20000000 bytes", "10MiB", "0.1GB", "3TiB", "-1"])
def test_every_limit_is_understood(tmp_path: Path, limit: str):
    path = write_pack(tmp_path / "x.iac", [b"a", b"b"])
    with iac.connect() as con:
        con.execute(f"SET memory_limit = '{limit}'")
        assert con.sql(f"SELECT item_id FROM '{path}'").fetchall() == [("item-0",), ("item-1",)]
