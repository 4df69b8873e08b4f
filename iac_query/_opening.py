"""Opening the packs that references name, as far as the caller allows it."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

from . import _native
from ._urls import CHAIN, is_url, local_path, public_url
from .errors import PackError
from .remote import FileSystem, RemoteFile, RemoteOptions


class PackOpener:
    """Opens local packs, and those of ``storage``, an fsspec file system.

    ``packs`` restricts them to files, and to what lies below folders; None allows all. Raises
    TypeError for a ``storage`` that is no file system.
    """

    def __init__(
        self, packs: Iterable[str | os.PathLike[str]] | None = None, storage: Any = None
    ) -> None:
        if storage is not None and not hasattr(storage, "protocol"):
            # Not the value, which may hold credentials.
            raise TypeError(
                f"storage is of type {type(storage).__name__}, expected a file system such as "
                "fsspec.filesystem('s3', ...)"
            )
        self._storage = storage
        self._allowed: list[str] | None = None
        if packs is not None:
            listed = [packs] if isinstance(packs, str | os.PathLike) else packs
            paths = [os.fsdecode(path) for path in listed]
            if not all(paths):
                raise ValueError("packs holds an empty path, write '.' for the current folder")
            self._allowed = [_real(path) for path in paths]

    def open(self, path: str) -> _native.Pack:
        """The pack at a path or URL. Raises PackError when it may not be opened or is none."""
        path = local_path(path)
        if "\0" in path:
            raise _refused(path, "is not a path, it has a NUL in it")
        if self._allowed is not None:
            real = _real(path)
            if is_url(path) and ".." in re.split(r"[/\\]", unquote(path)):
                raise _refused(path, "goes up with '..', which packs= does not allow")
            inside = (
                real == one or real.startswith(f"{one.rstrip('/')}/") for one in self._allowed
            )
            if not any(inside):
                raise _refused(path, "is not among the packs that were allowed")
        if not is_url(path):
            return _open_local(os.fsencode(os.path.abspath(path)))
        if CHAIN in path:
            raise _refused(path, "is a chained URL, which references do not open: use PackReader")
        if self._storage is None:
            raise _refused(path, "is not a local file, pass storage= to open it")
        protocols = self._storage.protocol
        protocols = (protocols,) if isinstance(protocols, str) else protocols
        if path.split("://")[0] not in protocols:
            raise _refused(path, f"is not of the storage given, which is {protocols[0]}")
        return _open_remote(path, FileSystem.of_storage(path, self._storage))


def _real(path: str) -> str:
    path = local_path(path)
    return path if is_url(path) else os.path.realpath(path)


def _refused(path: str, reason: str) -> PackError:
    error = PackError(f"{public_url(path)}: {reason}")
    error.pack = public_url(path)
    return error


def _open_local(path: bytes) -> _native.Pack:
    try:
        status = os.stat(path)
    except OSError:
        return _native.Pack(path)  # says what is wrong in its own words
    version = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return _kept_open(path, version)


@functools.lru_cache(maxsize=16)
def _kept_open(path: bytes, version: tuple[int, ...]) -> _native.Pack:
    """A pack that stays open for the next call, as long as the file is of this version."""
    return _native.Pack(path)


def _open_remote(url: str, file_system: FileSystem) -> _native.Pack:
    file = RemoteFile(url, file_system, RemoteOptions())
    # Where nothing tells versions apart, only the one just opened is sure to be the present one.
    return _kept_open_remote(file) if file.version else file.open()


@functools.lru_cache(maxsize=16)
def _kept_open_remote(file: RemoteFile) -> _native.Pack:
    """As for local packs: files are equal in the same version."""
    return file.open()
