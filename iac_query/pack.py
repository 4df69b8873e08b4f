"""Readers of packs."""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from . import _native
from ._options import (
    MAX_BATCH_BYTES,
    MAX_RECORD_BYTES,
    OnError,
    checked_on_error,
    row_array,
    row_number,
    worker_count,
)
from .batch import ContiguousRecordBatch
from .build import build_fixed, build_variable, build_variable_from_payloads
from .codec import Codec, codec_of_header, is_registered
from .errors import CodecError, PackError, RecordFailure

__all__ = [
    "FixedRecordPack",
    "PackReader",
    "VariableRecordPack",
    "iter_payloads",
    "read_header",
    "read_tables",
]

PathLike = str | os.PathLike[str]


class PackReader:
    """An open pack: its header, its tables, and its records as they are stored.

    Opening checks header, tables and layout, so a bad file is an error at once:
    PackNotFoundError, PackError, or the OSError that says why it cannot be read. Tables and layout
    are read as far as they are asked for. The reader stays with the file it opened, also when
    another takes its name. Any number of threads may use it, forked children too; it pickles as
    its absolute path.

    ``verify=True`` compares stored bytes with the crc32 of the index, where it has one.
    """

    def __init__(self, package_path: PathLike) -> None:
        #: Absolute path, symlinks kept.
        self.package_path = Path(os.path.abspath(os.fsdecode(package_path)))
        self._native: _native.Pack | None = _native.Pack(os.fsencode(self.package_path))
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
        capsule = self.native.table(name, None if columns is None else list(columns))
        try:
            return pa.RecordBatchReader._import_from_c_capsule(capsule).read_all()
        except pa.ArrowInvalid as error:
            if "delta dictionaries" in str(error):
                return self._table_with_deltas(name, columns)
            raise PackError(f"{self.package_path}: {error}") from error

    def _table_with_deltas(self, name: str, columns: Sequence[str] | None) -> pa.Table:
        """A table by pyarrow, for the one thing in tables that the core does not know."""
        start, length = (self.header[f"{name}_table_{field}"] for field in ("offset", "length"))
        table = pa.ipc.open_stream(os.pread(self.native.descriptor, length, start)).read_all()
        table.validate(full=True)
        return table if columns is None else table.select(list(columns))

    def read_payload(self, row: int, *, verify: bool = True) -> bytes:
        """The stored bytes of one row; negative rows count from the end."""
        return self.native.read_one(row_number(row, len(self)), False, verify, MAX_RECORD_BYTES)

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
        batch = self.native.read(
            row_array(rows, len(self)),
            False,
            worker_count(workers),
            verify,
            on_error,
            MAX_RECORD_BYTES,
            max_batch_bytes,
        )
        return _reported(ContiguousRecordBatch.from_native(batch, on_error), report)

    def read_payload_views(self, rows: Iterable[int]) -> list[memoryview]:
        """The stored bytes of rows as read-only views of the file, without a copy or a checksum.

        The views stay valid after :meth:`close` and keep to the file that was opened. They are
        mapped memory: if the file is truncated meanwhile, touching them kills the process. Use
        :meth:`read_payloads` on files that others may change.
        """
        offsets, lengths = self.native.locate(row_array(rows, len(self)))
        whole = memoryview(self._map())
        starts = offsets + np.uint64(self.native.data_offset)
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
        """Whether views can be had: not of an unusual file system that cannot map files."""
        try:
            self._map()
        except (OSError, RuntimeError):
            return False
        return True

    def _map(self) -> mmap.mmap:
        if self._mapping is None:
            try:
                self._mapping = mmap.mmap(self.native.descriptor, 0, access=mmap.ACCESS_READ)
            except (OSError, ValueError) as error:
                raise RuntimeError(f"{self.package_path}: cannot be mapped: {error}") from error
        return self._mapping

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
        return type(self), (str(self.package_path),)

    def __repr__(self) -> str:
        name = f"{type(self).__name__}({str(self.package_path)!r})"
        if self._native is None:
            return f"<{name}, closed>"
        header = self.header
        return (
            f"<{name}: {len(self):,} records of {header.get('payload_type', 'unnamed')!r}, "
            f"codec {header.get('codec', 'none')!r}, {self.native.num_slides:,} slides>"
        )


