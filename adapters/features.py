"""Features of image tiles: ``teacher_features`` packs, a vector a tile.

Packs are exchanged with iatro-iac-adapters 0.1.4 in both directions while float32 holds every value
of the dtype, which is what that package reads, on at most 255 slides. ``extended=True`` goes
beyond: float64 and wide integers, more slides and larger coordinates, in packs of type
``teacher_features_extended``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from .._options import PathLike
from ..fixed import FixedRecordPack
from ._feature_blocks import FeatureBlocks, open_features
from ._feature_reader import (
    EXTENDED_PAYLOAD_TYPE,
    PAYLOAD_TYPE,
    FeatureCacheReader,
    read_feature_package_records,
)
from ._tile_reader import TilePackageReader
from ._tile_tables import TileNotFoundError, tile_records, tile_tables
from .manifests import TileRecord

__all__ = [
    "EXTENDED_PAYLOAD_TYPE",
    "PAYLOAD_TYPE",
    "FeatureCacheReader",
    "TileNotFoundError",
    "build_teacher_feature_package",
    "build_teacher_feature_package_from_feature_map",
    "build_teacher_feature_package_from_tile_package",
    "read_feature_package_records",
]


def build_teacher_feature_package(
    records: Sequence[TileRecord],
    features: Any,
    output_path: PathLike,
    teacher_name: str = "",
    dtype: npt.DTypeLike | None = "float32",
    feature_dim: int | None = None,
    tile_width: int | None = None,
    tile_height: int | None = None,
    stride_x: int | None = None,
    stride_y: int | None = None,
    overwrite: bool = False,
    *,
    feature_key: str | None = None,
    allow_nan: bool = False,
    extended: bool = False,
    show_progress: bool = False,
) -> None:
    """Writes a pack of vectors, one a record, in the order of the records.

    * ``features``: a matrix (n, dim), memory-mapped perhaps, any iterable of vectors (dim,), or the
      path of a file: ``.npy``, ``.h5``, ``.hdf5`` or ``.safetensors``, of which ``feature_key``
      names the data set. A few megabytes are held at a time.
    * ``teacher_name``: what made the features.
    * ``dtype``: what they are stored as, None for the dtype they have (bfloat16 as float32). Floats
      are rounded to a narrower float, other values must fit exactly.
    * ``feature_dim``: what the vectors' length must be.
    * ``tile_width``, ``tile_height``: the tiles' pixels, None for the strides.
    * ``stride_x``, ``stride_y``: pixels between places of the grid, None for the greatest common
      divisor of the coordinates, or 1 where they are all 0.
    * ``allow_nan``: take NaN and infinity.
    * ``extended``: write the extended schema.

    Raises ValueError naming the tile for records as :func:`build_tile_package`, and for vectors
    that differ in length, values that the dtype does not hold, NaN, a number of vectors that is not
    that of the records, and a dtype beyond float32 without ``extended``; FileExistsError where
    there is a pack and not ``overwrite``. On any error nothing is left behind and an old file
    stays.
    """
    if not teacher_name or not isinstance(teacher_name, str):
        raise ValueError("teacher_name is required for teacher feature packages")
    with open_features(features, feature_key) as source:
        stored = _stored_dtype(source.dtype if dtype is None else dtype, extended)
        if feature_dim not in (None, source.dim):
            raise ValueError(f"features have {source.dim} values, feature_dim is {feature_dim}")
        if source.dim == 0:
            raise ValueError("features have no values")
        if source.rows not in (None, len(records)):
            raise ValueError(f"{source.rows} features for {len(records)} records")
        tables = tile_tables(records, stride=(stride_x, stride_y), size=(1, 1), extended=extended)
        strides = tables.header["stride_x"], tables.header["stride_y"]
        header = {
            "teacher": teacher_name,
            "tile_width": strides[0] if tile_width is None else _side(tile_width, "tile_width"),
            "tile_height": strides[1] if tile_height is None else _side(tile_height, "tile_height"),
            **tables.header,
        }
        blocks = _cast(source, stored, records, allow_nan)
        FixedRecordPack.build_streaming(
            output_path,
            payload_type=EXTENDED_PAYLOAD_TYPE if extended else PAYLOAD_TYPE,
            slide_table=tables.slides,
            index_table=tables.index,
            blocks=_shown(blocks, len(records), show_progress),
            dim=source.dim,
            dtype=stored,
            extra_header=header,
            overwrite=overwrite,
        )


def build_teacher_feature_package_from_feature_map(
    records: Sequence[TileRecord],
    feature_by_tile_id: Mapping[str, npt.NDArray[Any]],
    output_path: PathLike,
    teacher_name: str = "",
    dtype: npt.DTypeLike | None = "float32",
    tile_width: int | None = None,
    tile_height: int | None = None,
    stride_x: int | None = None,
    stride_y: int | None = None,
    overwrite: bool = False,
    *,
    allow_nan: bool = False,
    extended: bool = False,
    show_progress: bool = False,
) -> None:
    """:func:`build_teacher_feature_package` of vectors by tile id, of those in ``records``.

    Raises TileNotFoundError, a FileNotFoundError and KeyError, for a tile that has none.
    """
    build_teacher_feature_package(
        records,
        _mapped(records, feature_by_tile_id),
        output_path,
        teacher_name,
        dtype,
        None,
        tile_width,
        tile_height,
        stride_x,
        stride_y,
        overwrite,
        allow_nan=allow_nan,
        extended=extended,
        show_progress=show_progress,
    )


def build_teacher_feature_package_from_tile_package(
    tile_package_path: PathLike,
    features: Any,
    output_path: PathLike,
    teacher_name: str = "",
    dtype: npt.DTypeLike | None = "float32",
    feature_dim: int | None = None,
    overwrite: bool = False,
    *,
    feature_key: str | None = None,
    allow_nan: bool = False,
    extended: bool = False,
    show_progress: bool = False,
) -> None:
    """:func:`build_teacher_feature_package` for the tiles of a pack, in its row order.

    ``features`` may be a mapping by tile id as well.
    """
    with TilePackageReader(tile_package_path) as tiles:
        records = tile_records(tiles.pack.reader, "tiles", "")
        height, width, _ = tiles.tile_shape
        stride = [tiles.header.get(f"stride_{axis}") for axis in "xy"]
        if tiles.header.get("coordinate_mode") != "tile_grid":
            stride = [None, None]
    if isinstance(features, Mapping):
        features = _mapped(records, features)
    build_teacher_feature_package(
        records,
        features,
        output_path,
        teacher_name,
        dtype,
        feature_dim,
        width,
        height,
        *stride,
        overwrite,
        feature_key=feature_key,
        allow_nan=allow_nan,
        extended=extended,
        show_progress=show_progress,
    )


def _mapped(records: Sequence[TileRecord], features: Mapping[str, Any]) -> Iterator[Any]:
    for record in records:
        try:
            yield features[record.tile_id]
        except KeyError:
            raise TileNotFoundError(f"missing teacher feature: {record.tile_id}") from None


def _side(value: Any, name: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} is {value!r}, expected an int")
    if value < 1:
        raise ValueError(f"{name} is {value}, expected 1 or more")
    return value.__index__()


def _stored_dtype(dtype: npt.DTypeLike, extended: bool) -> np.dtype[Any]:
    try:
        stored = np.dtype(dtype).newbyteorder("=")
    except TypeError:
        raise ValueError(
            f"dtype is {dtype!r}, which NumPy does not know; float32 holds bfloat16 exactly"
        ) from None
    if stored.kind not in "biuf" or stored.char == "g":
        raise ValueError(f"dtype is {stored}, expected one of numbers")
    if not extended and not np.can_cast(stored, np.float32):
        raise ValueError(
            f"dtype is {stored}, which teacher_features are not read as: their readers give "
            "float32; extended=True writes a schema of our own that keeps it"
        )
    return stored


def _cast(
    source: FeatureBlocks,
    dtype: np.dtype[Any],
    records: Sequence[TileRecord],
    allow_nan: bool,
) -> Iterator[npt.NDArray[Any]]:
    """The blocks as ``dtype``. Raises ValueError naming the tile of a value that does not fit."""
    start = 0
    for block in source.blocks:
        with np.errstate(over="ignore", invalid="ignore"):
            cast = block.astype(dtype, copy=False)
            if block.dtype.kind != "f":
                lost = cast.astype(block.dtype, copy=False) != block
            elif dtype.kind == "f":
                lost = np.isinf(cast) & np.isfinite(block)
            else:
                lost = cast.astype(block.dtype) != block
        if not allow_nan and block.dtype.kind == "f":
            _refuse(~np.isfinite(block), start, records, "NaN or infinity, allow_nan=True takes it")
        _refuse(lost, start, records, f"a value that {dtype} does not hold")
        yield cast
        start += len(block)


def _refuse(
    bad: npt.NDArray[np.bool_], start: int, records: Sequence[TileRecord], what: str
) -> None:
    if bad.any():
        row = start + int(np.flatnonzero(bad.any(axis=1))[0])
        name = repr(records[row].tile_id) if row < len(records) else "beyond the records"
        raise ValueError(f"tile {name} (row {row}): its feature has {what}")


def _shown(
    blocks: Iterable[npt.NDArray[Any]], total: int, show: bool
) -> Iterator[npt.NDArray[Any]]:
    with tqdm(total=total, unit=" features", disable=not show) as bar:
        for block in blocks:
            yield block
            bar.update(len(block))
