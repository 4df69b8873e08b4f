"""Checks of options that many calls share."""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from .errors import RecordFailure

PathLike = str | os.PathLike[str]

OnError = Literal["raise", "null", "skip"]

#: Largest decoded record that is accepted unless the caller says otherwise: 2 GiB.
MAX_RECORD_BYTES = 2 << 30

#: Largest decoded image in samples, width times height times channels; for images that bound
#: is the one that counts.
MAX_SAMPLES = 1 << 28
MAX_IMAGE_BYTES = (1 << 63) - 1

#: Largest batch: 0 stands for the machine's memory.
MAX_BATCH_BYTES = 0


def worker_count(workers: int | None) -> int:
    """``workers`` as the core takes it: 0 for automatic.

    Raises TypeError for anything but an int or None, ValueError below 1.
    """
    if workers is None:
        return 0
    if isinstance(workers, bool) or not isinstance(workers, int | np.integer):
        raise TypeError(f"workers is {workers!r}, expected an int or None")
    if workers < 1:
        raise ValueError(f"workers is {workers}, expected 1 or more, or None for automatic")
    return min(int(workers), 1 << 16)


def shows_progress(progress: bool | None) -> bool:
    """Whether to show a bar: None for where there is a terminal."""
    if progress is None:
        return sys.stderr is not None and sys.stderr.isatty()
    return bool(progress)


def checked_on_error(on_error: str) -> None:
    """Raises ValueError for a rule that does not exist."""
    if on_error not in ("raise", "null", "skip"):
        raise ValueError(f"on_error is {on_error!r}, expected 'raise', 'null' or 'skip'")


def checked_report(report: list[RecordFailure] | None) -> None:
    """Raises TypeError for what failures cannot be added to."""
    if report is not None and not hasattr(report, "extend"):
        raise TypeError(f"report is {report!r}, expected a list")


def read_options(
    decode: bool,
    workers: int | None = None,
    verify: bool = True,
    on_error: str = "raise",
    max_record_bytes: int = MAX_RECORD_BYTES,
    max_batch_bytes: int = MAX_BATCH_BYTES,
    max_samples: int = MAX_SAMPLES,
) -> tuple[bool, int, bool, str, int, int, int]:
    """Options of a read as the core takes them, checked."""
    checked_on_error(on_error)
    if not isinstance(verify, bool | np.bool_):
        raise TypeError(f"verify is {verify!r}, expected a bool")
    limits = []
    for name, limit in (
        ("max_record_bytes", max_record_bytes),
        ("max_batch_bytes", max_batch_bytes),
        ("max_samples", max_samples),
    ):
        if isinstance(limit, bool) or not hasattr(limit, "__index__"):
            raise TypeError(f"{name} is {limit!r}, expected an int")
        if not 0 <= limit.__index__() < 1 << 63:
            raise ValueError(f"{name} is {limit}, expected 0 or more")
        limits.append(limit.__index__())
    return decode, worker_count(workers), bool(verify), on_error, *limits


def row_array(rows: Iterable[int], count: int) -> npt.NDArray[np.int64]:
    """Rows as an int64 array, negative ones counted from the end of ``count`` rows.

    Rows outside the pack stay as they are. Raises TypeError for anything but integers.
    """
    if not isinstance(rows, np.ndarray):
        rows = list(rows)
        if any(isinstance(row, bool) for row in rows):
            raise TypeError("rows are integers, not bools")
    array = np.asarray(rows)
    if array.size == 0:
        return np.empty(0, dtype=np.int64)
    if array is not rows and array.ndim == 1 and array.dtype.kind in "fO":
        # Integers of several widths or beyond 64 bits, or something else.
        array = np.array([operator.index(row) for row in rows], dtype=np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise TypeError(f"rows are a flat sequence of integers, not {array.dtype}, {array.ndim}-D")
    if array.dtype == np.uint64 and int(array.max()) > np.iinfo(np.int64).max:
        raise OverflowError("row does not fit in 64 bits")
    array = np.ascontiguousarray(array, dtype=np.int64)
    from_end = (array < 0) & (array >= -count)
    return np.where(from_end, array + count, array) if from_end.any() else array


def row_number(row: int, count: int) -> int:
    """One row, as :func:`row_array`."""
    if type(row) is int and 0 <= row < count:  # the usual case, quickly
        return row
    if isinstance(row, bool) or not hasattr(row, "__index__"):
        raise TypeError(f"row is {row!r}, expected an int")
    number = row.__index__()
    if not -(1 << 63) <= number < 1 << 63:
        raise OverflowError("row does not fit in 64 bits")
    return number + count if -count <= number < 0 else number
