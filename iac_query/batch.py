"""Many records in one piece of memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from . import _native
from ._html import records_html
from .errors import RecordFailure

__all__ = ["ContiguousRecordBatch"]


class ContiguousRecordBatch:
    """The bytes of records, one behind the other, and the offsets that part them.

    ``data`` is any bytes-like object, ``offsets`` holds n + 1 non-decreasing integers, from 0 to
    ``len(data)``. ``validity`` is an Arrow bitmap (least significant bit first) of the records
    that are there, None when all are; ``errors`` says why others are not. Under
    ``on_error="skip"`` ``positions`` tells which of the requested rows the records are.

    Owns its memory: it outlives the reader. Raises ValueError when offsets and data do not fit.
    """

    __slots__ = ("_data", "_offsets", "_validity", "errors", "positions", "unchecked")

    def __init__(
        self,
        data: Any,
        offsets: Any,
        *,
        validity: bytes | None = None,
        errors: Sequence[RecordFailure] = (),
        positions: npt.NDArray[np.int64] | None = None,
        unchecked: int = 0,
    ) -> None:
        self._data = memoryview(data).toreadonly().cast("B")
        if not isinstance(offsets, _native.Buffer):
            offsets = np.ascontiguousarray(offsets, dtype=np.uint64)
        self._offsets = np.frombuffer(offsets, dtype=np.uint64)
        if len(self._offsets) == 0 or self._offsets[0] != 0 or self._offsets[-1] != len(data):
            raise ValueError(f"offsets run from 0 to the data's length, {len(data)}")
        if (self._offsets[1:] < self._offsets[:-1]).any():
            raise ValueError("offsets never decrease")
        self._validity = validity
        #: Records that could not be had, by position.
        self.errors = tuple(errors)
        #: int64 array of the request's positions that are here, or None when all are.
        self.positions = positions
        #: Number of records whose crc32 was not compared, because there is none or verify=False.
        self.unchecked = unchecked

    @classmethod
    def from_native(
        cls, batch: _native.Batch, on_error: str, report: list[RecordFailure] | None = None
    ) -> ContiguousRecordBatch:
        """The batch that the core made, without a copy. Its failures are added to ``report``."""
        failures = [RecordFailure.of(position, error) for position, error in batch.failures]
        if report is not None:
            report.extend(failures)
        return cls(
            batch.data,
            batch.offsets,
            validity=batch.validity,
            errors=failures,
            positions=batch.positions if on_error == "skip" else None,
            unchecked=batch.unchecked,
        )

    @property
    def buffer(self) -> memoryview:
        """All bytes, a read-only memoryview of format ``B``."""
        return self._data

    @property
    def offsets_buffer(self) -> memoryview:
        """The n + 1 offsets, a read-only memoryview of format ``Q``."""
        return memoryview(self._offsets).toreadonly().cast("B").cast("Q")

    @property
    def offsets(self) -> tuple[int, ...]:
        """The n + 1 offsets."""
        return tuple(self._offsets.tolist())

    @property
    def lengths(self) -> tuple[int, ...]:
        """The length of each record in bytes."""
        return tuple(np.diff(self._offsets).tolist())

    @property
    def record_count(self) -> int:
        """Number of records, missing ones included."""
        return len(self._offsets) - 1

    @property
    def validity(self) -> npt.NDArray[np.bool_]:
        """A bool for each record: whether it is there."""
        if self._validity is None:
            return np.ones(self.record_count, dtype=bool)
        return unpacked(self._validity, self.record_count)

    def view(self, index: int) -> memoryview | None:
        """One record as a read-only memoryview; None when it is missing."""
        if isinstance(index, bool) or not hasattr(index, "__index__"):
            raise TypeError(f"index is {index!r}, expected an int")
        number = index.__index__()
        if number < 0:
            number += self.record_count
        if not 0 <= number < self.record_count:
            raise IndexError(f"record {index} of {self.record_count}")
        if self._validity is not None and not self._validity[number // 8] >> number % 8 & 1:
            return None
        return self._data[int(self._offsets[number]) : int(self._offsets[number + 1])]

    __getitem__ = view

    def __len__(self) -> int:
        return self.record_count

    def to_arrow(self, type: pa.DataType | None = None) -> pa.Array:
        """The records as an Arrow array over the same memory.

        ``type`` is ``pa.large_binary()`` (the default) or ``pa.large_string()``, whose text is not
        checked here. Raises TypeError for any other.
        """
        type = type or pa.large_binary()
        if type not in (pa.large_binary(), pa.large_string()):
            raise TypeError(
                f"type is {type}, expected large_binary or large_string: cast the array"
            )
        validity = None if self._validity is None else pa.py_buffer(self._validity)
        buffers = [validity, pa.py_buffer(self._offsets), pa.py_buffer(self._data)]
        return pa.Array.from_buffers(type, self.record_count, buffers)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return self.to_arrow().__arrow_c_array__(requested_schema)

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (bytes(self._data), np.array(self._offsets), self._validity)
        return _unpickle, (*arguments, self.errors, self.positions, self.unchecked)

    def _repr_html_(self) -> str:
        return records_html(self)

    def __repr__(self) -> str:
        missing = f", {len(self.errors)} failed" if self.errors else ""
        return f"<ContiguousRecordBatch of {len(self)} records, {len(self._data):,} bytes{missing}>"


def unpacked(validity: bytes, count: int) -> npt.NDArray[np.bool_]:
    """An Arrow bitmap as a bool for each record."""
    bits = np.frombuffer(validity, dtype=np.uint8)
    return np.unpackbits(bits, count=count, bitorder="little").astype(bool)


def _unpickle(
    data: bytes,
    offsets: npt.NDArray[np.uint64],
    validity: bytes | None,
    errors: Iterable[RecordFailure],
    positions: npt.NDArray[np.int64] | None,
    unchecked: int,
) -> ContiguousRecordBatch:
    return ContiguousRecordBatch(
        data,
        offsets,
        validity=validity,
        errors=tuple(errors),
        positions=positions,
        unchecked=unchecked,
    )
