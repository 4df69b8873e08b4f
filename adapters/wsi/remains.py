"""A whole slide without some of its records: what is not there of its raster is background."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import PackError
from ...validation.checked_pack import CheckedPack, Remains, numbers
from ...validation.report import Finding
from .build import encoded_metadata
from .metadata_rules import associated_images, read_metadata, rows_by_name
from .schema import METADATA_NAME, Kind, read_slide

Kept = npt.NDArray[np.bool_]


def remains(pack: CheckedPack, kept: Kept) -> Remains:
    """Tiles become background, and images beside the raster go with their profiles and what the
    scanner metadata say of them.

    Raises PackError where there would be no scanner metadata, or no tile of those that were.
    """
    kinds = numbers(pack.column("index", "kind"))
    rows = rows_by_name(pack, kinds)
    metadata_row = rows[Kind.SCANNER_METADATA, METADATA_NAME]
    if not kept[metadata_row]:
        raise PackError("its scanner metadata are damaged, and no reader opens a slide without")
    kept = kept.copy()
    for (kind, name), row in rows.items():
        image = rows.get((Kind.ASSOCIATED_IMAGE, name))
        if kind == Kind.ASSOCIATED_ICC_PROFILE and (image is None or not kept[image]):
            kept[row] = False
    there = {kind_and_name for kind_and_name, row in rows.items() if kept[row]}
    metadata = read_metadata(pack, metadata_row)
    changed = _without_images(metadata, there)
    payloads = {} if changed == metadata else {metadata_row: encoded_metadata(changed)}
    header = {**pack.header, **_counts(pack, kinds, kept)}
    changes = tuple(_changes(pack, kinds, kept))
    return Remains(kept, header, pack.reader.slide_table, b"", payloads, changes)


def _without_images(metadata: dict[str, Any], there: set[tuple[int, str]]) -> dict[str, Any]:
    """The metadata with the images that are there, and whether these have profiles."""
    listed = associated_images(metadata) or {}
    images = [
        {**entry, "icc_profile_present": (Kind.ASSOCIATED_ICC_PROFILE, name) in there}
        for name, entry in listed.items()
        if (Kind.ASSOCIATED_IMAGE, name) in there
    ]
    return {**metadata, "associated_images": images}


def _counts(pack: CheckedPack, kinds: npt.NDArray[np.int64], kept: Kept) -> dict[str, int]:
    """The header's numbers of tiles. Raises PackError where all that there were are gone."""
    slide = read_slide(pack.reader)
    tiles = kinds == Kind.TILE
    if len(slide.levels) > 1:
        tiles &= numbers(pack.column("index", "level").fill_null(0)) == 0
    stored = int((tiles & kept).sum())
    if tiles.any() and stored == 0:
        raise PackError("no tile of its raster is whole")
    columns, lines = slide.levels[0].grid
    return {
        "stored_tile_count": stored,
        "implicit_background_tile_count": columns * lines - stored,
    }


def _changes(pack: CheckedPack, kinds: npt.NDArray[np.int64], kept: Kept) -> Iterator[Finding]:
    """What became of each record that is left out."""
    names = ["tile_x", "tile_y", *(["level"] if pack.has("index", "level") else [])]
    columns = [pack.column("index", name) for name in names]
    for row in np.flatnonzero(~kept).tolist():
        if kinds[row] == Kind.TILE:
            x, y, *level = (column[row].as_py() for column in columns)
            of_level = f" of level {level[0]}" if level else ""
            reason = f"the tile {x}, {y}{of_level} is background now"
        else:
            what = Kind(int(kinds[row])).words if kinds[row] <= max(Kind) else "record"
            reason = f"the {what} is left out"
        yield pack.finding("payload", reason, row, "note")
