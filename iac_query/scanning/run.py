"""Running a planned scan: rows are picked by cheap columns first, and payloads decoded for those
that are left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .. import _native
from ..decoding.decode import Decoder
from ..decoding.kinds import PackKind, PayloadSizes
from ..decoding.references import NO_STAMP, References
from ..errors import PackError
from ..pack import PackReader
from .columns import RECORD, PackRows, lower_case, take
from .plan import RECORD_TYPE, ScanPlan
from .types import cast

#: Rows of a batch without payloads.
BATCH_ROWS = 100_000

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Conjunct:
    """One of the conditions that must all hold: the columns that it looks at, and which rows of a
    table of those columns it is true for.
    """

    columns: frozenset[str]
    holds: Callable[[pa.Table], npt.NDArray[np.bool_]]


def scan(
    plan: ScanPlan,
    columns: Sequence[str],
    predicate: Sequence[Conjunct] = (),
    limit: int | None = None,
    batch_rows: int = BATCH_ROWS,
) -> Iterator[pa.Table]:
    """Of the first ``limit`` rows of all packs, or of all, those that the predicate holds for, in
    the packs' order; none at all for no rows. One pack is open at a time, and closed when the
    iterator is.
    """
    plan.require({*columns, *(name for part in predicate for name in part.columns)})
    sizes = BatchSizes(plan.options.batch_bytes, batch_rows)
    left = limit
    for number in range(len(plan.files)):
        if left == 0:
            return
        with plan.open(number) as reader:
            count = len(reader) if left is None else min(left, len(reader))
            yield from _PackScan(plan, number, reader).run(columns, predicate, count, sizes)
        if left is not None:
            left -= count


class BatchSizes:
    """How many rows make a batch: by the sizes of payloads where they are known, else by their
    stored bytes and by what those of the batches before became when they were decoded.
    """

    def __init__(self, batch_bytes: int, batch_rows: int) -> None:
        self._batch_bytes = batch_bytes
        self._batch_rows = batch_rows
        # Few at first, they may grow a lot.
        self._rows = 64.0
        self._stored_bytes = batch_bytes / 16

    def of_rows(self, count: int) -> Iterator[slice]:
        """Batches of rows that are not decoded."""
        for start in range(0, count, self._batch_rows):
            yield slice(start, start + self._batch_rows)

    def of_payloads(self, sizes: PayloadSizes) -> Iterator[slice]:
        """Batches, of one row at least, of rows whose payloads have these sizes."""
        stored, exact = sizes.stored, sizes.exact
        ends = np.cumsum(stored, dtype=np.float64)
        start = 0
        while start < len(stored):
            rows = self._batch_rows if exact else min(self._batch_rows, self._rows)
            room = self._batch_bytes if exact else self._stored_bytes
            room += ends[start - 1] if start else 0.0
            end = int(np.searchsorted(ends, room, side="right"))
            end = max(start + 1, min(end, start + int(rows)))
            yield slice(start, end)
            start = end

    def learn(self, rows: int, stored: int, decoded: int) -> None:
        """What became of a batch. The next one is at most four times as large."""
        fit = self._batch_bytes / max(decoded, 1)
        self._rows = max(min(4 * self._rows, rows * fit), 1)
        self._stored_bytes = max(min(4 * self._stored_bytes, stored * fit), 1)


class _PackScan:
    """The scan of one pack."""

    def __init__(self, plan: ScanPlan, number: int, reader: PackReader) -> None:
        self._plan = plan
        self._number = number
        self._reader = reader
        self._values = PackRows(reader)
        self._sources = {lower_case(c.name): c for c in plan.shapes[number].columns}

    def run(
        self,
        columns: Sequence[str],
        predicate: Sequence[Conjunct],
        count: int,
        sizes: BatchSizes,
    ) -> Iterator[pa.Table]:
        """Of the first ``count`` rows those that the predicate holds for."""
        payload = self._plan.payload_columns
        on_payloads = [part for part in predicate if part.columns & payload]
        others = [part for part in predicate if not part.columns & payload]
        # A condition on references may resolve them, so it is not cheap.
        on_records = [part for part in others if RECORD in part.columns]
        on_tables = [part for part in others if RECORD not in part.columns]
        decodes = bool(on_payloads) or not payload.isdisjoint(columns)

        rows = np.arange(count, dtype=np.int64)
        rows = rows[self._holds(on_tables, rows)]
        if decodes or on_records:
            known = self._sizes(rows)
            batches = sizes.of_payloads(known)
        else:
            batches = sizes.of_rows(len(rows))
        for batch in batches:
            held = self._holds(on_records, rows[batch])
            chosen = rows[batch][held]
            if len(chosen) == 0:
                continue
            decoded = None
            if decodes:
                decoded = self._decode(chosen)
                if not known.exact:
                    stored = int(known.stored[batch][held].sum())
                    sizes.learn(len(chosen), stored, decoded.nbytes)
                kept = np.flatnonzero(self._holds(on_payloads, chosen, decoded))
                chosen = chosen[kept]
                decoded = pa.table(
                    [take(column, kept) for column in decoded.columns], decoded.column_names
                )
            if len(chosen):
                yield self._table(columns, chosen, decoded)

    def _holds(
        self, conjuncts: Sequence[Conjunct], rows: Rows, decoded: pa.Table | None = None
    ) -> npt.NDArray[np.bool_]:
        """The rows that all conditions hold for."""
        holds = np.ones(len(rows), dtype=bool)
        for part in conjuncts:
            holds &= part.holds(self._table(sorted(part.columns), rows, decoded))
        return holds

    def _table(self, names: Sequence[str], rows: Rows, decoded: pa.Table | None = None) -> pa.Table:
        sources = (self._sources.get(lower_case(name)) for name in names)
        self._values.load(column for column in sources if column is not None)
        columns = [self._column(name, rows, decoded) for name in names]
        return pa.table(columns, schema=self._plan.fields(names))

    def _column(
        self, name: str, rows: Rows, decoded: pa.Table | None
    ) -> pa.ChunkedArray | pa.Array:
        if decoded is not None and name in decoded.column_names:
            return decoded[name]
        if name == RECORD:
            return self._records(rows)
        if name in self._plan.constants:
            return pa.repeat(self._plan.constants[name][self._number], len(rows))
        type = self._plan.schema.field(name).type
        source = self._sources.get(lower_case(name))
        if source is None:
            return pa.nulls(len(rows), type)
        try:
            return cast(self._values.values(source, rows), type)
        except pa.ArrowInvalid as error:
            path = self._reader.package_path
            raise PackError(
                f"{path}: column {name!r}: a value is outside the range of {type}"
            ) from error

    def _records(self, rows: Rows) -> pa.Array:
        native = self._reader.native
        fields = [
            pa.repeat(pa.scalar(native.path, pa.string()), len(rows)),
            pa.array(rows),
            pa.array(native.stamps(rows)),
        ]
        return pa.StructArray.from_arrays(fields, fields=list(RECORD_TYPE))

    def _sizes(self, rows: Rows) -> PayloadSizes:
        """The sizes of rows' payloads; of a pack whose payloads cannot be had, those stored."""
        native, as_ = self._reader.native, self._plan.options.as_
        is_decodable = not isinstance(self._plan.shapes[self._number].payload, str)
        return PackKind(native, as_ if is_decodable else "stored").sizes(rows)

    def _decode(self, rows: Rows) -> pa.Table:
        """The payloads of rows, and why some are missing."""
        options, native = self._plan.options, self._reader.native
        no_stamps = np.full(len(rows), NO_STAMP)
        references = References([native.path], np.zeros(len(rows), np.int64), rows, no_stamps)
        decoder = Decoder(
            options.as_,
            workers=options.workers,
            on_error=options.on_error,
            verify=options.verify,
        )
        payloads = decoder.payloads(references, _Opened(native))
        columns = {options.into: payloads.column}
        if options.error_column:
            reasons: list[str | None] = [None] * len(rows)
            for failure in payloads.failures:
                reasons[failure.position] = str(failure.error)
            columns[options.error_column] = pa.array(reasons, pa.string())
        return pa.table(columns)


class _Opened:
    """Opens the pack that is open already."""

    def __init__(self, pack: _native.Pack) -> None:
        self._pack = pack

    def open(self, path: str) -> _native.Pack:
        return self._pack
