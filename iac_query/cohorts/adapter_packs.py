"""What packs of the published adapters must hold, so that a cohort of one is such a pack as well.

Only what the query gives is written: a column that it left out may have been left out on purpose,
as patients' names are, so nothing is fetched from the source to complete a schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .._tables import LAYOUT

_TEXT_INDEX = {"patient_id": pa.string(), "institution": pa.string(), "num_docs": pa.uint32()}
_TILES = {
    "slide_idx": pa.uint8(),
    "tile_x": pa.uint16(),
    "tile_y": pa.uint16(),
    "tile_id": pa.string(),
}
_TILE_SLIDES = {"slide_idx": pa.uint8(), "slide_id": pa.string(), "patient_id": pa.string()}
_DICOM = {
    "series_idx": pa.uint16(),
    "sop_instance_uid": pa.string(),
    "instance_number": pa.int32(),
    "rows": pa.uint32(),
    "columns": pa.uint32(),
    "has_pixel_data": pa.bool_(),
    "samples_per_pixel": pa.uint8(),
    "pixel_dtype": pa.string(),
    "pixel_representation": pa.uint8(),
    "bits_allocated": pa.uint8(),
    "bits_stored": pa.uint8(),
    "high_bit": pa.uint8(),
    "photometric_interpretation": pa.string(),
    "source_transfer_syntax": pa.string(),
    "dicom_delta": pa.binary(),
    "dicom_delta_crc32": pa.uint32(),
    **LAYOUT,
}
_SERIES = {
    "series_idx": pa.uint16(),
    "study_uid": pa.string(),
    "series_uid": pa.string(),
    "modality": pa.string(),
    "instance_count": pa.uint32(),
    "template_offset": pa.uint64(),
    "template_length": pa.uint32(),
    "template_crc32": pa.uint32(),
}
_TILE_HEADER = ("tile_width", "tile_height", "stride_x", "stride_y", "coordinate_mode")


@dataclass(frozen=True)
class Adapter:
    """The schema that readers of one payload_type look for."""

    index: dict[str, pa.DataType]
    unique: str  # the column that readers find a record by
    codec: str | None = None
    slides: dict[str, pa.DataType] = field(default_factory=dict)
    #: Slide table of packs that have no slides, and the columns that scans make of it.
    placeholder: dict[str, Any] | None = None
    header: tuple[str, ...] = ()  # fields without which a reader is lost
    most_slides: int | None = None


def _text(payload_type: str, version: str, **more: pa.DataType) -> Adapter:
    slide = {"slide_idx": 0, "slide_id": payload_type, "patient_id": ""}
    return Adapter({**_TEXT_INDEX, **more}, "patient_id", "brotli", {}, slide, (version,))


ADAPTERS = {
    "image_tiles": Adapter(
        {**_TILES, "split": pa.string(), **LAYOUT, "flags": pa.uint8()},
        "tile_id",
        "jxl",
        _TILE_SLIDES,
        header=_TILE_HEADER,
        most_slides=255,
    ),
    "teacher_features": Adapter(
        {**_TILES, "flags": pa.uint8()},
        "tile_id",
        None,
        _TILE_SLIDES,
        header=("teacher", *_TILE_HEADER),
        most_slides=255,
    ),
    "clinical_text": _text("clinical_text", "text_schema_version"),
    "clinical_text_pair": _text(
        "clinical_text_pair",
        "pair_schema_version",
        source_raw_bytes=pa.uint64(),
        compressed_raw_bytes=pa.uint64(),
    ),
    "dicom_patient": Adapter(
        _DICOM,
        "sop_instance_uid",
        "jxl",
        _SERIES,
        header=("dicom_schema_version", "metadata_length"),
    ),
}

#: Packs of which no part is such a pack again, with the reason.
WHOLE = {
    "wsi_image": "it must have every tile of its raster, a reader shows background for a missing "
    "one; copy the file to have all of it",
}


def refusal(payload_type: str, reason: str) -> ValueError:
    """The error of rows that make no pack of an adapter."""
    return ValueError(
        f"this is no pack of {payload_type!r}: {reason}. With payload_type='records', or another "
        "name, it becomes a pack of no adapter"
    )


def conform(
    payload_type: str, header: Mapping[str, Any], slides: pa.Table, index: pa.Table
) -> tuple[pa.Table, pa.Table]:
    """Both tables with the types and the order that the adapter's readers expect, columns of other
    names behind; tables of other packs as they are.

    Raises ValueError that says why it is no pack of the adapter.
    """
    if payload_type in WHOLE:
        raise refusal(payload_type, WHOLE[payload_type])
    if payload_type not in ADAPTERS:
        return slides, index
    adapter = ADAPTERS[payload_type]
    params = header.get("codec_params") or {}
    if payload_type == "dicom_patient" and not (
        params.get("lossless") and params.get("usecontainer")
    ):
        raise refusal(payload_type, "its records must be lossless JPEG XL in containers")
    for name in adapter.header:
        if name not in header:
            raise refusal(payload_type, f"the header has no {name!r}, or that of the packs differs")
    if adapter.codec is not None and header.get("codec") != adapter.codec:
        raise refusal(payload_type, f"its codec must be {adapter.codec!r}")
    if adapter.placeholder is not None:
        slides = _placeholder(adapter.placeholder)
    else:
        slides = _conforming(payload_type, adapter.slides, slides)
    for name in LAYOUT:  # the writer fills them in where they stand
        if name in adapter.index:
            index = index.append_column(name, pa.array(np.zeros(index.num_rows, np.uint8)))
    index = _conforming(payload_type, adapter.index, index)
    if adapter.most_slides is not None and slides.num_rows > adapter.most_slides:
        raise refusal(
            payload_type, f"it has {slides.num_rows} slides, at most {adapter.most_slides} may be"
        )
    distinct = pc.count_distinct(index[adapter.unique], mode="all").as_py()
    if distinct != index.num_rows:
        raise refusal(payload_type, f"values of the column {adapter.unique!r} repeat")
    return slides, index


def is_known(payload_type: object) -> bool:
    """Whether that is an adapter's."""
    return isinstance(payload_type, str) and (payload_type in ADAPTERS or payload_type in WHOLE)


def placeholder_columns(payload_type: str) -> list[str] | None:
    """What a scan calls the columns of a slide table that only holds a place, None for others."""
    adapter = ADAPTERS.get(payload_type)
    if adapter is None or adapter.placeholder is None:
        return None
    return [name if name not in adapter.index else f"{name}_1" for name in adapter.placeholder]


def _placeholder(slide: dict[str, Any]) -> pa.Table:
    types = {name: pa.uint8() if name == "slide_idx" else pa.string() for name in slide}
    return pa.table({name: pa.array([slide[name]], types[name]) for name in slide})


def _conforming(payload_type: str, schema: dict[str, pa.DataType], table: pa.Table) -> pa.Table:
    missing = [name for name in schema if name not in table.column_names]
    if missing:
        raise refusal(payload_type, f"the columns {missing} are not among those given")
    others = [name for name in table.column_names if name not in schema]
    columns = {}
    for name, type in schema.items():
        if table[name].null_count:
            raise refusal(payload_type, f"the column {name!r} has NULLs")
        try:
            columns[name] = table[name].cast(type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise refusal(payload_type, f"the column {name!r} does not fit into {type}") from None
    return pa.table({**columns, **{name: table[name] for name in others}})
