"""Tables of documents, a row a document, as patients."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from .._options import PathLike
from .._tables import normalised
from ._documents import DESCRIPTIONS

#: Rows turned into objects at a time.
_BLOCK_ROWS = 1024
#: Bytes of a text file parsed at a time; a row is never longer.
_BLOCK_BYTES = 64 << 20

#: Bytes searched for quotes at a time.
_QUOTES_BYTES = 1 << 20
_AROUND_QUOTES = np.frombuffer(b',\r\n"', np.uint8)


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
    table = table.select(_columns("table", table.schema.names, required))
    _check_types("table", table.schema)
    return Rows("table", required, lambda: _blocks(table))


def rows_of_file(path: PathLike, texts: Iterable[str]) -> Rows:
    """The rows of a CSV, JSON Lines or Parquet file, by the ending of its name.

    Raises ValueError for another ending, and as :func:`rows_of_table`.
    """
    path = os.fsdecode(path)
    required = ("patient_id", "doc_id", *texts)
    ending = os.path.splitext(path.lower().removesuffix(".gz"))[1]
    readers = {
        ".csv": _read_csv,
        ".jsonl": _read_json,
        ".ndjson": _read_json,
        ".parquet": _read_parquet,
    }
    if ending not in readers:
        raise ValueError(f"{path}: its name ends in none of {', '.join(readers)}")
    return Rows(path, required, lambda: _of_file(path, readers[ending](path, required)))


def _of_file(path: str, blocks: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same blocks. Raises ValueError naming the file where it is damaged."""
    try:
        yield from blocks
    except OSError as error:
        if error.errno is not None:  # of the system, which names it
            raise
        raise ValueError(f"{path}: is damaged: {error}") from error


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


def _columns(name: str, there: Sequence[str], required: Iterable[str]) -> list[str]:
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


def _check_types(name: str, schema: pa.Schema) -> None:
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


def _blocks(table: pa.Table) -> Iterator[pa.Table]:
    for batch in table.to_batches(max_chunksize=_BLOCK_ROWS):
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
    for first in range(0, len(order), _BLOCK_ROWS):
        block = order[first : first + _BLOCK_ROWS]
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


def _read_csv(path: str, required: Sequence[str]) -> Iterator[pa.Table]:
    broken: list[str] = []
    names: list[str] = []

    def note(row: pyarrow.csv.InvalidRow) -> str:
        counts = f"{row.actual_columns} columns, the header has {row.expected_columns}"
        broken.append(f"row {row.number - 2} has {counts}")
        return "error"

    read = pyarrow.csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES)
    parse = pyarrow.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=note)
    try:
        with pa.input_stream(path) as file:
            # It would take what follows, of other rows too, into its field.
            line = _line_of_stray_quote(file)
        if line is not None:
            raise ValueError(
                f"{path}: cannot be read as CSV: line {line}: its quotes do not pair up around a "
                "field, write '\"' inside of one twice"
            )
        with pa.input_stream(path) as file:
            names = pyarrow.csv.open_csv(file, read, parse).schema.names
        columns = _columns(path, names, required)
        # All as text: what looks like a number or a date need not be one.
        convert = pyarrow.csv.ConvertOptions(
            include_columns=columns, column_types=dict.fromkeys(columns, pa.string())
        )
        with pa.input_stream(path) as file:
            for batch in pyarrow.csv.open_csv(file, read, parse, convert):
                yield from _blocks(pa.Table.from_batches([batch]))
    except pa.ArrowInvalid as error:
        # About a broken row it would quote it.
        reason = broken[0] if broken else _csv_reason(error, names)
        raise ValueError(f"{path}: cannot be read as CSV: {reason}") from None


