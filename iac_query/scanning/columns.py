"""The columns that one pack shows to queries: those of its index, of the slides joined to it, and
the patient of DICOM headers.

They are named and joined as ``iac_scan`` does it in SQL.
"""

from __future__ import annotations

import functools
import string
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .._slides import key_name
from .._tables import LAYOUT, normalised, table_schema
from ..errors import PackError
from ..pack import PackReader
from .places import PLACE_TYPES, PLACES, has_places, place_values
from .types import column_type

RECORD = "record"
PATIENT_ID = "patient_id"

_LOWER_CASE = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


@dataclass(frozen=True)
class PackColumn:
    """A column of a pack: its name among the others, its table and position there, its type.

    That of no table is PATIENT_ID, which DICOM headers tell. Those of the table "place" are PLACES.
    """

    name: str
    table: Literal["index", "slide", "place"] | None
    position: int
    type: pa.DataType


class UniqueNames:
    """Gives a name that is taken, in whatever case, a number."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def add(self, name: str, position: int) -> str:
        name = name or f"v{position}"
        unique, number = name, 0
        while lower_case(unique) in self._taken:
            number += 1
            unique = f"{name}_{number}"
        self._taken.add(lower_case(unique))
        return unique


def lower_case(name: str) -> str:
    """A name as SQL compares it: ASCII letters without their case."""
    return name.translate(_LOWER_CASE)


def pack_columns(reader: PackReader, layout: bool = False) -> tuple[PackColumn, ...]:
    """Index columns, without those of the layout unless asked for, then slide columns, where each
    record has one slide. The key that joins them appears once. Packs of DICOM instances have
    PATIENT_ID in any case, those of whole slides the PLACES of their tiles with the layout.
    """
    hidden = tuple(LAYOUT) if reader.native.kind == "variable" and not layout else ()
    index, slides = (schema.remove_metadata() for schema in _schemas(reader))
    native = reader.native
    places = layout and has_places(reader.header, index)
    return _columns(index, slides, hidden, native.num_slides == 1, native.is_dicom, places)


@functools.lru_cache(maxsize=256)  # most packs of a scan have the same
def _columns(
    index: pa.Schema,
    slides: pa.Schema,
    hidden: tuple[str, ...],
    one_slide: bool,
    dicom: bool,
    places: bool,
) -> tuple[PackColumn, ...]:
    names = UniqueNames()
    names.add(RECORD, 0)
    columns = []
    for position, field in enumerate(index):
        if field.name not in hidden:
            name = names.add(field.name, position)
            columns.append(PackColumn(name, "index", position, column_type(field.type)))
    key = _slide_key(index, slides)
    if key or one_slide:
        for position, field in enumerate(slides):
            if field.name != key:
                name = names.add(field.name, position)
                columns.append(PackColumn(name, "slide", position, column_type(field.type)))
    if dicom and all(lower_case(column.name) != PATIENT_ID for column in columns):
        columns.append(PackColumn(PATIENT_ID, None, 0, pa.string()))
    if places:
        for position, (name, type) in enumerate(zip(PLACES, PLACE_TYPES, strict=True)):
            columns.append(PackColumn(names.add(name, position), "place", position, type))
    return tuple(columns)


class PackRows:
    """The columns of an open pack, row by row. Each is read once, when it is first asked for."""

    def __init__(self, reader: PackReader) -> None:
        self._reader = reader
        self._read: dict[PackColumn, pa.ChunkedArray] = {}
        self._slide_of_row: pa.ChunkedArray | None = None

    def load(self, columns: Iterable[PackColumn]) -> None:
        """Reads columns together, which is less work than one by one."""
        missing = [column for column in columns if column not in self._read]
        for table in ("index", "slide"):
            chosen = [column for column in missing if column.table == table]
            if not chosen:
                continue
            found = _read(self._reader, table, [column.position for column in chosen])
            for column, array in zip(chosen, normalised(found).columns, strict=True):
                self._read[column] = self._typed(column, array)
        for column in missing:
            if column.table == "place":
                self._read[column] = place_values(self._reader, column.position)

    def _typed(self, column: PackColumn, array: pa.ChunkedArray) -> pa.ChunkedArray:
        if array.type == column.type:
            return array
        try:
            return array.cast(column.type, safe=False)
        except pa.ArrowNotImplementedError as error:
            path = self._reader.package_path
            raise PackError(
                f"{path}: column {column.name!r}: {array.type} is not supported"
            ) from error

    def values(self, column: PackColumn, rows: npt.NDArray[np.int64]) -> pa.ChunkedArray:
        """The values of rows, which increase."""
        if column.table is None:
            ids = self._reader.native.dicom_patient_ids(rows, verify=True)
            return pa.chunked_array([ids], pa.string())
        self.load([column])
        values = self._read[column]
        if column.table in ("index", "place"):
            return take(values, rows)
        if self._slide_of_row is None:
            self._slide_of_row = _slide_of_row(self._reader)
        return values.take(take(self._slide_of_row, rows))


def take(values: pa.ChunkedArray, rows: npt.NDArray[np.int64]) -> pa.ChunkedArray:
    """Rows that increase; those that are neighbours without a copy."""
    if len(rows) == 0:
        return values.slice(0, 0)
    if rows[-1] - rows[0] + 1 == len(rows):
        return values.slice(rows[0], len(rows))
    return values.take(pa.array(rows))


def _schemas(reader: PackReader) -> tuple[pa.Schema, pa.Schema]:
    return table_schema(reader.native, "index"), table_schema(reader.native, "slide")


def _slide_key(index: pa.Schema, slides: pa.Schema) -> str | None:
    """The column that joins slides to records; None where there is none."""
    return key_name(set(index.names) & set(slides.names))


def _read(reader: PackReader, table: str, positions: list[int]) -> pa.Table:
    """Columns of a table, only these where their names tell them apart."""
    read = reader.read_index_table if table == "index" else reader.read_slide_table
    all_names = table_schema(reader.native, table).names
    names = [all_names[position] for position in positions]
    if any(all_names.count(name) > 1 for name in names):
        return read().select(positions)
    return read(names)


def _slide_of_row(reader: PackReader) -> pa.ChunkedArray:
    """For each record the row of the slide table, NULL where there is none."""
    key = _slide_key(*_schemas(reader))
    if key is None:
        return pa.chunked_array([pa.repeat(pa.scalar(0, pa.int32()), len(reader))])
    wanted = reader.read_index_table([key])[key]
    slides = reader.read_slide_table([key])[key]
    for name, keys in (("index", wanted), ("slide", slides)):
        if not pa.types.is_integer(keys.type):
            raise PackError(
                f"{reader.package_path}: {name} table: column {key!r} has type {keys.type}, "
                "slides are joined by integers"
            )
    keys = slides.drop_null()
    if len(keys.unique()) < len(keys):
        raise PackError(f"{reader.package_path}: slide table: two rows have the same {key}")
    if wanted.type != slides.type:  # a type that holds all integers
        wanted, slides = (keys.cast(pa.decimal128(20, 0)) for keys in (wanted, slides))
    return pc.index_in(wanted, value_set=slides, skip_nulls=True)
