"""Packs behind URLs: ranges of files of any fsspec file system, asked for until they are had."""

from __future__ import annotations

import asyncio
import concurrent.futures
import errno
import http.client
import inspect
import os
import random
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from . import _native
from ._urls import public_url
from .errors import PackError, from_native

__all__ = ["RemoteOptions"]

_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class RemoteOptions:
    """How packs behind URLs are read.

    * ``gap``: bytes; records this near to each other are fetched by one request, the bytes between
      them too.
    * ``group``: bytes; a request asks for at most so much.
    * ``requests``: how many may be under way at a time for each open pack. None for 32 where the
      file system is asynchronous (HTTP, S3, GCS, Azure and their like), and for one at a time, over
      all packs, where it is not: many such file systems mix up what threads read.
    * ``retries``: how often a request that failed for a reason that may pass is asked again, with
      growing pauses between.
    """

    gap: int = 128 << 10
    group: int = 4 << 20
    requests: int | None = None
    retries: int = 4

    def __post_init__(self) -> None:
        for field, least in zip(fields(self), (0, 4096, 1, 0), strict=True):
            value = getattr(self, field.name)
            if value is None and field.name == "requests":
                continue
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{field.name} is {value!r}, expected an int")
            if not least <= value < 1 << 31:
                raise ValueError(f"{field.name} is {value}, expected {least} or more")


#: Requests at a time of one open pack, where the file system takes several.
_REQUESTS = 32

#: The first pause before a request is asked again, and the longest, in seconds.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0

#: How often, in seconds, what waits looks whether it still should.
_POLL_INTERVAL = 0.05

#: What file systems tell of a file that changes when the file does.
_VERSION_FIELDS = (
    *("ETag", "etag", "e_tag", "Content-MD5", "Digest", "md5Hash", "CRC"),
    *("VersionId", "version_id", "generation"),
    *("Last-Modified", "LastModified", "last_modified", "updated", "mtime", "modified", "created"),
    "date_time",
)


class RemoteFile:
    """A file of an fsspec file system that is read by ranges. Any number of threads may use it,
    forked children too.

    ``name`` is its URL without credentials. Every request is counted, and so is every byte.
    """

    def __init__(self, url: str, file_system: FileSystem, options: RemoteOptions) -> None:
        self.name = public_url(url)
        self.requests = self.bytes = self.retries = 0
        self._file_system = file_system
        self._options = options
        self._http: Any = None  # for HTTP, an open file of this process
        info = self._asked("cannot be opened", self._info)
        self.size, self.version = self._known(info)

    def open(self) -> _native.Pack:
        """The pack in the file."""
        options = self._options
        at_once = options.requests or (_REQUESTS if self._file_system.is_async else 1)
        ask_version = self.ask_version if self.version else None
        return _native.Pack.from_source(
            self.read,
            ask_version,
            self.size,
            self.version,
            self.name,
            options.gap,
            options.group,
            at_once,
        )

    def __eq__(self, other: object) -> bool:
        """Whether it is the same file in the same version, read in the same way."""
        return isinstance(other, RemoteFile) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[object, ...]:
        fs = self._file_system
        return self.name, fs.token, fs.opened()[1], self._options, self.size, self.version

    @property
    def stats(self) -> dict[str, int]:
        """Requests, bytes and retries so far."""
        return {"requests": self.requests, "bytes": self.bytes, "retries": self.retries}

    def read(self, offset: int, length: int) -> bytes:
        """The bytes of a range. What is short after all retries is given as it came."""
        return self._asked(
            f"cannot read {length} bytes at {offset}",
            lambda fs, path: self._range(fs, path, offset, offset + length),
            length,
        )

    def _range(self, fs: Any, path: str, start: int, end: int) -> bytes:
        protocol = fs.protocol
        if "http" not in ((protocol,) if isinstance(protocol, str) else protocol):
            return _called(fs.cat_file, path, start=start, end=end)
        # cat_file would fetch the whole file from a server that ignores ranges.
        if self._http is None or self._http.fs is not fs:
            headers = {**fs.kwargs.get("headers", {}), "Accept-Encoding": "identity"}
            self._http = fs.open(path, size=self.size, cache_type="none", headers=headers)
        return _awaited(fs, self._http.async_fetch_range(start, end))

    def ask_version(self) -> str:
        """What :attr:`version` is now."""
        info = self._asked("cannot be asked whether it has changed", self._info)
        return self._known(info)[1]

    @staticmethod
    def _info(fs: Any, path: str) -> Mapping[str, Any]:
        fs.invalidate_cache(path)
        return _called(fs.info, path)

    def _known(self, info: Mapping[str, Any]) -> tuple[int, str]:
        if info.get("type") == "directory":
            reason = "cannot open: it is a folder"
            raise from_native("system", "", reason, self.name, None, errno.EISDIR)
        size = info.get("size")
        if not isinstance(size, int):
            error = PackError(f"{self.name}: the server does not tell the file's size")
            error.pack = self.name
            raise error
        known = {field: str(info[field]) for field in _VERSION_FIELDS if info.get(field)}
        return size, repr((size, known)) if known else ""

    def _asked(
        self, doing: str, question: Callable[[Any, str], _Answer], length: int | None = None
    ) -> _Answer:
        """The answer to a question, asked again while it fails for reasons that may pass."""
        pause = _FIRST_PAUSE
        for attempt in range(self._options.retries + 1):
            last = attempt == self._options.retries
            failed: Exception | None = None
            try:
                if attempt:
                    _pause(pause * random.uniform(0.5, 1))
                    pause = min(pause * 2, _LONGEST_PAUSE)
                fs, path = self._file_system.opened()
                with self._file_system.turn(self._options.requests):
                    answer = question(fs, path)
            except Exception as error:
                failed = error
            received = 0 if failed or length is None else len(answer)
            with _lock("counting"):
                self.requests += 1
                self.bytes += received
                self.retries += attempt > 0
            if failed is None:
                if length is None or received >= length or last:
                    return answer
            elif isinstance(failed, ImportError):
                raise ImportError(f"{self.name}: {failed}")
            elif last or not _may_pass(failed):
                # Neither as its cause nor context: the texts of file systems may hold the URL.
                raise self._refusal(doing, failed, attempt + 1)
        raise AssertionError

    def _refusal(self, doing: str, error: Exception, attempts: int) -> Exception:
        kind, code, reason = _described(error)
        reason = f"{doing}: {reason}" + (f", tried {attempts} times" if attempts > 1 else "")
        return from_native(kind, f"{self.name}: {reason}", reason, self.name, None, code)


