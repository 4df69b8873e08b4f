"""The names and numbers that ``dicom_patient`` packs agree on."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ..._tables import LAYOUT
from ...codec import Codec
from ...cohorts.adapter_packs import ADAPTERS
from .._dicom_columns import EXACT as EXACT
from .._dicom_columns import FRAMES as FRAMES

PAYLOAD_TYPE = "dicom_patient"

#: What iatro-base-iac 0.1.4 reads, and what goes beyond it.
PEER_VERSION, VERSION = 1, 2

#: JPEG XL Image Compression (Lossless): PS3.5 A.4.14.
JPEG_XL_LOSSLESS = "1.2.840.10008.1.2.4.110"

METADATA_CODEC = Codec.create("zstd", level=3)

# The codecs of version 2's records, by codec_id. Pixels: what they decode to are the pixels of
# pydicom's pixel_array, little-endian, channels interleaved.
PIXELS_JXL, PIXELS_ZSTD = 0, 1
# Frames as they stood in the file that no codec alone makes the pixels of: the core does, of native
# and RLE ones and of YBR_FULL, by what the rest of the row says, and pydicom of others (frames.py).
FRAME_ZSTD, FRAME_NONE = 2, 3
# Frames as they stood in the file, which a codec makes the pixels of.
FRAME_JPEG, FRAME_JPEG_RGB, FRAME_JPEGLS, FRAME_JPEG2000, FRAME_JXL = 4, 5, 6, 7, 8

#: Those whose payloads are made here; all others are stored as they came.
ENCODED = (PIXELS_JXL, PIXELS_ZSTD, FRAME_ZSTD)
ZSTD = (PIXELS_ZSTD, FRAME_ZSTD)
NEED_PYDICOM = (FRAME_ZSTD, FRAME_NONE)

_CODECS: dict[int, tuple[str, dict[str, Any]]] = {
    PIXELS_ZSTD: ("zstd", {"level": 3}),
    FRAME_ZSTD: ("zstd", {"level": 3}),
    FRAME_NONE: ("none", {}),
    FRAME_JPEG: ("jpeg", {}),
    # Three components that are RGB although no marker says so: their photometric
    # interpretation does.
    FRAME_JPEG_RGB: ("jpeg", {"encoded_color_space": "RGB"}),
    FRAME_JPEGLS: ("jpegls", {}),
    FRAME_JPEG2000: ("jpeg2000", {}),
    FRAME_JXL: ("jxl", {"lossless": True}),
}


def codec_of(codec_id: int, effort: int = 7) -> Codec:
    """The codec of records with that id. ``effort`` is JPEG XL's."""
    if codec_id == PIXELS_JXL:
        return Codec.create("jxl", lossless=True, effort=effort, usecontainer=True)
    name, params = _CODECS[codec_id]
    return Codec.create(name, **params)


def record_codecs(used: set[int], effort: int) -> list[dict[str, Any]]:
    """The header's list of the codecs that a pack uses."""
    codecs = ((codec_id, codec_of(codec_id, effort)) for codec_id in sorted(used))
    return [{"id": i, "name": c.name, "params": dict(c.parameters())} for i, c in codecs]


_ADAPTER = ADAPTERS[PAYLOAD_TYPE]
INSTANCES = pa.schema({n: type for n, type in _ADAPTER.index.items() if n not in LAYOUT})
SERIES = pa.schema({**_ADAPTER.slides, "patient_id": pa.string()})
