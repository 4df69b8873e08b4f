"""Patients' documents as records: their framing, and reading them back.

A record is a little-endian uint32, the length of a JSON manifest, then the manifest, then the texts
of all documents. The manifest says where each text lies.
"""

from __future__ import annotations

import json
import operator
import os
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from tqdm import tqdm

from .. import _native
from .._options import (
    MAX_RECORD_BYTES,
    OnError,
    PathLike,
    checked_on_error,
    checked_report,
    row_array,
    worker_count,
)
from ..codec import Codec, ImageCodec
from ..errors import PackError, RecordFailure
from ..pack import PackReader
from ..variable import VariableRecordPack
from ._encoding import build_encoded

Patient = TypeVar("Patient")

#: Largest manifest that the core reads.
_MAX_MANIFEST_BYTES = 128 << 20

#: Of a document, in the manifest and in tables, beside its id and its texts.
DESCRIPTIONS = ("doc_type", "encounter", "doc_category", "source", "doc_timestamp")


def build_documents(
    output_path: PathLike,
    patients: Iterable[Any],
    *,
    payload_type: str,
    index_schema: pa.Schema,
    records: Callable[[Iterable[Any]], Iterator[tuple[Mapping[str, Any], bytes]]],
    header: Mapping[str, Any],
    quality: int,
    overwrite: bool,
    codec: Codec | str | None,
    workers: int | None,
    progress: bool,
) -> None:
    """Writes a pack of patients, each the row of the index and the record that ``records`` makes.

    Patients have no slides: one row stands in for them.
    """
    slides = {"slide_idx": pa.array([0], pa.uint8()), "slide_id": [payload_type]}
    total = len(patients) if isinstance(patients, Sized) else None
    build_encoded(
        output_path,
        payload_type=payload_type,
        slide_table=pa.table({**slides, "patient_id": [""]}),
        index_schema=index_schema,
        records=records(patients),
        codec=_checked_codec(codec, quality),
        extra_header=header,
        overwrite=overwrite,
        workers=workers,
        progress=tqdm(total=total, disable=not progress, unit="patient"),
    )


def _checked_codec(codec: Codec | str | None, quality: int) -> Codec:
    """The codec to write with: Brotli of ``quality``, unless another is given.

    Raises ValueError for one of images, and for a ``quality`` beside another codec.
    """
    if codec is None:
        return Codec.create(Codec.BROTLI, quality=quality)
    if quality != 11:
        raise ValueError("quality is that of the default codec: give it to Codec.create instead")
    if isinstance(codec, str):
        codec = Codec.create(codec)
    if isinstance(codec, ImageCodec):
        raise ValueError(f"codec {codec.name} is one of images, documents need one of bytes")
    return codec


def checked_patients(patients: Iterable[Patient]) -> Iterator[tuple[str, Patient]]:
    """The patients, each with the words that name it in errors.

    Raises ValueError for a missing or repeated ``patient_id``, and when there are none.
    """
    numbers: dict[str, int] = {}
    for number, patient in enumerate(patients):
        where = f"patient {number}"
        utf8(patient.institution, f"{where}: institution")  # type: ignore[attr-defined]
        patient_id = patient.patient_id  # type: ignore[attr-defined]
        required(patient_id, f"{where}: patient_id")
        if (first := numbers.setdefault(patient_id, number)) != number:
            raise ValueError(f"patients {first} and {number} have the same patient_id")
        yield where, patient
    if not numbers:
        raise ValueError("no patients to pack")


def frame(
    patient: Any, where: str, version: Mapping[str, int], texts: Mapping[str, str]
) -> tuple[bytes, dict[str, int]]:
    """The record of a patient, and how many bytes there are of each of ``texts``.

    ``texts`` are the fields of a document that hold its texts, each with the prefix of ``offset``
    and ``length`` in the manifest. Raises ValueError and TypeError, naming patient and document,
    for what cannot be stored.
    """
    region: list[bytes] = []
    sizes = dict.fromkeys(texts, 0)
    entries = []
    numbers: dict[str, int] = {}
    for number, doc in enumerate(patient.docs):
        here = f"{where}: document {number}"
        required(doc.doc_id, f"{here}: doc_id")
        if (first := numbers.setdefault(doc.doc_id, number)) != number:
            raise ValueError(f"{where}: documents {first} and {number} have the same doc_id")
        entry = {"doc_id": doc.doc_id, "episode_index": _episode(doc.episode_index, here)}
        for name in DESCRIPTIONS:
            entry[name] = getattr(doc, name)
            utf8(entry[name], f"{here}: {name}")
        for name, prefix in texts.items():
            text = utf8(getattr(doc, name), f"{here}: {name}")
            entry[f"{prefix}offset"] = sum(sizes.values())
            entry[f"{prefix}length"] = len(text)
            sizes[name] += len(text)
            region.append(text)
        entries.append(entry)
    manifest = {
        **version,
        "patient_id": patient.patient_id,
        "institution": patient.institution,
        "docs": entries,
    }
    encoded = json.dumps(manifest, ensure_ascii=False, sort_keys=True).encode()
    if len(encoded) > _MAX_MANIFEST_BYTES:
        raise ValueError(f"{where}: too many documents, their manifest has {len(encoded)} bytes")
    record = b"".join([struct.pack("<I", len(encoded)), encoded, *region])
    if len(record) > MAX_RECORD_BYTES:
        raise ValueError(f"{where}: {len(record)} bytes of documents, more than a record may have")
    return record, sizes


