"""Files as scanners of several makers write them, byte by byte: NDPI, SCN, BIF, MIRAX."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from PIL import Image
from slides import cut_tiles

_ASCII, _SHORT, _LONG, _RATIONAL, _SLONG, _FLOAT = 2, 3, 4, 5, 9, 11
_FORMATS = {_SHORT: "H", _LONG: "I", _SLONG: "i", _FLOAT: "f"}


def restarting_jpeg(pixels: np.ndarray, blocks: int = 4) -> tuple[bytes, list[int]]:
    """A JPEG of independent intervals of ``blocks`` times 8 x 8 pixels, and where they begin."""
    out = io.BytesIO()
    Image.fromarray(pixels).save(
        out, "JPEG", quality=90, subsampling=0, restart_marker_blocks=blocks
    )
    data = out.getvalue()
    scan = data.index(b"\xff\xda")
    starts = [scan + 2 + int.from_bytes(data[scan + 2 : scan + 4], "big")]
    starts += [
        at + 2
        for at in range(starts[0], len(data) - 1)
        if data[at] == 0xFF and 0xD0 <= data[at + 1] <= 0xD7
    ]
    return data, starts


def write_ndpi(path: Path, pixels: np.ndarray, macro: np.ndarray) -> Path:
    """A file as Hamamatsu's scanners write it: TIFF of 32 bits, whose directories end with offsets
    of 64 and with the upper halves of their values; each image is one JPEG with restart markers.
    """
    data = bytearray(b"II*\0" + bytes(8))
    link = 4
    for image, lens, blocks in ((pixels, 20.0, 4), (pixels[::2, ::2], 10.0, 4), (macro, -1.0, 1)):
        jpeg, starts = restarting_jpeg(np.ascontiguousarray(image), blocks)
        offset = len(data)
        data += jpeg
        data += bytes(len(data) % 2)
        height, width = image.shape[:2]
        entries = [
            (256, _LONG, [width]),
            (257, _LONG, [height]),
            (258, _SHORT, [8, 8, 8]),
            (259, _SHORT, [7]),
            (262, _SHORT, [6]),
            (271, _ASCII, b"Hamamatsu\0"),
            (272, _ASCII, b"Made Up\0"),
            (273, _LONG, [offset]),
            (277, _SHORT, [3]),
            (278, _LONG, [height]),
            (279, _LONG, [len(jpeg)]),
            (282, _RATIONAL, [(int(1000 * lens) if lens > 0 else 100, 1)]),
            (283, _RATIONAL, [(int(1000 * lens) if lens > 0 else 100, 1)]),
            (296, _SHORT, [3]),
            (65420, _LONG, [1]),
            (65421, _FLOAT, [lens]),
            (65422, _SLONG, [0]),
            (65423, _SLONG, [0]),
            (65424, _SLONG, [0]),
            (65426, _LONG, starts),
        ]
        fields = b""
        for tag, kind, values in entries:
            packed = _packed(kind, values)
            if len(packed) > 4:
                place = len(data)
                data += packed + bytes(len(packed) % 2)
                packed = struct.pack("<I", place)
            fields += struct.pack("<HHI", tag, kind, len(values)) + packed.ljust(4, b"\0")
        struct.pack_into("<Q", data, link, len(data))
        data += struct.pack("<H", len(entries)) + fields
        link = len(data)
        data += bytes(8 + 4 * len(entries))
    path.write_bytes(data)
    return path


def _packed(kind: int, values: Any) -> bytes:
    if kind == _ASCII:
        return values
    if kind == _RATIONAL:
        return b"".join(struct.pack("<II", *value) for value in values)
    return struct.pack(f"<{len(values)}{_FORMATS[kind]}", *values)


def write_scn(path: Path, *areas: np.ndarray, macro: np.ndarray, channels: int = 1) -> Path:
    """A file as Leica's scanners write it: a macro image of the whole slide, and areas of it, half
    a micrometre a pixel, one right of the other, each with a coarser raster."""
    nm = 500
    size = macro.shape[1] * 10_000, macro.shape[0] * 10_000
    images, pages = [], [macro]
    images.append(_scn_image(size, (0, 0), [(macro, 0)], 1))
    for number, area in enumerate(areas):
        coarse = np.ascontiguousarray(area[::2, ::2])
        levels = [(area, len(pages)), (coarse, len(pages) + 1)]
        pages += [area, coarse]
        extent = area.shape[1] * nm, area.shape[0] * nm
        place = 1_000 * nm // 10 + number * (extent[0] + 10 * nm), 50 * nm
        images.append(_scn_image(extent, place, levels, channels))
    text = (
        '<?xml version="1.0"?><scn xmlns="http://www.leica-microsystems.com/scn/2010/10/01">'
        f'<collection name="Made Up" uuid="0" sizeX="{size[0]}" sizeY="{size[1]}">'
        f"<barcode></barcode>{''.join(images)}</collection></scn>"
    )
    with tifffile.TiffWriter(path, bigtiff=True) as file:
        for number, page in enumerate(pages):
            file.write(
                page,
                photometric="rgb",
                tile=(64, 64),
                compression="jpeg",
                compressionargs={"level": 90},
                resolution=(1e7 / (10_000 if number == 0 else nm * (2 - number % 2)),) * 2,
                resolutionunit="CENTIMETER",
                description=text if number == 0 else None,
                metadata=None,
            )
    return path


def _scn_image(size: Any, place: Any, levels: list[tuple[np.ndarray, int]], channels: int) -> str:
    dimensions = "".join(
        f'<dimension sizeX="{pixels.shape[1]}" sizeY="{pixels.shape[0]}" r="{r}" ifd="{ifd}"'
        f"{f' c={chr(34)}{c}{chr(34)}' if channels > 1 else ''}/>"
        for r, (pixels, ifd) in enumerate(levels)
        for c in range(channels)
    )
    height, width = levels[0][0].shape[:2]
    return (
        '<image name="image" uuid="1"><creationDate>2020-01-01T00:00:00Z</creationDate>'
        '<device model="Made Up" version="1"/>'
        f'<pixels sizeX="{width}" sizeY="{height}">{dimensions}</pixels>'
        f'<view sizeX="{size[0]}" sizeY="{size[1]}" offsetX="{place[0]}" offsetY="{place[1]}" '
        'spacingZ="0"/><scanSettings><objectiveSettings><objective>20</objective>'
        "</objectiveSettings><illuminationSettings><numericalAperture>0.4</numericalAperture>"
        "<illuminationSource>brightfield</illuminationSource></illuminationSettings>"
        "</scanSettings></image>"
    )


def write_bif(path: Path, pixels: np.ndarray, macro: np.ndarray, overlap: int = 0) -> Path:
    """A file as Ventana's scanners write it: label, raster and coarser raster of tiles, which may
    overlap; how they join is told in the raster's XMP."""
    side = 64
    columns, rows = pixels.shape[1] // side, pixels.shape[0] // side
    first = (
        '<iScan Magnification="20" ScanRes="0.5" UnitNumber="1" Z-layers="1" '
        'ScannerModel="Made Up"></iScan>'
    )
    joints = "".join(_joints(columns, rows, overlap))
    second = (
        '<EncodeInfo Ver="2"><SlideStitchInfo><ImageInfo AOIScanned="1" AOIIndex="0" '
        f'NumRows="{rows}" NumCols="{columns}" Width="{side}" Height="{side}" Pos-X="0" Pos-Y="0">'
        f"{joints}</ImageInfo></SlideStitchInfo>"
        '<AoiOrigin><AOI0 OriginX="0" OriginY="0"/></AoiOrigin></EncodeInfo>'
    )

    def xmp(text: str) -> list[Any]:
        return [(700, 1, len(text), text.encode(), True)]

    tiled = {"tile": (side, side), "compression": "jpeg", "compressionargs": {"level": 90}}
    rgb = {"photometric": "rgb", "metadata": None, "software": "ScanOutputManager 1.1"}
    with tifffile.TiffWriter(path, bigtiff=True) as file:
        file.write(macro, description="Label Image", extratags=xmp(first), **rgb)
        text = "level=0 mag=20 quality=90"
        file.write(pixels, description=text, extratags=xmp(second), **tiled, **rgb)
        coarse = np.ascontiguousarray(pixels[::2, ::2])
        file.write(coarse, description="level=1 mag=10 quality=90", **tiled, **rgb)
    return path


