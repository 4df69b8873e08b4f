"""A local HTTP server of files in memory that can do wrong what servers do wrong."""

from __future__ import annotations

import socket
import threading
import time
import zlib
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    start: int
    stop: int
    headers: dict[str, str]


@dataclass
class HttpFiles:
    """Files by their path. Usable as a context manager.

    ``faults`` are taken by GETs one after the other: a status to answer with, ``"drop"`` (the
    connection is reset), ``"cut"`` (the body ends in the middle), ``"short"`` (half of the range is
    all), ``"long"`` (more than the range) or None.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    tells_version: bool = True
    latency: float = 0.0
    stalls_behind: int | None = None  # requests for bytes from there on are not answered
    stalled: threading.Event = field(default_factory=threading.Event)  # when there is one
    ended: threading.Event = field(default_factory=threading.Event)
    token: str | None = None  # what the Authorization header must be
    faults: deque[Any] = field(default_factory=deque)
    head_faults: deque[Any] = field(default_factory=deque)
    requests: list[Request] = field(default_factory=list)
    redirects: dict[str, str] = field(default_factory=dict)
    bytes_sent: int = 0
    counting: Any = field(default_factory=threading.Lock)

    def __enter__(self) -> Self:
        files = self

        class Handler(_Handler):
            server_files = files

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/{path}"

    def gets(self) -> list[Request]:
        return [request for request in self.requests if request.method == "GET"]

    def forget(self) -> None:
        self.requests.clear()
        self.bytes_sent = 0


class _Handler(BaseHTTPRequestHandler):
    server_files: HttpFiles
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        files = self.server_files
        time.sleep(files.latency)
        body = self.found(0, 0)
        fault = files.head_faults.popleft() if files.head_faults else None
        if fault == "drop":
            self.drop()
        elif isinstance(fault, int):
            self.refuse(fault)
        elif body is not None:
            self.answer(200, body, len(body))

    def do_GET(self) -> None:
        files = self.server_files
        time.sleep(files.latency)
        wanted = self.headers.get("Range")
        start, stop = 0, None
        if wanted and files.ranges:
            first, last = wanted.removeprefix("bytes=").split("-")
            start, stop = int(first), int(last) + 1
        body = self.found(start, stop)
        if body is None:
            return
        if files.stalls_behind is not None and start >= files.stalls_behind:
            files.stalled.set()
            files.ended.wait()
            return self.drop()
        fault = files.faults.popleft() if files.faults else None
        if isinstance(fault, int):
            return self.refuse(fault)
        if fault == "drop":
            return self.drop()
        if stop is not None and start >= len(body):
            return self.refuse(416)
        if fault == "short":
            stop = start + (stop - start) // 2
        if fault == "long":
            stop += 100
        part = body[start:stop]
        status = 206 if wanted and files.ranges else 200
        extra = {"Content-Range": f"bytes {start}-{start + len(part) - 1}/{len(body)}"}
        self.answer(status, body, len(part), extra if status == 206 else {})
        if fault == "cut":
            self.wfile.write(part[: len(part) // 2])
            self.wfile.flush()
            return self.drop()
        with files.counting:
            files.bytes_sent += len(part)
        try:
            self.wfile.write(part)
        except OSError:  # the client has had enough
            self.close_connection = True

    def found(self, start: int, stop: int | None) -> bytes | None:
        files = self.server_files
        path = self.path.partition("?")[0].lstrip("/")
        body = files.files.get(path)
        stop = stop if stop is not None else len(body or b"")
        files.requests.append(Request(self.command, self.path, start, stop, dict(self.headers)))
        if files.token is not None and self.headers.get("Authorization") != files.token:
            self.refuse(403)
            return None
        if path in files.redirects:
            self.send_response(302)
            self.send_header("Location", files.redirects[path])
            self.send_header("Content-Length", "0")
            self.end_headers()
            return None
        if body is None:
            self.refuse(404)
        return body

    def refuse(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def answer(
        self, status: int, body: bytes, length: int, extra: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        if self.server_files.ranges:
            self.send_header("Accept-Ranges", "bytes")
        if self.server_files.tells_version:
            self.send_header("ETag", f'"{zlib.crc32(body):08x}"')
        for name, value in (extra or {}).items():
            self.send_header(name, value)
        self.end_headers()

    def drop(self) -> None:
        """Closes the connection as a process that is killed does."""
        self.close_connection = True
        self.connection.setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00"
        )
        self.connection.close()
