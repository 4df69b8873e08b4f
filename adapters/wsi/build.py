"""Building packs of whole-slide images."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import chain
from typing import IO, Any

import numpy as np
import pyarrow as pa
from tqdm import tqdm

from ..._options import PathLike, worker_count
from ...build import write_records
from ...codec import Codec
from .._encoding import refuse_existing
from .profile import Profile, choose, jxl_codec, jxl_params
from .raster import Raster, encoded_raster, kept_raster
from .schema import (
    ASSOCIATED_ID,
    EXTENDED_SCHEMA_VERSION,
    ICC_NAME,
    INDEX,
    MAX_LEVELS,
    MAX_TILE_SIDE,
    METADATA_NAME,
    NONE_ID,
    PAYLOAD_TYPE,
    RASTER_IDS,
    SCHEMA_VERSION,
    ZSTD_ID,
    Kind,
)
from .sources import Check, Source, check_extent, check_memory, open_source

_ZSTD_LEVEL = 3


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
    levels: Sequence[int] = (),
    backend: str | None = None,
    check: Check = "structure",
) -> None:
    """Writes the pack of a slide: its whole native raster, and what its file has beside it.

    * ``source_path``: TIFF (``.svs .ndpi .scn .bif .tif .tiff``), a folder of a slide's DICOM files
      or one of them (``.dcm``), what OpenSlide opens (``.mrxs .vms .vmu .svslide .czi``), or any
      image that Pillow opens.
    * ``native_mpp``: micrometres a pixel, one number or one for x and y each, over what the source
      says; needed where it says nothing.
    * ``lossless``, ``distance``: of JPEG XL. With neither, the pack matches the source: tiles of
      JPEG and JPEG 2000 below 1 bit a pixel are stored as they are; a lossless source becomes
      lossless JPEG XL, a lossy one JPEG XL of the smallest distance that is at least 40 dB from it
      and smaller, or else its own tiles again.
    * ``effort``: of JPEG XL, 1 to 10.
    * ``tile_size``: of JPEG XL tiles, one number or width and height. A row of tiles is in memory.
    * ``workers``: threads that decode and encode, None for as many as there are processors.
    * ``levels``: coarser rasters to store as well, each by how many native pixels, across and down,
      one of its pixels is the mean of: numbers that the tiles' height divides by, rising.
    * ``backend``: what opens the source, ``"tifffile"``, ``"wsidicom"``, ``"openslide"`` or
      ``"pillow"``, whatever it is called.
    * ``check``: of tiles that are stored as they are. ``"structure"`` refuses one that is cut,
      lacks tables that it needs, has more behind its end than padding, or is of another size than
      the slide's tiles. Damage inside of coded samples is kept as the source has it, for
      :func:`iac_query.validate` with ``max_decode=0`` to find; ``"decode"`` decodes each tile and
      refuses those too.

    Tiles of one colour, the most frequent such colour, are left out: it is the background.

    Raises ValueError for a slide that is broken, or of a kind that the schema does not hold, naming
    file and tile, where ``native_mpp`` or ``distance`` is needed, and for arguments out of range;
    the OSError of a file that cannot be read; FileExistsError where there is a pack and not
    ``overwrite``. On any error nothing is left behind and an old file stays.
    """
    worker_count(workers)
    size = _tile_size(tile_size)
    _check_encoding(lossless, distance, effort)
    if check not in ("structure", "decode"):
        raise ValueError(f"check is {check!r}, expected 'structure' or 'decode'")
    for name, text in (
        ("slide_id", slide_id),
        ("patient_id", patient_id),
        ("specimen_id", specimen_id),
    ):
        _check_text(name, text)
    if not slide_id:
        raise ValueError("slide_id is empty")
    path = os.path.abspath(os.fsdecode(output_path))
    refuse_existing(path, overwrite)
    if os.path.exists(path) and os.path.samefile(path, os.fsdecode(source_path)):
        raise ValueError(f"{path}: is the slide itself, which would be replaced")
    slides = pa.table(
        {
            "slide_idx": pa.array([0], pa.uint8()),
            "slide_id": pa.array([slide_id], pa.string()),
            "patient_id": pa.array([patient_id], pa.string()),
            "specimen_id": pa.array([specimen_id], pa.string()),
        }
    )
    with closing(open_source(source_path, backend)) as source:
        mpp, provenance = _mpp(source, native_mpp)
        profile = choose(source, size, lossless, distance, effort, workers)
        factors = _levels(levels, profile)
        _check_size(source, profile, factors)
        extras = _Extras(source, profile, provenance)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        tiles = sum(_cells(source, profile, factor) for factor in (1, *factors))
        # The tables stand before the tiles in a pack: what is encoded waits until it is counted.
        with (
            tqdm(total=tiles, unit=" tiles", disable=not show_progress) as bar,
            tempfile.TemporaryFile(dir=os.path.dirname(path)) as file,
        ):
            raster = _raster(source, profile, factors, check, workers, bar, file)
            header = {
                **_header(source, profile, raster, factors),
                "native_mpp_x": mpp[0],
                "native_mpp_y": mpp[1],
                "mpp_provenance": provenance,
            }
            write_records(
                path,
                header,
                slides,
                _index(profile, raster, factors, extras),
                chain(raster.blocks, [extras.payloads]),
                overwrite=overwrite,
            )


def _levels(levels: Sequence[int], profile: Profile) -> tuple[int, ...]:
    factors = tuple(levels)
    for factor in factors:
        if isinstance(factor, bool) or not isinstance(factor, int):
            raise TypeError(f"levels are {factors}, expected ints")
        if factor < 2 or profile.tile_size[1] % factor:
            raise ValueError(
                f"levels are {factors}, expected numbers from 2 on that the tiles' height, "
                f"{profile.tile_size[1]}, divides by"
            )
    if list(factors) != sorted(set(factors)) or len(factors) > MAX_LEVELS:
        raise ValueError(f"levels are {factors}, expected each once, from the finest on")
    return factors


def _check_size(source: Source, profile: Profile, levels: Sequence[int]) -> None:
    check_extent(source.path, (source.width, source.height), profile.tile_size)
    if profile.native is None or levels:
        row = source.width, min(profile.tile_size[1], source.height)
        check_memory(source.path, "a row of tiles", row, source.channels * source.dtype.itemsize)


def _raster(
    source: Source,
    profile: Profile,
    levels: Sequence[int],
    check: Check,
    workers: int | None,
    bar: Any,
    file: IO[bytes],
) -> Raster:
    if profile.native is None:
        return encoded_raster(source, profile, levels, workers, bar, file)
    kept = kept_raster(source, profile, check, workers, bar)
    if not levels:
        return kept
    coarser = encoded_raster(source, profile, levels, workers, bar, file)
    blocks = chain(kept.blocks, coarser.blocks)
    places = np.concatenate([kept.places, coarser.places])
    return Raster(kept.background, kept.provenance, places, blocks)


def _cells(source: Source, profile: Profile, factor: int = 1) -> int:
    """Tiles in the grid of a raster."""
    size = -(-source.width // factor), -(-source.height // factor)
    return math.prod(-(-s // t) for s, t in zip(size, profile.tile_size, strict=True))


class _Extras:
    """The records behind the tiles: metadata, profile, associated images."""

    def __init__(self, source: Source, profile: Profile, provenance: str) -> None:
        #: Of each its columns of the index.
        self.rows: list[dict[str, Any]] = []
        self.payloads: list[bytes] = []
        metadata = encoded_metadata(_scanner_metadata(source, provenance))
        self._add(Kind.SCANNER_METADATA, METADATA_NAME, ZSTD_ID, metadata)
        if source.icc_profile is not None:
            self._add(Kind.ICC_PROFILE, ICC_NAME, NONE_ID, source.icc_profile)
        codec = jxl_codec(jxl_params(0, profile.effort))
        for image in sorted(source.associated, key=lambda image: image.name):
            height, width, _ = image.pixels.shape
            self._add(
                Kind.ASSOCIATED_IMAGE,
                image.name,
                ASSOCIATED_ID,
                codec.encode(image.pixels),
                image_width=width,
                image_height=height,
            )
            if image.icc_profile is not None:
                self._add(Kind.ASSOCIATED_ICC_PROFILE, image.name, NONE_ID, image.icc_profile)

    def _add(self, kind: Kind, name: str, codec_id: int, payload: bytes, **columns: Any) -> None:
        row = {"kind": int(kind), "name": name, "codec_id": codec_id, "flags": 0}
        self.rows.append(row | columns)
        self.payloads.append(payload)


def encoded_metadata(metadata: Mapping[str, Any]) -> bytes:
    """The scanner's metadata as they are stored."""
    text = json.dumps(metadata, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return Codec.create(Codec.ZSTD, level=_ZSTD_LEVEL).encode(text.encode())


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


def _index(profile: Profile, raster: Raster, levels: Sequence[int], extras: _Extras) -> pa.Table:
    level, x, y, width, height = raster.places.T
    codecs = np.where(level > 0, RASTER_IDS["jxl"], RASTER_IDS[profile.codec])
    columns = {
        "kind": np.full(len(level), Kind.TILE),
        "name": pa.repeat("", len(level)),
        "level": level,
        "tile_x": x,
        "tile_y": y,
        "valid_width": width,
        "valid_height": height,
        "codec_id": codecs,
        "flags": np.zeros(len(level), np.int64),
    }
    schema = INDEX.append(pa.field("level", pa.uint8())) if levels else INDEX
    tiles = pa.table(
        [
            pa.array(columns[field.name], field.type)
            if field.name in columns
            else pa.nulls(len(level), field.type)
            for field in schema
        ],
        schema=schema,
    )
    more = pa.Table.from_pylist(extras.rows, schema)
    return pa.concat_tables([tiles, more]).combine_chunks()


def _header(
    source: Source, profile: Profile, raster: Raster, levels: Sequence[int]
) -> dict[str, Any]:
    across, down = profile.tile_size
    gray = source.channels == 1
    plain = not gray and source.dtype == np.uint8 and not levels
    if profile.native is not None:
        plain = plain and profile.native.plain
    cells = _cells(source, profile)
    stored = int((raster.places[:, 0] == 0).sum())
    codecs = {RASTER_IDS[profile.codec]: (profile.codec, profile.params)}
    if levels:
        codecs.setdefault(RASTER_IDS["jxl"], ("jxl", profile.jxl_params))
    codecs |= {
        ZSTD_ID: ("zstd", {"level": _ZSTD_LEVEL}),
        NONE_ID: ("none", {}),
        ASSOCIATED_ID: ("jxl", jxl_params(0, profile.effort)),
    }
    header = {
        "payload_type": PAYLOAD_TYPE,
        "wsi_schema_version": SCHEMA_VERSION if plain else EXTENDED_SCHEMA_VERSION,
        "archive_contract": "complete_raster",
        "completeness": "full_raster",
        "width": source.width,
        "height": source.height,
        "tile_width": across,
        "tile_height": down,
        "grid_width": -(-source.width // across),
        "grid_height": -(-source.height // down),
        "raster_storage": "sparse_background",
        "stored_tile_count": stored,
        "implicit_background_tile_count": cells - stored,
        "origin": "top_left",
        "orientation": "canonical",
        "original_orientation": source.orientation,
        "background_rgb" if plain else "background": list(raster.background),
        "background_provenance": raster.provenance,
        "pixel_dtype": source.dtype.name,
        "samples_per_pixel": source.channels,
        "color_space": "GRAY" if gray else "RGB",
        "raster_codec": profile.codec,
        "raster_codec_params": profile.params,
        "raster_profile_selection": profile.selection,
        "record_codecs": [
            {"id": id, "name": name, "params": params} for id, (name, params) in codecs.items()
        ],
        "source_format": source.format,
        "import_backend": source.backend,
        "associated_images_preserved": source.keeps_associated,
        "created_by": "iac_query",
    }
    if levels:
        header["levels"] = [{"downsample": factor} for factor in levels]
    return header


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
