"""One reader in many threads and processes."""

import multiprocessing
import os
import pickle
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from packs import payloads_of, write_encoded, write_matrix, write_pack

import iac_query as iac

ROWS = 400


@pytest.fixture
def objects():
    return payloads_of(ROWS, 2000)


@pytest.fixture
def pack(tmp_path, objects):
    return iac.VariableRecordPack(write_encoded(tmp_path / "x.iac", objects, "zstd", level=1))


def read_rows(pack, rows):
    return pack.read_many(rows, workers=2)


def read_all_kinds(reader, row):
    """One record in every way that there is."""
    with iac.VariableRecordPack(reader.package_path) as pack:
        return [
            reader.read_payload(row),
            reader.read_payloads([row])[0],
            bytes(reader.read_payload_views([row])[0]),
            bytes(pack.read_many_contiguous([row] * 64, workers=2)[63]),
            reader.read_index_table(["item_id"])["item_id"][row].as_py(),
        ]


# Signals


def test_ctrl_c_ends_a_batch_before_it_is_done(tmp_path):
    path = write_encoded(tmp_path / "x.iac", [b"ab" * (1 << 20)], "brotli")
    interrupted = 0

    def interrupt(*_):
        nonlocal interrupted
        interrupted += 1
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with iac.VariableRecordPack(path) as pack:
            for _ in range(2):  # the second time memory is there
                began = time.perf_counter()
                pack.read_many_contiguous([0] * 200, workers=1)
                whole = time.perf_counter() - began
            began = time.perf_counter()
            signal.setitimer(signal.ITIMER_REAL, whole / 8)
            with pytest.raises(KeyboardInterrupt):
                pack.read_many_contiguous([0] * 200, workers=1)
            assert time.perf_counter() - began < whole * 3 / 4
            assert pack.read_many([0, 0])[1] == b"ab" * (1 << 20)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupted == 1


# Threads


def test_eight_threads_share_a_reader(pack, objects):
    generator = np.random.default_rng(0)
    requests = [generator.integers(-ROWS, ROWS, 300).tolist() for _ in range(80)]
    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(lambda rows: read_rows(pack, rows), requests))
    for rows, result in zip(requests, results, strict=True):
        assert result == [objects[row] for row in rows]


def test_threads_may_ask_for_everything_first_at_the_same_time(tmp_path):
    payloads = payloads_of(3000, 50)
    path = write_pack(tmp_path / "x.iac", payloads)
    for _ in range(10):
        reader = iac.PackReader(path)
        barrier = threading.Barrier(8)

        def first(i, reader=reader, barrier=barrier):
            barrier.wait()
            row = i * 397 % 3000
            table = reader.index_table
            views = reader.read_payload_views([row])
            return table.num_rows, reader.read_payload(row), bytes(views[0]), row

        with ThreadPoolExecutor(8) as threads:
            for rows, payload, view, row in threads.map(first, range(8)):
                assert rows == 3000
                assert payload == view == payloads[row]


def test_closing_while_others_read_gives_records_or_an_error(tmp_path):
    payloads = payloads_of(200, 3000)
    path = write_pack(tmp_path / "x.iac", payloads)
    for _ in range(20):
        reader = iac.PackReader(path)

        def read(i, reader=reader):
            if i == 3:
                reader.close()
                return None
            try:
                return reader.read_payloads(range(200))
            except ValueError as error:
                assert "is closed" in str(error)
                return None

        with ThreadPoolExecutor(6) as threads:
            assert all(got in (None, payloads) for got in threads.map(read, range(6)))


def test_threads_that_write_do_not_meet(tmp_path):
    def write(i):
        path = write_pack(tmp_path / f"{i % 3}.iac", [bytes([i]) * 1000] * 50)
        return iac.PackReader(path).read_payload(0)

    with ThreadPoolExecutor(6) as threads:
        results = list(threads.map(write, range(30)))
    assert all(len(set(result)) == 1 for result in results)
    assert sorted(os.listdir(tmp_path)) == ["0.iac", "1.iac", "2.iac"]


