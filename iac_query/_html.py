"""What packs, batches and tables show of themselves in a notebook.

Whatever comes out of a file is escaped, and everything is bounded: few rows, columns, pixels and
characters, however large the thing is.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ._matrix_header import dtype_field
from ._tables import table_schema

if TYPE_CHECKING:
    from .batch import ContiguousRecordBatch
    from .images import ImageBatch
    from .pack import PackReader

_ROWS = 6
_COLUMNS = 30
_FIELDS = 200  # of a schema
_ITEMS = 4  # of a list
_TEXT = 120
_HEADER_TEXT = 4000
_THUMBNAILS = 12
_THUMBNAIL_PIXELS = 96


def pack_html(reader: PackReader, name: str) -> str | None:
    """A pack: counts, schema and header; None for one that is closed. ``name`` is the object's."""
    try:
        header, native = reader.header, reader.native
    except ValueError:
        return None
    facts = [
        ("payload_type", header.get("payload_type", "")),
        ("codec", header.get("codec", "none")),
        ("records", f"{native.num_records:,}"),
        ("slides", f"{native.num_slides:,}"),
        ("data", f"{header['data_length']:,} bytes"),
    ]
    if native.kind == "fixed":
        facts.append(("a record", f"{header['feature_dim']:,} {header[dtype_field(header)]}"))
    parts = [_title(name, str(reader.package_path)), _facts(facts)]
    for table in ("index", "slide"):
        parts.append(_details(f"{table} table", _schema(table_schema(native, table))))
    text = _clipped(json.dumps(header, indent=2, ensure_ascii=False), _HEADER_TEXT)
    parts.append(_details("header", f"<pre>{text}</pre>"))
    return _block(parts)


def records_html(batch: ContiguousRecordBatch) -> str:
    """A batch of records: how many, and how long they are."""
    lengths = np.diff(np.frombuffer(batch.offsets_buffer, np.uint64))
    facts = [
        ("records", f"{len(batch):,}"),
        ("failed", f"{len(batch.errors):,}"),
        ("bytes", f"{len(batch.buffer):,}"),
    ]
    if len(lengths):
        spread = (lengths.min(), int(np.median(lengths)), lengths.max())
        facts.append(("of a record", "{:,} to {:,} to {:,}".format(*map(int, spread))))
    return _block([_title(type(batch).__name__), _facts(facts)])


def images_html(batch: ImageBatch) -> str:
    """A batch of images: how many, and the first ones small, where Pillow is there."""
    facts = [
        ("images", f"{len(batch):,}"),
        ("failed", f"{len(batch.errors):,}"),
        ("bytes", f"{len(batch.records.buffer):,}"),
    ]
    first = range(min(len(batch), _THUMBNAILS))
    images = {i: image for i in first if (image := batch[i]) is not None}
    kinds = dict.fromkeys(f"{image.shape} {image.dtype}" for image in images.values())
    facts.append(("first ones", ", ".join(kinds)))
    thumbnails = (thumbnail(image, f"image {i}") for i, image in images.items())
    return _block([_title(type(batch).__name__), _facts(facts), " ".join(filter(None, thumbnails))])


def table_html(table: pa.Table) -> str:
    """The first rows of a table, images small and texts clipped."""
    shown = table.slice(0, _ROWS)
    fields = list(table.schema)[:_COLUMNS]
    head = "".join(
        f"<th>{_clipped(field.name)}<br><small>{_clipped(str(field.type))}</small></th>"
        for field in fields
    )
    rows = []
    for row in range(shown.num_rows):
        cells = "".join(f"<td>{_cell(shown.column(i)[row])}</td>" for i in range(len(fields)))
        rows.append(f"<tr>{cells}</tr>")
    facts = f"{table.num_rows:,} rows, {table.num_columns:,} columns"
    return _block(
        [_title("pyarrow.Table", facts), f"<table><tr>{head}</tr>{''.join(rows)}</table>"]
    )


