"""The packs that paths, patterns and lists of them name, found as SQL finds them."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePath

from .._options import PathLike
from .._urls import is_url, local_path, public_url
from ..errors import PackError, PackNotFoundError

ANY_FOLDERS = "**"


@dataclass(frozen=True)
class PackFile:
    """A pack's absolute path or its URL, and its path as the caller named it, without secrets."""

    path: str
    filename: str

    @property
    def name(self) -> str:
        """The path that errors show."""
        return public_url(self.path) if is_url(self.path) else self.path

    def require_text(self) -> None:
        """Raises PackError for a path that is not UTF-8, which references are."""
        try:
            self.path.encode()
        except UnicodeEncodeError:
            reason = "the path is not UTF-8, which references are: rename the file"
            raise PackError(f"{os.fsencode(self.path)!r}: {reason}") from None


def pack_files(paths: PathLike | Iterable[PathLike]) -> list[PackFile]:
    """The packs, in the order given, those of a pattern sorted folder by folder.

    Patterns are ``*``, ``?``, ``[...]`` within a name and one ``**`` for any number of folders,
    hidden files included, links to folders not followed by ``**``. A file of just that name comes
    before what the pattern would find. URLs are taken as they are.

    Raises PackNotFoundError for a pattern that finds nothing, ValueError for no path at all and
    TypeError for what is none.
    """
    listed = [paths] if isinstance(paths, str | bytes | os.PathLike) else list(paths)
    if not listed:
        raise ValueError("the list of paths is empty")
    return [file for path in listed for file in _files(path)]


def _files(given: PathLike) -> Iterator[PackFile]:
    if not isinstance(given, str | bytes | os.PathLike):
        raise TypeError(f"path is {given!r}, expected a path or a list of paths")
    path = os.fsdecode(given)
    if not path:
        raise ValueError("the path of a pack is empty")
    if "\0" in path:
        raise ValueError("the path of a pack has a NUL in it")
    path = local_path(path)
    if is_url(path):
        yield PackFile(path, public_url(path))
        return
    if path.startswith("~/"):
        path = os.path.expanduser(path)
    if not _is_pattern(path) or os.path.lexists(path):
        path = os.path.normpath(path)
        yield PackFile(os.path.abspath(path), path)
        return
    found = False
    for match in [] if path.endswith("/") else _matches(os.path.normpath(path)):
        found = True
        yield PackFile(os.path.abspath(match), match)
    if not found:
        raise PackNotFoundError(f"{path}: no file matches this pattern")


def _is_pattern(path: str) -> bool:
    return any(character in path for character in "*?[")


def _matches(pattern: str) -> Iterator[str]:
    parts = list(PurePath(pattern).parts)
    if parts.count(ANY_FOLDERS) > 1:
        raise ValueError(f"{pattern}: a pattern can have only one **")
    folder = parts.pop(0) if os.path.isabs(pattern) else ""
    return _search(folder, parts)


def _search(folder: str, parts: list[str]) -> Iterator[str]:
    """The files below a folder whose path matches the parts."""
    part, rest = parts[0], parts[1:]
    if part == ANY_FOLDERS:
        entries = _entries(folder)
        if rest:
            yield from _search(folder, rest)
        else:
            yield from (
                os.path.join(folder, entry.name)
                for entry in entries
                if entry.is_file(follow_symlinks=False)
            )
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _search(os.path.join(folder, entry.name), parts)
        return
    names = [part]
    if _is_pattern(part):
        pattern = part.replace("[^", "[!")  # C's patterns have both
        names = [entry.name for entry in _entries(folder)]
        names = [name for name in names if fnmatch.fnmatchcase(name, pattern)]
    for path in (os.path.join(folder, name) for name in names):
        if rest and os.path.isdir(path):
            yield from _search(path, rest)
        elif not rest and os.path.isfile(path):
            yield path


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """What is in a folder, by name."""
    try:
        with os.scandir(folder or ".") as entries:
            return sorted(entries, key=lambda entry: os.fsencode(entry.name))
    except FileNotFoundError:
        return []
