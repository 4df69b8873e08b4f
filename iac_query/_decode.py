"""Turning a table with record references into one with their payloads."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from . import _native
from ._kinds import KINDS, Kind, PackKind
from ._opening import PackOpener
from ._options import OnError, checked_report, read_options
from ._references import NO_STAMP, References, read_references
from .errors import CodecError, PackError, RecordFailure, StaleReferenceError, row_error
from .images import IMAGE_TYPE

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
) -> pa.Table:
    """The rows of a query with the payloads that their record references stand for.

    ``result`` is anything that speaks the Arrow C stream interface (a DuckDB relation, a Polars
    frame, a pyarrow table or reader) or a DuckDB connection that holds a result. The struct column
    ``column`` names pack, row and stamp of each record; rows may repeat and come in any order.
    Returned is a pyarrow.Table with the payloads in a contiguous column ``into`` behind the others,
    which are untouched. A NULL reference gives a NULL payload; without any reference the payloads
    are large_binary, or what ``as_="text"`` and ``as_="image"`` stand for.

    * ``as_``: ``"bytes"`` (large_binary; of images their pixels), ``"text"`` (large_string),
      ``"image"`` (struct of height, width, channels, dtype and data), ``"vector"``
      (fixed_size_list of the pack's dtype), ``"tensor"`` (fixed_shape_tensor; images must be alike)
      or ``"stored"`` (the encoded bytes); None for what the packs' headers say: vectors of fixed
      packs, images of image codecs, else bytes.
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
    KeyError without the column; ValueError where ``into`` is taken.
    """
    if as_ is not None and as_ not in KINDS:
        raise ValueError(f"as_ is {as_!r}, expected one of {', '.join(KINDS)}")
    read_options(True, workers, verify, on_error)  # before anything is opened
    checked_report(report)
    table = _as_table(result)
    if column not in table.column_names:
        raise KeyError(f"no column {column!r}, there are {table.column_names}")
    if into in table.column_names:
        raise ValueError(f"there is a column {into!r} already, pass another name as into=")
    if on_error == "null" and f"{into}_error" in table.column_names:
        raise ValueError(f"there is a column '{into}_error' already, pass another name as into=")
    references = read_references(table[column])
    decoding = _Decoding(references, as_, workers, on_error, verify)
    payload = decoding.run(PackOpener(packs, storage))

    failures = sorted(decoding.failures, key=lambda failure: failure.position)
    if report is not None:
        report.extend(failures)
    table = table.append_column(into, payload)
    if on_error == "null":
        reasons: list[str | None] = [None] * len(references)
        for failure in failures:
            reasons[failure.position] = str(failure.error)
        return table.append_column(f"{into}_error", pa.array(reasons, pa.string()))
    if on_error == "skip" and failures:
        kept = np.ones(len(references), dtype=bool)
        kept[[failure.position for failure in failures]] = False
        return _keep(table, kept, into)
    return table


def _as_table(result: Any) -> pa.Table:
    if isinstance(result, pa.Table):
        return result
    # DuckDB goes on in its threads with what it streams, beside the decoding: a table comes first.
    for fetch in ("to_arrow_table", "fetch_arrow_table"):  # newer and older
        if hasattr(result, fetch):
            return getattr(result, fetch)()
    if hasattr(result, "__arrow_c_stream__"):
        return pa.table(result)
    raise TypeError(
        f"result is {type(result)}, expected something with __arrow_c_stream__ or a DuckDB "
        "connection that holds a result"
    )


@dataclass
class _Decoding:
    references: References
    as_: Kind | None
    workers: int | None
    on_error: OnError
    verify: bool
    failures: list[RecordFailure] = field(default_factory=list)

    def run(self, opener: PackOpener) -> pa.ChunkedArray:
        """The payload column: one batch a pack, brought into the order of the references."""
        order, columns, types = [], [], []
        for number, path in enumerate(self.references.paths):
            positions = np.flatnonzero(self.references.pack == number)
            if len(positions) == 0:
                continue
            try:
                pack = opener.open(path)
            except (PackError, OSError) as error:
                self._fail(positions, path, error)
                continue
            kind = PackKind(pack, self.as_)
            try:
                positions = self._fresh(pack, positions)
                batch = self._read(pack, kind, positions)
            except (PackError, OSError) as error:  # its index cannot be read
                self._fail(positions, path, error)
                batch = None
            if batch is not None and len(batch.failures) < batch.count:
                columns.append(self._column(pack, kind, positions, batch))
                order.append(positions)
                types.append((path, columns[-1].type))
            elif kind.type is not None:
                types.append((path, kind.type))
        return self._assemble(order, columns, _common_type(types, self.as_))

    def _fail(self, positions: npt.NDArray[np.int64], path: str, error: Exception) -> None:
        if self.on_error == "raise":
            raise error
        for position in positions.tolist():
            row = int(self.references.row[position])
            self.failures.append(RecordFailure(position, path, row, error))

    def _fresh(self, pack: _native.Pack, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The positions whose stamp, where they have one, is the pack's."""
        stamp, row = self.references.stamp[positions], self.references.row[positions]
        stamped = (stamp != NO_STAMP) & (row >= 0) & (row < pack.num_records)
        stale = np.zeros(len(positions), dtype=bool)
        stale[stamped] = pack.stamps(row[stamped]) != stamp[stamped]
        for position in positions[stale].tolist():
            row_number = int(self.references.row[position])
            reason = "the pack has changed since this reference was made, run the query again"
            error = row_error(StaleReferenceError, pack.path, row_number, reason)
            self._fail(np.array([position]), pack.path, error)
        return positions[~stale]

    def _read(
        self, pack: _native.Pack, kind: PackKind, positions: npt.NDArray[np.int64]
    ) -> _native.Batch:
        on_error = "raise" if self.on_error == "raise" else "null"
        options = read_options(kind.decodes, self.workers, self.verify, on_error)
        text = kind.kind == "text"
        batch = pack.read(self.references.row[positions], *options, text=text)
        for at, error in batch.failures:
            self._fail(positions[at : at + 1], pack.path, error)
        return batch

    def _column(
        self,
        pack: _native.Pack,
        kind: PackKind,
        positions: npt.NDArray[np.int64],
        batch: _native.Batch,
    ) -> pa.Array:
        array = kind.column(batch)
        return self._checked_text(array, pack.path, positions) if kind.kind == "text" else array

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
                row = int(self.references.row[positions[at]])
                reason = "payload is not UTF-8, use as_='bytes'"
                error = row_error(CodecError, path, row, reason)
                self._fail(positions[at : at + 1], path, error)
                valid[at] = False
        return pc.if_else(pa.array(valid), payloads, pa.scalar(None, pa.large_binary())).cast(
            pa.large_string()
        )

    def _assemble(
        self,
        order: list[npt.NDArray[np.int64]],
        columns: list[pa.Array],
        type: pa.DataType,
    ) -> pa.ChunkedArray:
        count = len(self.references)
        if not columns:
            return pa.chunked_array([pa.nulls(count, type)])
        positions = np.concatenate(order)
        if len(positions) == count and (positions[1:] > positions[:-1]).all():
            return pa.chunked_array(columns, type)
        source = np.full(count, -1, dtype=np.int64)
        source[positions] = np.arange(len(positions))
        indices = pa.array(source, mask=source < 0)
        return pa.chunked_array([_concat(columns).take(indices)])


def _keep(table: pa.Table, kept: npt.NDArray[np.bool_], contiguous: str) -> pa.Table:
    """The rows that are kept, one column in one piece. pyarrow cannot filter every type."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], kept, [False]]).astype(np.int8)))
    runs = [table.slice(start, end - start) for start, end in edges.reshape(-1, 2).tolist()]
    rows = pa.concat_tables(runs) if runs else table.slice(0, 0)
    at = rows.schema.get_field_index(contiguous)
    return rows.set_column(at, rows.field(at), rows.column(at).combine_chunks())


def _is_utf8(payload: bytes) -> bool:
    try:
        payload.decode("utf-8")
    except UnicodeDecodeError:  # holds the payload, so it must not become another error's context
        return False
    return True


def _concat(columns: list[pa.Array]) -> pa.Array:
    return columns[0] if len(columns) == 1 else pa.concat_arrays(columns)


def _common_type(types: list[tuple[str, pa.DataType]], as_: Kind | None) -> pa.DataType:
    if not types:
        return {"text": pa.large_string(), "image": IMAGE_TYPE}.get(as_ or "", pa.large_binary())
    path, first = types[0]
    for other_path, other in types[1:]:
        if other != first:
            raise CodecError(
                f"payloads of {path} are {first}, those of {other_path} {other}: pass "
                "as_='bytes' or decode them apart"
            )
    return first
