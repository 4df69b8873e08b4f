"""From record references to the rows of packs, as far as they still are what was referred to."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .. import _native
from .._opening import PackOpener
from .._options import OnError
from ..errors import PackError, PackIndexError, RecordFailure, StaleReferenceError, row_error
from .references import NO_STAMP, References


class Resolver:
    """References pack by pack, and those that could not be had, in ``failures``.

    Under ``on_error="raise"`` the first failure is raised instead. ``first`` is the place in the
    whole result of the first reference.
    """

    def __init__(
        self, references: References, opener: PackOpener, on_error: OnError, first: int = 0
    ) -> None:
        self.references = references
        self.failures: list[RecordFailure] = []
        self._opener = opener
        self._on_error = on_error
        self._first = first

    def packs(self) -> Iterator[tuple[_native.Pack, npt.NDArray[np.int64]]]:
        """Each pack that can be opened, and the places of the references to it that hold."""
        for number, path in enumerate(self.references.paths):
            positions = np.flatnonzero(self.references.pack == number)
            if len(positions) == 0:
                continue
            try:
                pack = self._opener.open(path)
            except (PackError, OSError) as error:
                self.fail(positions, path, error)
                continue
            try:
                fresh = self._fresh(pack, positions)
            except (PackError, OSError) as error:  # its index cannot be read
                self.fail(positions, path, error)
                fresh = positions[:0]
            yield pack, fresh

    def fail(self, positions: npt.NDArray[np.int64], path: str, error: Exception) -> None:
        """Notes that references to ``path`` are failures, or raises the error."""
        if self._on_error == "raise":
            raise error
        for position in positions.tolist():
            row = int(self.references.row[position])
            self.failures.append(RecordFailure(self._first + position, path, row, error))

    def _fresh(self, pack: _native.Pack, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The positions whose stamp, where they have one, is the pack's."""
        below = self.references.row[positions] < 0
        for position in positions[below].tolist():
            row_number = int(self.references.row[position])
            reason = (
                f"payload row out of range: {row_number}, the pack has {pack.num_records} records"
            )
            error = row_error(PackIndexError, pack.path, row_number, reason)
            self.fail(np.array([position]), pack.path, error)
        positions = positions[~below]
        stamp, row = self.references.stamp[positions], self.references.row[positions]
        stamped = (stamp != NO_STAMP) & (row < pack.num_records)
        stale = np.zeros(len(positions), dtype=bool)
        stale[stamped] = pack.stamps(row[stamped]) != stamp[stamped]
        for position in positions[stale].tolist():
            row_number = int(self.references.row[position])
            reason = "the pack has changed since this reference was made, run the query again"
            error = row_error(StaleReferenceError, pack.path, row_number, reason)
            self.fail(np.array([position]), pack.path, error)
        return positions[~stale]


class ResolvedColumn:
    """What references stand for, which comes pack by pack."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._order: list[npt.NDArray[np.int64]] = []
        self._parts: list[pa.Array] = []

    def add(self, positions: npt.NDArray[np.int64], values: pa.Array) -> None:
        """The values of the references in these places, which increase."""
        self._order.append(positions)
        self._parts.append(values)

    def assembled(self, type: pa.DataType) -> pa.ChunkedArray:
        """The values, all of that type, in the order of the references; NULL for those without."""
        if not self._parts:
            return pa.chunked_array([pa.nulls(self._count, type)])
        positions = np.concatenate(self._order)
        if len(positions) == self._count and (positions[1:] > positions[:-1]).all():
            return pa.chunked_array(self._parts, type)
        source = np.full(self._count, -1, dtype=np.int64)
        source[positions] = np.arange(len(positions))
        parts = self._parts
        values = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
        return pa.chunked_array([values.take(pa.array(source, mask=source < 0))])
