"""Files of documents, a row a document: CSV, JSON Lines and Parquet."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from .._options import PathLike
from ._document_tables import BLOCK_ROWS, Rows, check_types, columns_to_read, table_blocks
from ._documents import DESCRIPTIONS

#: Bytes of a text file parsed at a time; a row is never longer.
_BLOCK_BYTES = 64 << 20

#: Bytes searched for quotes at a time.
_QUOTES_BYTES = 1 << 20
_AROUND_QUOTES = np.frombuffer(b',\r\n"', np.uint8)


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
        columns = columns_to_read(path, names, required)
        # All as text: what looks like a number or a date need not be one.
        convert = pyarrow.csv.ConvertOptions(
            include_columns=columns, column_types=dict.fromkeys(columns, pa.string())
        )
        with pa.input_stream(path) as file:
            for batch in pyarrow.csv.open_csv(file, read, parse, convert):
                yield from table_blocks(pa.Table.from_batches([batch]))
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
                yield from table_blocks(pyarrow.json.read_json(file, read, parse))
                return
            for batch in open_json(file, read, parse):
                yield from table_blocks(pa.Table.from_batches([batch]))
                first += len(batch)
    except pa.ArrowInvalid as error:
        reason = _json_reason(error, first)
        raise ValueError(f"{path}: cannot be read as JSON Lines: {reason}") from None


def _read_parquet(path: str, required: Sequence[str]) -> Iterator[pa.Table]:
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
            columns = columns_to_read(path, schema.names, required)
            check_types(path, pa.schema([schema.field(name) for name in columns]))
            for batch in file.iter_batches(BLOCK_ROWS, columns=columns):
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