def _require_wanted() -> None:
    """Raises OSError where what this thread reads is not wanted any more."""
    if _native.stop_requested():
        raise OSError(errno.ECANCELED, os.strerror(errno.ECANCELED))


def _called(method: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
    """What a file system's method gives. An asynchronous one is left soon when it is not wanted."""
    coroutine = getattr(method, "__wrapped__", None)
    if not inspect.iscoroutinefunction(coroutine):
        return method(*arguments, **more)
    return _awaited(coroutine.__self__, coroutine(*arguments, **more))


def _awaited(fs: Any, coroutine: Coroutine[Any, Any, Any]) -> Any:
    future = asyncio.run_coroutine_threadsafe(coroutine, fs.loop)
    try:
        while not concurrent.futures.wait([future], _POLL_INTERVAL).done:
            _require_wanted()
        return future.result()
    finally:
        future.cancel()  # after Ctrl-C too


def _pause(seconds: float) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, _POLL_INTERVAL))
        _require_wanted()


class FileSystem:
    """An fsspec file system and a path of it, in each process one that works there: made when it
    is first used, which may ask a server already.
    """

    def __init__(self, make: Callable[[], tuple[Any, str]]) -> None:
        self._make = make
        self._process: int | None = None  # that it was made in
        self._made: tuple[Any, str]

    @classmethod
    def of_url(cls, url: str, storage_options: Mapping[str, Any] | None) -> FileSystem:
        """The one that the URL's scheme stands for."""
        url_to_fs = _fsspec().core.url_to_fs
        return cls(lambda: url_to_fs(url, **(storage_options or {})))

    @classmethod
    def of_storage(cls, url: str, storage: Any) -> FileSystem:
        """One that the caller made."""
        process = os.getpid()

        def make() -> tuple[Any, str]:
            path = storage._strip_protocol(url)
            if os.getpid() == process:
                return storage, path
            # Threads and connections stay behind in the parent.
            return type(storage)(*storage.storage_args, **storage.storage_options), path

        return cls(make)

    def opened(self) -> tuple[Any, str]:
        """File system and path. Raises whatever the file system does."""
        if os.getpid() != self._process:
            self._made = self._make()
            self._process = os.getpid()
        return self._made

    @property
    def is_async(self) -> bool:
        """Whether it takes several requests at a time."""
        return bool(getattr(self.opened()[0], "async_impl", False))

    @property
    def token(self) -> tuple[object, ...]:
        """What is the same for file systems that are."""
        fs, _ = self.opened()
        return type(fs), fs._fs_token

    def turn(self, requests: int | None) -> threading.Lock | _NoLock:
        """What to hold while the file system is used, unless the caller set ``requests``."""
        if self.is_async or requests is not None:
            return _NO_LOCK
        return _lock(*self.token)


class _NoLock:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


