"""Tables of documents, a row a document, as patients."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .._tables import normalised
from ._documents import DESCRIPTIONS

#: Rows turned into objects at a time.
BLOCK_ROWS = 1024


@dataclass(frozen=True)
class Rows:
    """Rows that can be read again and again, in pieces."""

    #: What errors call them.
    name: str
    #: Names of columns that must be there and full.
    required: tuple[str, ...]
    read: Callable[[], Iterator[pa.Table]]


def rows_of_table(table: Any, texts: Iterable[str]) -> Rows:
    """The rows of anything with ``__arrow_c_stream__``.

    Raises TypeError for anything else, ValueError for a column that is missing or there twice.
    """
    if not isinstance(table, pa.Table):
        if not hasattr(table, "__arrow_c_stream__"):
            raise TypeError(
                f"table is {type(table)}, expected something with __arrow_c_stream__: a pandas or "
                "Polars frame (a lazy one collected), a pyarrow table"
            )
        table = pa.table(table)
    required = ("patient_id", "doc_id", *texts)
    table = table.select(columns_to_read("table", table.schema.names, required))
    check_types("table", table.schema)
    return Rows("table", required, lambda: table_blocks(table))


def patients_of_rows(
    rows: Rows, make_patient: Callable[..., Any], make_doc: Callable[..., Any]
) -> Iterator[Any]:
    """The patients of rows, in the order of their first ones.

    They are read in pieces where the rows of each patient stand together, else all at once.

    Raises ValueError and TypeError naming a row that cannot be a document.
    """
    blocks = _numbered(rows) if _are_together(rows) else _brought_together(rows)
    docs = (doc for numbers, block in blocks for doc in _documents(rows, numbers, block))
    for patient_id, group in groupby(docs, key=lambda doc: doc[1].pop("patient_id")):
        institution = None
        made = []
        for number, fields in group:
            other = fields.pop("institution", "")
            if institution is not None and other != institution:
                raise ValueError(
                    f"{rows.name}: row {number}: its institution is not that of other rows of the "
                    "patient"
                )
            institution = other
            made.append(make_doc(**fields))
        yield make_patient(patient_id, institution, made)


def columns_to_read(name: str, there: Sequence[str], required: Iterable[str]) -> list[str]:
    """The columns to read. Raises ValueError for one that is missing or there twice."""
    optional = ("institution", *DESCRIPTIONS, "episode_index")
    for column in required:
        if column not in there:
            raise ValueError(f"{name}: column {column} is missing, there are {list(there)}")
    found = [*required, *(column for column in optional if column in there)]
    for column in found:
        if there.count(column) > 1:
            raise ValueError(f"{name}: column {column} is there twice")
    return found


def check_types(name: str, schema: pa.Schema) -> None:
    """Raises TypeError for a column that is of another type than documents have there."""
    for column in schema:
        type = column.type
        while isinstance(type, pa.DictionaryType | pa.RunEndEncodedType):
            type = type.value_type
        fits = pa.types.is_null(type)
        if column.name == "episode_index":
            fits |= pa.types.is_integer(type) or pa.types.is_floating(type)
            expected = "integers"
        else:
            fits |= pa.types.is_string(type) or pa.types.is_large_string(type)
            fits |= pa.types.is_string_view(type)
            expected = "text"
        if not fits:
            raise TypeError(
                f"{name}: column {column.name} is {column.type}, expected {expected}: cast it"
            )


def table_blocks(table: pa.Table) -> Iterator[pa.Table]:
    """A table in pieces of few rows."""
    for batch in table.to_batches(max_chunksize=BLOCK_ROWS):
        yield pa.Table.from_batches([batch])


#: Rows, and their numbers among all.
Numbered = tuple[npt.NDArray[np.int64], pa.Table]


def _numbered(rows: Rows) -> Iterator[Numbered]:
    first = 0
    for block in rows.read():
        try:
            block.validate(full=True)
        except pa.ArrowInvalid as error:
            raise ValueError(f"{rows.name}: rows from {first} on: {error}") from None
        yield np.arange(first, first + len(block)), block
        first += len(block)


def _are_together(rows: Rows) -> bool:
    """Whether the rows of no patient stand apart."""
    seen = set()
    last = None
    for _, block in _numbered(rows):
        for patient_id, _ in groupby(block["patient_id"].to_pylist()):
            if patient_id == last:
                continue
            if patient_id in seen:
                return False
            seen.add(patient_id)
            last = patient_id
    return True


def _brought_together(rows: Rows) -> Iterator[Numbered]:
    table = normalised(pa.concat_tables(rows.read()))
    # Chunks of plain strings cannot always be taken from: their text may exceed 2 GiB together.
    wide = [f.with_type(pa.large_string()) if f.type == pa.string() else f for f in table.schema]
    table = table.cast(pa.schema(wide))
    numbers: dict[str, int] = {}
    ids = table["patient_id"].to_pylist()
    order = np.argsort([numbers.setdefault(id, len(numbers)) for id in ids], kind="stable")
    for first in range(0, len(order), BLOCK_ROWS):
        block = order[first : first + BLOCK_ROWS]
        yield block, table.take(block)


def _documents(
    rows: Rows, numbers: npt.NDArray[np.int64], block: pa.Table
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The row numbers of a block, each with its fields; those that have no value are left out."""
    columns = [(name, block[name].to_pylist()) for name in block.column_names]
    for at, number in enumerate(numbers.tolist()):
        fields = {name: values[at] for name, values in columns if values[at] is not None}
        for name in rows.required:
            if name not in fields or (name.endswith("_id") and fields[name] == ""):
                raise ValueError(f"{rows.name}: row {number}: {name} is missing")
        if "episode_index" in fields:
            _set_episode(fields, f"{rows.name}: row {number}: episode_index is not an integer")
        yield number, fields


def _set_episode(fields: dict[str, Any], problem: str) -> None:
    """A number, text of one (as CSV files have it), or nothing, as the field's int.

    Text may end in ``.0``, as pandas writes integers of a column where some are missing.
    """
    value = fields.pop("episode_index")
    if value == "" or value != value:
        return
    try:
        if isinstance(value, str):
            found = re.fullmatch(r"\s*([+-]?[0-9]+)(\.0+)?\s*", value)
            if found is None:
                raise ValueError
            value = found[1]
        number = int(value)
    except (ValueError, OverflowError):
        number = None
    if number is None or (isinstance(value, float) and number != value):
        raise ValueError(problem)
    fields["episode_index"] = number
