"""Readers of URLs in threads and other processes."""

from __future__ import annotations

import multiprocessing
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
import signal, sys, threading, time
import iac_query as iac

reader = iac.PackReader(sys.argv[1], remote=iac.RemoteOptions(gap=0, requests=4))
threading.Timer(1.0, lambda: signal.raise_signal(signal.SIGINT)).start()
began = time.monotonic()
try:
    reader.read_payloads(range(0, 3000, 2))
except KeyboardInterrupt:
    print("stopped", time.monotonic() - began)
"""


def test_a_read_stops_on_ctrl_c(tmp_path):
    path = write_pack(tmp_path / "p.iac", payloads_of(COUNT, 300))
    with HttpFiles({"p.iac": path.read_bytes()}) as files:
        files.latency = 0.1  # all would take more than half a minute
        command = [sys.executable, "-c", SCRIPT, files.url("p.iac")]
        run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    word, seconds = run.stdout.split()
    assert (word, run.stderr) == ("stopped", "")
    assert float(seconds) < 10


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
