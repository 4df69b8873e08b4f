"""Where DICOM files come from: folders, paths, bytes, streams."""

from __future__ import annotations

import fnmatch
import os
from pathlib import Path
from typing import Any, BinaryIO

DicomInput = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO


def files_below(folder: str | os.PathLike[str], pattern: str) -> list[Path]:
    """Files below a folder whose name fits ``pattern`` in upper or lower case, sorted by path.

    Links to files are followed, links to folders are not. Raises NotADirectoryError, and ValueError
    where there is none.
    """
    root = Path(folder)
    if not root.is_dir():
        raise NotADirectoryError(f"{root}: is not a folder")
    wanted = pattern.lower()
    found = [
        Path(parent) / name
        for parent, _, names in os.walk(root)
        for name in names
        if fnmatch.fnmatchcase(name.lower(), wanted)
    ]
    if not found:
        raise ValueError(
            f"{root}: no file is called {pattern}, pass pattern='*' for files of any name"
        )
    return sorted(found)


def name_of(source: Any, position: int) -> str:
    """What errors call a source: its path, or its place among the inputs."""
    if isinstance(source, str | os.PathLike):
        return os.fsdecode(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) and name else f"input {position}"


def read_source(source: Any) -> bytes:
    """All bytes of a source. Raises OSError, TypeError for anything that is none."""
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if path.exists() and not path.is_file() and not path.is_dir():
            raise OSError("is a pipe or device, pass it as an open stream")  # may never end
        return path.read_bytes()
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source)
    if hasattr(source, "read"):
        data = source.read()
        if isinstance(data, bytes):
            return data
    raise TypeError(f"a DICOM input is a path, bytes or a binary stream, not {type(source)}")
