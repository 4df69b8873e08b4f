"""Decoding a result batch by batch, ahead of its use."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packs import (
    flip_payload,
    item_table,
    slide_table,
    write_encoded,
    write_matrix,
    write_pack,
)
from references import ROWS, mixed, references, table_of

import iac_query as iac


def threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("iac_query")]


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    gc.collect()
    assert threads() == []


@pytest.fixture
def many(tmp_path):
    """References to 40 records of 10,000 bytes that zstd makes small, and the records."""
    objects = [bytes([i]) * 10_000 for i in range(40)]
    path = str(write_encoded(tmp_path / "many.iac", objects, "zstd", level=1))
    return table_of(references([path] * 40, range(40)), n=range(40)), objects


def payloads(batches) -> list[bytes]:
    return [payload for batch in batches for payload in batch["payload"].to_pylist()]


# What comes


@settings(max_examples=25)
@given(
    rows=st.lists(st.integers(0, ROWS - 1), max_size=40),
    batch_rows=st.none() | st.integers(1, 50),
    batch_bytes=st.none() | st.integers(1, 3000),
    prefetch=st.integers(0, 3),
    chunk=st.integers(1, 11),
)
def test_together_batches_are_what_decode_gives(
    packs, rows, batch_rows, batch_bytes, prefetch, chunk
):
    paths = [list(packs)[row % 3] for row in rows]
    table = table_of(references(paths, rows), n=range(len(rows)))
    whole = iac.decode(table)
    for result in (table, table.to_reader(max_chunksize=chunk)):
        batches = list(iac.iter_decode(result, batch_rows, batch_bytes, prefetch))
        assert all(batch.num_rows for batch in batches)
        if batches:
            assert pa.concat_tables(batches).equals(whole)
        else:
            assert not rows
        if batch_rows and not batch_bytes:
            assert all(batch.num_rows == batch_rows for batch in batches[:-1])
        for batch in batches if batch_bytes else ():
            sizes = [len(payload) for payload in batch["payload"].to_pylist()]
            assert sum(sizes) <= batch_bytes or len(sizes) == 1


def test_a_bound_in_bytes_holds_however_much_records_grow(many):
    table, objects = many
    for most in (9_000, 10_000, 35_000, 10**6):
        batches = list(iac.iter_decode(table, batch_bytes=most))
        assert payloads(batches) == objects
        sizes = [sum(map(len, batch["payload"].to_pylist())) for batch in batches]
        assert max(sizes) <= max(most, 10_000)
    assert [batch.num_rows for batch in batches] == [40]
    # Once it is known how much records grow batches are as large as they may be.
    assert [b.num_rows for b in iac.iter_decode(table, batch_bytes=35_000)][-6:-1] == [3] * 5


def test_rows_of_matrices_and_stored_bytes_are_cut_exactly(tmp_path):
    matrix = str(write_matrix(tmp_path / "m.iac", np.zeros((10, 25), np.float32)))
    raw = str(write_pack(tmp_path / "raw.iac", [b"x" * 100] * 10))
    for path in (matrix, raw):
        table = table_of(references([path] * 10, range(10)))
        assert [len(b) for b in iac.iter_decode(table, batch_bytes=399)] == [3, 3, 3, 1]
        assert [len(b) for b in iac.iter_decode(table, batch_bytes=400)] == [4, 4, 2]


def test_nulls_and_references_to_nothing(packs):
    path, objects = next(iter(packs.items()))
    table = table_of(
        pa.array([None, {"pack": path, "row": 2}, None, {"pack": path, "row": 999}, None])
    )
    for size in ({"batch_rows": 2}, {"batch_bytes": 100}):
        report = []
        batches = list(iac.iter_decode(table, **size, on_error="null", report=report))
        assert payloads(batches) == [None, objects[2], None, None, None]
        assert [(failure.position, failure.row) for failure in report] == [(3, 999)]


def test_failures_come_with_their_batches(packs):
    paths, rows, _ = mixed(packs, 60)
    bad = next(iter(packs))
    flip_payload(bad, 4)
    failing = [i for i, at in enumerate(zip(paths, rows, strict=True)) if at == (bad, 4)]
    report = []
    batches = iac.iter_decode(
        table_of(references(paths, rows), n=range(60)), 10, on_error="skip", report=report
    )
    kept = []
    for number, batch in enumerate(batches):
        assert [failure.position for failure in report] == [
            position for position in failing if position < 10 * (number + 1)
        ]
        kept += batch["n"].to_pylist()
    assert kept == [n for n in range(60) if n not in failing]


def test_batches_before_a_bad_record_come_first(packs):
    path = next(iter(packs))
    flip_payload(path, 5)
    batches = iac.iter_decode(table_of(references([path] * 10, range(10))), 2)
    assert len(next(batches)) == len(next(batches)) == 2
    with pytest.raises(iac.ChecksumError, match="row 5"):
        next(batches)
    with pytest.raises(StopIteration):
        next(batches)


def test_batches_that_differ_in_type_are_an_error(packs, tmp_path):
    matrix = str(write_matrix(tmp_path / "m.iac", np.zeros((3, 2), np.float32)))
    record = references([next(iter(packs)), matrix], [0, 0])
    batches = iac.iter_decode(table_of(record), 1)
    next(batches)
    with pytest.raises(iac.CodecError, match="as_='bytes'"):
        next(batches)


@pytest.mark.parametrize(
    ("options", "error", "reason"),
    [
        ({"batch_rows": 0}, ValueError, "batch_rows is 0"),
        ({"batch_rows": 1.5}, TypeError, "batch_rows is 1.5"),
        ({"batch_bytes": True}, TypeError, "batch_bytes is True"),
        ({"prefetch": -1}, ValueError, "prefetch is -1"),
        ({"prefetch": None}, TypeError, "prefetch is None"),
        ({"on_error": "ignore"}, ValueError, "on_error"),
        ({"as_": "pixels"}, ValueError, "as_ is"),
        ({"report": 5}, TypeError, "report is 5"),
        ({"workers": 0}, ValueError, "workers is 0"),
    ],
)
def test_wrong_options_are_errors_at_once(many, options, error, reason):
    with pytest.raises(error, match=reason):
        iac.iter_decode(many[0], **options)


# How it comes


def test_a_stream_is_read_as_far_as_it_is_needed(packs):
    path = next(iter(packs))
    read = []

    def batches():
        for i in range(100):
            read.append(threading.current_thread())
            yield table_of(references([path] * 4, [0, 1, 2, 3]), n=[i] * 4).to_batches()[0]

    first = table_of(references([path], [0]), n=[0])
    stream = pa.RecordBatchReader.from_batches(first.schema, batches())
    decoded = iac.iter_decode(stream, batch_rows=4, prefetch=2)
    assert read == []
    for used in range(1, 6):
        next(decoded)
        assert len(read) <= used + 2
    decoded.close()
    assert set(read) == {threading.current_thread()}


def test_an_error_of_the_stream_comes_behind_its_batches(packs):
    path = next(iter(packs))

    def batches():
        yield table_of(references([path], [0])).to_batches()[0]
        raise RuntimeError("the source broke")

    stream = pa.RecordBatchReader.from_batches(table_of(references([path], [0])).schema, batches())
    decoded = iac.iter_decode(stream, batch_rows=1)
    assert len(next(decoded)) == 1
    with pytest.raises(pa.ArrowInvalid, match="the source broke"):
        next(decoded)


def test_the_next_batches_are_decoded_meanwhile(many):
    table, _ = many
    for prefetch, expected in ((0, []), (2, ["iac_query.iter_decode_0"])):
        batches = iac.iter_decode(table, 5, prefetch=prefetch)
        assert threads() == []
        next(batches)
        assert threads() == expected
        batches.close()
        assert threads() == []


def test_however_it_ends_the_thread_ends(many):
    table, _ = many

    def leave_early():
        for batch in iac.iter_decode(table, 1):
            return batch

    def fail():
        for _ in iac.iter_decode(table, 1):
            raise KeyboardInterrupt

    def forget():
        batches = iac.iter_decode(table, 1)
        cycle = [batches]
        cycle.append(cycle)
        return next(batches)

    leave_early()
    with pytest.raises(KeyboardInterrupt):
        fail()
    forget()
    gc.collect()
    deadline = time.monotonic() + 10
    while threads() and time.monotonic() < deadline:
        time.sleep(0.01)


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_ctrl_c_ends_the_process(many, tmp_path):
    path = many[0]["record"][0].as_py()["pack"]
    code = (
        "import sys, time, iac_query as iac, pyarrow as pa\n"
        f"rows = [{{'pack': {path!r}, 'row': i % 40}} for i in range(100_000)]\n"
        "print('ready', flush=True)\n"
        "for batch in iac.iter_decode(pa.table({'record': rows}), 40):\n"
        "    time.sleep(0.01)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    process.stdout.readline()
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode != 0
    assert errors.rstrip().endswith("KeyboardInterrupt")


@pytest.mark.parametrize("prefetch", [0, 2])
def test_batches_are_about_equal(tmp_path, prefetch):
    """Whatever images were compressed to, and no row of a batch too large is left alone."""
    chance = np.random.default_rng(0)
    noise = chance.integers(0, 255, (300, 16, 16, 3))
    images = [(noise[i] // (1 + i % 40 * 5)).astype(np.uint8) for i in range(300)]
    path = tmp_path / "x.iac"
    iac.VariableRecordPack.build(
        path,
        payload_type="t",
        slide_table=slide_table(),
        index_table=item_table(300),
        objects=images,
        codec=iac.Codec.create("jpeg2000"),
    )
    table = table_of(references([str(path)] * 300, range(300)), n=range(300))
    batches = list(iac.iter_decode(table, batch_bytes=16 * 768, prefetch=prefetch, as_="bytes"))
    sizes = [len(batch) for batch in batches]
    assert set(sizes[2:-1]) == {15}
    assert [n for batch in batches for n in batch["n"].to_pylist()] == list(range(300))


@pytest.mark.parametrize("prefetch", [0, 2])
def test_rows_before_an_error_of_the_stream_come_first(many, prefetch):
    table, objects = many

    def batches():
        yield from table.to_batches(max_chunksize=9)
        raise RuntimeError("the source broke")

    for bounds in ({"batch_rows": 25}, {"batch_bytes": 70_000}):
        stream = pa.RecordBatchReader.from_batches(table.schema, batches())
        given = []
        with pytest.raises(pa.ArrowInvalid, match="the source broke"):
            for batch in iac.iter_decode(stream, prefetch=prefetch, **bounds):
                given += batch["payload"].to_pylist()
        assert given == objects


def test_a_bound_above_any_memory(many):
    assert payloads(iac.iter_decode(many[0], batch_bytes=2**70)) == many[1]


def test_an_iterator_of_the_parent_is_an_error_in_a_child(tmp_path):
    pack = write_pack(tmp_path / "x.iac", [b"x"] * 100)
    batches = iac.iter_decode(
        table_of(references([str(pack)] * 100, range(100))), batch_rows=10, prefetch=2
    )
    next(batches)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            next(batches)
        except RuntimeError as error:
            code = 0 if "forked" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert sum(len(batch) for batch in batches) == 90
