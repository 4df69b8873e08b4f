"""Building packs of whole-slide images."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from tqdm import tqdm

from ..._options import PathLike, worker_count
from ...build import build_pack_streaming
from ...codec import Codec
from .._encoding import refuse_existing
from .._parallel import in_order
from .profile import Profile, choose, jxl_codec, jxl_params
from .schema import (
    ASSOCIATED_ID,
    EXTENDED_SCHEMA_VERSION,
    ICC_NAME,
    MAX_TILE_SIDE,
    METADATA_NAME,
    NONE_ID,
    PAYLOAD_TYPE,
    RASTER_IDS,
    SCHEMA_VERSION,
    ZSTD_ID,
    Kind,
)
from .sources import Source, SourceError, open_source

_ZSTD_LEVEL = 3

_INDEX = pa.schema(
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
        "offset": pa.uint64(),
        "length": pa.uint32(),
        "crc32": pa.uint32(),
        "flags": pa.uint8(),
    }
)


def build_wsi_image_package(
    source_path: PathLike,
    output_path: PathLike,
    *,
    slide_id: str,
    patient_id: str = "",
    specimen_id: str = "",
    native_mpp: float | tuple[float, float] | None = None,
    lossless: bool = False,
    distance: float | None = None,
    effort: int = 7,
    tile_size: int | tuple[int, int] = 512,
    workers: int | None = 1,
    overwrite: bool = False,
    show_progress: bool = False,
) -> None:
    """Writes the pack of a slide: its whole native raster, and what its file has beside it.

    * ``source_path``: TIFF (``.svs .ndpi .scn .bif .tif .tiff``), or any image that Pillow opens.
    * ``native_mpp``: micrometres a pixel, one number or one for x and y each, over what the source
      says; needed where it says nothing.
    * ``lossless``, ``distance``: of JPEG XL. With neither, the pack matches the source: tiles of
      JPEG and JPEG 2000 below 1 bit a pixel are stored as they are; a lossless source becomes
      lossless JPEG XL, a lossy one JPEG XL of the smallest distance that is at least 40 dB from it
      and smaller, or else its own tiles again.
    * ``effort``: of JPEG XL, 1 to 10.
    * ``tile_size``: of JPEG XL tiles, one number or width and height. A row of tiles is in memory.
    * ``workers``: threads that decode and encode, None for as many as there are processors.

    Tiles of one colour, the most frequent such colour, are left out: it is the background.

    Raises ValueError for a slide that is broken, or of a kind that the schema does not hold, naming
    file and tile, where ``native_mpp`` or ``distance`` is needed, and for arguments out of range;
    the OSError of a file that cannot be read; FileExistsError where there is a pack and not
    ``overwrite``. On any error nothing is left behind and an old file stays.
    """
    worker_count(workers)
    size = _tile_size(tile_size)
    _check_encoding(lossless, distance, effort)
    for name, text in (("slide_id", slide_id), ("patient_id", patient_id),
                       ("specimen_id", specimen_id)):  # fmt: skip
        _check_text(name, text)
    if not slide_id:
        raise ValueError("slide_id is empty")
    refuse_existing(os.path.abspath(os.fsdecode(output_path)), overwrite)
    source = open_source(source_path)
    mpp, provenance = _mpp(source, native_mpp)
    profile = choose(source, size, lossless, distance, effort, workers)
    raster = _survey(source, profile, workers, show_progress)
    extras = _Extras(source, profile, provenance)
    header = {
        **_header(source, profile, raster),
        "native_mpp_x": mpp[0],
        "native_mpp_y": mpp[1],
        "mpp_provenance": provenance,
    }
    slides = pa.table(
        {
            "slide_idx": pa.array([0], pa.uint8()),
            "slide_id": pa.array([slide_id], pa.string()),
            "patient_id": pa.array([patient_id], pa.string()),
            "specimen_id": pa.array([specimen_id], pa.string()),
        }
    )

    def payloads() -> Iterator[bytes]:
        tiles = _tile_payloads(source, profile, raster, workers)
        with tqdm(tiles, "tiles", len(raster.stored), disable=not show_progress) as bar:
            yield from bar
        yield from extras.payloads

    build_pack_streaming(
        output_path, header, slides, _index(profile, raster, extras), payloads(),
        overwrite=overwrite,
    )  # fmt: skip


@dataclass(frozen=True)
class _Raster:
    """Which tiles are stored."""

    grid: tuple[int, int]
    background: tuple[int, ...]
    provenance: str
    #: (tile_x, tile_y, valid_width, valid_height) of each, row by row.
    stored: Sequence[tuple[int, int, int, int]]


def _survey(source: Source, profile: Profile, workers: int | None, show: bool) -> _Raster:
    """Reads the whole raster once, so that a broken source is found before anything is encoded."""
    across, down = profile.tile_size
    grid = -(-source.width // across), -(-source.height // down)
    places = [
        (x, y, min(across, source.width - x * across), min(down, source.height - y * down))
        for y in range(grid[1])
        for x in range(grid[0])
    ]
    white = (int(np.iinfo(source.dtype).max),) * source.channels
    with tqdm(total=len(places), desc="survey", disable=not show) as bar:
        if profile.native is not None:
            return _survey_native(source, profile, places, grid, white, workers, bar)
        colours: list[tuple[int, ...] | None] = []
        for y in range(grid[1]):
            band = source.band(y * down, down, workers)
            for x in range(grid[0]):
                colours.append(_one_colour(band[:, x * across : (x + 1) * across]))
                bar.update()
    counts = Counter(colour for colour in colours if colour is not None)
    if not counts:
        return _Raster(grid, white, "default_white", places)
    most = max(counts.values())
    background = min(colour for colour, count in counts.items() if count == most)
    stored = [p for p, colour in zip(places, colours, strict=True) if colour != background]
    return _Raster(grid, background, "uniform_tile_mode", stored)


def _survey_native(
    source: Source,
    profile: Profile,
    places: Sequence[tuple[int, int, int, int]],
    grid: tuple[int, int],
    white: tuple[int, ...],
    workers: int | None,
    bar: Any,
) -> _Raster:
    native = profile.native
    assert native is not None

    def is_there(place: tuple[int, int, int, int]) -> bool:
        x, y, width, height = place
        if native.read(x, y) is None:
            return False
        source.pixels.read(x * native.tile_width, y * native.tile_height, width, height, 1)
        return True

    stored = []
    for place, there in zip(places, in_order(is_there, places, workers), strict=True):
        bar.update()
        if there:
            stored.append(place)
    return _Raster(grid, white, "default_white", stored)


def _one_colour(tile: npt.NDArray[Any]) -> tuple[int, ...] | None:
    """The colour of all pixels, None where they differ."""
    first = tile[0, 0]
    if (tile[0] != first).any() or (tile != first).any():
        return None
    return tuple(first.tolist())


def _tile_payloads(
    source: Source, profile: Profile, raster: _Raster, workers: int | None
) -> Iterator[bytes]:
    native = profile.native
    if native is not None:
        for x, y, _, _ in raster.stored:
            payload = native.read(x, y)
            if payload is None:
                raise SourceError(f"{source.path}: tile {x}, {y} is gone: the file has changed")
            yield payload
        return
    tiles = _tiles(source, profile, raster, workers)
    yield from in_order(profile.encoder.encode, tiles, workers)


def _tiles(
    source: Source, profile: Profile, raster: _Raster, workers: int | None
) -> Iterator[npt.NDArray[Any]]:
    across, down = profile.tile_size
    stored: dict[int, list[tuple[int, int, int]]] = {}
    for x, y, width, height in raster.stored:
        stored.setdefault(y, []).append((x, width, height))
    for y, places in stored.items():
        band = source.band(y * down, down, workers)
        for x, width, height in places:
            tile = np.empty((down, across, source.channels), source.dtype)
            if (height, width) != (down, across):
                tile[:] = raster.background
            tile[:height, :width] = band[:, x * across :][:, :width]
            yield tile


class _Extras:
    """The records behind the tiles: metadata, profile, associated images."""

    def __init__(self, source: Source, profile: Profile, provenance: str) -> None:
        #: Of each its columns of the index.
        self.rows: list[dict[str, Any]] = []
        self.payloads: list[bytes] = []
        zstd = Codec.create(Codec.ZSTD, level=_ZSTD_LEVEL)
        text = json.dumps(
            _scanner_metadata(source, provenance), sort_keys=True, separators=(",", ":"),
            allow_nan=False,
        )  # fmt: skip
        self._add(Kind.SCANNER_METADATA, METADATA_NAME, ZSTD_ID, zstd.encode(text.encode()))
        if source.icc_profile is not None:
            self._add(Kind.ICC_PROFILE, ICC_NAME, NONE_ID, source.icc_profile)
        codec = jxl_codec(jxl_params(0, profile.effort))
        for image in sorted(source.associated, key=lambda image: image.name):
            height, width, _ = image.pixels.shape
            self._add(Kind.ASSOCIATED_IMAGE, image.name, ASSOCIATED_ID, codec.encode(image.pixels),
                      image_width=width, image_height=height)  # fmt: skip
            if image.icc_profile is not None:
                self._add(Kind.ASSOCIATED_ICC_PROFILE, image.name, NONE_ID, image.icc_profile)

    def _add(self, kind: Kind, name: str, codec_id: int, payload: bytes, **columns: Any) -> None:
        self.rows.append({"kind": int(kind), "name": name, "codec_id": codec_id, **columns})
        self.payloads.append(payload)


def _scanner_metadata(source: Source, provenance: str) -> dict[str, Any]:
    return {
        "backend": source.backend,
        "source_format": source.format,
        "source_mode": source.mode,
        "source_dimensions": [source.width, source.height],
        "source_storage": dict(source.storage),
        "original_orientation": source.orientation,
        "mpp_provenance": provenance,
        "source_info": dict(source.info),
        "associated_images_preserved": source.keeps_associated,
        "associated_images": [
            {
                "name": image.name,
                "width": image.pixels.shape[1],
                "height": image.pixels.shape[0],
                "source_mode": image.source_mode,
                "stored_mode": "RGB",
                "alpha_handling": image.alpha_handling,
                "source_info": image.info,
                "icc_profile_present": image.icc_profile is not None,
            }
            for image in sorted(source.associated, key=lambda image: image.name)
        ],
    }


def _index(profile: Profile, raster: _Raster, extras: _Extras) -> pa.Table:
    tiles, more = len(raster.stored), len(extras.rows)
    fields = ("tile_x", "tile_y", "valid_width", "valid_height")
    columns: dict[str, list[Any]] = {name: [None] * more for name in _INDEX.names}
    for at, row in enumerate(extras.rows):
        for name, value in row.items():
            columns[name][at] = value
    places = zip(*raster.stored, strict=True) if tiles else [()] * 4
    of_tiles = {
        "kind": [int(Kind.TILE)] * tiles,
        "name": [""] * tiles,
        "codec_id": [RASTER_IDS[profile.codec]] * tiles,
        **dict(zip(fields, map(list, places), strict=True)),
    }
    columns = {n: of_tiles.get(n, [None] * tiles) + values for n, values in columns.items()}
    columns["flags"] = [0] * (tiles + more)
    return pa.table(columns, _INDEX)


def _header(source: Source, profile: Profile, raster: _Raster) -> dict[str, Any]:
    across, down = profile.tile_size
    gray = source.channels == 1
    plain = not gray and source.dtype == np.uint8
    if profile.native is not None:
        plain = plain and profile.native.plain
    cells = raster.grid[0] * raster.grid[1]
    raster_id = RASTER_IDS[profile.codec]
    background = "background_rgb" if plain else "background"
    return {
        "payload_type": PAYLOAD_TYPE,
        "wsi_schema_version": SCHEMA_VERSION if plain else EXTENDED_SCHEMA_VERSION,
        "archive_contract": "complete_raster",
        "completeness": "full_raster",
        "width": source.width,
        "height": source.height,
        "tile_width": across,
        "tile_height": down,
        "grid_width": raster.grid[0],
        "grid_height": raster.grid[1],
        "raster_storage": "sparse_background",
        "stored_tile_count": len(raster.stored),
        "implicit_background_tile_count": cells - len(raster.stored),
        "origin": "top_left",
        "orientation": "canonical",
        "original_orientation": source.orientation,
        background: list(raster.background),
        "background_provenance": raster.provenance,
        "pixel_dtype": source.dtype.name,
        "samples_per_pixel": source.channels,
        "color_space": "GRAY" if gray else "RGB",
        "raster_codec": profile.codec,
        "raster_codec_params": profile.params,
        "raster_profile_selection": profile.selection,
        "record_codecs": [
            {"id": raster_id, "name": profile.codec, "params": profile.params},
            {"id": ZSTD_ID, "name": "zstd", "params": {"level": _ZSTD_LEVEL}},
            {"id": NONE_ID, "name": "none", "params": {}},
            {"id": ASSOCIATED_ID, "name": "jxl", "params": jxl_params(0, profile.effort)},
        ],
        "source_format": source.format,
        "import_backend": source.backend,
        "associated_images_preserved": source.keeps_associated,
        "created_by": "iac_query",
    }


def _mpp(source: Source, given: Any) -> tuple[tuple[float, float], str]:
    if given is None:
        if source.mpp is None:
            raise ValueError(
                f"{source.path}: does not say how large a pixel is, pass native_mpp= in micrometres"
            )
        return source.mpp, "source_metadata"
    pair = tuple(given) if isinstance(given, tuple | list) else (given, given)
    if len(pair) != 2 or not all(_is_number(v) and math.isfinite(v) and v > 0 for v in pair):
        raise ValueError(f"native_mpp is {given!r}, expected a number above 0, or two")
    return (float(pair[0]), float(pair[1])), "user_override"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _tile_size(given: Any) -> tuple[int, int]:
    pair = tuple(given) if isinstance(given, tuple | list) else (given, given)
    for side in pair:
        if isinstance(side, bool) or not hasattr(side, "__index__"):
            raise TypeError(f"tile_size is {given!r}, expected an int, or two")
    if len(pair) != 2 or not all(1 <= side <= MAX_TILE_SIDE for side in pair):
        raise ValueError(f"tile_size is {given!r}, expected 1 to {MAX_TILE_SIDE}, or two of them")
    return pair[0].__index__(), pair[1].__index__()


def _check_encoding(lossless: bool, distance: float | None, effort: int) -> None:
    if not isinstance(lossless, bool):
        raise TypeError(f"lossless is {lossless!r}, expected a bool")
    if lossless and distance is not None:
        raise ValueError("lossless=True and distance= exclude each other")
    if distance is not None:
        if not _is_number(distance):
            raise TypeError(f"distance is {distance!r}, expected a number")
        if not 0 < distance <= 25:
            raise ValueError(f"distance is {distance}, expected above 0, to 25")
    if isinstance(effort, bool) or not isinstance(effort, int):
        raise TypeError(f"effort is {effort!r}, expected an int")
    if not 1 <= effort <= 10:
        raise ValueError(f"effort is {effort}, expected 1 to 10")


def _check_text(name: str, text: Any) -> None:
    if not isinstance(text, str):
        raise TypeError(f"{name} is {text!r}, expected a str")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} is no text of UTF-8") from None