def _line_of_stray_quote(file: pa.NativeFile) -> int | None:
    """The line, from 1, of the first quote that is not at the start or the end of a field, nor one
    of two inside a quoted one (RFC 4180 2.5 to 2.7); of the last line where one does not end.
    """
    line, quoted, before = 1, 0, b"\n"
    block = file.read(_QUOTES_BYTES).removeprefix(b"\xef\xbb\xbf")
    while block:
        behind = file.read(_QUOTES_BYTES)
        text = np.frombuffer(before + block + (behind[:1] or b"\n"), np.uint8)
        at = np.flatnonzero(text[1:-1] == ord('"')) + 1
        # Inside a quoted field two quotes end it and start it again: they alternate all the same.
        neighbours = at + 1
        neighbours[quoted::2] -= 2
        stray = at[~np.isin(text[neighbours], _AROUND_QUOTES)]
        if len(stray):
            return line + int((text[1 : stray[0]] == ord("\n")).sum())
        quoted = (quoted + len(at)) % 2
        line += block.count(b"\n")
        before, block = block[-1:], behind
    return line if quoted else None


def _read_json(path: str, required: Sequence[str]) -> Iterator[pa.Table]:
    text = [*required, "institution", *DESCRIPTIONS]
    # As floats, so that a number that is no integer is found out, not quoted.
    schema = pa.schema([*((name, pa.string()) for name in text), ("episode_index", pa.float64())])
    read = pyarrow.json.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES)
    parse = pyarrow.json.ParseOptions(schema, unexpected_field_behavior="ignore")
    # Older versions of pyarrow read the file whole.
    open_json = getattr(pyarrow.json, "open_json", None)
    first: int | None = 0  # row of the piece that is parsed, None for one of unknown place
    try:
        with pa.input_stream(path) as file:
            if open_json is None:
                first = None
                yield from _blocks(pyarrow.json.read_json(file, read, parse))
                return
            for batch in open_json(file, read, parse):
                yield from _blocks(pa.Table.from_batches([batch]))
                first += len(batch)
    except pa.ArrowInvalid as error:
        reason = _json_reason(error, first)
        raise ValueError(f"{path}: cannot be read as JSON Lines: {reason}") from None


def _read_parquet(path: str, required: Sequence[str]) -> Iterator[pa.Table]:
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
            columns = _columns(path, schema.names, required)
            _check_types(path, pa.schema([schema.field(name) for name in columns]))
            for batch in file.iter_batches(_BLOCK_ROWS, columns=columns):
                yield pa.Table.from_batches([batch])
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path}: cannot be read as Parquet: {error}") from None


def _csv_reason(error: pa.ArrowInvalid, names: Sequence[str]) -> str:
    """What pyarrow says, with the column's name, and rows counted from 0 behind the header."""
    found = re.fullmatch(r"In CSV column #(\d+): Row #(\d+): (.*)", str(error), re.DOTALL)
    if found is None:
        return _reason(error)
    return f"row {int(found[2]) - 2}: column {names[int(found[1])]}: {found[3]}"


_JSON_REMEDIES = {
    "string": "write it in quotes",
    "number": "write it without quotes",
    "object": "write each row as an object, {...}",
}


def _json_reason(error: pa.ArrowInvalid, first: int | None) -> str:
    """What pyarrow says of a row in a piece of the file, with the row counted in the whole file."""
    found = re.fullmatch(r"JSON parse error: (.*) in row (\d+)", str(error), re.DOTALL)
    if found is None:
        return _reason(error)
    row = "a row" if first is None else f"row {first + int(found[2])}"
    changed = re.fullmatch(r"Column\(/?(\w*)\) changed from (\w+) to (\w+)", found[1])
    if changed is None:
        return f"{row}: {found[1]}"
    column, expected, kind = changed.groups()
    remedy = _JSON_REMEDIES.get(expected, "change it")
    return f"{row}: {column or 'it'} is of type {kind}, expected {expected}: {remedy}"


def _reason(error: pa.ArrowInvalid) -> str:
    if "straddling" in str(error):
        return f"a row is longer than {_BLOCK_BYTES >> 20} MiB"
    return str(error)
