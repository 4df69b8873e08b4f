"""Readers of stored records, and what a whole pack holds."""

from __future__ import annotations

import errno
import json
import mmap
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa

from . import _native
from ._html import pack_html
from ._options import (
    MAX_BATCH_BYTES,
    MAX_RECORD_BYTES,
    OnError,
    PathLike,
    checked_report,
    read_options,
    row_array,
    row_number,
)
from ._urls import is_url, local_path
from .batch import ContiguousRecordBatch
from .errors import PackError, RecordFailure
from .remote import FileSystem, RemoteFile, RemoteOptions

__all__ = ["PackReader", "iter_payloads", "read_header", "read_tables"]


#: Records that are read together by what goes through all of them.
_PIECE_ROWS, _PIECE_BYTES = 4096, 8 << 20


class PackReader:
    """An open pack: its header, its tables, and its records as they are stored.

    Opening checks header, tables and layout, so a bad file is an error at once:
    PackNotFoundError, PackError, or the OSError that says why it cannot be read. Tables and layout
    are read as far as they are asked for. The reader stays with the file it opened, also when
    another takes its name. Any number of threads may use it, forked children too.

    ``package_path`` is a path or a URL. URLs are opened by fsspec, with ``storage_options``
    (credentials, say) for their file system and ``remote`` for how they are read; ``file://`` is a
    local path. A file behind a URL that changes while it is read is a PackError.

    A reader pickles as its absolute path; one of a URL as the URL as it was given and the
    ``storage_options``, credentials included.

    ``verify=True`` compares stored bytes with the crc32 of the index, where it has one.
    """

    def __init__(
        self,
        package_path: PathLike,
        storage_options: Mapping[str, Any] | None = None,
        remote: RemoteOptions | None = None,
    ) -> None:
        location = local_path(os.fsdecode(package_path))
        #: Absolute path, symlinks kept; or the URL as text, without credentials and query.
        self.package_path: Path | str
        self._native: _native.Pack | None
        self._remote: RemoteFile | None = None
        if is_url(location):
            file_system = FileSystem.of_url(location, storage_options)
            self._remote = RemoteFile(location, file_system, remote or RemoteOptions())
            self.package_path = self._remote.name
            self._native = self._remote.open()
        else:
            location = os.path.abspath(location)
            self.package_path = Path(location)
            self._native = _native.Pack(os.fsencode(location))
        self._arguments = (location, storage_options, remote)
        self._header: dict[str, Any] | None = None
        self._slide_table: pa.Table | None = None
        self._index_table: pa.Table | None = None
        self._mapping: mmap.mmap | None = None

    @property
    def native(self) -> _native.Pack:
        """The core's pack. Raises ValueError once the reader is closed."""
        if self._native is None:
            raise ValueError(f"{self.package_path}: the reader is closed")
        return self._native

    @property
    def header(self) -> dict[str, Any]:
        """The JSON header, layout fields included."""
        if self._header is None:
            self._header = json.loads(self.native.header_json)
        return self._header

    @property
    def slide_table(self) -> pa.Table:
        """The slide table."""
        if self._slide_table is None:
            self._slide_table = self.read_slide_table()
        return self._slide_table

    @property
    def index_table(self) -> pa.Table:
        """The index table, a row a record."""
        if self._index_table is None:
            self._index_table = self.read_index_table()
        return self._index_table

    @property
    def record_table(self) -> pa.Table:
        """The index table by its other name."""
        return self.index_table

    def read_slide_table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Columns of the slide table, only those asked for. Raises KeyError for an unknown one."""
        return self._table("slide", columns)

    def read_index_table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Columns of the index table, only those asked for. Raises KeyError for an unknown one."""
        return self._table("index", columns)

    def _table(self, name: str, columns: Sequence[str] | None) -> pa.Table:
        if isinstance(columns, str):
            raise TypeError(f"columns is {columns!r}, expected a list of names")
        capsule = self.native.table(name, None if columns is None else list(columns))
        try:
            return pa.RecordBatchReader._import_from_c_capsule(capsule).read_all()
        except OSError as error:
            raise OSError(errno.EIO, str(error), str(self.package_path)) from None
        except pa.ArrowInvalid as error:
            if "delta dictionaries" in str(error):
                return self._table_with_deltas(name, columns)
            raise PackError(f"{self.package_path}: {error}") from error

    def _table_with_deltas(self, name: str, columns: Sequence[str] | None) -> pa.Table:
        """A table by pyarrow, for the one thing in tables that the core does not know."""
        table = pa.ipc.open_stream(self.native.table_bytes(name)).read_all()
        table.validate(full=True)
        return table if columns is None else table.select(list(columns))

    def read_payload(self, row: int, *, verify: bool = True) -> bytes:
        """The stored bytes of one row; negative rows count from the end."""
        native = self.native
        number = row_number(row, native.num_records)
        return native.read_one(number, False, verify, MAX_RECORD_BYTES)

    def read_payloads(self, rows: Iterable[int], *, verify: bool = True) -> list[bytes]:
        """The stored bytes of rows, in the order given, duplicates included."""
        return [bytes(record) for record in self.read_payloads_contiguous(rows, verify=verify)]

    def read_payloads_contiguous(
        self,
        rows: Iterable[int],
        *,
        workers: int | None = None,
        verify: bool = True,
        on_error: OnError = "raise",
        report: list[RecordFailure] | None = None,
        max_batch_bytes: int = MAX_BATCH_BYTES,
    ) -> ContiguousRecordBatch:
        """The stored bytes of rows in one piece of memory.

        Options as :meth:`VariableRecordPack.read_many_contiguous`.
        """
        checked_report(report)
        options = read_options(False, workers, verify, on_error, max_batch_bytes=max_batch_bytes)
        batch = self.native.read(row_array(rows, len(self)), *options)
        return ContiguousRecordBatch.from_native(batch, on_error, report)

    def read_payload_views(self, rows: Iterable[int]) -> list[memoryview]:
        """The stored bytes of rows as read-only views of the file, without a copy or a checksum.

        The views stay valid after :meth:`close` and keep to the file that was opened. They are
        mapped memory: if the file is truncated meanwhile, touching them kills the process. Use
        :meth:`read_payloads` on files that others may change.
        """
        native = self.native
        whole = memoryview(self._map())
        offsets, lengths = native.locate(row_array(rows, native.num_records))
        starts = offsets + np.uint64(native.data_offset)
        ends = starts + lengths
        if (ends > len(whole)).any():
            raise PackError(
                f"{self.package_path}: file ends at byte {len(whole)}, was it truncated after it "
                "was opened?"
            )
        spans = zip(starts.tolist(), ends.tolist(), strict=True)
        return [whole[start:end] for start, end in spans]

    def read_data_span(self, offset: int, length: int) -> bytes:
        """Bytes of the data segment. Raises ValueError when they are not all inside it."""
        if not (0 <= offset < 1 << 64 and 0 <= length < 1 << 64):
            raise ValueError(f"data span outside data segment: offset {offset}, length {length}")
        return self.native.read_data(offset, length)

    def read_data_spans(self, spans: Iterable[tuple[int, int]]) -> bytes:
        """Several (offset, length) spans of the data segment, one behind the other."""
        return b"".join(self.read_data_span(offset, length) for offset, length in spans)

    @property
    def mmap_enabled(self) -> bool:
        """Whether views can be had: not of URLs and unusual file systems that cannot map files."""
        try:
            self._map()
        except (OSError, RuntimeError):
            return False
        return True

    def _pieces(self) -> Iterator[range]:
        """All rows, a few MiB of them at a time."""
        count = len(self)
        for start in range(0, count, _PIECE_ROWS):
            rows = range(start, min(start + _PIECE_ROWS, count))
            _, lengths = self.native.locate(np.arange(rows.start, rows.stop))
            first, size = rows.start, 0
            for row, length in zip(rows, lengths.tolist(), strict=True):
                if row > first and size + length > _PIECE_BYTES:
                    yield range(first, row)
                    first, size = row, 0
                size += length
            yield range(first, rows.stop)

    def _map(self) -> mmap.mmap:
        if self._remote is not None:
            raise RuntimeError(
                f"{self.package_path}: only local files can be mapped, use read_payloads or "
                "download it"
            )
        if self._mapping is None:
            try:
                self._mapping = mmap.mmap(self.native.descriptor, 0, access=mmap.ACCESS_READ)
            except (OSError, ValueError) as error:
                raise RuntimeError(f"{self.package_path}: cannot be mapped: {error}") from error
        return self._mapping

    @property
    def stats(self) -> dict[str, int]:
        """What a URL has cost so far: ``requests``, of them ``retries``, and ``bytes`` received.

        All 0 for local packs.
        """
        if self._remote is None:
            return {"requests": 0, "retries": 0, "bytes": 0}
        return self._remote.stats

    def close(self) -> None:
        """Lets go of the file. Records and tables that were read stay; reading more is an error."""
        self._native = None
        self._mapping = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        """Number of records."""
        return self.native.num_records

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._arguments

    def _repr_html_(self) -> str | None:
        return pack_html(self, type(self).__name__)

    def __repr__(self) -> str:
        name = f"{type(self).__name__}({str(self.package_path)!r})"
        if self._native is None:
            return f"<{name}, closed>"
        header = self.header
        return (
            f"<{name}: {len(self):,} records of {header.get('payload_type', 'unnamed')!r}, "
            f"codec {header.get('codec', 'none')!r}, {self.native.num_slides:,} slides>"
        )


