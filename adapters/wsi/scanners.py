"""What TIFF files of some scanners tell, in XML of their own, of how the slide lies in them."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

#: Of a pixel along x and y: numbers, text that may be some, None where they are not known.
Lengths = tuple[Any, Any]

_XMP = 700
#: Micrometres of lengths in OME-XML (UnitsLength).
_OME_UNITS = {"Å": 1e-4, "pm": 1e-6, "nm": 1e-3, "µm": 1.0, "mm": 1e3, "cm": 1e4, "m": 1e6}
#: Of Trestle's descriptions: by how much tiles of each level overlap.
_OVERLAPS = re.compile(r"OverlapsXY=([\s\d]+)")


def composed(file: Any, page: Any) -> str | None:
    """Why the raster of a page is not the slide: what it is put together from; None where it is.

    Raises ElementTree.ParseError, KeyError or ValueError where the file does not say.
    """
    if file.is_scn:
        areas = _leica_areas(file.pages.first.description)
        return f"is of {areas} areas" if areas > 1 else None
    xmp = _xmp(page)
    if file.is_bif or b"<EncodeInfo" in xmp:
        root = ElementTree.fromstring(xmp)
        joints = root.iterfind(".//TileJointInfo")
        overlap = any(int(joint.attrib[f"Overlap{axis}"]) for joint in joints for axis in "XY")
        return "is of tiles that overlap" if overlap else None
    found = _OVERLAPS.search(page.description) if page.software.startswith("MedScan") else None
    return "is of tiles that overlap" if found and any(map(int, found[1].split())) else None


def _leica_areas(text: str) -> int:
    """Images that are no photograph of the whole slide."""
    root = ElementTree.fromstring(text)
    count = 0
    for collection in root.iterfind("{*}collection"):
        whole = collection.attrib["sizeX"], collection.attrib["sizeY"]
        for view in collection.iterfind("{*}image/{*}view"):
            count += (view.attrib["sizeX"], view.attrib["sizeY"]) != whole
    return count


def pixel_size(file: Any, size: tuple[int, int]) -> Lengths:
    """Micrometres a pixel of the raster, of width and height ``size``, along x and y, as the XML of
    a BIF or OME-TIFF file says; None where it does not.
    """
    if file.is_bif:
        root = ElementTree.fromstring(_xmp(file.pages.first))
        told = next((scan.attrib.get("ScanRes") for scan in root.iter("iScan")), None)
        return told, told
    return _ome_size(file.ome_metadata, size) if file.is_ome else (None, None)


def _ome_size(text: str, size: tuple[int, int]) -> Lengths:
    """The one physical size of all images that are as large as the raster."""
    try:
        images = list(ElementTree.fromstring(text).iterfind(".//{*}Pixels"))
        found = {
            (_ome_length(pixels, "X"), _ome_length(pixels, "Y"))
            for pixels in images
            if (pixels.get("SizeX"), pixels.get("SizeY")) == tuple(map(str, size))
        }
    except (ElementTree.ParseError, ValueError):
        return None, None
    return found.pop() if len(found) == 1 else (None, None)


def _ome_length(pixels: Any, axis: str) -> float | None:
    length = pixels.get(f"PhysicalSize{axis}")
    unit = _OME_UNITS.get(pixels.get(f"PhysicalSize{axis}Unit", "µm"))
    return None if length is None or unit is None else float(length) * unit


def _xmp(page: Any) -> bytes:
    value = getattr(page.tags.get(_XMP), "value", b"")
    return value.rstrip(b"\0") if isinstance(value, bytes) else b""
