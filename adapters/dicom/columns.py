"""Elements of the header as typed columns of the instance table."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pydicom.datadict import dictionary_VM, dictionary_VR, keyword_for_tag, tag_for_keyword

from . import schema

Json = dict[str, Any]

# Arrow types by value representation (PS3.5 6.2); all others are text.
_TYPES = {
    **dict.fromkeys(("DS", "FD", "FL"), pa.float64()),
    **dict.fromkeys(("IS", "SL", "SS", "SV", "UL", "US"), pa.int64()),
    "UV": pa.uint64(),
    "DA": pa.date32(),
}
_NOT_COLUMNS = frozenset({"SQ", "OB", "OD", "OF", "OL", "OV", "OW", "UN"})


@dataclass(frozen=True)
class TagColumn:
    """One element as a column called by its keyword: a list where it may have several values."""

    tag: str
    field: pa.Field

    def value(self, dataset: Json) -> Any:
        """The column's value for an instance; None where it is absent or not what its VR says."""
        values = dataset.get(self.tag, {}).get("Value", [])
        several = pa.types.is_list(self.field.type)
        kind = self.field.type.value_type if several else self.field.type
        converted = [_converted(value, kind) for value in values]
        if several:
            return converted or None
        return converted[0] if len(converted) == 1 else None


def tag_columns(tags: Iterable[str]) -> list[TagColumn]:
    """The columns of elements given by keyword or as eight hexadecimal digits.

    Raises ValueError for an unknown one, for one that is no value, and for one named twice.
    """
    if isinstance(tags, str):
        raise TypeError(f"tags is {tags!r}, expected a list of keywords or tags")
    columns = [_tag_column(tag) for tag in tags]
    names = [column.field.name for column in columns]
    taken = {*schema.INSTANCES.names, *schema.FRAMES.names, *schema.EXACT.names}
    if len(set(names)) < len(names) or taken.intersection(names):
        raise ValueError("tags names an element twice")
    return columns


def tag_table(columns: Sequence[TagColumn], rows: Sequence[Sequence[Any]]) -> list[pa.Array]:
    """The columns' arrays, from each row's values."""
    return [
        pa.array([row[i] for row in rows], column.field.type) for i, column in enumerate(columns)
    ]


def _tag_column(name: str) -> TagColumn:
    number = tag_for_keyword(name)
    try:
        number = int(name, 16) if number is None and len(name) == 8 else number
        vr, several = dictionary_VR(number), dictionary_VM(number) not in ("1", "0-1")
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"tags: {name!r} is neither a keyword nor a tag of the DICOM dictionary"
        ) from error
    vr = vr.split(" ")[0]  # "US or SS"
    if vr in _NOT_COLUMNS:
        raise ValueError(f"tags: {name!r} is of VR {vr}, which makes no column")
    kind = _TYPES.get(vr, pa.string())
    kind = pa.list_(kind) if several else kind
    return TagColumn(f"{number:08X}", pa.field(keyword_for_tag(number) or name, kind))


def _converted(value: Any, kind: pa.DataType) -> Any:
    if isinstance(value, dict):  # a person's name
        value = value.get("Alphabetic")
    try:
        if value is None:
            return None
        if pa.types.is_date32(kind):
            value = datetime.datetime.strptime(str(value), "%Y%m%d").date()
        elif pa.types.is_floating(kind):
            value = float(value)
        elif pa.types.is_integer(kind):
            value = int(value)
        else:
            value = str(value)
        return pa.scalar(value, kind).as_py()
    except (OverflowError, ValueError):
        return None
