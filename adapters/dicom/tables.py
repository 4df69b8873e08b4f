"""The tables of a pack, and the templates at the start of its data, from its instances."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ..._tables import LAYOUT
from . import schema
from .columns import TagColumn, tag_table
from .instance import Instance
from .template import Template


@dataclass
class Series:
    """The instances of a series, in the order they came, and what they share."""

    template: Template
    modality: str
    patient_id: str | None = None
    instances: list[Instance] = field(default_factory=list)

    def encoded_template(self) -> bytes:
        """The template as it is stored."""
        return schema.METADATA_CODEC.encode(self.template.to_json().encode())

    def encoded_delta(self, instance: Instance) -> bytes:
        """What one instance has beyond it, as it is stored."""
        model = json.loads(schema.METADATA_CODEC.decode(instance.model))
        return schema.METADATA_CODEC.encode(self.template.delta(model).encode())


def series_table(series: Sequence[Series], templates: Sequence[bytes]) -> pa.Table:
    """A row a series; templates lie one behind the other from the start of the data."""
    rows, offset = [], 0
    for number, (one, stored) in enumerate(zip(series, templates, strict=True)):
        study_uid, series_uid = one.instances[0].key
        rows.append(
            {
                "series_idx": number,
                "study_uid": study_uid,
                "series_uid": series_uid,
                "modality": one.modality,
                "instance_count": len(one.instances),
                "template_offset": offset,
                "template_length": len(stored),
                "template_crc32": zlib.crc32(stored),
                "patient_id": one.patient_id,
            }
        )
        offset += len(stored)
    return pa.Table.from_pylist(rows, schema.SERIES)


def instance_table(
    series: Sequence[Series],
    columns: Sequence[TagColumn],
    *,
    version: int,
    exact: bool,
) -> pa.Table:
    """A row a frame, in version 1 a row an instance. ``offsets`` says where each StoredFrame,
    by id, or an instance without any will lie in the data.
    """
    fields = [*schema.INSTANCES]
    if version == schema.VERSION:
        fields += [*schema.FRAMES, *(schema.EXACT if exact else ())]
    fields += pa.schema(LAYOUT)
    rows: list[dict[str, Any]] = []
    tags: list[list[Any]] = []
    for number, one in enumerate(series):
        for instance in sorted(one.instances, key=lambda each: each.order):
            delta = one.encoded_delta(instance)
            for row in _frame_rows(instance):
                first = row["frame_index"] == 0
                row["series_idx"] = number
                row["dicom_delta"] = delta if first else b""
                row["dicom_header"] = instance.header if first else b""
                for name in ("dicom_delta", "dicom_header"):
                    row[f"{name}_crc32"] = zlib.crc32(row[name])
                rows.append(row)
                tags.append(instance.tags)
    table = pa.Table.from_pylist(rows, pa.schema(fields))
    at = table.schema.get_field_index("offset")
    for column, array in zip(reversed(columns), reversed(tag_table(columns, tags)), strict=True):
        table = table.add_column(at, column.field, array)
    return table


def _frame_rows(instance: Instance) -> list[dict[str, Any]]:
    pixel = instance.pixel
    common: dict[str, Any] = {
        "sop_instance_uid": instance.sop_instance_uid,
        "instance_number": instance.instance_number,
        "rows": pixel.rows if pixel else 0,
        "columns": pixel.columns if pixel else 0,
        "has_pixel_data": pixel is not None,
        "samples_per_pixel": pixel.samples_per_pixel if pixel else 1,
        "pixel_dtype": pixel.dtype.name if pixel else "",
        "pixel_representation": pixel.pixel_representation if pixel else 0,
        "bits_allocated": pixel.bits_allocated if pixel else 0,
        "bits_stored": pixel.bits_stored if pixel else 0,
        "high_bit": pixel.high_bit if pixel else 0,
        "photometric_interpretation": pixel.photometric_interpretation if pixel else "",
        "source_transfer_syntax": instance.transfer_syntax,
        "number_of_frames": instance.number_of_frames,
        "planar_configuration": pixel.planar_configuration if pixel else 0,
    }
    if pixel is None:
        empty = {"frame_index": 0, "codec_id": schema.PIXELS_JXL, "length": 0, "crc32": 0}
        return [{**common, **empty, "offset": instance.offset}]
    return [
        {
            **common,
            "frame_index": index,
            "codec_id": frame.codec_id,
            "offset": frame.offset,
            "length": frame.length,
            "crc32": frame.crc32,
        }
        for index, frame in enumerate(instance.frames)
    ]
