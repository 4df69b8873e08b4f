"""Columns from folders called key=value, as ``hive_partitioning`` has them in SQL."""

from __future__ import annotations

import datetime
import re
from pathlib import PurePath
from urllib.parse import unquote_to_bytes

import pyarrow as pa

from .columns import UniqueNames
from .files import PackFile

NULL_VALUE = "__HIVE_DEFAULT_PARTITION__"


def partitions(files: list[PackFile]) -> dict[str, pa.Array]:
    """By key, in their order, the value of each file: int64 or date32 where all of them would be
    written just like that, else text.

    Raises ValueError when files have other keys than the first one.
    """
    found = [_values(file) for file in files]
    keys = sorted(found[0])
    for file, values in zip(files, found, strict=True):
        if sorted(values) != keys:
            raise ValueError(
                f"{file.path}: hive_partitioning: its folders have other keys than those of "
                f"{files[0].filename}"
            )
    return {key: _typed([values[key] for values in found]) for key in keys}


def _values(file: PackFile) -> dict[str, str | None]:
    """The first value counts where a key stands twice."""
    found: dict[str, str | None] = {}
    names = UniqueNames()
    for folder in PurePath(file.filename).parts[:-1]:
        key, *values = folder.split("=")
        if not key or len(values) != 1 or names.add(key, 0) != key:
            continue
        try:
            text = unquote_to_bytes(values[0].encode(errors="surrogateescape")).decode()
        except UnicodeDecodeError:
            raise ValueError(
                f"{file.path}: hive_partitioning: the value of a partition is not UTF-8 text"
            ) from None
        found[key] = None if text == NULL_VALUE else text
    return found


def _typed(texts: list[str | None]) -> pa.Array:
    for parse, type in ((_integer, pa.int64()), (_date, pa.date32())):
        values = [None if text is None else parse(text) for text in texts]
        missing = [value is None for value in values]
        if missing == [text is None for text in texts] and not all(missing):
            return pa.array(values, type)
    return pa.array(texts, pa.string())


def _integer(text: str) -> int | None:
    if not re.fullmatch(r"0|-?[1-9][0-9]{0,18}", text):
        return None
    number = int(text)
    return number if -(1 << 63) <= number < 1 << 63 else None


def _date(text: str) -> datetime.date | None:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return None
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        return None
