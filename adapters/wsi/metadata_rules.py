"""What the scanner's metadata of a whole slide must hold, and say of the images beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ...validation.checked_pack import UNREADABLE, CheckedPack
from ...validation.report import Finding
from .schema import METADATA_NAME, Kind

Json = dict[str, Any]

_ALPHA = ("none", "composited_on_white")
_MOST_BYTES = 1 << 30


def check_metadata(pack: CheckedPack, kinds: npt.NDArray[np.int64]) -> Iterator[Finding]:
    """That the metadata can be read, and list the images beside the raster one to one."""
    rows = rows_by_name(pack, kinds)
    row = rows.get((Kind.SCANNER_METADATA, METADATA_NAME))
    if row is None:
        return  # said of the index
    try:
        metadata = read_metadata(pack, row)
    except UNREADABLE:
        yield pack.finding("payload", "the scanner metadata are no JSON object", row)
        return
    if not isinstance(metadata.get("source_info"), dict):
        yield pack.finding("payload", "the scanner metadata have no source_info", row)
    if not isinstance(metadata.get("source_storage", {}), dict):
        yield pack.finding("payload", "source_storage of the scanner metadata is no object", row)
    images = associated_images(metadata)
    if images is None:
        reason = "associated_images of the scanner metadata do not name images, each once"
        yield pack.finding("payload", reason, row)
        return
    columns = [pack.column("index", name) for name in ("image_width", "image_height")]
    for (kind, name), image in rows.items():
        if kind != Kind.ASSOCIATED_IMAGE:
            continue
        width, height = (column[image].as_py() for column in columns)
        profile = (Kind.ASSOCIATED_ICC_PROFILE, name) in rows
        if name not in images:
            yield pack.finding("payload", "the scanner metadata do not list the image", image)
        elif not _describes(images[name], width, height, profile):
            yield pack.finding("payload", "the scanner metadata list another image", image)
    lost = sum((Kind.ASSOCIATED_IMAGE, name) not in rows for name in images)
    if lost:
        reason = f"the scanner metadata list {lost} images that are not there"
        yield pack.finding("counts", reason, row)


def rows_by_name(pack: CheckedPack, kinds: npt.NDArray[np.int64]) -> dict[tuple[int, str], int]:
    """The records beside the raster, the first of each kind and name."""
    names = pack.column("index", "name")
    found: dict[tuple[int, str], int] = {}
    for row in np.flatnonzero(kinds != Kind.TILE).tolist():
        found.setdefault((int(kinds[row]), names[row].as_py()), row)
    return found


def read_metadata(pack: CheckedPack, row: int) -> Json:
    """The scanner's metadata. Raises one of UNREADABLE where it is none."""
    try:
        metadata = json.loads(pack.native.read_one(row, True, True, _MOST_BYTES))
    except RecursionError as error:
        raise ValueError("is nested too deep") from error
    if not isinstance(metadata, dict):
        raise ValueError("is no JSON object")
    return metadata


def associated_images(metadata: Mapping[str, Any]) -> dict[str, Json] | None:
    """The entries of images by name; None where they are not such entries."""
    entries = metadata.get("associated_images")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        return None
    found = {name: entry for entry in entries if isinstance(name := entry.get("name"), str)}
    return found if len(found) == len(entries) and "" not in found else None


def _describes(entry: Json, width: int, height: int, profile: bool) -> bool:
    expected = {
        "width": width,
        "height": height,
        "stored_mode": "RGB",
        "icc_profile_present": profile,
    }
    return (
        all(entry.get(name) == value for name, value in expected.items())
        and entry.get("alpha_handling") in _ALPHA
        and isinstance(entry.get("source_mode"), str)
        and isinstance(entry.get("source_info"), dict)
    )
