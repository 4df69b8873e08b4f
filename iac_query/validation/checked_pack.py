"""An open pack while it is checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .._tables import table_schema
from ..batch import ContiguousRecordBatch
from ..errors import ChecksumError, CodecError
from ..images import ImageBatch
from ..pack import PackReader
from .report import Finding, Severity

TableName = Literal["slide", "index"]
Batch = ContiguousRecordBatch | ImageBatch
Rows = npt.NDArray[np.int64]


#: Longer ones in a header are none.
_LONGEST_NAME = 200


class CheckedPack:
    """What all checks ask of a pack, and what they count."""

    def __init__(self, reader: PackReader, workers: int | None = None) -> None:
        self.reader = reader
        self.native = reader.native
        self.header = reader.header
        self.path = str(reader.package_path)
        self.workers = workers
        #: Called with the number of stored bytes that were read.
        self.advance: Callable[[int], object] = lambda size: None
        self.schemas: dict[TableName, pa.Schema] = {
            name: table_schema(self.native, name) for name in ("slide", "index")
        }
        self.payload_type = self.text_field("payload_type")
        self.decoded = 0
        self.crc_checked = 0
        self._columns: dict[tuple[TableName, str], pa.ChunkedArray | None] = {}

    def __len__(self) -> int:
        return self.native.num_records

    def text_field(self, name: str) -> str | None:
        """A header field that is a name; None for anything else."""
        value = self.header.get(name)
        return value if isinstance(value, str) and len(value) <= _LONGEST_NAME else None

    def finding(
        self, check: str, reason: str, row: int | None = None, severity: Severity = "error"
    ) -> Finding:
        """A finding of this pack."""
        return Finding(self.path, None if row is None else int(row), check, reason, severity)

    def failure(self, error: Exception, row: int | None = None) -> Finding:
        """The finding that an error of reading this pack, or a row of it, stands for."""
        checks = {ChecksumError: "checksum", CodecError: "codec"}
        check = checks.get(type(error), "container")
        return self.finding(check, self.reason(error), row)

    def reason(self, error: Exception) -> str:
        """What an error of this pack says."""
        return reason_of(error, self.path)

    def has(self, table: TableName, name: str) -> bool:
        """Whether there is a column of that name."""
        return name in self.schemas[table].names

    def read_columns(self, table: TableName, names: list[str] | None) -> pa.Table:
        """Columns of a table, all for None. Their errors are among UNREADABLE."""
        reader = self.reader
        read = reader.read_index_table if table == "index" else reader.read_slide_table
        return read(names)

    def column(self, table: TableName, name: str) -> pa.ChunkedArray | None:
        """A column, kept; None where there is none or it cannot be read."""
        key = table, name
        if key not in self._columns:
            self._columns[key] = None
            if self.has(table, name):
                with suppress(*UNREADABLE):  # the container's check says so
                    self._columns[key] = self.read_columns(table, [name])[name]
        return self._columns[key]

    def index_rows(self, names: Iterable[str], rows: Rows) -> list[dict[str, Any]]:
        """Some rows of the index, of the columns that can be read, which are kept."""
        found = {name: self.column("index", name) for name in names}
        taken = {n: c.take(as_indices(rows)) for n, c in found.items() if c is not None}
        return pa.table(taken).to_pylist()


@dataclass(frozen=True)
class Remains:
    """What a pack becomes without its damaged rows."""

    kept: npt.NDArray[np.bool_]
    header: Mapping[str, Any]
    slides: pa.Table
    #: Bytes before all records that belong to none.
    prefix: bytes = b""
    #: By row, what is stored in place of its bytes.
    payloads: Mapping[int, bytes] = field(default_factory=dict)
    #: What became of dropped rows, where they are not simply gone.
    changes: tuple[Finding, ...] = ()


def without_rows(pack: CheckedPack, kept: npt.NDArray[np.bool_]) -> Remains:
    """The remains of a pack whose rows do not know of each other."""
    return Remains(kept, pack.header, pack.reader.slide_table)


@dataclass(frozen=True)
class Rules:
    """What packs of a payload type must hold beyond what all packs do."""

    #: Checks header and tables; None where nothing is known of them.
    tables: Callable[[CheckedPack], Iterator[Finding]] | None = None
    #: Checks decoded records of rows, all of which could be decoded.
    records: Callable[[CheckedPack, Rows, Batch], Iterator[Finding]] | None = None
    #: What is left when only some rows are kept. Raises PackError where that is no such pack.
    remains: Callable[[CheckedPack, npt.NDArray[np.bool_]], Remains] = without_rows


#: What reading a damaged pack raises. PackError is a ValueError.
UNREADABLE = (ValueError, OSError, pa.ArrowException)


def reason_of(error: Exception, pack: str) -> str:
    """What an error says, without the pack and the row, which a finding names itself."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).removeprefix(f"{pack}: ").removeprefix(f"row {getattr(error, 'row', None)}: ")


def numbers(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    """Integers without NULL as an array. pyarrow's ``to_numpy`` would import pandas."""
    return np.from_dlpack(column.combine_chunks())


def rows_where(mask: pa.ChunkedArray) -> Rows:
    """The rows in which a column of bools is true."""
    return numbers(pa.chunked_array([pc.indices_nonzero(mask)])).astype(np.int64)


def as_indices(rows: Rows) -> pa.Array:
    """Rows for pyarrow's ``take``, without a copy. ``pa.array`` would import pandas."""
    return pa.Array.from_buffers(pa.int64(), len(rows), [None, pa.py_buffer(rows)])
