"""What is to be known of DICOM images of slides before wsidicom's pixels of them are trusted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import repeat
from pathlib import Path

import numpy as np
import pydicom
from wsidicom.file import WsiDicomStreamOpener
from wsidicom.file.io import WsiDicomReader
from wsidicom.instance import TileType, WsiDataset, WsiInstance
from wsidicom.instance.tile_index.tile_index import TileIndex

from .sources import SourceError, check_extent

#: Column and row in the Total Pixel Matrix, focal plane, optical path.
_Place = tuple[int, int, float, str]
#: What decides whether wsidicom reads an image, beside the transfer syntax.
_PIXEL_FACTS = (
    "ImageType",
    "PhotometricInterpretation",
    "SamplesPerPixel",
    "BitsAllocated",
    "BitsStored",
    "PixelRepresentation",
    "PlanarConfiguration",
)


def reason_of(error: Exception) -> str:
    """What wsidicom says; of other errors the kind alone, since pydicom's quote values."""
    name = type(error).__name__
    return f"{name}: {error}" if type(error).__module__.startswith("wsidicom") else name


def check_image(file: Path) -> None:
    """Raises SourceError for an image that wsidicom would pass over, or that claims more tiles than
    a slide has: wsidicom makes room for each.
    """
    with ExitStack() as opened:
        try:
            (stream,) = WsiDicomStreamOpener().open(file)
            opened.callback(stream.close)
            dataset = WsiDicomReader(stream).dataset
            sizes = [(s.width, s.height) for s in (dataset.image_size, dataset.tile_size)]
        except Exception as error:  # of any kind: wsidicom's have no common one
            raise SourceError(
                f"{file}: is an image that wsidicom does not read ({reason_of(error)}), of "
                f"{_pixel_facts(file)}"
            ) from error
    check_extent(file, *sizes)


def _pixel_facts(file: Path) -> str:
    try:
        header = pydicom.dcmread(file, stop_before_pixels=True, specific_tags=list(_PIXEL_FACTS))
        facts = [f"{name} {header.get(name, 'missing')}" for name in _PIXEL_FACTS]
        return ", ".join([*facts, header.file_meta.TransferSyntaxUID.name])
    except Exception:  # of any kind, by what is broken
        return "a header that is broken"


def check_places(instance: WsiInstance, readers: Mapping[str, WsiDicomReader]) -> None:
    """Raises SourceError for frames that do not each have a tile of the grid to themselves.

    The frames of TILED_SPARSE may lie anywhere in the Total Pixel Matrix (PS3.3 C.7.6.17.3), where
    Plane Position (Slide) says (C.8.12.6.1); wsidicom moves them to the tile that holds their
    corner.
    """
    seen: set[_Place] = set()
    for file in map(str, instance.image_data.files):
        dataset = readers[file].dataset
        if dataset.tile_type != TileType.SPARSE:
            continue
        for frame, place in enumerate(_places(file, dataset)):
            if place in seen:
                raise SourceError(
                    f"{file}: frame {frame} lies at column {place[0]}, row {place[1]}, where "
                    "another one does"
                )
            seen.add(place)


def _places(file: str, dataset: WsiDataset) -> Iterator[_Place]:
    """Of each frame of an image."""
    found, size = dataset.frame_positions, dataset.tile_size
    columns, rows = found.columns, found.rows
    if len(columns) != dataset.frame_count:
        raise SourceError(
            f"{file}: says of {len(columns)} frames where they lie, has {dataset.frame_count}"
        )
    off = ((columns - 1) % size.width != 0) | ((rows - 1) % size.height != 0)
    if off.any():
        frame = int(off.argmax())
        raise SourceError(
            f"{file}: frame {frame} lies at column {columns[frame]}, row {rows[frame]}, between "
            f"the tiles of {size.width} x {size.height} that a slide is made of"
        )
    depths, paths = found.z_offsets, found.optical_path_identifiers
    return zip(
        columns.tolist(),
        rows.tolist(),
        repeat(0.0) if depths is None else np.round(depths, TileIndex.Z_DECIMALS).tolist(),
        repeat("") if paths is None else paths.tolist(),
        strict=False,  # with what repeats
    )
