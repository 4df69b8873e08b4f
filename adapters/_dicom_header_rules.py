"""That the headers of DICOM instances are whole, of one patient, and what the tables say."""

from __future__ import annotations

import binascii
import itertools
import json
import re
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..batch import ContiguousRecordBatch
from ..codec import Codec
from ..errors import CodecError, PackError
from ..validation.checked_pack import UNREADABLE, CheckedPack, Rows, rows_where
from ..validation.report import Finding
from ._patient_ids import normalised
from ._table_rules import in_rows

Json = dict[str, Any]

_PATIENT_ID = "00100020"
#: Elements that columns repeat, of every instance and of those with pixels.
_ELEMENTS = {
    "sop_instance_uid": "00080018",
    "instance_number": "00200013",
    "source_transfer_syntax": "00020010",
}
_PIXEL_ELEMENTS = {
    "rows": "00280010",
    "columns": "00280011",
    "samples_per_pixel": "00280002",
    "pixel_representation": "00280103",
    "bits_allocated": "00280100",
    "bits_stored": "00280101",
    "high_bit": "00280102",
    "photometric_interpretation": "00280004",
    "planar_configuration": "00280006",
    "number_of_frames": "00280008",
}
_SERIES_ELEMENTS = {"study_uid": "0020000D", "series_uid": "0020000E"}

_VR = re.compile("[A-Z]{2}")

#: Instances whose headers are in memory at a time, and bytes of them; a larger one comes alone.
_PIECE, _PIECE_BYTES = 256, 64 << 20
#: Of one original header.
_MOST_BYTES = 1 << 30


def check_headers(pack: CheckedPack, version: int, firsts: Rows) -> Iterator[Finding]:
    """Templates and deltas of the instances that begin in these rows, and original headers."""
    series = {one["series_idx"]: one for one in _series_of(pack)}
    patients = _Patients(pack, several=version == 2)
    names = (*_ELEMENTS, *_PIXEL_ELEMENTS, "series_idx", "has_pixel_data")
    column = pack.column("index", "series_idx").cast(pa.int64(), safe=False)
    known = pc.is_in(column, pa.array([*series], pa.int64()))
    firsts = np.intersect1d(firsts, rows_where(known))  # of the others it has been said
    try:
        for start in range(0, len(firsts), _PIECE):
            rows = firsts[start : start + _PIECE]
            said = dict(zip(rows.tolist(), pack.index_rows(names, rows), strict=True))
            for row, header in _headers(pack, rows):
                if isinstance(header, Finding):
                    yield header
                    continue
                if not _is_model(header):
                    reason = "its header is no DICOM JSON model (PS3.18 F.2)"
                    yield pack.finding("payload", reason, row)
                    continue
                number = said[row]["series_idx"]
                yield from _compared(pack, row, header, said[row], series[number])
                yield from patients.check(row, number, header)
    except UNREADABLE as error:  # of the tables: no other header would be found either
        yield pack.failure(error)
        return
    yield from patients.check_series(series)
    yield from _check_originals(pack, firsts)


def _headers(pack: CheckedPack, rows: Rows) -> Iterator[tuple[int, Json | Finding]]:
    """The header of each row as DICOM JSON model, or what is wrong with it."""
    most_bytes = _PIECE_BYTES if len(rows) > 1 else 0
    try:
        batch = pack.native.dicom_tags(rows, None, True, "null", most_bytes)
    except PackError:
        raise
    except ValueError as error:  # too large together
        if len(rows) == 1:
            yield rows[0], pack.finding("container", f"its header was not read: {error}", rows[0])
            return
        half = len(rows) // 2
        yield from _headers(pack, rows[:half])
        yield from _headers(pack, rows[half:])
        return
    failures = dict(batch.failures)
    texts = ContiguousRecordBatch.from_native(batch, "null", None)
    for at, row in enumerate(rows.tolist()):
        if at in failures:
            yield row, pack.failure(failures[at], row)
            continue
        try:
            yield row, json.loads(bytes(texts[at]))
        except (RecursionError, ValueError):
            yield row, pack.finding("payload", "its header is no JSON that can be read", row)


def _is_model(elements: Any) -> bool:
    """Whether a dataset, or an item of a sequence, is what PS3.18 F.2 says."""
    return isinstance(elements, dict) and all(map(_is_element, elements.values()))


def _is_element(element: Any) -> bool:
    if not isinstance(element, dict) or not isinstance(element.get("vr"), str):
        return False
    vr, values, inline = element["vr"], element.get("Value", []), element.get("InlineBinary", "")
    if not _VR.fullmatch(vr) or not isinstance(values, list) or not isinstance(inline, str):
        return False
    try:
        binascii.a2b_base64(inline, strict_mode=True)
    except ValueError:
        return False
    if vr == "SQ":
        return all(map(_is_model, values))
    if vr == "PN":
        return all(value is None or _is_name(value) for value in values)
    return all(isinstance(v, str | int | float | None) and not isinstance(v, bool) for v in values)