# Processes


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_a_pool_of_processes_reads_with_the_same_reader(pack, objects, method):
    pack.read_many(range(ROWS), workers=2)  # the threads of this process are running
    context = multiprocessing.get_context(method)
    requests = [list(range(start, ROWS, 7)) for start in range(7)]
    with ProcessPoolExecutor(2, context) as pool:
        results = list(pool.map(read_rows, [pack] * 7, requests))
    assert results == [[objects[row] for row in rows] for rows in requests]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_every_way_of_reading_works_in_a_child(pack, objects, method):
    reader = pack.reader
    expected = read_all_kinds(reader, 5)
    assert expected[3] == objects[5]
    with ProcessPoolExecutor(1, multiprocessing.get_context(method)) as pool:
        assert pool.submit(read_all_kinds, reader, 5).result() == expected


def fork_and_read(pack, rows, expected) -> int:
    """The exit code of a forked child that uses the reader as it was in the parent."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if read_rows(pack, rows) == expected else 2
            pack.reader.index_table.validate(full=True)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_child_forked_while_threads_are_reading_reads_too(pack, objects):
    rows = list(range(0, ROWS, 3))
    expected = [objects[row] for row in rows]
    done = threading.Event()

    def keep_reading():
        while not done.is_set():
            assert read_rows(pack, rows) == expected
            iac.VariableRecordPack(pack.reader.package_path).read_many(rows)

    with ThreadPoolExecutor(4) as threads:
        running = [threads.submit(keep_reading) for _ in range(4)]
        try:
            codes = [fork_and_read(pack, rows, expected) for _ in range(20)]
        finally:
            done.set()
        for future in running:
            future.result()
    assert codes == [0] * 20


def test_children_of_children_read_too(pack, objects):
    def nested(depth):
        if depth == 0:
            return 0 if read_rows(pack, range(ROWS)) == objects else 3
        read_rows(pack, [0, 1])
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = nested(depth - 1)
            finally:
                os._exit(code)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert nested(3) == 0


def write_in_child(path, payloads):
    write_pack(path, payloads)
    return list(iac.iter_payloads(path))


def test_a_child_writes_packs(tmp_path, objects):
    with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
        paths = [tmp_path / f"{i}.iac" for i in range(4)]
        assert list(pool.map(write_in_child, paths, [objects] * 4)) == [objects] * 4


def test_a_child_forked_during_a_build_leaves_the_build_alone(tmp_path):
    def payloads():
        for i in range(50):
            if i == 25:
                child = multiprocessing.get_context("fork").Process(target=print)
                child.start()
                child.join()
            yield b"x" * 100

    path = tmp_path / "x.iac"
    index = iac.PackReader(write_pack(tmp_path / "y.iac", [b""] * 50)).index_table
    iac.build_pack_streaming(path, {}, index, index, payloads())
    assert list(iac.iter_payloads(path)) == [b"x" * 100] * 50


def test_batches_and_matrices_travel_between_processes(tmp_path, pack, objects):
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        batch = pool.submit(pack.read_many_contiguous, [3, 1, 3]).result()
        assert [bytes(record) for record in batch] == [objects[3], objects[1], objects[3]]
        matrix = iac.FixedRecordPack(write_matrix(tmp_path / "m.iac", np.eye(4)))
        got = pool.submit(matrix.read_matrix, [2, 0]).result()
        np.testing.assert_array_equal(got, np.eye(4)[[2, 0]])


def test_errors_travel_between_processes(pack, tmp_path):
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        with pytest.raises(iac.PackIndexError) as raised:
            pool.submit(pack.read, ROWS).result()
        assert (raised.value.pack, raised.value.row) == (str(pack.reader.package_path), ROWS)
        with pytest.raises(iac.PackNotFoundError) as raised:
            pool.submit(iac.PackReader, tmp_path / "missing.iac").result()
        assert raised.value.errno == 2


def test_a_pickled_reader_is_small(pack):
    pack.read_many(range(ROWS))
    _ = pack.index_table
    assert len(pickle.dumps(pack)) < 300