def read_header(
    package_path: PathLike,
    storage_options: Mapping[str, Any] | None = None,
    remote: RemoteOptions | None = None,
) -> dict[str, Any]:
    """The JSON header of a pack. Arguments as of :class:`PackReader`."""
    with PackReader(package_path, storage_options, remote) as reader:
        return reader.header


def read_tables(
    package_path: PathLike,
    storage_options: Mapping[str, Any] | None = None,
    remote: RemoteOptions | None = None,
) -> tuple[dict[str, Any], pa.Table, pa.Table]:
    """Header, slide table and index table of a pack. Arguments as of :class:`PackReader`."""
    with PackReader(package_path, storage_options, remote) as reader:
        return reader.header, reader.slide_table, reader.index_table


def iter_payloads(
    package_path: PathLike,
    *,
    verify: bool = True,
    storage_options: Mapping[str, Any] | None = None,
    remote: RemoteOptions | None = None,
) -> Iterator[bytes]:
    """The stored bytes of every record, in row order. Arguments as of :class:`PackReader`."""
    with PackReader(package_path, storage_options, remote) as reader:
        for rows in reader._pieces():
            batch = reader.read_payloads_contiguous(rows, verify=verify, on_error="null")
            for record in batch:
                if record is None:
                    raise batch.errors[0].error
                yield bytes(record)
