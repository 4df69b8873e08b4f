"""Parting the columns of a query into a slide table and an index table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

#: Columns of the slide table unless others are named, and those that number slides; COPY has both
#: lists as well.
SLIDE_NAMES = ("slide_id", "patient_id", "specimen_id", "study_uid", "series_uid")
KEY_NAMES = ("slide_idx", "series_idx")

# What tells slides of several packs apart.
_IDENTIFIERS = ("slide_id", "series_uid")


def key_name(names: Iterable[str]) -> str | None:
    """The column that numbers slides, None where there is none."""
    names = set(names)
    return next((name for name in KEY_NAMES if name in names), None)


def part_slides(
    table: pa.Table, slide_names: Sequence[str], source: npt.NDArray[np.int64] | None = None
) -> tuple[pa.Table, pa.Table]:
    """The slide table, one row for each slide in the order of appearance, and the index table.

    A column ``slide_idx``, else ``series_idx``, numbers the slides, else ``slide_idx`` is made.
    ``source`` is the pack that each row comes from: such numbers are a pack's own, so where
    several packs use one for different slides, slides are numbered anew.

    Raises ValueError where two slides of one pack have the same number, TypeError for numbers that
    are no integers.
    """
    key = key_name(table.column_names) if slide_names or source is not None else None
    index = table.drop_columns(list(slide_names))
    if key is None:
        if not slide_names:
            return pa.table({}), index
        number, first = _numbered([_codes(table[name]) for name in slide_names], len(table))
        slides = table.select(list(slide_names)).take(pa.array(first))
        numbers = pa.array(np.arange(len(first), dtype=np.uint32))
        return (
            slides.add_column(0, KEY_NAMES[0], numbers),
            index.add_column(0, KEY_NAMES[0], numbers.take(pa.array(number))),
        )

    if not pa.types.is_integer(table.schema.field(key).type):
        raise TypeError(f"column {key!r} numbers slides, so it must be of integers")
    names = [key, *(name for name in slide_names if name != key)]
    has_slide = table[key].is_valid().to_numpy()
    _check_without_slide(table, has_slide, names)
    keys = _codes(table[key])
    values = [_codes(table[name]) for name in names[1:]]
    several = source is not None and len(np.unique(source)) > 1
    if several and not set(_IDENTIFIERS) & set(names):
        values.append(source)
    number, first = _numbered([keys, *values], len(table))
    used = np.unique(number[has_slide])
    if len(used) == len(np.unique(keys[has_slide])):
        slides = table.select(names).take(pa.array(first[used]))
        return slides, index
    if not several:
        raise ValueError(
            f"column {key!r}: two slides have the same number: leave that column out, and slides "
            "are numbered as they come, or choose other slide_columns"
        )
    if set(_IDENTIFIERS) & set(names):
        number, first = _numbered(values, len(table))
        used = np.unique(number[has_slide])
    type = table.schema.field(key).type
    anew = np.zeros(len(first), dtype=np.int64)
    anew[used] = np.arange(len(used))
    column = pa.array(anew[number], mask=~has_slide)
    numbers = pa.array(np.arange(len(used)))
    if len(used) and len(used) - 1 > np.iinfo(type.to_pandas_dtype()).max:
        type = pa.uint32()
    slides = table.select(names).take(pa.array(first[used]))
    return (
        slides.set_column(0, key, numbers.cast(type)),
        index.set_column(index.schema.get_field_index(key), key, column.cast(type)),
    )


def _check_without_slide(
    table: pa.Table, has_slide: npt.NDArray[np.bool_], names: list[str]
) -> None:
    """A record without a number has no slide, and so nothing that says which."""
    without = pa.array(~has_slide)
    for name in names[1:]:
        wrong = pc.and_(without, table[name].is_valid())
        if pc.any(wrong).as_py():
            row = pc.index(wrong, True).as_py()
            raise ValueError(f"row {row}: {names[0]!r} is NULL, but {name!r} is not")


def _codes(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """A number for each value, the same one for equal values."""
    if pa.types.is_dictionary(column.type):  # which may have a value twice, and NULLs among them
        column = column.cast(column.type.value_type)
    try:
        encoded = column.dictionary_encode("encode").combine_chunks()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.chunk(0) if encoded.num_chunks else pa.array([]).dictionary_encode()
        return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    except pa.ArrowNotImplementedError:  # nested values
        numbers: dict[str, int] = {}
        texts = (repr(value) for value in column.to_pylist())
        return np.array([numbers.setdefault(text, len(numbers)) for text in texts], dtype=np.int64)


def _numbered(
    columns: Sequence[npt.NDArray[np.int64]], rows: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Each row's combination, numbered in the order of appearance, and the first row of each."""
    number = np.zeros(rows, dtype=np.int64)
    first = np.zeros(min(rows, 1), dtype=np.int64)
    for codes in columns:
        pair = number * (codes.max(initial=0) + 1) + codes
        _, first, number = np.unique(pair, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        first, number = first[order], rank[number]
    return number, first
