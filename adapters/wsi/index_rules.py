"""What the tables of a whole slide's pack must hold: one slide, its grid, what lies beside it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import PackError
from ...validation.checked_pack import CheckedPack, Rows, numbers
from ...validation.report import Finding
from .._table_rules import check_columns, in_rows
from .header_rules import check_header
from .metadata_rules import check_metadata
from .schema import (
    ASSOCIATED_ID,
    ICC_NAME,
    INDEX,
    METADATA_NAME,
    NONE_ID,
    RASTER_IDS,
    ZSTD_ID,
    Kind,
    Slide,
    read_slide,
)

_SLIDES = {
    "slide_idx": pa.uint8(),
    "slide_id": pa.string(),
    "patient_id": pa.string(),
    "specimen_id": pa.string(),
}
_TILE_COLUMNS = ("tile_x", "tile_y", "valid_width", "valid_height")
_IMAGE_COLUMNS = ("image_width", "image_height")
#: Of records beside the raster: their codec, and their name where there is one of a kind.
_BESIDE = {
    Kind.SCANNER_METADATA: (ZSTD_ID, METADATA_NAME),
    Kind.ICC_PROFILE: (NONE_ID, ICC_NAME),
    Kind.ASSOCIATED_IMAGE: (ASSOCIATED_ID, None),
    Kind.ASSOCIATED_ICC_PROFILE: (NONE_ID, None),
}


def check_tables(pack: CheckedPack) -> Iterator[Finding]:
    """The header, both tables, and the scanner's metadata."""
    try:
        slide = read_slide(pack.reader)
    except PackError as error:
        yield pack.finding("schema", pack.reason(error))
        return
    yield from check_header(pack, slide)
    yield from _check_slide(pack)
    schema = {name: INDEX.field(name).type for name in INDEX.names}
    nullable = {*_TILE_COLUMNS, *_IMAGE_COLUMNS}
    if len(slide.levels) > 1:
        schema["level"] = pa.uint8()
        nullable.add("level")
    unusable = False
    for finding in check_columns(pack, "index", schema, nullable):
        unusable |= finding.row is None
        yield finding
    if unusable or any(pack.column("index", name) is None for name in schema):
        return  # of rows nothing can be said
    yield from in_rows(pack, "index", np.flatnonzero(_integers(pack, "flags")), "flags are not 0")
    kinds = _integers(pack, "kind")
    unknown = np.flatnonzero((kinds < 0) | (kinds > max(Kind)))
    yield from in_rows(pack, "index", unknown, "kind is none of the schema's")
    yield from _check_tiles(pack, slide, np.flatnonzero(kinds == Kind.TILE))
    yield from _check_beside(pack, kinds)
    yield from check_metadata(pack, kinds)


def _check_slide(pack: CheckedPack) -> Iterator[Finding]:
    """That there is one slide, with an id."""
    yield from check_columns(pack, "slide", _SLIDES)
    columns = [pack.column("slide", name) for name in ("slide_idx", "slide_id")]
    if pack.native.num_slides != 1:
        yield pack.finding("schema", f"{pack.native.num_slides} slides, expected 1")
    elif None not in columns:
        number, name = (column[0].as_py() for column in columns)
        if number != 0:
            yield from in_rows(pack, "slide", [0], "slide_idx is not 0")
        if name == "":
            yield from in_rows(pack, "slide", [0], "slide_id is empty")


