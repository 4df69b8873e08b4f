"""What can go wrong, by subject. Errors of one row carry ``pack`` and ``row``."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "ChecksumError",
    "CodecError",
    "PackError",
    "PackIndexError",
    "PackNotFoundError",
    "RecordFailure",
    "StaleReferenceError",
]


class PackError(ValueError):
    """A file is not a valid pack, or a part of it is damaged.

    ``pack`` is the pack's path and ``row`` the row, or None where the error is of neither.
    """

    pack: str | None = None
    row: int | None = None


class PackNotFoundError(PackError, FileNotFoundError):
    """There is no pack at that path."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""

    def __reduce__(self) -> tuple[object, ...]:
        state = {**self.__dict__, "errno": self.errno, "filename": self.filename}
        return type(self), self.args, state


class PackIndexError(PackError, IndexError):
    """A row that the pack does not have."""


class ChecksumError(PackError):
    """Stored bytes differ from the crc32 in the index."""


class StaleReferenceError(PackError):
    """A record reference was made from another version of the pack."""


class CodecError(PackError):
    """A payload cannot be encoded or decoded."""


@dataclass(frozen=True)
class RecordFailure:
    """A record that a batch could not deliver.

    ``position`` is its place in the rows that were asked for, ``error`` what reading it alone
    would have raised.
    """

    position: int
    pack: str | None
    row: int | None
    error: Exception

    @classmethod
    def of(cls, position: int, error: Exception) -> RecordFailure:
        """The failure of the record at ``position`` with the places the error itself names."""
        pack, row = getattr(error, "pack", None), getattr(error, "row", None)
        return cls(position, pack, row, error)


_CLASSES = {
    "pack": PackError,
    "not_found": PackNotFoundError,
    "checksum": ChecksumError,
    "stale": StaleReferenceError,
    "codec": CodecError,
    "index": PackIndexError,
}


def row_error(kind: type[PackError], pack: str, row: int, reason: str) -> PackError:
    """An error of one row, worded and marked as the core does it."""
    error = kind(f"{pack}: row {row}: {reason}")
    error.pack, error.row = pack, row
    return error


def from_native(
    kind: str, text: str, reason: str, pack: str | None, row: int | None, code: int
) -> Exception:
    """The exception for an error of the core. Called by the core only."""
    if kind == "system":
        return OSError(code, reason, pack)  # a PermissionError and its like, by the code
    if kind == "argument":
        return ValueError(text)
    error = _CLASSES[kind](text)
    error.pack, error.row = pack, row
    if isinstance(error, OSError):
        error.errno, error.filename = code, pack
    return error
