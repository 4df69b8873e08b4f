"""The types of scanned columns: as they come from one pack, and what those of many become together.

The rules are those of SQL: see "Many packs" in docs/sql.md.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .._tables import plain_type

types = pa.types

#: What HUGEINT of DuckDB comes as.
HUGE_INTEGER = pa.decimal128(38, 0)


def column_type(type: pa.DataType) -> pa.DataType:
    """A type as queries see its values: of dictionaries, runs and extensions what they hold, of
    views the plain type, of date64 date32, of float16 float32.
    """
    return _column_type(plain_type(type))


def _column_type(type: pa.DataType) -> pa.DataType:
    if isinstance(type, pa.BaseExtensionType):
        return _column_type(type.storage_type)
    if types.is_dictionary(type):
        return _column_type(type.value_type)
    if types.is_date64(type):
        return pa.date32()
    if types.is_float16(type):
        return pa.float32()
    if types.is_fixed_size_list(type) and type.list_size > 0:
        return pa.list_(_column_field(type.value_field), type.list_size)
    if types.is_list(type) or types.is_fixed_size_list(type):
        return pa.list_(_column_field(type.value_field))
    if types.is_large_list(type):
        return pa.large_list(_column_field(type.value_field))
    if types.is_struct(type):
        return pa.struct([_column_field(field) for field in type.fields])
    if types.is_map(type):
        return pa.map_(_column_field(type.key_field), _column_field(type.item_field))
    return type


def _column_field(field: pa.Field) -> pa.Field:
    return field.with_type(_column_type(field.type))


def common_type(found: Iterable[pa.DataType]) -> pa.DataType | None:
    """The type that values of all these column types fit in; None where there is none."""
    found = list(dict.fromkeys(found))
    known = [type for type in found if not types.is_null(type)]
    if len(known) < 2:
        return (known or found)[0]
    found = list(dict.fromkeys(_widest(type) for type in known))
    if len(found) == 1:
        return found[0]
    if all(types.is_duration(type) for type in found):
        return pa.duration(_finest(found))
    if all(_is_zoned(type) for type in found):
        return pa.timestamp(_finest(found), "UTC")
    if any(types.is_decimal(type) for type in found):
        return None
    # Text first: it takes the others in one by one, also those that do not go together.
    found.sort(key=lambda type: not types.is_large_string(type))
    return functools.reduce(_common, found)


def _widest(type: pa.DataType) -> pa.DataType:
    """The type that stands for all which are one type in SQL."""
    if types.is_string(type):
        return pa.large_string()
    if types.is_binary(type) or types.is_fixed_size_binary(type):
        return pa.large_binary()
    if types.is_time(type):
        return pa.time64("ns" if type.unit == "ns" else "us")
    if types.is_decimal(type) and type.bit_width < 128:
        return pa.decimal128(type.precision, type.scale)
    if types.is_list(type) or types.is_large_list(type):
        return pa.large_list(_widest(type.value_type))
    if types.is_fixed_size_list(type):
        return pa.list_(_widest(type.value_type), type.list_size)
    if types.is_struct(type):
        return pa.struct([pa.field(field.name, _widest(field.type)) for field in type.fields])
    if types.is_map(type):
        return pa.map_(_widest(type.key_type), _widest(type.item_type))
    return type


UNITS = ("s", "ms", "us", "ns")


def _finest(found: list[pa.DataType]) -> str:
    return max((type.unit for type in found), key=UNITS.index)


def _is_zoned(type: pa.DataType) -> bool:
    return types.is_timestamp(type) and type.tz is not None


def _is_moment(type: pa.DataType) -> bool:
    return types.is_date(type) or (types.is_timestamp(type) and type.tz is None)


def _is_integer(type: pa.DataType) -> bool:
    return types.is_integer(type) or types.is_boolean(type)


def _is_number(type: pa.DataType) -> bool:
    return _is_integer(type) or types.is_floating(type)


def _common(a: pa.DataType | None, b: pa.DataType) -> pa.DataType | None:
    if a is None:
        return None
    if types.is_large_string(a):
        return a if _is_number(b) or _is_moment(b) else None
    if _is_moment(a) and _is_moment(b):
        stamps = [type for type in (a, b) if not types.is_date(type)]
        return pa.timestamp(_finest(stamps))
    huge = a == HUGE_INTEGER
    if not (huge or _is_number(a)) or not _is_number(b):
        return None
    if pa.float64() in (a, b):
        return pa.float64()
    if pa.float32() in (a, b):
        return pa.float32()
    return a if huge else _common_integer(a, b)


def _common_integer(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    def is_signed(type: pa.DataType) -> bool:
        return types.is_signed_integer(type)

    if is_signed(a) == is_signed(b):
        return max(a, b, key=lambda type: type.bit_width)
    signed, unsigned = (a, b) if is_signed(a) else (b, a)
    for type in (pa.int8(), pa.int16(), pa.int32(), pa.int64()):
        if type.bit_width >= signed.bit_width and type.bit_width > unsigned.bit_width:
            return type
    return HUGE_INTEGER


def cast(array: pa.ChunkedArray, type: pa.DataType) -> pa.ChunkedArray:
    """Values as a common type of theirs and others. Raises ArrowInvalid for moments that the finer
    unit cannot hold.
    """
    if array.type == type:
        return array
    if types.is_large_string(type):
        return _as_text(array)
    if types.is_boolean(array.type) and not types.is_integer(type):
        array = array.cast(pa.uint8())
    return array.cast(type, safe=not types.is_floating(type))


def _as_text(array: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts as SQL writes values."""
    if types.is_floating(array.type):
        values = array.to_numpy()
        written = [_float_text(value) for value in values]
        return pa.chunked_array([pa.array(written, pa.large_string(), mask=_nulls(array))])
    text = array.cast(pa.large_string())
    if types.is_timestamp(array.type):
        text = pc.replace_substring_regex(text, r"(\.\d*?)0+$", r"\1")
        text = pc.replace_substring_regex(text, r"\.$", "")
    if _is_moment(array.type):
        text = _with_years(array, text)
    return text


