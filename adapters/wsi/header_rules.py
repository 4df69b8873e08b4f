"""What the header of a whole slide's pack must say."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any

from ...codec import Codec
from ...validation.checked_pack import CheckedPack
from ...validation.report import Finding
from .profile import jxl_params
from .schema import (
    ASSOCIATED_ID,
    NONE_ID,
    RASTER_IDS,
    SCHEMA_VERSION,
    ZSTD_ID,
    Slide,
)

Json = Mapping[str, Any]

#: Fields that say of each pack what a reader takes for granted.
_FIXED = {
    "archive_contract": ("complete_raster",),
    "completeness": ("full_raster",),
    "raster_storage": ("sparse_background",),
    "origin": ("top_left",),
    "orientation": ("canonical",),
    "background_provenance": ("default_white", "uniform_tile_mode"),
}
_STRATEGIES = ("explicit", "source_matched_v1", "native_passthrough_v1")
_MAX_TABLES = 16 << 10
_MAX_EFFORT = 10


def check_header(pack: CheckedPack, slide: Slide) -> Iterator[Finding]:
    """What readers do not look at before they need it, of a header that could be read."""
    header = pack.header
    colours = {"color_space": ("GRAY" if slide.channels == 1 else "RGB",)}
    for name, values in {**_FIXED, **colours}.items():
        if header.get(name) not in values:
            expected = " or ".join(map(repr, values))
            yield pack.finding("schema", f"header field {name} is not {expected}")
    if pack.native.kind != "variable":
        yield pack.finding("schema", "the index does not say where records are stored")
    codec, params = header["raster_codec"], header.get("raster_codec_params")
    effort = _effort(codec, params, slide.version == SCHEMA_VERSION)
    if effort is None:
        reason = "header field raster_codec_params is not what raster_codec needs"
        yield pack.finding("schema", reason)
        return
    if not _is_codec_map(header.get("record_codecs"), slide, codec, params, effort):
        reason = "header field record_codecs is not that of the schema and its raster_codec"
        yield pack.finding("schema", reason)
    selection = header.get("raster_profile_selection")
    if selection is not None and not _is_selection(selection, codec, params):
        reason = "header field raster_profile_selection contradicts raster_codec_params"
        yield pack.finding("schema", reason)


def _effort(codec: str, params: Any, plain: bool) -> int | None:
    """The effort of lossless JPEG XL, None for parameters that are not those of the schema."""
    if not isinstance(params, dict):
        return None
    if codec == Codec.JXL:
        distance, effort = params.get("distance"), params.get("effort")
        good = _is_number(distance) and distance >= 0 and _is_effort(effort)
        return effort if good and params == jxl_params(distance, effort) else None
    effort, source = params.get("associated_image_jxl_effort"), params.get("source_compression")
    if not _is_effort(effort) or not isinstance(source, str) or not source:
        return None
    wanted = {"associated_image_jxl_effort": effort, "source_compression": source}
    space = params.get("encoded_color_space")
    if codec == Codec.JPEG:
        tables = params.get("tables_base64")
        wanted |= {"codestream": "tiff_jpeg", "encoded_color_space": space, "tables_base64": tables}
        if space not in ("RGB", "YCbCr") or not _is_tables(tables):
            return None
    else:
        wanted["codestream"] = "j2k"
        if not plain and space == "YCbCr":
            wanted["encoded_color_space"] = space
    return effort if params == wanted else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_effort(value: Any) -> bool:
    return type(value) is int and 1 <= value <= _MAX_EFFORT


def _is_tables(text: Any) -> bool:
    """JPEG tables, or none."""
    if text is None:
        return True
    try:
        return len(base64.b64decode(text, validate=True)) <= _MAX_TABLES
    except (TypeError, ValueError, binascii.Error):
        return False


def _is_codec_map(entries: Any, slide: Slide, codec: str, params: Json, effort: int) -> bool:
    """Whether ``record_codecs`` lists each codec of the schema once, in any order."""
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        return False
    found = [(entry.get("id"), entry.get("name"), entry.get("params")) for entry in entries]
    expected = [
        (RASTER_IDS[codec], codec, params),
        (ZSTD_ID, Codec.ZSTD, {"level": 3}),
        (NONE_ID, Codec.NONE, {}),
        (ASSOCIATED_ID, Codec.JXL, jxl_params(0, effort)),
    ]
    if len(slide.levels) > 1 and codec != Codec.JXL:
        coarser = [one for one in found if one[:2] == (RASTER_IDS["jxl"], Codec.JXL)][:1]
        if not coarser or _effort(Codec.JXL, coarser[0][2], False) is None:
            return False
        expected += coarser
    return len(found) == len(expected) and all(one in found for one in expected)


def _is_selection(selection: Any, codec: str, params: Json) -> bool:
    """Whether the choice of the codec is one of the schema's, and that of its parameters."""
    strategy = selection.get("strategy") if isinstance(selection, dict) else None
    if strategy not in _STRATEGIES:
        return False
    if strategy == "native_passthrough_v1":
        return codec != Codec.JXL and selection.get("pixel_transcode") is False
    if strategy == "source_matched_v1" and not isinstance(selection.get("candidate_metrics"), list):
        return False
    if codec != Codec.JXL:
        return False
    lossless, distance = (selection.get(f"selected_{name}") for name in ("lossless", "distance"))
    return lossless is params["lossless"] and distance == params["distance"]