def index_row(patient: Any) -> dict[str, Any]:
    """What every index table of documents says of a patient."""
    return {
        "patient_id": patient.patient_id,
        "institution": patient.institution,
        "num_docs": len(patient.docs),
    }


def utf8(text: str, what: str) -> bytes:
    """Text as UTF-8. Raises TypeError for anything else, ValueError for a lone surrogate."""
    if not isinstance(text, str):
        raise TypeError(f"{what} is {type(text).__name__}, expected a str")
    try:
        return text.encode()
    except UnicodeEncodeError as error:  # holds the text, so it must not become the context
        position = error.start
    raise ValueError(f"{what} has a lone surrogate at character {position}, which is no Unicode")


def required(id: str, what: str) -> None:
    """Raises ValueError for an id that is None or empty, TypeError for one that is no text."""
    if id is None or not utf8(id, what):
        raise ValueError(f"{what} is missing")


def _episode(value: int, where: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{where}: episode_index is {type(value).__name__}, expected an int")
    number = operator.index(value)
    if not -(1 << 31) <= number < 1 << 31:
        raise ValueError(f"{where}: episode_index does not fit in 32 bits")
    return number


def open_documents(package_path: PathLike, payload_type: str) -> VariableRecordPack:
    """Opens a pack of documents. Raises PackError for one of another payload type."""
    pack = VariableRecordPack(package_path)
    found = pack.header.get("payload_type")
    if found != payload_type or pack.reader.native.decodes_to_images:
        path = pack.reader.package_path
        pack.close()
        raise PackError(f"{path}: is not a {payload_type} pack, its payload type is {found!r}")
    return pack


def read_one(
    pack: VariableRecordPack, row: int, make: Callable[[str, str, list[tuple[Any, ...]]], Patient]
) -> Patient:
    """What :func:`read_documents` gives for one row, without the expense of a batch."""
    payload = pack.read(row)
    offsets = np.array([0, len(payload)], np.uint64)
    (found,) = parsed(pack.reader, payload, offsets, row_array([row], len(pack)), 1)
    if isinstance(found, Exception):
        raise found
    return make(*found)


def read_documents(
    pack: VariableRecordPack,
    rows: Iterable[int],
    make: Callable[[str, str, list[tuple[Any, ...]]], Patient],
    *,
    workers: int | None = None,
    verify: bool = True,
    on_error: OnError = "raise",
    report: list[RecordFailure] | None = None,
) -> list[Patient | None]:
    """The patients of rows, in the order given, each made of id, institution and documents.

    Options as those of :meth:`VariableRecordPack.read_many`; what a manifest gets wrong is a
    CodecError of its row.
    """
    checked_on_error(on_error)
    checked_report(report)
    numbers = row_array(rows, len(pack))
    unread: list[RecordFailure] = []
    batch = pack.read_many_contiguous(
        numbers,
        workers=workers,
        verify=verify,
        on_error="raise" if on_error == "raise" else "null",
        report=unread,
    )
    offsets = np.frombuffer(batch.offsets_buffer, np.uint64)
    found_documents = parsed(pack.reader, batch.buffer, offsets, numbers, workers)
    failures = {failure.position: failure for failure in unread}
    patients: list[Patient | None] = []
    for position, found in enumerate(found_documents):
        if isinstance(found, Exception):
            if on_error == "raise":
                raise found
            failures.setdefault(position, RecordFailure.of(position, found))
        if position not in failures:
            patients.append(make(*found))
        elif on_error == "null":
            patients.append(None)
    if report is not None:
        report.extend(failures[position] for position in sorted(failures))
    return patients


def parsed(
    reader: PackReader,
    payloads: Any,
    offsets: npt.NDArray[np.uint64],
    rows: npt.NDArray[np.int64],
    workers: int | None,
) -> list[tuple[str, str, list[tuple[Any, ...]]] | Exception]:
    """Of each payload the patient's id, institution and documents, or what is wrong with it."""
    path = os.fsencode(reader.package_path)
    kind = reader.header["payload_type"]
    return _native.parse_documents(payloads, offsets, kind, worker_count(workers), path, rows)
