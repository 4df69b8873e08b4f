"""DICOM files from what packs hold."""

from __future__ import annotations

import io
from collections.abc import Sequence

from pydicom import dcmread, dcmwrite
from pydicom.dataset import Dataset
from pydicom.encaps import encapsulate
from pydicom.uid import ExplicitVRBigEndian, ExplicitVRLittleEndian

from . import exact, frames, schema
from .frames import ImagePixel
from .model import NOT_OF_DATASETS, PIXEL_ELEMENTS

JPEG_XL_LOSSLESS = frames.known(schema.JPEG_XL_LOSSLESS)


def with_header(ds: Dataset, header: bytes) -> Dataset:
    """A dataset with the elements before the pixels as they stand in a file's own bytes; as it is
    for a big-endian file, whose bytes no new one can hold.
    """
    own = dcmread(io.BytesIO(exact.without_pixels(header)), stop_before_pixels=True)
    if not own.original_encoding[1]:
        return ds
    if any(own.get_item(tag).VR is None for tag in own.keys()):  # noqa: SIM118, keys stay raw
        for _ in own.iterall():  # each gets the dictionary's VR, and keeps its text
            pass
    for tag in [tag for tag in own.keys() if tag.group in NOT_OF_DATASETS]:  # noqa: SIM118
        del own[tag]  # no file can be written with it
    for tag in [tag for tag in ds.keys() if tag > PIXEL_ELEMENTS[0]]:  # noqa: SIM118
        own[tag] = ds[tag]
    return own


def with_jxl(ds: Dataset, pixel: ImagePixel, payloads: Sequence[bytes]) -> None:
    """Gives a dataset its pixels as JPEG XL Lossless: PS3.5 A.4."""
    _describe(ds, pixel)
    ds.file_meta.TransferSyntaxUID = JPEG_XL_LOSSLESS
    # A single frame is one fragment without an offset table, as iatro-base-iac writes it.
    ds.PixelData = encapsulate(list(payloads), has_bot=len(payloads) > 1)
    ds["PixelData"].VR = "OB"
    ds["PixelData"].is_undefined_length = True


def with_values(ds: Dataset, pixel: ImagePixel, values: Sequence[bytes]) -> None:
    """Gives a dataset its pixels as they are, little-endian."""
    _describe(ds, pixel)
    ds.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    value = b"".join(values)
    setattr(ds, pixel.pixel_keyword, value + b"\0" * (len(value) % 2))
    if pixel.pixel_keyword == "PixelData":
        ds["PixelData"].VR = "OW" if pixel.bits_allocated > 8 else "OB"


def file_of(ds: Dataset) -> bytes:
    """The file of a dataset, in the transfer syntax that it names where that can be."""
    meta = ds.file_meta
    named = meta.get("TransferSyntaxUID")
    syntax = frames.known(named if isinstance(named, str) else "")
    if not syntax.is_transfer_syntax or syntax == ExplicitVRBigEndian:
        syntax = ExplicitVRLittleEndian  # what models hold is little-endian
    meta.TransferSyntaxUID = syntax
    meta.setdefault("FileMetaInformationGroupLength", 0)  # PS3.10 7.1; pydicom counts
    meta.setdefault("FileMetaInformationVersion", b"\0\1")
    out = io.BytesIO()
    # Forced, since pydicom's dictionary has no JPEG XL.
    encoding = {"implicit_vr": syntax.is_implicit_VR, "little_endian": True}
    dcmwrite(out, ds, **encoding, force_encoding=True)
    return out.getvalue()


def _describe(ds: Dataset, pixel: ImagePixel) -> None:
    """Lets the Image Pixel module say what the new pixels are: PS3.3 C.7.6.3."""
    for keyword in ("ExtendedOffsetTable", "ExtendedOffsetTableLengths"):
        if keyword in ds:
            delattr(ds, keyword)
    if pixel.samples_per_pixel > 1:
        ds.PlanarConfiguration = 0
        if pixel.photometric_interpretation.startswith("YBR"):
            ds.PhotometricInterpretation = "RGB"
    if pixel.bits_allocated == 1:
        ds.BitsAllocated, ds.BitsStored, ds.HighBit = 8, 8, 7
