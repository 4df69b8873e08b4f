"""Packs as Arrow record batches, for everything that speaks Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ..scanning.expressions import conjuncts
from ..scanning.plan import ScanPlan, empty
from ..scanning.run import Conjunct, scan

__all__ = ["record_batches"]


def record_batches(
    plan: ScanPlan, columns: Sequence[str] | None, filter: pc.Expression | None
) -> pa.RecordBatchReader:
    """A planned scan as a reader that can be read once."""
    names = plan.schema.names if columns is None else list(columns)
    if not names or isinstance(columns, str):
        raise ValueError(f"columns is {columns!r}, expected a list of names, or None for all")
    if filter is not None and not isinstance(filter, pc.Expression):
        raise TypeError(f"filter is {type(filter)}, expected a pyarrow.compute.Expression")
    plan.require(names)
    predicate = [] if filter is None else conjuncts(filter)
    for part in predicate:  # what does not go with the columns' types is an error now
        plan.require(part.columns)
        part.holds(empty(plan.fields(sorted(part.columns))))
    return pa.RecordBatchReader.from_batches(plan.fields(names), _batches(plan, names, predicate))


def _batches(
    plan: ScanPlan, names: Sequence[str], predicate: Sequence[Conjunct]
) -> Iterator[pa.RecordBatch]:
    for table in scan(plan, names, predicate):
        yield from table.to_batches()
