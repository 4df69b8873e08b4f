"""The slide and index tables of packs that have a row a tile."""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..errors import PackError
from ..pack import PackReader
from ._row_ids import RowIds
from .manifests import TileRecord


@dataclass(frozen=True)
class TileLimits:
    """How large slide numbers and places on the grid may be."""

    slide_idx: pa.DataType
    tile_xy: pa.DataType
    max_slides: int

    @property
    def max_place(self) -> int:
        """The last place on the grid, along x or y."""
        return (1 << self.tile_xy.bit_width) - 1


#: Those of iatro-iac-adapters, and those of payload types of our own.
LIMITS = TileLimits(pa.uint8(), pa.uint16(), 255)
EXTENDED_LIMITS = TileLimits(pa.uint32(), pa.uint32(), (1 << 32) - 1)


@dataclass(frozen=True)
class TileTables:
    """What a pack says of its tiles beside their payloads."""

    slides: pa.Table
    index: pa.Table
    header: dict[str, Any]
    limits: TileLimits


class TileNotFoundError(FileNotFoundError, KeyError):
    """A tile id that is not there."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


def limits_of(extended: bool) -> TileLimits:
    """The limits of the schema."""
    return EXTENDED_LIMITS if extended else LIMITS


def tile_tables(
    records: Sequence[TileRecord],
    *,
    stride: tuple[int | None, int | None],
    size: tuple[int, int],
    extended: bool,
) -> TileTables:
    """Tables and header fields for tiles, in the order given.

    ``stride`` is that of the grid along x and y in pixels, each None for the greatest common
    divisor of the coordinates, or ``size`` where they are all 0.

    Raises ValueError naming the tile for an empty or repeated id, two patients on one slide, a
    coordinate that is negative or does not divide, and what the schema's limits exclude; TypeError
    for what is no text or integer.
    """
    if not records:
        raise ValueError("records are empty")
    limits = limits_of(extended)
    for record in records:
        _check_record(record)
    repeated = [id for id, count in Counter(r.tile_id for r in records).items() if count > 1]
    if repeated:
        raise ValueError(f"duplicate tile_id values: {len(repeated)}, the first {repeated[0]!r}")
    patients: dict[str, str] = {}
    for record in records:
        patient = patients.setdefault(record.slide_id, record.patient_id)
        if patient != record.patient_id:
            raise ValueError(
                f"tile {record.tile_id!r}: slide {record.slide_id!r} is of another patient for "
                "another tile"
            )
    if len(patients) > limits.max_slides:
        raise ValueError(
            f"{len(patients)} slides, a pack holds {limits.max_slides}{_advice(extended)}"
        )
    numbers = {slide: number for number, slide in enumerate(patients)}
    steps = [
        _stride(getattr(r, axis) for r in records) or size[i] if stride[i] is None else stride[i]
        for i, axis in enumerate("xy")
    ]
    places = [
        _places(records, axis, step, extended) for axis, step in zip("xy", steps, strict=True)
    ]
    slides = pa.table(
        {
            "slide_idx": pa.array(range(len(patients)), limits.slide_idx),
            "slide_id": pa.array(patients, pa.string()),
            "patient_id": pa.array(patients.values(), pa.string()),
        }
    )
    index = pa.table(
        {
            "slide_idx": pa.array((numbers[r.slide_id] for r in records), limits.slide_idx),
            "tile_x": pa.array(places[0], limits.tile_xy),
            "tile_y": pa.array(places[1], limits.tile_xy),
            "tile_id": pa.array((r.tile_id for r in records), pa.string()),
            "flags": pa.array([0] * len(records), pa.uint8()),
        }
    )
    header = {
        "stride_x": steps[0],
        "stride_y": steps[1],
        "coordinate_mode": "tile_grid",
        "origin": "top_left",
        "slide_idx_dtype": str(limits.slide_idx),
        "tile_xy_dtype": str(limits.tile_xy),
        "flags_dtype": "uint8",
        "checksum": "crc32",
        "created_by": "iac_query",
    }
    return TileTables(slides, index, header, limits)


def _check_record(record: TileRecord) -> None:
    for name in ("tile_id", "slide_id", "patient_id", "split"):
        value = getattr(record, name)
        if not isinstance(value, str):
            raise TypeError(f"tile {record.tile_id!r}: {name} is {value!r}, expected a str")
        if not value and name != "split":
            raise ValueError(f"tile {record.tile_id!r}: {name} is empty")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError(f"tile {record.tile_id!r}: {name} is no text of UTF-8") from None
    for axis in ("x", "y"):
        value = getattr(record, axis)
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(f"tile {record.tile_id!r}: {axis} is {value!r}, expected an int")
        if value < 0:
            raise ValueError(f"tile {record.tile_id!r}: {axis} is {value}, expected 0 or more")


def _stride(values: Any) -> int:
    return math.gcd(*map(operator.index, values))


def _places(records: Sequence[TileRecord], axis: str, step: Any, extended: bool) -> list[int]:
    if isinstance(step, bool) or not hasattr(step, "__index__"):
        raise TypeError(f"stride_{axis} is {step!r}, expected an int")
    if step < 1:
        raise ValueError(f"stride_{axis} is {step}, expected 1 or more")
    places = []
    for record in records:
        place, rest = divmod(operator.index(getattr(record, axis)), step)
        if rest:
            raise ValueError(
                f"tile {record.tile_id!r}: {axis} is {getattr(record, axis)}, which does not "
                f"divide by the stride {step}"
            )
        if place > (most := limits_of(extended).max_place):
            raise ValueError(
                f"tile {record.tile_id!r}: {axis} is place {place} of the grid, the last is {most}"
                f"{_advice(extended)}"
            )
        places.append(place)
    return places


def _advice(extended: bool) -> str:
    return "" if extended else "; extended=True writes a schema of our own that holds more"


def tile_records(reader: PackReader, folder: str, suffix: str) -> list[TileRecord]:
    """The tiles of a pack as a manifest lists them, their files called ``folder/id.suffix``.

    Raises PackError for tables that lack a column, or a slide that tiles are on.
    """
    header = reader.header
    try:
        slides = reader.read_slide_table(["slide_idx", "slide_id", "patient_id"]).to_pylist()
        index = reader.read_index_table(["slide_idx", "tile_x", "tile_y", "tile_id"]).to_pylist()
        steps = (1, 1)
        if header.get("coordinate_mode") == "tile_grid":
            steps = header["stride_x"], header["stride_y"]
        try:
            splits = reader.read_index_table(["split"])["split"].to_pylist()
        except KeyError:
            splits = [""] * len(index)
        of_slide = {slide["slide_idx"]: slide for slide in slides}
        return [
            TileRecord(
                tile_id=row["tile_id"],
                patient_id=of_slide[row["slide_idx"]]["patient_id"],
                slide_id=of_slide[row["slide_idx"]]["slide_id"],
                tile_path=Path(folder, f"{row['tile_id']}.{suffix}"),
                x=row["tile_x"] * steps[0],
                y=row["tile_y"] * steps[1],
                split=split,
            )
            for row, split in zip(index, splits, strict=True)
        ]
    except (KeyError, TypeError) as error:
        raise PackError(f"{reader.package_path}: its tables lack {error}") from error


def row_of_tile(ids: RowIds, tile_id: str) -> int:
    """The row of a tile. Raises TileNotFoundError, and PackError where ids are not unique."""
    try:
        return ids.row(tile_id)
    except KeyError as error:
        raise TileNotFoundError(error.args[0]) from None
