"""Image tiles of slides: ``image_tiles`` packs, a record a tile.

Packs are exchanged with iatro-iac-adapters 0.1.4 in both directions while tiles are RGB of 8 bits
in JPEG XL, on at most 255 slides. ``extended=True`` goes beyond: gray, alpha, 16 bits, any image
codec, more slides and larger coordinates, in packs of type ``image_tiles_extended``, which that
package refuses to read.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from tqdm import tqdm

from .._options import PathLike
from .._tables import LAYOUT
from ..codec import Codec
from ..variable import VariableRecordPack
from ._parallel import in_order
from ._tile_encoding import TileEncoding, TileType, array_type, check_same_type, type_text
from ._tile_images import open_tile, rgb, rgb_image
from ._tile_reader import (
    EXTENDED_PAYLOAD_TYPE,
    PAYLOAD_TYPE,
    TilePackageReader,
    iter_package_tiles,
    read_package_manifest,
    read_package_metadata,
)
from ._tile_tables import TileNotFoundError, TileTables, tile_tables
from .manifests import TileRecord, find_tiles, read_tile_manifest

__all__ = [
    "EXTENDED_PAYLOAD_TYPE",
    "PAYLOAD_TYPE",
    "TileNotFoundError",
    "TilePackageReader",
    "build_tile_package",
    "build_tile_package_from_arrays",
    "build_tile_package_from_folder",
    "build_tile_package_from_records",
    "decode_jxl",
    "decode_jxl_array",
    "encode_jxl",
    "encode_jxl_array",
    "iter_package_tiles",
    "read_package_manifest",
    "read_package_metadata",
]


def build_tile_package(
    manifest_path: PathLike,
    output_path: PathLike,
    tile_root: PathLike | None = None,
    lossless: bool = False,
    distance: float | None = 1.0,
    effort: int | None = 7,
    overwrite: bool = False,
    stride_x: int | None = None,
    stride_y: int | None = None,
    workers: int | None = None,
    show_progress: bool = False,
    *,
    codec: Codec | None = None,
    extended: bool = False,
) -> None:
    """Writes a pack of the image files that a CSV manifest lists (see :func:`read_tile_manifest`).

    * ``tile_root``: the folder that relative paths start from, None for the current one.
    * ``lossless``, ``distance``, ``effort``: of JPEG XL, as ``Codec.create("jxl")`` has them.
    * ``stride_x``, ``stride_y``: pixels between places of the grid; None for the greatest common
      divisor of the coordinates, or the tile's size where they are all 0.
    * ``workers``: threads that open and encode, None for as many as there are processors. Some
      tiles for each are held at a time.
    * ``extended``: store images as they are, gray or RGB, perhaps with alpha, of 8 bits, or gray of
      16, in the extended schema. Without it they become RGB of 8 bits. ``codec`` takes another
      codec of images for it.

    Raises ValueError when there are no tiles, for an empty or repeated ``tile_id``, a slide of two
    patients, a coordinate that is negative or does not divide by the stride, what the schema does
    not hold, and an image that is of another size or kind or cannot be read, naming tile or file;
    the OSError of a file that cannot be opened; FileExistsError where there is a pack and not
    ``overwrite``. On any error nothing is left behind and an old file stays.
    """
    root = Path() if tile_root is None else Path(os.fsdecode(tile_root))
    records = read_tile_manifest(manifest_path)
    how = TileEncoding(codec, lossless, distance, effort, extended)
    _build_from_files(
        records, root, output_path, how, (stride_x, stride_y), overwrite, workers, show_progress
    )


def build_tile_package_from_folder(
    folder: PathLike,
    output_path: PathLike,
    pattern: str,
    lossless: bool = False,
    distance: float | None = 1.0,
    effort: int | None = 7,
    overwrite: bool = False,
    stride_x: int | None = None,
    stride_y: int | None = None,
    workers: int | None = None,
    show_progress: bool = False,
    *,
    codec: Codec | None = None,
    extended: bool = False,
) -> None:
    """:func:`build_tile_package` from the files below a folder, whose names tell what they are.

    ``pattern`` says how, ``"{patient_id}/{slide_id}/{x}_{y}.png"`` for example: see
    :func:`find_tiles`, whose errors this has as well. Where names do not tell it, write a manifest.
    """
    records = find_tiles(folder, pattern)
    how = TileEncoding(codec, lossless, distance, effort, extended)
    _build_from_files(
        records, Path(), output_path, how, (stride_x, stride_y), overwrite, workers, show_progress
    )


def build_tile_package_from_arrays(
    records: Sequence[TileRecord],
    arrays: Iterable[npt.NDArray[Any]],
    output_path: PathLike,
    lossless: bool = False,
    distance: float | None = 1.0,
    effort: int | None = 7,
    overwrite: bool = False,
    stride_x: int | None = None,
    stride_y: int | None = None,
    workers: int | None = None,
    show_progress: bool = False,
    *,
    codec: Codec | None = None,
    extended: bool = False,
) -> None:
    """:func:`build_tile_package` from arrays, one a record: (height, width, 3) of uint8.

    ``arrays`` is a sequence, one array (n, height, width, channels), memory-mapped perhaps, or any
    iterable, of which few are held. With ``extended`` they are what the codec takes: gray of
    (height, width), alpha, uint16. Nothing is converted. ``tile_path`` is not looked at.
    """
    how = TileEncoding(codec, lossless, distance, effort, extended)
    pairs = _paired(records, arrays, "arrays")
    if not isinstance(arrays, Sequence | np.ndarray):
        # An iterator may use its memory again while these wait for their turn.
        pairs = ((record, np.array(array)) for record, array in pairs)
    first, pairs = _peeked(pairs)
    tile_type = how.checked_type(array_type(*first), first[0])

    def encode(pair: tuple[TileRecord, npt.NDArray[Any]]) -> bytes:
        check_same_type(pair[0], array_type(*pair), tile_type)
        return how.encode(*pair)

    tables = _tables(records, (stride_x, stride_y), tile_type, extended)
    payloads = _shown(in_order(encode, pairs, workers), len(records), show_progress)
    _write(output_path, records, tables, payloads, how, tile_type, overwrite)


def build_tile_package_from_records(
    records: Sequence[TileRecord],
    payloads: Iterable[Any],
    output_path: PathLike,
    *,
    tile_width: int,
    tile_height: int,
    lossless: bool = False,
    distance: float | None = 1.0,
    effort: int | None = 7,
    overwrite: bool = False,
    stride_x: int | None = None,
    stride_y: int | None = None,
    extra_header: Mapping[str, Any] | None = None,
    codec: Codec | None = None,
    extended: bool = False,
    check: Literal["header", "decode"] = "header",
    workers: int | None = None,
    show_progress: bool = False,
) -> None:
    """:func:`build_tile_package` from payloads that are encoded already, one a record.

    The start of each is read: it must be of the codec and hold an image of ``tile_width`` x
    ``tile_height`` pixels, RGB of 8 bits unless ``extended``, all alike. ``check="decode"`` decodes
    each whole, so that damage further behind is found as well. ``lossless``, ``distance`` and
    ``effort`` are what the header says of them. ``extra_header`` adds fields to it.

    Raises CodecError naming the tile for a payload that is no such image, ValueError for a field of
    ``extra_header`` that the schema has itself.
    """
    if check not in ("header", "decode"):
        raise ValueError(f"check is {check!r}, expected 'header' or 'decode'")
    how = TileEncoding(codec, lossless, distance, effort, extended)
    first, pairs = _peeked(_paired(records, payloads, "payloads"))
    tile_type = how.checked_type(how.payload_type(*first), first[0])
    if tile_type[0][:2] != (tile_height, tile_width):
        raise ValueError(
            f"tile {first[0].tile_id!r}: is {type_text(tile_type)}, expected {tile_width} x "
            f"{tile_height} pixels"
        )

    def checked(pair: tuple[TileRecord, Any]) -> Any:
        check_same_type(pair[0], how.payload_type(*pair), tile_type)
        if check == "decode":
            how.decode(*pair)
        return pair[1]

    tables = _tables(records, (stride_x, stride_y), tile_type, extended)
    stored = _shown(in_order(checked, pairs, workers), len(records), show_progress)
    _write(output_path, records, tables, stored, how, tile_type, overwrite, extra_header)


def _build_from_files(
    records: Sequence[TileRecord],
    root: Path,
    output_path: PathLike,
    how: TileEncoding,
    stride: tuple[int | None, int | None],
    overwrite: bool,
    workers: int | None,
    show_progress: bool,
) -> None:
    if not records:
        raise ValueError("records are empty")
    first = open_tile(root / records[0].tile_path, None, how.extended)
    tile_type = how.checked_type(array_type(records[0], first), records[0])
    size = tile_type[0][1], tile_type[0][0]

    def encode(record: TileRecord) -> bytes:
        array = open_tile(root / record.tile_path, size, how.extended)
        check_same_type(record, array_type(record, array), tile_type)
        return how.encode(record, array)

    tables = _tables(records, stride, tile_type, how.extended)
    payloads = _shown(in_order(encode, records, workers), len(records), show_progress)
    _write(output_path, records, tables, payloads, how, tile_type, overwrite)


def _paired(
    records: Sequence[TileRecord], items: Iterable[Any], what: str
) -> Iterator[tuple[TileRecord, Any]]:
    """Records and what belongs to them. Raises ValueError when there are more of one."""
    if isinstance(items, Sized) and len(items) != len(records):
        raise ValueError(f"{len(items)} {what} for {len(records)} records")
    return _pairs(records, iter(items), what)


def _pairs(
    records: Sequence[TileRecord], items: Iterator[Any], what: str
) -> Iterator[tuple[TileRecord, Any]]:
    nothing = object()
    for number, record in enumerate(records):
        if (item := next(items, nothing)) is nothing:
            raise ValueError(f"{number} {what} for {len(records)} records")
        yield record, item
    if next(items, nothing) is not nothing:
        raise ValueError(f"more than {len(records)} {what} for {len(records)} records")


def _peeked(pairs: Iterator[Any]) -> tuple[Any, Iterator[Any]]:
    """The first, and all of them."""
    for first in pairs:
        return first, itertools.chain([first], pairs)
    raise ValueError("records are empty")


def _shown(payloads: Iterator[Any], total: int, show: bool) -> Iterator[Any]:
    with tqdm(payloads, total=total, unit=" tiles", disable=not show) as bar:
        yield from bar


def _tables(
    records: Sequence[TileRecord],
    stride: tuple[int | None, int | None],
    tile_type: TileType,
    extended: bool,
) -> TileTables:
    height, width, _ = tile_type[0]
    return tile_tables(records, stride=stride, size=(width, height), extended=extended)


def _write(
    output_path: PathLike,
    records: Sequence[TileRecord],
    tables: TileTables,
    payloads: Iterable[Any],
    how: TileEncoding,
    tile_type: TileType,
    overwrite: bool,
    extra_header: Mapping[str, Any] | None = None,
) -> None:
    shape, dtype = tile_type
    header = {
        **tables.header,
        "offset_dtype": "uint64",
        "length_dtype": "uint32",
        "max_slides_per_pack": tables.limits.max_slides,
    }
    if how.extended:
        # Not under the names of image_tiles: without those its readers refuse every call.
        header |= {"tile_shape": list(shape), "tile_dtype": dtype.name}
    else:
        header |= {"tile_width": shape[1], "tile_height": shape[0]}
    own = {"payload_type", "codec", "codec_params", *header} & set(extra_header or {})
    if own:
        raise ValueError(f"extra_header has {sorted(own)}, which the schema has itself")
    columns = dict(zip(tables.index.column_names, tables.index.columns, strict=True))
    flags = columns.pop("flags")
    nothing = pa.nulls(len(records), pa.uint64())
    columns["split"] = pa.array((record.split for record in records), pa.string())
    columns |= {**dict.fromkeys(LAYOUT, nothing), "flags": flags}
    VariableRecordPack.build_from_payloads(
        output_path,
        payload_type=EXTENDED_PAYLOAD_TYPE if how.extended else PAYLOAD_TYPE,
        slide_table=tables.slides,
        index_table=pa.table(columns),
        payloads=payloads,
        codec_name=how.codec.name,
        codec_params=how.params,
        extra_header={**(extra_header or {}), **header},
        overwrite=overwrite,
    )


def encode_jxl_array(
    arr: npt.NDArray[Any], lossless: bool, distance: float | None, effort: int | None
) -> bytes:
    """An image as JPEG XL."""
    return TileEncoding(None, lossless, distance, effort, False).codec.encode(arr)


def encode_jxl(
    image_path: PathLike, lossless: bool, distance: float | None, effort: int | None
) -> bytes:
    """An image file as JPEG XL, RGB of 8 bits. Errors as :func:`build_tile_package`."""
    array = open_tile(image_path, None, exact=False)
    return encode_jxl_array(array, lossless, distance, effort)


def decode_jxl_array(payload: Any) -> npt.NDArray[Any]:
    """A JPEG XL image as (height, width, 3): gray replicated, alpha dropped, dtype kept."""
    return rgb(Codec.create(Codec.JXL).decode(payload))


def decode_jxl(payload: Any) -> Any:
    """A JPEG XL image of 8 bits as Pillow's RGB image."""
    return rgb_image(decode_jxl_array(payload), "payload")
