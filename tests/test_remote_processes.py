"""Readers of URLs in threads and other processes."""

from __future__ import annotations

import multiprocessing
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from http_files import HttpFiles
from packs import payloads_of, write_pack

import iac_query as iac

COUNT = 3000


@pytest.fixture
def reader(tmp_path):
    path = write_pack(tmp_path / "p.iac", payloads_of(COUNT, 300))
    with HttpFiles({"p.iac": path.read_bytes()}) as files:
        yield iac.PackReader(files.url("p.iac"))


def rows_of(seed):
    return np.random.default_rng(seed).integers(0, COUNT, 50)


def read(reader, seed):
    return reader.read_payloads(rows_of(seed))


def right(seed):
    payloads = payloads_of(COUNT, 300)
    return [payloads[row] for row in rows_of(seed)]


def answer(queue, reader, seed):
    try:
        queue.put(read(reader, seed))
    except BaseException as error:
        queue.put(error)
        raise


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_reader_works_in_another_process(reader, method):
    assert read(reader, 0) == right(0)  # there are threads and connections to inherit
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    children = [context.Process(target=answer, args=(queue, reader, seed)) for seed in (1, 2)]
    for child in children:
        child.start()
    results = [queue.get(timeout=60) for _ in children]
    for child in children:
        child.join()
    assert sorted(results) == sorted([right(1), right(2)])
    assert read(reader, 3) == right(3)


SCRIPT = """
import sys
import pyarrow as pa
import iac_query as iac

url, how = sys.argv[1:]
options = iac.RemoteOptions(gap=0, requests=4)
rows = range(0, 3000, 2)

def read():
    iac.PackReader(url, remote=options).read_payloads(rows)

def read_one():
    iac.PackReader(url, remote=options).read_payload(2999)

def scan():
    iac.scan_arrow(url, ["payload"], remote=options).read_all()

def decode(ahead):
    import fsspec
    records = [{"pack": url, "row": row} for row in rows]
    table = pa.table({"record": records})
    storage = fsspec.filesystem("http")
    for batch in iac.iter_decode(table, 500, prefetch=ahead, storage=storage):
        pass

try:
    eval(how)
except KeyboardInterrupt:
    print("stopped")
"""


@pytest.mark.parametrize("how", ["read()", "read_one()", "scan()", "decode(0)", "decode(2)"])
def test_ctrl_c_does_not_wait_for_requests(tmp_path, how):
    path = write_pack(tmp_path / "p.iac", payloads_of(COUNT, 300))
    with HttpFiles({"p.iac": path.read_bytes()}) as files:
        files.stalls_behind = 256 << 10  # not the head
        command = [sys.executable, "-c", SCRIPT, files.url("p.iac"), how]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, **pipes) as process:
            try:
                assert files.stalled.wait(60)
                process.send_signal(signal.SIGINT)
                assert process.communicate(timeout=20) == ("stopped\n", "")
            finally:
                process.kill()


def test_eight_threads_share_a_reader(reader):
    results = {}

    def work(seed):
        results[seed] = read(reader, seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {seed: right(seed) for seed in range(8)}