class VariableRecordPack:
    """A pack of encoded records of any length, read decoded.

    Opens eagerly, pickles as its absolute path, and may be shared like a :class:`PackReader`.
    """

    def __init__(self, package_path: PathLike) -> None:
        self._reader = PackReader(package_path)
        if self._reader.native.kind != "variable":
            raise PackError(f"{self._reader.package_path}: is not a pack of variable records")
        self._codec: Codec | None = None

    build = staticmethod(build_variable)
    build_from_payloads = staticmethod(build_variable_from_payloads)

    @property
    def reader(self) -> PackReader:
        """The reader of stored bytes below."""
        return self._reader

    @property
    def header(self) -> dict[str, Any]:
        """The JSON header."""
        return self._reader.header

    @property
    def slide_table(self) -> pa.Table:
        """The slide table."""
        return self._reader.slide_table

    @property
    def index_table(self) -> pa.Table:
        """The index table, a row a record."""
        return self._reader.index_table

    @property
    def record_count(self) -> int:
        """Number of records."""
        return len(self._reader)

    @property
    def codec(self) -> Codec:
        """The codec the header names. Raises CodecError for an unknown one."""
        if self._codec is None:
            self._codec = codec_of_header(self.header)
        return self._codec

    def read_bytes(self, row: int, *, verify: bool = True) -> bytes:
        """The stored bytes of one row."""
        return self._reader.read_payload(row, verify=verify)

    def read(
        self, row: int, *, verify: bool = True, max_record_bytes: int = MAX_RECORD_BYTES
    ) -> Any:
        """One row, decoded: bytes, or what a registered codec makes."""
        if is_registered(self.header.get("codec")):
            return self._read_registered([row], 1, verify, "raise", None)[0]
        number = row_number(row, len(self._reader))
        return self._reader.native.read_one(number, True, verify, max_record_bytes)

    def read_many(
        self,
        rows: Iterable[int],
        workers: int | None = None,
        *,
        verify: bool = True,
        on_error: OnError = "raise",
        report: list[RecordFailure] | None = None,
        max_record_bytes: int = MAX_RECORD_BYTES,
    ) -> list[Any]:
        """Rows, decoded, in the order given, duplicates included.

        Options as :meth:`read_many_contiguous`; a missing record is None.
        """
        if is_registered(self.header.get("codec")):
            return self._read_registered(rows, workers, verify, on_error, report)
        batch = self.read_many_contiguous(
            rows,
            workers=workers,
            verify=verify,
            on_error=on_error,
            report=report,
            max_record_bytes=max_record_bytes,
        )
        return [None if record is None else bytes(record) for record in batch]

    def _read_registered(
        self,
        rows: Iterable[int],
        workers: int | None,
        verify: bool,
        on_error: OnError,
        report: list[RecordFailure] | None,
    ) -> list[Any]:
        checked_on_error(on_error)
        rows = row_array(rows, len(self._reader))
        stored = self._reader.read_payloads_contiguous(
            rows,
            workers=workers,
            verify=verify,
            on_error="raise" if on_error == "raise" else "null",
        )
        failures = {failure.position: failure for failure in stored.errors}
        objects: list[Any] = []
        for position, payload in enumerate(stored):
            decoded = None
            if payload is not None:
                try:
                    decoded = self.codec.decode(bytes(payload))
                except Exception as cause:
                    error = self._decode_error(int(rows[position]), cause)
                    if on_error == "raise":
                        raise error from cause
                    failures[position] = RecordFailure.of(position, error)
            if position not in failures or on_error == "null":
                objects.append(decoded)
        if report is not None:
            report.extend(failures[position] for position in sorted(failures))
        return objects

    def _decode_error(self, row: int, cause: Exception) -> CodecError:
        path = str(self._reader.package_path)
        error = CodecError(f"{path}: row {row}: codec {self.codec.name}: {type(cause).__name__}")
        error.pack, error.row, error.__cause__ = path, row, cause
        return error

    def read_many_contiguous(
        self,
        rows: Iterable[int],
        *,
        workers: int | None = None,
        verify: bool = True,
        on_error: OnError = "raise",
        report: list[RecordFailure] | None = None,
        max_record_bytes: int = MAX_RECORD_BYTES,
        max_batch_bytes: int = MAX_BATCH_BYTES,
    ) -> ContiguousRecordBatch:
        """Rows, decoded in parallel into one piece of memory, in the order given.

        * ``workers``: None for as many threads as are useful, 1 for none beside the caller's.
        * ``verify``: compare stored bytes with the index's crc32 first.
        * ``on_error``: ``"raise"`` raises the first failed record's error, ``"null"`` marks such
          records missing, ``"skip"`` leaves them out.
        * ``report``: a list that each failed record's :class:`RecordFailure` is added to.
        * ``max_record_bytes``, ``max_batch_bytes``: bounds on decoded sizes, against
          decompression bombs; 0 for the batch stands for the machine's memory.

        Raises PackIndexError, ChecksumError, CodecError or PackError, with pack and row in them,
        and TypeError for a codec that does not decode to bytes.
        """
        if is_registered(self.header.get("codec")):
            return self._decode_contiguous(rows, workers, verify, on_error, report)
        batch = self._reader.native.read(
            row_array(rows, len(self._reader)),
            True,
            worker_count(workers),
            verify,
            on_error,
            max_record_bytes,
            max_batch_bytes,
        )
        return _reported(ContiguousRecordBatch.from_native(batch, on_error), report)

    def _decode_contiguous(
        self,
        rows: Iterable[int],
        workers: int | None,
        verify: bool,
        on_error: OnError,
        report: list[RecordFailure] | None,
    ) -> ContiguousRecordBatch:
        rows = row_array(rows, len(self._reader))
        failures: list[RecordFailure] = []
        objects = self._read_registered(rows, workers, verify, on_error, failures)
        present = np.ones(len(rows), dtype=bool)
        present[[failure.position for failure in failures]] = False
        nulls = on_error == "null" and len(failures) > 0
        if nulls:
            objects = [obj if here else b"" for obj, here in zip(objects, present, strict=True)]
        for obj in objects:
            if not isinstance(obj, bytes | bytearray | memoryview):
                raise TypeError(f"codec {self.codec.name} decodes to {type(obj)}, not to bytes")
        offsets = np.zeros(len(objects) + 1, dtype=np.uint64)
        offsets[1:] = np.cumsum([len(obj) for obj in objects])
        batch = ContiguousRecordBatch(
            b"".join(objects),
            offsets,
            validity=np.packbits(present, bitorder="little").tobytes() if nulls else None,
            errors=failures,
            positions=np.flatnonzero(present) if on_error == "skip" else None,
        )
        return _reported(batch, report)

    def close(self) -> None:
        """Lets go of the file."""
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        """Number of records."""
        return len(self._reader)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self._reader.package_path),)

    def __repr__(self) -> str:
        return repr(self._reader).replace("PackReader", type(self).__name__, 1)


