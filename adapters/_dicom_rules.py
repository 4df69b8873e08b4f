"""What packs of DICOM instances must hold. Their headers' own rules are in _dicom_header_rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .._native import PIXEL_TYPES
from .._tables import LAYOUT
from ..cohorts import dicom_templates
from ..cohorts.adapter_packs import ADAPTERS
from ..cohorts.stored_codecs import CODEC_ID
from ..decoding.rows import kept_rows
from ..validation.checked_pack import (
    CheckedPack,
    Remains,
    Rows,
    TableName,
    as_indices,
    numbers,
    rows_where,
)
from ..validation.report import Finding, Severity
from ._dicom_columns import EXACT, FRAMES
from ._dicom_header_rules import check_headers
from ._table_rules import check_columns, check_ids, check_slide_numbers, in_rows

PAYLOAD_TYPE = dicom_templates.PAYLOAD_TYPE
_SCHEMA = ADAPTERS[PAYLOAD_TYPE]

#: What readers take as True and 1 where it is missing.
_OPTIONAL = ("has_pixel_data", "samples_per_pixel")

_PIXELS = (
    "has_pixel_data",
    "rows",
    "columns",
    "samples_per_pixel",
    "pixel_dtype",
    "pixel_representation",
    "bits_allocated",
    "bits_stored",
    "high_bit",
    "photometric_interpretation",
)
#: Samples a pixel of what is in use: PS3.3 C.7.6.3.1.2.
_SAMPLES = {
    **dict.fromkeys(("MONOCHROME1", "MONOCHROME2", "PALETTE COLOR"), 1),
    **dict.fromkeys(("RGB", "YBR_FULL", "YBR_FULL_422", "YBR_ICT", "YBR_RCT"), 3),
}
#: Components without leading zeros, dots between: PS3.5 9.1.
_UID = r"^(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*))*$"
_UID_LENGTH = 64


def check_tables(pack: CheckedPack) -> Iterator[Finding]:
    """The header, both tables, and the headers of all instances."""
    version = pack.header.get("dicom_schema_version")
    if type(version) is not int or version not in (1, 2):
        yield pack.finding("schema", "header field dicom_schema_version is not 1 or 2")
        return
    yield from _check_header(pack, version)
    index = {
        name: type
        for name, type in _SCHEMA.index.items()
        if name not in _OPTIONAL or pack.has("index", name)
    }
    if version == 2:
        more = [*FRAMES]
        if any(pack.has("index", name) for name in EXACT.names):
            more += EXACT
        index |= {field.name: field.type for field in more}
    slides = dict(_SCHEMA.slides)
    if pack.has("slide", "patient_id"):
        slides["patient_id"] = pa.string()
    unusable = False
    for table, schema in (("slide", slides), ("index", index)):
        for finding in check_columns(pack, table, schema, nullable=("patient_id",)):
            unusable |= finding.row is None
            yield finding
        unusable |= any(pack.column(table, name) is None for name in schema)
    if unusable:
        return  # of rows nothing can be said
    frames = _integers(pack, "frame_index", 0)
    yield from _check_ids(pack, np.flatnonzero(frames == 0))
    yield from check_slide_numbers(pack, "series_idx")
    yield from _check_frames(pack, frames)
    yield from _check_series(pack, frames)
    yield from _check_pixels(pack)
    yield from check_headers(pack, version, np.flatnonzero(frames == 0))


def _check_header(pack: CheckedPack, version: int) -> Iterator[Finding]:
    header = pack.header
    if pack.native.kind != "variable":
        yield pack.finding("schema", "the index does not say where records are stored")
    if header.get("metadata_codec", "zstd") != "zstd":
        yield pack.finding("schema", "header field metadata_codec is not 'zstd'")
    offset, length = header.get("metadata_offset", 0), header.get("metadata_length")
    if not all(type(number) is int and number >= 0 for number in (offset, length)):
        yield pack.finding("schema", "the header does not say where templates are stored")
    elif offset + length > header["data_length"]:
        yield pack.finding("schema", "the header's place of templates is outside the data segment")
    params = header.get("codec_params")
    params = params if isinstance(params, dict) else {}
    if version == 1:
        if header.get("codec") != _SCHEMA.codec:
            yield pack.finding("schema", f"its codec is not {_SCHEMA.codec!r}")
        elif not params.get("lossless") or params.get("usecontainer") is not True:
            yield pack.finding("schema", "its records are no lossless JPEG XL in containers")
    elif not header.get("record_codecs"):
        yield pack.finding("schema", "the header has no 'record_codecs'")


def _check_ids(pack: CheckedPack, firsts: Rows) -> Iterator[Finding]:
    """That instances and series are there once, and have UIDs, however odd those of files are."""
    yield from check_ids(pack, "slide", "series_idx")
    yield from check_ids(pack, "index", _SCHEMA.unique, firsts)
    series = pack.read_columns("slide", ["study_uid", "series_uid"]).to_pylist()
    seen: dict[tuple[str, ...], int] = {}
    for row, uids in enumerate(tuple(one.values()) for one in series):
        if (first := seen.setdefault(uids, row)) != row:
            reason = f"study_uid and series_uid are those of row {first} as well"
            yield from in_rows(pack, "slide", [row], reason, "ids")
    for table, name in (("slide", "study_uid"), ("slide", "series_uid"), ("index", _SCHEMA.unique)):
        yield from _check_uids(pack, table, name, firsts)


def _check_uids(pack: CheckedPack, table: TableName, name: str, firsts: Rows) -> Iterator[Finding]:
    column = pack.column(table, name)
    fits = pc.less_equal(pc.binary_length(column), _UID_LENGTH)
    odd = rows_where(pc.invert(pc.and_(fits, pc.match_substring_regex(column, _UID))))
    rows = odd[np.isin(odd, firsts)] if table == "index" else odd
    yield from in_rows(pack, table, rows, f"{name} is no UID (PS3.5 9.1)", severity="note")


def _check_frames(pack: CheckedPack, frames: npt.NDArray[np.int64]) -> Iterator[Finding]:
    """That the frames of an instance follow each other, and are alike."""
    if not pack.has("index", "frame_index"):
        return
    starts = np.flatnonzero(frames == 0)
    # Before the first start rows are of no instance.
    instance = np.cumsum(frames == 0) - 1
    first_of = np.where(instance < 0, -1, starts[instance]) if starts.size else instance
    there = (instance >= 0) & (frames == np.arange(len(frames)) - first_of)
    stray = np.flatnonzero(~there)
    yield from in_rows(pack, "index", stray, "is not the frame that belongs behind the one before")
    sizes = np.bincount(instance[there], minlength=len(starts))
    counts = _integers(pack, "number_of_frames")[starts]
    counts = np.where(_integers(pack, "has_pixel_data", 1)[starts], counts, 1)
    for at in np.flatnonzero(sizes != counts):
        reason = f"{sizes[at]} frames of its instance are there, of {counts[at]}"
        yield pack.finding("schema", reason, starts[at])
    rows = np.flatnonzero(there)
    own = {"dicom_delta", "dicom_delta_crc32", "frame_index", CODEC_ID, *LAYOUT}
    for name in sorted({*_SCHEMA.index, *FRAMES.names} - own):
        if not pack.has("index", name):
            continue
        column = pack.column("index", name)
        values, first = (column.take(as_indices(at)) for at in (rows, first_of[rows]))
        other = rows[rows_where(pc.not_equal(values, first))]
        reason = f"{name} is not that of the first frame of its instance"
        yield from in_rows(pack, "index", other, reason)


def _check_series(pack: CheckedPack, frames: npt.NDArray[np.int64]) -> Iterator[Finding]:
    """That series have the instances that they count."""
    used, counts = np.unique(_integers(pack, "series_idx")[frames == 0], return_counts=True)
    found = dict(zip(used.tolist(), counts.tolist(), strict=True))
    series = pack.read_columns("slide", ["series_idx", "instance_count"]).to_pylist()
    for row, (number, said) in enumerate(tuple(one.values()) for one in series):
        if (there := found.get(number, 0)) != said:
            reason = f"instance_count is {said}, the index has {there}"
            yield from in_rows(pack, "slide", [row], reason, "counts")
        elif there == 0:
            yield from in_rows(pack, "slide", [row], "has no instances", severity="note")


def _check_pixels(pack: CheckedPack) -> Iterator[Finding]:
    """That what the index says of pixels agrees with itself."""
    here = _integers(pack, "has_pixel_data", 1).astype(bool)
    empty = _integers(pack, "length") == 0
    rows = np.flatnonzero(here & empty)
    yield from in_rows(pack, "index", rows, "has pixels by the index, and an empty record")
    rows = np.flatnonzero(~here & ~empty)
    yield from in_rows(pack, "index", rows, "has no pixels by the index, and a record")
    names = [name for name in _PIXELS if pack.has("index", name)]
    table = pack.read_columns("index", names)
    table = table.append_column("row", as_indices(np.arange(len(pack)))).drop_null()
    kinds = table.group_by(names, use_threads=False).aggregate([("row", "list")])
    for kind in kinds.to_pylist():
        if kind.get("has_pixel_data", True):
            for reason, severity in _contradictions(kind):
                rows = kind["row_list"]
                yield from in_rows(pack, "index", rows, reason, severity=severity)


def _contradictions(pixel: Mapping[str, Any]) -> Iterator[tuple[str, Severity]]:
    """What is wrong with what a row says of its pixels: PS3.3 C.7.6.3, PS3.5 8.1.1."""
    samples = pixel.get("samples_per_pixel", 1)
    if min(pixel["rows"], pixel["columns"], samples) < 1:
        yield "its frame has no pixels by rows, columns and samples_per_pixel", "error"
    interpretation = pixel["photometric_interpretation"]
    if _SAMPLES.get(interpretation, samples) != samples:
        # Files have such, and are read by the number of samples.
        reason = f"photometric_interpretation is {interpretation}, samples_per_pixel {samples}"
        yield reason, "note"
    bits, stored = pixel["bits_allocated"], pixel["bits_stored"]
    if not 1 <= stored <= bits:
        yield f"bits_stored is {stored}, bits_allocated {bits}", "error"
    elif pixel["high_bit"] != stored - 1:
        yield f"high_bit is {pixel['high_bit']}, bits_stored {stored}", "note"
    name, signed = pixel["pixel_dtype"], pixel["pixel_representation"]
    if name not in PIXEL_TYPES:
        yield "pixel_dtype is no dtype of pixels", "error"
        return
    dtype = np.dtype(name)
    if 8 * dtype.itemsize != max(bits, 8):
        yield f"pixel_dtype is {name}, bits_allocated {bits}", "error"
    if dtype.kind not in "iu":
        return  # PS3.3 C.7.6.24: floats have no such element
    if signed > 1:
        yield f"pixel_representation is {signed}, expected 0 or 1", "error"
    elif bits > 1 and (dtype.kind == "i") != bool(signed):
        yield f"pixel_dtype is {name}, pixel_representation {signed}", "error"


def remains(pack: CheckedPack, kept: npt.NDArray[np.bool_]) -> Remains:
    """Instances go with all their frames, and series without any go; the others are counted."""
    index, slides = pack.reader.index_table, pack.reader.slide_table
    kept = dicom_templates.whole_instances(index, kept)
    index = kept_rows(index, kept)
    used = np.isin(slides["series_idx"].to_numpy(), index["series_idx"].to_numpy())
    prefix, slides = dicom_templates.templates(pack.native, kept_rows(slides, used), index)
    return Remains(kept, dicom_templates.header(pack.header, prefix), slides, prefix)


def _integers(pack: CheckedPack, name: str, default: int | None = None) -> npt.NDArray[np.int64]:
    """A column of the index, which has been checked; ``default`` where it may be missing, -1 for
    NULL.
    """
    if default is not None and not pack.has("index", name):
        return np.full(len(pack), default, np.int64)
    column = pack.column("index", name).cast(pa.int64(), safe=False)
    return numbers(pc.fill_null(column, -1))
