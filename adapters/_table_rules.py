"""Rules of header fields and columns that several schemas share. Messages name rows, never ids."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .._tables import LAYOUT
from ..validation.checked_pack import (
    CheckedPack,
    Rows,
    TableName,
    as_indices,
    numbers,
    rows_where,
)
from ..validation.report import Finding, Severity


def check_counts(pack: CheckedPack, names: tuple[str, ...]) -> Iterator[Finding]:
    """Header fields that are integers above 0."""
    for name in names:
        if name not in pack.header:
            yield pack.finding("schema", f"the header has no {name!r}")
        elif not is_count(pack.header[name]):
            yield pack.finding("schema", f"header field {name} is no integer above 0")


def check_columns(
    pack: CheckedPack,
    table: TableName,
    schema: Mapping[str, pa.DataType],
    nullable: Container[str] = (),
) -> Iterator[Finding]:
    """Columns that are there, of a kind that readers take, and without NULL unless ``nullable``."""
    for name, type in schema.items():
        if not pack.has(table, name):
            yield pack.finding("schema", f"the {table} table has no column {name!r}")
            continue
        column = pack.column(table, name)
        if column is None or name in LAYOUT:  # of which the container's check says what is wrong
            continue
        if not is_like(column.type, type):
            reason = f"{table} table: column {name!r} is {column.type}, expected {type}"
            yield pack.finding("schema", reason)
            continue
        if pa.types.is_integer(type):
            yield from in_rows(pack, table, _outside(column, type), f"{name} is no {type}")
        if column.null_count and name not in nullable:
            yield from in_rows(pack, table, rows_where(column.is_null()), f"{name} is NULL")


def is_like(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether readers take a column for one of the type that is wanted."""
    types = pa.types
    if types.is_integer(wanted):
        return types.is_integer(found)
    if types.is_string(wanted):
        return types.is_string(found) or types.is_large_string(found)
    if types.is_binary(wanted) or types.is_large_binary(wanted):
        return types.is_binary(found) or types.is_large_binary(found)
    return found == wanted


def _present(column: pa.ChunkedArray) -> tuple[Rows, pa.ChunkedArray]:
    """The rows that are not NULL, and their values."""
    return rows_where(column.is_valid()), column.drop_null()


def _outside(column: pa.ChunkedArray, type: pa.DataType) -> Rows:
    """The rows whose integer is beyond a type."""
    rows, values = _present(column)
    found, limits = numbers(values), np.iinfo(str(type))
    return rows[(found < limits.min) | (found > limits.max)]


def in_rows(
    pack: CheckedPack,
    table: TableName,
    rows: Iterable[int],
    reason: str,
    check: str = "schema",
    severity: Severity = "error",
) -> Iterator[Finding]:
    """One finding for each of some rows of a table."""
    for row in rows:
        if table == "index":
            yield pack.finding(check, reason, row, severity)
        else:
            yield pack.finding(check, f"slide table: row {row}: {reason}", None, severity)


def check_ids(
    pack: CheckedPack, table: TableName, name: str, among: Rows | None = None
) -> Iterator[Finding]:
    """A column of ids, none of which is empty or there twice ``among`` some rows, None for all."""
    column = pack.column(table, name)
    types = pa.types
    if column is None or not (
        types.is_integer(column.type)
        or types.is_string(column.type)
        or types.is_large_string(column.type)
    ):
        return
    rows, values = _present(column if among is None else column.take(as_indices(among)))
    rows = rows if among is None else among[rows]
    if not types.is_integer(column.type):
        empty = numbers(pc.binary_length(values)) == 0
        yield from in_rows(pack, table, rows[empty], f"{name} is empty")
    codes = numbers(pc.index_in(values, values.unique()))
    _, first, which = np.unique(codes, return_index=True, return_inverse=True)
    for at in np.flatnonzero(first[which] != np.arange(len(codes))):
        reason = f"{name} is that of row {rows[first[which[at]]]} as well"
        yield from in_rows(pack, table, rows[at : at + 1], reason, "ids")


def check_slide_numbers(pack: CheckedPack, name: str = "slide_idx") -> Iterator[Finding]:
    """That every row is on a slide that the slide table has."""
    columns = [pack.column(table, name) for table in ("index", "slide")]
    if any(column is None or not pa.types.is_integer(column.type) for column in columns):
        return
    used, known = columns
    exists = pc.is_in(used.cast(pa.int64(), safe=False), known.cast(pa.int64(), safe=False))
    lost = pc.and_not(used.is_valid(), exists)
    yield from in_rows(pack, "index", rows_where(lost), f"{name} is not in the slide table")


def is_count(value: Any) -> bool:
    """Whether a header field is an integer above 0."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