class FixedRecordPack:
    """A pack whose records are the rows of a matrix, all of one dtype and length.

    Opens eagerly, pickles as its absolute path, and may be shared like a :class:`PackReader`.
    Raises PackError when the header's geometry is missing or does not agree with itself.
    """

    def __init__(self, package_path: PathLike) -> None:
        self._reader = PackReader(package_path)
        path, header = self._reader.package_path, self._reader.header
        if self._reader.native.kind != "fixed":
            raise PackError(f"{path}: is not a pack of fixed records")
        #: Values per record.
        self.dim = int(header["feature_dim"])
        #: Their dtype.
        self.dtype = stored_dtype(header["dtype"], str(path))
        if self.dim * self.dtype.itemsize != header["feature_record_bytes"]:
            raise PackError(
                f"{path}: header field feature_record_bytes is {header['feature_record_bytes']}, "
                f"expected {self.dim} x {self.dtype.itemsize}"
            )

    build = staticmethod(build_fixed)

    @property
    def reader(self) -> PackReader:
        """The reader of stored bytes below."""
        return self._reader

    @property
    def header(self) -> dict[str, Any]:
        """The JSON header."""
        return self._reader.header

    @property
    def slide_table(self) -> pa.Table:
        """The slide table."""
        return self._reader.slide_table

    @property
    def index_table(self) -> pa.Table:
        """The index table, a row a record."""
        return self._reader.index_table

    @property
    def record_count(self) -> int:
        """Number of records."""
        return len(self._reader)

    def read(self, row: int) -> npt.NDArray[Any]:
        """One record: shape (dim,), the pack's dtype, read-only."""
        return np.frombuffer(self._reader.read_payload(row), dtype=self.dtype)

    def read_many(self, rows: Iterable[int], workers: int | None = None) -> list[npt.NDArray[Any]]:
        """Records in the order given: arrays of shape (dim,) and the pack's dtype."""
        return list(self.read_matrix(rows, workers))

    def read_matrix(self, rows: Iterable[int], workers: int | None = None) -> npt.NDArray[Any]:
        """Records as one writable array of shape (len(rows), dim) and the pack's dtype."""
        rows = row_array(rows, len(self._reader))
        batch = self._reader.native.read(
            rows, False, worker_count(workers), True, "raise", MAX_RECORD_BYTES, MAX_BATCH_BYTES
        )
        values = np.frombuffer(batch.take_data(), dtype=self.dtype)
        return values.reshape(len(rows), self.dim)

    def close(self) -> None:
        """Lets go of the file."""
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        """Number of records."""
        return len(self._reader)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self._reader.package_path),)

    def __repr__(self) -> str:
        shape = f"{len(self):,} x {self.dim} {self.dtype.name}"
        return f"<{type(self).__name__}({str(self._reader.package_path)!r}): {shape}>"


def stored_dtype(name: object, pack: str) -> np.dtype[Any]:
    """The little-endian dtype that a header's ``dtype`` names. Raises PackError for any other."""
    try:
        dtype = np.dtype(name) if isinstance(name, str) else None
    except TypeError:
        dtype = None
    if dtype is None or dtype.kind not in "biufc" or dtype.name != name:
        raise PackError(f"{pack}: header field dtype is {name!r}, expected a NumPy dtype's name")
    return dtype.newbyteorder("<")


def read_header(package_path: PathLike) -> dict[str, Any]:
    """The JSON header of a pack."""
    with PackReader(package_path) as reader:
        return reader.header


def read_tables(package_path: PathLike) -> tuple[dict[str, Any], pa.Table, pa.Table]:
    """Header, slide table and index table of a pack."""
    with PackReader(package_path) as reader:
        return reader.header, reader.slide_table, reader.index_table


def iter_payloads(package_path: PathLike, *, verify: bool = True) -> Iterator[bytes]:
    """The stored bytes of every record, in row order."""
    with PackReader(package_path) as reader:
        for row in range(len(reader)):
            yield reader.read_payload(row, verify=verify)


def _reported(
    batch: ContiguousRecordBatch, report: list[RecordFailure] | None
) -> ContiguousRecordBatch:
    if report is not None:
        report.extend(batch.errors)
    return batch