def _is_name(value: Any) -> bool:
    """Whether a value is the groups of a person's name, or the text of one that was kept."""
    groups = value.values() if isinstance(value, dict) else [value]
    return all(isinstance(group, str) for group in groups)


def _series_of(pack: CheckedPack) -> list[Json]:
    names = ["series_idx", *_SERIES_ELEMENTS]
    names += ["patient_id"] if pack.has("slide", "patient_id") else []
    rows = pack.read_columns("slide", names).to_pylist()
    return [{**entry, "row": row} for row, entry in enumerate(rows)]


def _compared(
    pack: CheckedPack, row: int, elements: Json, said: Json, of_series: Json
) -> Iterator[Finding]:
    """Columns that are other ones than the elements that they repeat."""
    pixels = _PIXEL_ELEMENTS if said.get("has_pixel_data", True) else {}
    for name, tag in {**_ELEMENTS, **pixels}.items():
        value = _value(elements, tag)
        if name == "number_of_frames" and value == 0:
            value = 1  # as it is read
        if name in said and _differ(said[name], value):
            yield pack.finding("payload", f"{name} is another one in its header", row)
    for name, tag in _SERIES_ELEMENTS.items():
        if _differ(of_series[name], _value(elements, tag)):
            yield pack.finding("payload", f"{name} of its series is another one in its header", row)


def _value(elements: Json, tag: str) -> Any:
    """The one value of an element, None where there is none or several."""
    element = elements.get(tag)
    values = element.get("Value") if isinstance(element, dict) else None
    return values[0] if isinstance(values, list) and len(values) == 1 else None


def _differ(said: Any, value: Any) -> bool:
    """Whether an element is not what a column says. Values that break their representation are
    kept in headers as they were, and may be missing in columns.
    """
    if isinstance(said, str):
        return isinstance(value, str) and value.strip() not in ("", said)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value != said and not (said == -1 and not -(1 << 31) <= value < 1 << 31)


class _Patients:
    """Whose instances are in a pack: of one patient, in version 2 each series of one."""

    def __init__(self, pack: CheckedPack, several: bool) -> None:
        self._pack = pack
        self._several = several
        #: By series, or for the pack (None): the first row with a patient, and which.
        self._first: dict[int | None, tuple[int, str]] = {}
        self._of_series: dict[int, str] = {}

    def check(self, row: int, series: int, elements: Json) -> Iterator[Finding]:
        """That an instance is of the patient of those before it. One without ID is of any."""
        value = _value(elements, _PATIENT_ID)
        if not isinstance(value, str) or not value.strip():
            return
        patient = normalised(value)
        first, known = self._first.setdefault(series if self._several else None, (row, patient))
        self._of_series.setdefault(series, patient)
        if patient != known:
            yield self._pack.finding("ids", f"is of another patient than row {first}", row)

    def check_series(self, series: dict[int, Json]) -> Iterator[Finding]:
        """That the slide table names the patients of its series, where it has such a column."""
        for number, patient in self._of_series.items():
            entry = series[number]
            if "patient_id" in entry and normalised(entry["patient_id"] or "") != patient:
                reason = "patient_id is another one in the headers of its instances"
                yield from in_rows(self._pack, "slide", [entry["row"]], reason, "payload")


def _check_originals(pack: CheckedPack, rows: Rows) -> Iterator[Finding]:
    """The bytes of the files' headers, where the pack has them."""
    if not pack.has("index", "dicom_header"):
        return
    zstd = Codec.create(Codec.ZSTD)
    # Not kept: these may be many bytes.
    headers = pack.read_columns("index", ["dicom_header"])["dicom_header"]
    checksums = pack.column("index", "dicom_header_crc32")
    for row in rows.tolist():
        stored = headers[row].as_buffer()
        if stored is None:
            continue  # said of the column
        if zlib.crc32(stored) != checksums[row].as_py():
            yield pack.finding("checksum", "its dicom_header differs from its crc32", row)
            continue
        try:
            header = zstd.decode(stored, max_record_bytes=_MOST_BYTES)
        except CodecError as error:
            yield pack.finding("codec", f"dicom_header: {pack.reason(error)}", row)
            continue
        if not _is_parted(header):
            yield pack.finding("payload", "its dicom_header is no file without its frames", row)


def _is_parted(header: bytes) -> bool:
    """Whether bytes are those of a file and where its frames belong: see dicom/exact.py."""
    count = struct.unpack_from("<I", header)[0] if len(header) >= 4 else len(header)
    kept = len(header) - 4 - 16 * count
    if kept < 0:
        return False
    positions = [position for position, _ in struct.iter_unpack("<QQ", header[4 : 4 + 16 * count])]
    return all(one <= other for one, other in itertools.pairwise([*positions, kept]))
