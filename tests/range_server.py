"""A web server for files that answers ranges, counts requests, and misbehaves when told."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class RangeServer(ThreadingHTTPServer):
    """Serves the files of a folder.

    ``mode``: "ranges" as it should be; "ignore" sends the whole file whatever is asked for; "drop"
    closes the connection in the middle of a range; "short" says and sends too few bytes; "refuse"
    answers 403. ``requests`` are those for bytes: (path, first byte, bytes sent).
    """

    daemon_threads = True

    def __init__(self, folder: Path):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.mode = "ranges"
        self.requests: list[tuple[str, int, int]] = []

    def handle_error(self, *_):
        """Clients may hang up."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: RangeServer

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self._answer(with_body=False)

    def do_GET(self):
        self._answer(with_body=True)

    def _answer(self, with_body: bool):
        mode = self.server.mode
        path = self.server.folder / self.path.lstrip("/").partition("?")[0]
        if mode == "refuse" or not path.is_file():
            self.send_response(403 if mode == "refuse" else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        whole = path.read_bytes()
        first, last = self._range(len(whole)) if mode != "ignore" else (0, len(whole) - 1)
        partial = mode != "ignore" and "Range" in self.headers
        body = whole[first : last + 1]
        if with_body and partial and mode == "short":
            body = body[: len(body) // 2]
        self.send_response(206 if partial else 200)
        self.send_header("Content-Length", str(len(body)))
        if mode != "ignore":
            self.send_header("Accept-Ranges", "bytes")
        if partial:
            end = first + len(body) - 1
            self.send_header("Content-Range", f"bytes {first}-{end}/{len(whole)}")
        self.end_headers()
        if not with_body:
            return
        if partial and mode == "drop":
            body = body[: len(body) // 2]
            self.close_connection = True
        self.server.requests.append((self.path, first, len(body)))
        self.wfile.write(body)

    def _range(self, size: int) -> tuple[int, int]:
        first, _, last = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
        return int(first), min(int(last or size - 1), size - 1)


@contextmanager
def serve(folder: Path) -> Iterator[RangeServer]:
    with RangeServer(folder) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