def thumbnail(image: npt.NDArray[Any], label: str) -> str:
    """An image as a small PNG in an HTML tag; nothing without Pillow."""
    try:
        from PIL import Image
    except ImportError:
        return ""
    step = max(-(-max(image.shape[:2]) // _THUMBNAIL_PIXELS), 1)
    small = _eight_bits(image[::step, ::step])
    file = io.BytesIO()
    Image.fromarray(small).save(file, "PNG")
    text = base64.b64encode(file.getvalue()).decode("ascii")
    title = escape(f"{label}: {image.shape} {image.dtype}")
    return f'<img src="data:image/png;base64,{text}" title="{title}" alt="{title}">'


def _eight_bits(image: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Pixels that Pillow knows: 8 bits, of others the range that they have."""
    if image.dtype != np.uint8:
        values = np.nan_to_num(image.astype(np.float64), posinf=0.0, neginf=0.0)
        low, high = values.min(), values.max()
        image = ((values - low) * (255 / max(high - low, 1e-300))).astype(np.uint8)
    if image.ndim == 3 and image.shape[2] == 1:
        image = image[:, :, 0]
    return np.ascontiguousarray(image)


def _cell(value: pa.Scalar) -> str:
    if not value.is_valid:
        return "<i>NULL</i>"
    type, types = value.type, pa.types
    if isinstance(value, pa.ExtensionScalar | pa.DictionaryScalar):
        return _cell(value.value)
    if types.is_struct(type):
        names = [field.name for field in type]
        if {"height", "width", "channels", "dtype", "data"} <= set(names):
            return _image_cell(value)
        parts = [f"{_clipped(name)}: {_cell(value[i])}" for i, name in enumerate(names[:_COLUMNS])]
        return ", ".join(parts)
    if types.is_map(type):
        return f"{len(value):,} entries"
    if isinstance(value, pa.ListScalar):  # of any kind
        items = [_cell(item) for item in value.values[:_ITEMS]]
        more = f", ... ({len(value.values):,})" if len(value.values) > _ITEMS else ""
        return f"[{', '.join(items)}{more}]"
    if isinstance(value, pa.BinaryScalar):
        data = value.as_buffer()
        if not (types.is_string(type) or types.is_large_string(type) or types.is_string_view(type)):
            return f"{data.size:,} bytes"
        # A character has at most four bytes.
        start = data.slice(0, min(data.size, 4 * _TEXT + 4)).to_pybytes()
        return _clipped(start.decode("utf-8", "ignore"))
    return _clipped(str(value))


def _image_cell(value: pa.StructScalar) -> str:
    """A thumbnail, or what is known of the image."""
    height, width, channels = (value[name].as_py() for name in ("height", "width", "channels"))
    shape = (height, width) if channels == 1 else (height, width, channels)
    name = str(value["dtype"].as_py())
    try:
        pixels = np.frombuffer(value["data"].as_buffer(), np.dtype(name)).reshape(shape)
        shown = thumbnail(pixels, "image")
    except (TypeError, ValueError, AttributeError):  # a struct that only looks like an image
        shown = ""
    return shown or escape(f"{shape} ") + _clipped(name)


def _schema(schema: pa.Schema) -> str:
    fields = list(schema)
    rows = [(field.name, str(field.type)) for field in fields[:_FIELDS]]
    more = f"<p>and {len(fields) - _FIELDS:,} more</p>" if len(fields) > _FIELDS else ""
    return _facts(rows) + more


def _facts(rows: Iterable[Sequence[Any]]) -> str:
    cells = "".join(
        f"<tr><th style='text-align:left'>{_clipped(str(name))}</th>"
        f"<td style='text-align:left'>{_clipped(str(value))}</td></tr>"
        for name, value in rows
    )
    return f"<table>{cells}</table>"


def _title(name: str, more: str = "") -> str:
    return f"<b>{escape(name)}</b> {_clipped(more, 1000)}"


def _details(summary: str, body: str) -> str:
    return f"<details><summary>{escape(summary)}</summary>{body}</details>"


def _block(parts: Iterable[str]) -> str:
    return f"<div>{''.join(parts)}</div>"


def _clipped(text: str, most: int = _TEXT) -> str:
    """Escaped, and cut where it is longer. Lone surrogates become question marks."""
    shown = text if len(text) <= most else text[:most] + " ..."
    return escape(shown.encode("utf-8", "replace").decode("utf-8"))
