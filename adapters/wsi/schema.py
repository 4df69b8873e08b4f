"""What the header and the index of a ``wsi_image`` pack say of the slide."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..._tables import LAYOUT
from ...errors import PackError, row_error
from ...pack import PackReader

PAYLOAD_TYPE = "wsi_image"
SCHEMA_VERSION = 1
#: Of packs that hold what version 1 has no words for, and whose readers must refuse.
EXTENDED_SCHEMA_VERSION = 2

METADATA_NAME = "scanner_metadata"
ICC_NAME = "icc_profile"

#: Codecs of records beside the raster's own, by ``codec_id``.
ZSTD_ID, NONE_ID, ASSOCIATED_ID = 1, 2, 3
RASTER_IDS = {"jxl": 0, "jpeg2000": 4, "jpeg": 5}

#: Tiles have a place, images beside the raster a size; what a record has not is NULL.
INDEX = pa.schema(
    {
        "kind": pa.uint8(),
        "name": pa.string(),
        "tile_x": pa.uint32(),
        "tile_y": pa.uint32(),
        "valid_width": pa.uint16(),
        "valid_height": pa.uint16(),
        "image_width": pa.uint32(),
        "image_height": pa.uint32(),
        "codec_id": pa.uint8(),
        **LAYOUT,
        "flags": pa.uint8(),
    }
)

MAX_TILE_SIDE = 65535
#: Coarser ones.
MAX_LEVELS = 254
#: Of a level, background included.
_MAX_TILES = 1 << 28


class Kind(IntEnum):
    """The index column ``kind``."""

    TILE = 0
    SCANNER_METADATA = 1
    ICC_PROFILE = 2
    ASSOCIATED_IMAGE = 3
    ASSOCIATED_ICC_PROFILE = 4

    @property
    def words(self) -> str:
        """What messages call it."""
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True)
class Level:
    """A raster of tiles: the native one, or a coarser one of the same slide."""

    width: int
    height: int
    tile_width: int
    tile_height: int
    #: Native pixels for one of this level, along x and y.
    downsample: int
    mpp: tuple[float, float]

    @property
    def grid(self) -> tuple[int, int]:
        """Number of tile columns and rows."""
        return -(-self.width // self.tile_width), -(-self.height // self.tile_height)

    def valid_size(self, tile_x: Any, tile_y: Any) -> tuple[Any, Any]:
        """Width and height of what a tile has of the raster; the rest is padding."""
        return (
            np.minimum(self.tile_width, self.width - tile_x * self.tile_width),
            np.minimum(self.tile_height, self.height - tile_y * self.tile_height),
        )


@dataclass(frozen=True)
class Slide:
    """What the header says."""

    levels: tuple[Level, ...]
    dtype: np.dtype[Any]
    channels: int
    background: tuple[int, ...]
    raster_codec_id: int
    version: int


def read_slide(reader: PackReader) -> Slide:
    """The header of a pack. Raises PackError for another payload type, or one that is wrong."""
    header, path = reader.header, reader.package_path
    found = header.get("payload_type")
    if found != PAYLOAD_TYPE:
        raise PackError(f"{path}: is a pack of {found!r}, expected {PAYLOAD_TYPE!r}")
    version = header.get("wsi_schema_version")
    if type(version) is not int or version not in (SCHEMA_VERSION, EXTENDED_SCHEMA_VERSION):
        raise PackError(f"{path}: wsi_schema_version is {version!r}, this reader knows 1 and 2")
    try:
        return _slide(header, version)
    except KeyError as error:
        raise PackError(f"{path}: the header has no {error}") from error
    except (TypeError, ValueError) as error:
        raise PackError(f"{path}: the header is wrong: {error}") from error


def _slide(header: Mapping[str, Any], version: int) -> Slide:
    tile = _count(header, "tile_width"), _count(header, "tile_height")
    if max(tile) > MAX_TILE_SIDE:
        raise ValueError(f"tiles of {tile[0]} x {tile[1]} pixels, at most {MAX_TILE_SIDE} may be")
    mpp = _positive(header, "native_mpp_x"), _positive(header, "native_mpp_y")
    levels = [Level(_count(header, "width"), _count(header, "height"), *tile, 1, mpp)]
    channels, dtype = header["samples_per_pixel"], header["pixel_dtype"]
    background = header["background_rgb" if version == SCHEMA_VERSION else "background"]
    kinds = [(3, "uint8")]
    if version == EXTENDED_SCHEMA_VERSION:
        kinds += [(1, "uint8"), (1, "uint16"), (3, "uint16")]
        for entry in header.get("levels", []):
            factor = _count(entry, "downsample")
            if factor <= levels[-1].downsample or len(levels) > MAX_LEVELS:
                raise ValueError(f"levels are not up to {MAX_LEVELS}, from the finest on")
            width, height = -(-levels[0].width // factor), -(-levels[0].height // factor)
            coarser = (mpp[0] * factor, mpp[1] * factor)
            levels.append(Level(width, height, *tile, factor, coarser))
    if type(channels) is not int or (channels, dtype) not in kinds:
        raise ValueError(f"pixels of {channels} samples of {dtype}")
    samples = range(np.iinfo(dtype).max + 1)
    if not isinstance(background, list) or not all(type(v) is int for v in background):
        raise ValueError(f"background {background}")
    if len(background) != channels or not all(value in samples for value in background):
        raise ValueError(f"background {background}")
    for level in levels:
        columns, rows = level.grid
        if columns * rows > _MAX_TILES:
            raise ValueError(f"a raster of {columns} x {rows} tiles")
    first = levels[0].grid
    if (header["grid_width"], header["grid_height"]) != first:
        raise ValueError(f"grid_width and grid_height are not {first[0]} and {first[1]}")
    codec = header["raster_codec"]
    if codec not in RASTER_IDS:
        raise ValueError(f"raster_codec is {codec!r}")
    return Slide(
        levels=tuple(levels),
        dtype=np.dtype(dtype),
        channels=channels,
        background=tuple(background),
        raster_codec_id=RASTER_IDS[codec],
        version=version,
    )


def _count(fields: Mapping[str, Any], name: str) -> int:
    value = fields[name]
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 1 << 32:
        raise ValueError(f"{name} is {value!r}")
    return value


def _positive(fields: Mapping[str, Any], name: str) -> float:
    value = fields[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError(f"{name} is {value!r}")
    return float(value)


class SlideIndex:
    """Where the tiles and the other records of a slide are. Raises PackError for a wrong index."""

    def __init__(self, reader: PackReader, slide: Slide) -> None:
        self._path = str(reader.package_path)
        self._table = _read_index(reader, slide)
        kinds = self._integers("kind")
        if bad := np.flatnonzero((kinds < 0) | (kinds > max(Kind))).tolist():
            raise self._wrong(bad[0], f"kind is {kinds[bad[0]]}")
        self._kinds = kinds
        #: For each level, at [tile_y, tile_x], one more than the tile's row; 0 for background.
        self.tiles = self._tile_rows(slide)
        self.metadata_row = self._only(Kind.SCANNER_METADATA, METADATA_NAME)
        self.icc_row = self._only(Kind.ICC_PROFILE, ICC_NAME)
        self.images = self._named(Kind.ASSOCIATED_IMAGE)
        self.image_profiles = self._named(Kind.ASSOCIATED_ICC_PROFILE)
        if self.metadata_row is None:
            raise PackError(f"{self._path}: has no scanner metadata")
        if stray := self.image_profiles.keys() - self.images.keys():
            row = self.image_profiles[min(stray)]
            raise self._wrong(row, "is the ICC profile of an image that is not there")
        del self._table

    def _tile_rows(self, slide: Slide) -> list[npt.NDArray[np.int64]]:
        rows = np.flatnonzero(self._kinds == Kind.TILE)
        names = ("tile_x", "tile_y", "valid_width", "valid_height", "codec_id")
        found = {name: self._integers(name)[rows] for name in names}
        level_of = np.zeros(len(rows), np.int64)
        if len(slide.levels) > 1:
            level_of = self._integers("level")[rows]
            self._check(rows, (level_of >= 0) & (level_of < len(slide.levels)), "is of no level")
        own_ids = np.where(level_of > 0, RASTER_IDS["jxl"], slide.raster_codec_id)
        self._check(rows, found["codec_id"] == own_ids, "is of another codec")
        tables = []
        for number, level in enumerate(slide.levels):
            here = level_of == number
            of = {name: values[here] for name, values in found.items()}
            tables.append(self._grid(level, rows[here], of))
        return tables

    def _grid(
        self, level: Level, rows: npt.NDArray[np.int64], of: dict[str, npt.NDArray[np.int64]]
    ) -> npt.NDArray[np.int64]:
        columns, lines = level.grid
        x, y = of["tile_x"], of["tile_y"]
        inside = (x >= 0) & (x < columns) & (y >= 0) & (y < lines)
        self._check(rows, inside, "lies outside the grid")
        width, height = level.valid_size(x, y)
        fits = (of["valid_width"] == width) & (of["valid_height"] == height)
        self._check(rows, fits, "has another valid size than its place")
        # Zeros, since memory for these is taken only where there are tiles.
        table = np.zeros((lines, columns), np.int64)
        table[y, x] = rows + 1
        self._check(rows, table[y, x] == rows + 1, "has the place of another tile")
        return table

    def _check(self, rows: npt.NDArray[np.int64], good: npt.NDArray[np.bool_], reason: str) -> None:
        if not good.all():
            raise self._wrong(int(rows[~good][0]), f"the tile {reason}")

    def _named(self, kind: Kind) -> dict[str, int]:
        found: dict[str, int] = {}
        for row in np.flatnonzero(self._kinds == kind).tolist():
            name = self._table["name"][row].as_py()
            if not name or name in found:
                raise self._wrong(row, f"{kind.name.lower()} without a name of its own")
            found[name] = row
        return found

    def _only(self, kind: Kind, name: str) -> int | None:
        found = self._named(kind)
        if found and list(found) != [name]:
            raise self._wrong(max(found.values()), f"{kind.name.lower()} that is not the only one")
        return found.get(name)

    def _integers(self, name: str) -> npt.NDArray[np.int64]:
        column = self._table[name]
        if not pa.types.is_integer(column.type):
            raise PackError(f"{self._path}: the index column {name} is of {column.type}")
        # What is beyond 63 bits becomes negative, as wrong as it is.
        return pc.fill_null(column.cast(pa.int64(), safe=False), -1).to_numpy()

    def _wrong(self, row: int, reason: str) -> PackError:
        return row_error(PackError, self._path, row, reason)


def _read_index(reader: PackReader, slide: Slide) -> pa.Table:
    names = ["kind", "name", "tile_x", "tile_y", "valid_width", "valid_height", "codec_id"]
    if len(slide.levels) > 1:
        names.append("level")
    try:
        return reader.read_index_table(names)
    except KeyError as error:
        raise PackError(f"{reader.package_path}: the index has {error.args[0]}") from error
    except pa.ArrowInvalid as error:
        raise PackError(f"{reader.package_path}: {error}") from error
