"""What TIFF files of some scanners tell, in XML of their own, of how the slide lies in them."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

_XMP = 700
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


def ventana_mpp(file: Any) -> Any:
    """Micrometres a pixel, as a BIF file's first directory says; None where it does not."""
    if not file.is_bif:
        return None
    root = ElementTree.fromstring(_xmp(file.pages.first))
    return next((scan.attrib.get("ScanRes") for scan in root.iter("iScan")), None)


def _xmp(page: Any) -> bytes:
    value = getattr(page.tags.get(_XMP), "value", b"")
    return value.rstrip(b"\0") if isinstance(value, bytes) else b""
