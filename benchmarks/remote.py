"""Records of a pack behind a server that takes its time."""

from __future__ import annotations

import http.server
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import fsspec
import numpy as np

import iac_query

from ._measure import interleaved, print_table
from ._packs import lines, write

LATENCY = 0.02  # seconds before each answer


class Files(http.server.ThreadingHTTPServer):
    """Serves ranges of one file."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, body: bytes) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.body = memoryview(body)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/pack.iac"


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: Files

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.answer(200, len(self.server.body))

    def do_GET(self) -> None:
        first, last = self.headers["Range"].removeprefix("bytes=").split("-")
        part = self.server.body[int(first) : int(last) + 1]
        self.answer(206, len(part))
        self.wfile.write(part)

    def answer(self, status: int, length: int) -> None:
        time.sleep(LATENCY)
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", '"1"')
        self.end_headers()


def contestants_of(url: str, path: Path, rows: Any) -> dict[str, Callable[[], Any]]:
    """Everybody who fetches the rows' stored bytes, knowing the index."""
    remote = iac_query.PackReader(url)
    remote.native.locate(rows)
    expected = iac_query.PackReader(path).read_payloads(rows)
    offsets, lengths = remote.native.locate(rows)
    starts = (offsets + remote.native.data_offset).tolist()
    ends = (offsets + remote.native.data_offset + lengths).tolist()
    storage = fsspec.filesystem("http")

    def one_by_one() -> list[bytes]:
        spans = zip(starts, ends, strict=True)
        return [storage.cat_file(url, start=start, end=end) for start, end in spans]

    contestants: dict[str, Callable[[], Any]] = {
        "ours": partial(remote.read_payloads, rows),
        "cat_ranges": partial(storage.cat_ranges, [url] * len(rows), starts, ends),
        "one by one": one_by_one,
    }
    for name, run in contestants.items():
        if run() != expected:
            raise AssertionError(f"{name} reads other bytes from {url}")
    return contestants


def main(rounds: int = 3) -> None:
    print(
        f"500 records in random order from a local HTTP server that waits {LATENCY * 1e3:.0f} ms "
        "before each answer: times the speed of fsspec's cat_ranges and of a request a record.\n"
    )
    rows_of_table = []
    with tempfile.TemporaryDirectory() as name:
        for count in (1000, 5000, 50_000):
            path = Path(name) / f"{count}.iac"
            write(iac_query, path, "none", lines(count, 4000))
            server = Files(path.read_bytes())
            rows = np.random.default_rng(3).permutation(count)[:500]
            timings = interleaved(contestants_of(server.url, path, rows), rounds)
            ratios = [timings.ratio(other, "ours") for other in ("cat_ranges", "one by one")]
            rows_of_table.append([f"{count:,}", timings.median("ours") * 1e3, *ratios])
            server.shutdown()
            server.server_close()
    columns = ("records of 4,000 bytes", "ms", "cat_ranges", "one by one")
    print_table("500 records", columns, rows_of_table)