def _check_tiles(pack: CheckedPack, slide: Slide, rows: Rows) -> Iterator[Finding]:
    """That tiles are in the grid, each place once, and as large as it is there."""
    of = {name: _integers(pack, name)[rows] for name in (*_TILE_COLUMNS, "codec_id")}
    lengths = pc.fill_null(pc.binary_length(pack.column("index", "name")), 0)
    named = rows[numbers(lengths)[rows] > 0]
    yield from in_rows(pack, "index", named, "the tile has a name")
    sized = rows[np.any([_integers(pack, name)[rows] >= 0 for name in _IMAGE_COLUMNS], axis=0)]
    yield from in_rows(pack, "index", sized, "the tile has the size of an associated image")
    levels = np.zeros(len(rows), np.int64)
    if len(slide.levels) > 1:
        levels = _integers(pack, "level")[rows]
        lost = (levels < 0) | (levels >= len(slide.levels))
        yield from in_rows(pack, "index", rows[lost], "the tile is of no level")
    codecs = np.where(levels > 0, RASTER_IDS["jxl"], slide.raster_codec_id)
    other = rows[of["codec_id"] != codecs]
    yield from in_rows(pack, "index", other, "the tile is of another codec")
    for number, level in enumerate(slide.levels):
        here = np.flatnonzero(levels == number)
        x, y, width, height = (of[name][here] for name in _TILE_COLUMNS)
        columns, lines = level.grid
        inside = (x >= 0) & (x < columns) & (y >= 0) & (y < lines)
        yield from in_rows(pack, "index", rows[here[~inside]], "the tile lies outside the grid")
        valid = level.valid_size(x, y)
        fits = (width == valid[0]) & (height == valid[1])
        wrong = rows[here[inside & ~fits]]
        yield from in_rows(pack, "index", wrong, "the tile has another valid size than its place")
        places = (y * columns + x)[inside]
        _, first, which = np.unique(places, return_index=True, return_inverse=True)
        tiles = rows[here[inside]]
        for at in np.flatnonzero(first[which] != np.arange(len(places))):
            reason = f"the tile has the place of row {tiles[first[which[at]]]}"
            yield pack.finding("ids", reason, tiles[at])
    yield from _check_counts(pack, slide, int((levels == 0).sum()))


def _check_counts(pack: CheckedPack, slide: Slide, stored: int) -> Iterator[Finding]:
    columns, lines = slide.levels[0].grid
    counts = {
        "stored_tile_count": stored,
        "implicit_background_tile_count": columns * lines - stored,
    }
    for name, count in counts.items():
        said = pack.header.get(name)
        if type(said) is not int or said != count:
            yield pack.finding("counts", f"header field {name} is not {count}, as the index has it")


def _check_beside(pack: CheckedPack, kinds: npt.NDArray[np.int64]) -> Iterator[Finding]:
    """Metadata, profiles and images: of which codec they are, and that their names are."""
    codecs = _integers(pack, "codec_id")
    tiled = np.any([_integers(pack, name) >= 0 for name in _TILE_COLUMNS], axis=0)
    sizes = np.array([_integers(pack, name) for name in _IMAGE_COLUMNS])
    column = pack.column("index", "name")
    seen: dict[tuple[int, str], int] = {}
    for row in np.flatnonzero((kinds > Kind.TILE) & (kinds <= max(Kind))).tolist():
        kind, name = Kind(int(kinds[row])), column[row].as_py()
        what = kind.words
        codec, only = _BESIDE[kind]
        if not name or name != (only or name):
            yield pack.finding("schema", f"the {what} has not the name that it needs", row)
        elif (first := seen.setdefault((kind, name), row)) != row:
            yield pack.finding("ids", f"the {what} has the name of row {first}", row)
        if codecs[row] != codec:
            yield pack.finding("schema", f"the {what} is of another codec", row)
        if tiled[row]:
            yield pack.finding("schema", f"the {what} has the place of a tile", row)
        image = kind == Kind.ASSOCIATED_IMAGE
        if (sizes[:, row] < 1).any() if image else (sizes[:, row] >= 0).any():
            reason = "has no size" if image else "has the size of an image"
            yield pack.finding("schema", f"the {what} {reason}", row)
    for (kind, name), row in seen.items():
        if kind == Kind.ASSOCIATED_ICC_PROFILE and (Kind.ASSOCIATED_IMAGE, name) not in seen:
            yield pack.finding("schema", "the profile is of an image that is not there", row)
    if (Kind.SCANNER_METADATA, METADATA_NAME) not in seen:
        yield pack.finding("schema", "there is no scanner metadata")


def _integers(pack: CheckedPack, name: str) -> npt.NDArray[np.int64]:
    """A column of the index, which has been checked; -1 for NULL."""
    column = pack.column("index", name).cast(pa.int64(), safe=False)
    return numbers(pc.fill_null(column, -1))
