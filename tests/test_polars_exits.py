"""A process that ends while threads of Polars read a pack ends as it should."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from packs import write_encoded

PRELUDE = """
import os, signal, sys, threading, time
import polars as pl
import iac_query
frame = iac_query.scan_iac(sys.argv[1], batch_bytes=1 << 20)
"""

CASES = {
    "batches that nobody fetches": """
batches = iter(frame.collect_batches())
print(next(batches).width)
""",
    "an interrupt": """
def slow(payload):
    time.sleep(0.001)
    return True
keeps = pl.col("payload").map_elements(slow, return_dtype=pl.Boolean)
try:
    threading.Timer(0.05, signal.raise_signal, [signal.SIGINT]).start()
    while True:
        frame.filter(keeps).collect(engine="streaming")
except KeyboardInterrupt:
    try:
        time.sleep(0.01)  # Polars raises it, and then it comes again
    except KeyboardInterrupt:
        pass
    print(6)
""",
    "a forked child": """
batches = iter(frame.collect_batches())
width = next(batches).width
if os.fork():
    print(width * (os.wait()[1] == 0))
""",
}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Batches of it take some milliseconds each."""
    path = tmp_path_factory.mktemp("exits") / "large.iac"
    return write_encoded(path, [os.urandom(1 << 16)] * 500, "zstd")


@pytest.mark.parametrize("name", CASES)
def test_the_process_ends_well(large: Path, name: str):
    command = [sys.executable, "-c", PRELUDE + CASES[name], large]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stderr) == (0, "")
    assert int(run.stdout) > 0