_NO_LOCK = _NoLock()
_LOCKS: dict[tuple[object, ...], threading.Lock] = {}


def _lock(*key: object) -> threading.Lock:
    """This process's lock of that key: one of a parent may have been held while it forked."""
    return _LOCKS.setdefault((os.getpid(), *key), threading.Lock())


def _fsspec() -> Any:
    try:
        import fsspec.core
    except ImportError as error:
        raise ImportError("packs behind URLs need fsspec: pip install iac-query[remote]") from error
    return fsspec


_PASSING_ERRNOS = {
    *(errno.EAGAIN, errno.EBUSY, errno.EIO, errno.EPIPE, errno.ETIMEDOUT),
    *(errno.ECONNABORTED, errno.ECONNREFUSED, errno.ECONNRESET),
    *(errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETRESET, errno.ENETUNREACH),
}
_PASSING_STATUSES = {408, 425, 429}


def _may_pass(error: BaseException) -> bool:
    """Whether asking again may help: connections, timeouts, servers that are busy or broken."""
    status = _http_status(error)
    if status is not None:
        return status >= 500 or status in _PASSING_STATUSES
    cause = error.__cause__
    if isinstance(error, FileNotFoundError):  # what fsspec makes of any failure of a HEAD
        return cause is not None and _may_pass(cause)
    if isinstance(error, PermissionError):
        return False
    if isinstance(error, TimeoutError | ConnectionError | http.client.HTTPException):
        return True
    if isinstance(error, OSError) and error.errno in _PASSING_ERRNOS:
        return True
    return any(
        (base.__module__.partition(".")[0], base.__name__) in _PASSING_CLASSES
        for base in type(error).__mro__
    )


#: Broken connections and bodies, in words of the libraries below file systems.
_PASSING_CLASSES = {
    ("aiohttp", "ClientConnectionError"),
    ("aiohttp", "ClientPayloadError"),
    ("botocore", "HTTPClientError"),
    ("botocore", "IncompleteReadError"),
    ("requests", "ChunkedEncodingError"),
    ("requests", "ConnectionError"),
    ("urllib3", "HTTPError"),
}


def _http_status(error: BaseException) -> int | None:
    """The status of the answer that an error stands for, in the words of several libraries."""
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):
        found = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    else:
        found = getattr(response, "status_code", None)
    for name in ("status", "status_code", "code"):
        if not isinstance(found, int):
            found = getattr(error, name, None)
    if isinstance(found, int) and 100 <= found < 600:
        return found
    if isinstance(error, FileNotFoundError) and error.__cause__ is not None:
        return _http_status(error.__cause__)
    return None


#: What libraries of stores call it when they are not told who asks.
_NO_CREDENTIALS = {
    *("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError"),
    *("DefaultCredentialsError", "ClientAuthenticationError"),
}


def _described(error: BaseException) -> tuple[str, int, str]:
    """Kind, errno and reason of an error, without its text, which may hold a URL."""
    status = _http_status(error)
    if status in (401, 403):
        return "system", errno.EACCES, f"access denied (HTTP status {status})"
    if status in (404, 410):
        return "not_found", errno.ENOENT, f"there is no such file (HTTP status {status})"
    if status is not None:
        return "system", errno.EIO, f"HTTP status {status}"
    if isinstance(error, FileNotFoundError):
        # fsspec makes one of whatever went wrong; a KeyError is a file that is not there.
        if error.__cause__ is None or isinstance(error.__cause__, LookupError | FileNotFoundError):
            return "not_found", errno.ENOENT, "there is no such file"
        error = error.__cause__
    name = type(error).__name__
    if name in _NO_CREDENTIALS:
        return "system", errno.EACCES, f"{name}: give the credentials as storage_options"
    if isinstance(error, PermissionError):
        return "system", errno.EACCES, "access denied"
    if isinstance(error, TimeoutError):
        return "system", errno.ETIMEDOUT, "timed out"
    if isinstance(error, ValueError) and "range requests" in str(error):
        return "system", errno.EIO, "the server ignores ranges, download the file"
    if isinstance(error, ValueError) and str(error).startswith("Protocol not known"):
        return "system", errno.EPROTONOSUPPORT, "fsspec knows no such scheme, they are lower-case"
    if name == "TooManyRedirects":
        return "system", errno.EIO, "too many redirects"
    if isinstance(error, ValueError):
        return "system", errno.EINVAL, f"{name}, is the URL right?"
    if isinstance(error, TypeError):
        return (
            "system",
            errno.EINVAL,
            "TypeError, are the storage_options right?",
        )
    code = error.errno if isinstance(error, OSError) and error.errno else errno.EIO
    reason = os.strerror(code) if code != errno.EIO else name
    return "system", code, reason
