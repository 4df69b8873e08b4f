"""Manifests of image tiles: where each lies, on which slide, of which patient."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._options import PathLike

__all__ = [
    "REQUIRED_TILE_COLUMNS",
    "TILE_COLUMNS",
    "TileRecord",
    "find_tiles",
    "read_tile_manifest",
    "write_tile_manifest",
]

TILE_COLUMNS = ("tile_id", "patient_id", "slide_id", "tile_path", "x", "y", "split")
REQUIRED_TILE_COLUMNS = frozenset(TILE_COLUMNS)


@dataclass(frozen=True)
class TileRecord:
    """One tile: its image's file, and the pixel of the slide that is its upper left corner."""

    tile_id: str
    patient_id: str
    slide_id: str
    tile_path: Path
    x: int
    y: int
    split: str


def read_tile_manifest(path: PathLike) -> list[TileRecord]:
    """The tiles that a CSV file lists: UTF-8, a header row with ``TILE_COLUMNS``, in any order.

    Other columns are passed over. Raises ValueError naming file and line for a missing column, a
    row with more or fewer cells than the header, and coordinates that are no integers.
    """
    path = os.fsdecode(path)
    with open(path, encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file, restkey="", restval=None, strict=True)
        try:
            missing = REQUIRED_TILE_COLUMNS.difference(rows.fieldnames or ())
            if missing:
                raise ValueError(f"tile manifest missing columns: {sorted(missing)}")
            return [_record(row) for row in rows]
        except (csv.Error, ValueError) as error:
            raise ValueError(f"{path}: line {rows.line_num}: {error}") from error


def _record(row: Mapping[str, Any]) -> TileRecord:
    if "" in row or None in row.values():
        raise ValueError("has more or fewer cells than the header")
    place = {axis: _coordinate(row[axis], axis) for axis in ("x", "y")}
    texts = {name: row[name] for name in ("tile_id", "patient_id", "slide_id", "split")}
    return TileRecord(tile_path=Path(row["tile_path"]), **texts, **place)


def _coordinate(text: str, axis: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{axis} is {text!r}, expected an integer") from None


def write_tile_manifest(path: PathLike, rows: Iterable[Mapping[str, Any] | TileRecord]) -> None:
    """Writes a CSV manifest of dicts with keys of ``TILE_COLUMNS``, or of tile records.

    Missing folders are made. Raises ValueError for a dict with another key.
    """
    path = Path(os.fsdecode(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [vars(row) if isinstance(row, TileRecord) else row for row in rows]
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, TILE_COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


def find_tiles(folder: PathLike, pattern: str) -> list[TileRecord]:
    """The tiles in a folder and those below it, by the names of their files, in their order.

    ``pattern`` says what a path below the folder tells::

        "{patient_id}/{slide_id}/{x}_{y}.png"

    It has ``patient_id``, ``slide_id``, ``x`` and ``y``, perhaps ``tile_id`` and ``split``, and
    ends in a suffix. A text ends where the character behind it in the pattern comes first, and at a
    ``/``. Without ``tile_id`` it is the path without the suffix, without ``split`` it is empty.

    Files with another suffix are passed over. Raises ValueError for a pattern that lacks a field or
    does not say where one ends, for a file of that suffix that does not fit, naming it, and when
    there is no file; FileNotFoundError where there is no folder.
    """
    expression = _expression(pattern)
    folder = Path(os.fsdecode(folder))
    suffix = Path(pattern).suffix
    records = []
    for path in _files_below(folder):
        if path.suffix.casefold() != suffix.casefold():
            continue
        name = path.relative_to(folder).as_posix()
        found = expression.fullmatch(name)
        if found is None:
            raise ValueError(f"{path}: its name does not fit the pattern {pattern!r}")
        told = {"tile_id": name[: -len(suffix)], "split": "", **found.groupdict()}
        told |= {axis: int(told[axis]) for axis in ("x", "y")}
        records.append(TileRecord(tile_path=path, **told))
    if not records:
        raise ValueError(f"{folder}: no file with the suffix {suffix}")
    return records


def _files_below(folder: Path) -> list[Path]:
    def failed(error: OSError) -> None:
        raise error

    walk = os.walk(folder, onerror=failed)
    return sorted(Path(parent, name) for parent, _, names in walk for name in names)


def _expression(pattern: str) -> re.Pattern[str]:
    """The pattern as a regular expression, unambiguous: no field holds the character behind it."""
    parts = re.split(r"\{(\w+)\}", pattern)
    fields = parts[1::2]
    known = set(TILE_COLUMNS) - {"tile_path"}
    if (
        len(fields) != len(set(fields))
        or not {"patient_id", "slide_id", "x", "y"} <= set(fields) <= known
    ):
        raise ValueError(
            f"pattern {pattern!r}: expected the fields patient_id, slide_id, x and y, perhaps "
            "tile_id and split, each once"
        )
    if not Path(pattern).suffix or "{" in Path(pattern).suffix:
        raise ValueError(f"pattern {pattern!r}: expected a suffix at its end, as '.png'")
    text = re.escape(parts[0])
    for field, behind in zip(fields, parts[2::2], strict=True):
        if not behind:
            raise ValueError(f"pattern {pattern!r}: nothing says where {field} ends")
        held = "-?[0-9]+" if field in ("x", "y") else f"[^/{re.escape(behind[0])}]+"
        text += f"(?P<{field}>{held}){re.escape(behind)}"
    return re.compile(text)