def _float_text(value: np.floating) -> str:
    """The fewest digits that tell the number from others of its type, below 1e16 written out."""
    if np.isnan(value):
        return "-nan" if np.signbit(value) else "nan"
    if np.isinf(value):
        return str(value)
    scientific = np.format_float_scientific(value, trim="-")
    if -4 <= int(scientific.partition("e")[2]) < 16:
        return np.format_float_positional(value, trim="0")
    return scientific


#: Beyond four digits Arrow writes years otherwise than SQL, or not at all.
_LATE_YEAR = 10_000


def _with_years(array: pa.ChunkedArray, text: pa.ChunkedArray) -> pa.ChunkedArray:
    """The texts of moments, those before year 1 with SQL's years before Christ."""
    moments = array.combine_chunks()
    unit = "D" if types.is_date(array.type) else array.type.unit
    numbers = moments.cast(pa.int32() if unit == "D" else pa.int64())
    values = numbers.fill_null(0).to_numpy(zero_copy_only=False).astype(f"datetime64[{unit}]")
    years = values.astype("datetime64[Y]").astype(np.int64) + 1970
    unusual = np.flatnonzero((years < 1) | (years >= _LATE_YEAR))
    if len(unusual) == 0:
        return text
    texts = text.to_pylist()
    for at in unusual.tolist():
        written = str(values[at]).replace("T", " ")
        rest = written[written.index("-", 1) :]
        if "." in rest:
            rest = rest.rstrip("0").rstrip(".")
        year = int(years[at])
        if year > 0:
            texts[at] = f"{year:04}{rest}"
        else:
            date, space, time = rest.partition(" ")
            texts[at] = f"{1 - year:04}{date} (BC){space}{time}"
    return pa.chunked_array([pa.array(texts, pa.large_string())])


def _nulls(array: pa.ChunkedArray) -> np.ndarray:
    return np.asarray(array.is_null())
