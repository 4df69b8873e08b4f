"""Turning a table with record references into one with their payloads."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .. import _native
from .._opening import PackOpener
from .._options import MAX_BATCH_BYTES, OnError, checked_report, read_options
from ..errors import CodecError, PackError, RecordFailure, row_error
from ..images import IMAGE_TYPE
from .kinds import KINDS, Kind, PackKind
from .references import References, read_references
from .resolve import ResolvedColumn, Resolver
from .rows import Rows, kept_rows, two_columns, whole

__all__ = ["decode"]


def decode(
    result: Any,
    as_: Kind | None = None,
    column: str = "record",
    into: str = "payload",
    workers: int | None = None,
    on_error: OnError = "raise",
    verify: bool = True,
    report: list[RecordFailure] | None = None,
    packs: Iterable[str | os.PathLike[str]] | None = None,
    storage: Any = None,
) -> Any:
    """The rows of a query with the payloads that their record references stand for.

    ``result`` is a DataFrame of Polars or pandas, anything else that speaks the Arrow C stream
    interface (a DuckDB relation, a pyarrow table or reader) or a DuckDB connection that holds a
    result. The struct column ``column`` names pack, row and stamp of each record; rows may repeat
    and come in any order. A DataFrame gives one of its kind, everything else a pyarrow.Table, with
    the payloads in a contiguous column ``into`` behind the others, which are untouched. A NULL
    reference gives a NULL payload; without any reference the payloads are large_binary, or what
    ``as_="text"`` and ``as_="image"`` stand for.

    * ``as_``: ``"bytes"`` (large_binary; of images their pixels), ``"text"`` (large_string),
      ``"image"`` (struct of height, width, channels, dtype and data), ``"vector"``
      (fixed_size_list of the pack's dtype), ``"tensor"`` (fixed_shape_tensor; images must be alike)
      or ``"stored"`` (the encoded bytes); None for what the packs' headers say: vectors of fixed
      packs, images of image codecs, else bytes. Polars has them as Binary, String, Struct, Array,
      Array of the images' shape and Binary, pandas as ArrowDtype of these types.
    * ``workers``: threads to decode with, None for as many as are useful.
    * ``on_error``: ``"raise"``; ``"null"`` gives NULL and says why in a column ``{into}_error``;
      ``"skip"`` drops the row.
    * ``verify``: compare stored bytes with their crc32.
    * ``report``: a list that a :class:`RecordFailure` of each failed row is added to; its
      ``position`` is the row of ``result``.
    * ``packs``: files and folders; references to any other pack fail. Give it when the table comes
      from elsewhere: a reference opens whatever local file it names.
    * ``storage``: an fsspec file system that opens references to its URLs. Without it they fail.

    Raises StaleReferenceError when a pack has changed since the reference was made,
    PackNotFoundError, ChecksumError, CodecError and PackIndexError, with pack and row in them;
    KeyError without the column; ValueError for two of its name and where ``into`` is taken.
    """
    decoder = Decoder(as_, column, into, workers, on_error, verify, packs, storage)
    checked_report(report)
    decoded = decoder.decode(whole(result))
    if report is not None:
        report.extend(decoded.failures)
    return decoded.rows.frame


@dataclass(frozen=True)
class Payloads:
    """What references stand for, and what could not be had."""

    column: pa.ChunkedArray
    failures: list[RecordFailure]  # by position
    size: int  # bytes


@dataclass(frozen=True)
class Decoded:
    """Rows with their payloads, and what could not be had."""

    rows: Rows
    failures: list[RecordFailure]  # by position
    payload_bytes: int


class BatchTooLarge(Exception):
    """The payloads of some rows are larger than allowed."""


class Decoder:
    """Decodes rows of a result, part by part; the payloads of all parts are of one type."""

    def __init__(
        self,
        as_: Kind | None = None,
        column: str = "record",
        into: str = "payload",
        workers: int | None = None,
        on_error: OnError = "raise",
        verify: bool = True,
        packs: Iterable[str | os.PathLike[str]] | None = None,
        storage: Any = None,
    ) -> None:
        if as_ is not None and as_ not in KINDS:
            raise ValueError(f"as_ is {as_!r}, expected one of {', '.join(KINDS)}")
        read_options(True, workers, verify, on_error)  # before anything is opened
        self.as_ = as_
        self.column = column
        self.opener = PackOpener(packs, storage)
        self.workers, self.on_error, self.verify = workers, on_error, verify
        self._into = into
        self._type: tuple[str, pa.DataType] | None = None  # of payloads, and a pack that has them

    def check(self, rows: Rows) -> None:
        """Raises KeyError without the column, ValueError for two of it or a name that is taken."""
        if self.column not in rows.names:
            raise KeyError(f"no column {self.column!r}, there are {rows.names}")
        if rows.names.count(self.column) > 1:
            raise ValueError(two_columns(self.column))
        taken = [self._into] + ([f"{self._into}_error"] if self.on_error == "null" else [])
        for name in taken:
            if name in rows.names:
                raise ValueError(f"there is a column {name!r} already, pass another name as into=")

    def decode(self, rows: Rows, first: int = 0, most_bytes: int = MAX_BATCH_BYTES) -> Decoded:
        """Rows with payloads; ``first`` is their place in the result.

        Raises BatchTooLarge when the payloads have more than ``most_bytes``, where that is not 0.
        """
        self.check(rows)
        references = read_references(rows.column(self.column))
        payloads = self.payloads(references, self.opener, first, most_bytes)
        payload, failures = payloads.column, payloads.failures
        if self.on_error == "null":
            reasons: list[str | None] = [None] * len(references)
            for failure in failures:
                reasons[failure.position - first] = str(failure.error)
            rows = rows.append(self._into, payload)
            errors = pa.chunked_array([pa.array(reasons, pa.string())])
            rows = rows.append(f"{self._into}_error", errors)
        elif failures:  # to skip
            kept = np.ones(len(references), dtype=bool)
            kept[[failure.position - first for failure in failures]] = False
            payload = kept_rows(pa.table([payload], [self._into]), kept)[self._into]
            contiguous = payload.combine_chunks()
            if isinstance(contiguous, pa.Array):
                payload = pa.chunked_array([contiguous])
            rows = rows.keep(kept).append(self._into, payload)
        else:
            rows = rows.append(self._into, payload)
        return Decoded(rows, failures, payloads.size)

    def payloads(
        self,
        references: References,
        opener: PackOpener,
        first: int = 0,
        most_bytes: int = MAX_BATCH_BYTES,
    ) -> Payloads:
        """The payloads of references, as :meth:`decode`; NULL for what could not be had."""
        resolver = Resolver(references, opener, self.on_error, first)
        decoding = _Decoding(self, resolver, most_bytes)
        column = decoding.run()
        failures = sorted(resolver.failures, key=lambda failure: failure.position)
        return Payloads(column, failures, decoding.payload_bytes)

    def agree_on_type(self, path: str, type: pa.DataType) -> None:
        """Raises CodecError where payloads of another pack have another type."""
        if self._type is None:
            self._type = (path, type)
        other, other_type = self._type
        if type != other_type:
            raise CodecError(
                f"payloads of {other} are {other_type}, those of {path} {type}: pass "
                "as_='bytes' or decode them apart"
            )

    @property
    def type(self) -> pa.DataType:
        """The payloads' type, as far as it is known."""
        if self._type is not None:
            return self._type[1]
        return {"text": pa.large_string(), "image": IMAGE_TYPE}.get(
            self.as_ or "", pa.large_binary()
        )


@dataclass
class _Decoding:
    """Of the rows of one part."""

    decoder: Decoder
    resolver: Resolver
    most_bytes: int
    payload_bytes: int = 0

    def run(self) -> pa.ChunkedArray:
        """The payload column: one batch a pack, brought into the order of the references."""
        payloads = ResolvedColumn(len(self.resolver.references))
        for pack, positions in self.resolver.packs():
            kind = PackKind(pack, self.decoder.as_)
            batch = self._read(pack, kind, positions)
            if batch is not None and len(batch.failures) < batch.count:
                column = kind.column(batch)
                if kind.kind == "text":
                    column = self._checked_text(column, pack.path, positions)
                payloads.add(positions, column)
                self.decoder.agree_on_type(pack.path, column.type)
            elif kind.type is not None:
                self.decoder.agree_on_type(pack.path, kind.type)
        return payloads.assembled(self.decoder.type)

    def _read(
        self, pack: _native.Pack, kind: PackKind, positions: npt.NDArray[np.int64]
    ) -> _native.Batch | None:
        if len(positions) == 0:
            return None
        decoder = self.decoder
        on_error = "raise" if decoder.on_error == "raise" else "null"
        # At least a byte, since 0 stands for the machine's memory.
        most_bytes = self.most_bytes and max(self.most_bytes - self.payload_bytes, 1)
        options = read_options(
            kind.decodes, decoder.workers, decoder.verify, on_error, max_batch_bytes=most_bytes
        )
        try:
            rows = self.resolver.references.row[positions]
            batch = pack.read(rows, *options, text=kind.kind == "text", images=kind.as_images)
        except (PackError, OSError) as error:  # its index cannot be read
            self.resolver.fail(positions, pack.path, error)
            return None
        except ValueError as error:
            if not self.most_bytes:
                raise
            raise BatchTooLarge from error
        for at, error in batch.failures:
            self.resolver.fail(positions[at : at + 1], pack.path, error)
        self.payload_bytes += len(batch.data)
        return batch

    def _checked_text(
        self, array: pa.Array, path: str, positions: npt.NDArray[np.int64]
    ) -> pa.Array:
        try:
            array.validate(full=True)
            return array
        except pa.ArrowInvalid:
            pass
        valid = np.asarray(array.is_valid())
        payloads = array.view(pa.large_binary())
        for at in np.flatnonzero(valid).tolist():
            if not _is_utf8(payloads[at].as_py()):
                row = int(self.resolver.references.row[positions[at]])
                reason = "payload is not UTF-8, use as_='bytes'"
                error = row_error(CodecError, path, row, reason)
                self.resolver.fail(positions[at : at + 1], path, error)
                valid[at] = False
        return pc.if_else(pa.array(valid), payloads, pa.scalar(None, pa.large_binary())).cast(
            pa.large_string()
        )


def _is_utf8(payload: bytes) -> bool:
    try:
        payload.decode("utf-8")
    except UnicodeDecodeError:  # holds the payload, so it must not become another error's context
        return False
    return True