def _joints(columns: int, rows: int, overlap: int) -> Any:
    """Of each two neighbours; tiles are numbered from the lower left on, every second row from
    right to left."""

    def number(column: int, row: int) -> int:
        row = rows - 1 - row
        return row * columns + (columns - 1 - column if row % 2 else column) + 1

    for row in range(rows):
        for column in range(columns):
            for direction, other in (("RIGHT", (column + 1, row)), ("UP", (column, row - 1))):
                if other[0] < columns and other[1] >= 0:
                    yield (
                        f'<TileJointInfo FlagJoined="1" Confidence="99" Direction="{direction}" '
                        f'Tile1="{number(column, row)}" Tile2="{number(*other)}" '
                        f'OverlapX="{overlap}" OverlapY="{overlap}"/>'
                    )


def write_mirax(
    path: Path, pixels: np.ndarray, missing: Any = (), colour: Any = (255, 255, 255)
) -> Path:
    """A file and a folder as 3DHISTECH's scanners write them: keys, an index and a file of PNG
    tiles, of which some are ``missing``; pixels are of 0.5 and 0.25 micrometres."""
    side = 64
    folder = path.with_suffix("")
    folder.mkdir()
    path.write_bytes(b"")
    identity = b"01.02MADEUP"
    red, green, blue = colour
    keys = {
        "GENERAL": {
            "SLIDE_ID": "MADEUP",
            "IMAGENUMBER_X": pixels.shape[1] // side,
            "IMAGENUMBER_Y": pixels.shape[0] // side,
            "OBJECTIVE_MAGNIFICATION": 20,
        },
        "HIERARCHICAL": {
            "INDEXFILE": "Index.dat",
            "HIER_COUNT": 1,
            "NONHIER_COUNT": 0,
            "HIER_0_NAME": "Slide zoom level",
            "HIER_0_COUNT": 1,
            "HIER_0_VAL_0_SECTION": "LEVEL_0",
        },
        "DATAFILE": {"FILE_COUNT": 1, "FILE_0": "Data0000.dat"},
        "LEVEL_0": {
            "OVERLAP_X": 0,
            "OVERLAP_Y": 0,
            "MICROMETER_PER_PIXEL_X": 0.5,
            "MICROMETER_PER_PIXEL_Y": 0.25,
            "IMAGE_FORMAT": "PNG",
            "IMAGE_FILL_COLOR_BGR": blue << 16 | green << 8 | red,
            "DIGITIZER_WIDTH": side,
            "DIGITIZER_HEIGHT": side,
            "IMAGE_CONCAT_FACTOR": 0,
        },
    }
    sections = (
        "\n".join([f"[{name}]", *(f"{key} = {value}" for key, value in values.items()), ""])
        for name, values in keys.items()
    )
    (folder / "Slidedat.ini").write_text("".join(sections))
    data, entries = identity, []
    for number, tile in enumerate(cut_tiles(pixels, side)):
        if number not in missing:
            out = io.BytesIO()
            Image.fromarray(tile).save(out, "PNG")
            entries += [number, len(data), len(out.getvalue()), 0]
            data += out.getvalue()
    (folder / "Data0000.dat").write_bytes(data)
    # Both roots, a record that leads to an empty page, and the page behind that.
    record = len(identity) + 8
    words = [record, record, record + 4, 0, record + 12, len(entries) // 4, 0, *entries]
    (folder / "Index.dat").write_bytes(identity + struct.pack(f"<{len(words)}i", *words))
    return path
