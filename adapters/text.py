"""Patients' clinical notes: ``clinical_text`` packs, a record a patient.

Packs are exchanged with iatro-iac-adapters 0.1.4 in both directions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from .._options import PathLike
from ..codec import Codec
from ..cohorts.adapter_packs import ADAPTERS
from ._document_files import rows_of_file
from ._document_reader import DocumentReader
from ._document_tables import patients_of_rows, rows_of_table
from ._documents import build_documents, checked_patients, frame, index_row

__all__ = [
    "PAYLOAD_TYPE",
    "TEXT_SCHEMA_VERSION",
    "ClinicalDoc",
    "ClinicalTextReader",
    "PatientText",
    "build_clinical_text_pack",
    "build_clinical_text_pack_from_file",
    "build_clinical_text_pack_from_table",
]

PAYLOAD_TYPE = "clinical_text"
TEXT_SCHEMA_VERSION = 1

_VERSION = {"text_schema_version": TEXT_SCHEMA_VERSION}
#: The text of a document, and the prefix of its place in the manifest.
_TEXTS = {"text": ""}
_INDEX = pa.schema(ADAPTERS[PAYLOAD_TYPE].index)


@dataclass(frozen=True)
class ClinicalDoc:
    """One document of a patient. All but id and text is the caller's to define."""

    doc_id: str
    text: str
    doc_type: str = ""
    encounter: str = ""
    doc_category: str = ""
    source: str = ""
    doc_timestamp: str = ""
    #: Groups documents; -1 for none.
    episode_index: int = -1


@dataclass
class PatientText:
    """The documents of one patient, in the order they are stored in: one record."""

    patient_id: str
    institution: str = ""
    docs: list[ClinicalDoc] = field(default_factory=list)


def build_clinical_text_pack(
    output_path: PathLike,
    patients: Iterable[PatientText],
    *,
    quality: int = 11,
    overwrite: bool = False,
    streaming: bool = True,
    codec: Codec | str | None = None,
    workers: int | None = None,
    progress: bool = False,
) -> None:
    """Writes a pack of patients' documents.

    * ``patients``: any iterable; few are held at a time, whatever ``streaming`` says.
    * ``quality``: of Brotli, 0 to 11. ``codec`` takes another codec of bytes instead.
    * ``workers``: threads that encode, None for as many as there are processors.
    * ``progress``: show a bar of patients.

    Raises ValueError when there are no patients, for a missing or repeated ``patient_id``, a
    missing ``doc_id`` or one that a patient has twice, an ``episode_index`` beyond 32 bits and text
    with lone surrogates, TypeError for what is no text; they name patient and document by number.
    FileExistsError where there is a file and not ``overwrite``. On any error nothing is left behind
    and an old file stays.
    """
    build_documents(
        output_path,
        patients,
        payload_type=PAYLOAD_TYPE,
        index_schema=_INDEX,
        records=_records,
        header=_VERSION,
        quality=quality,
        overwrite=overwrite,
        codec=codec,
        workers=workers,
        progress=progress,
    )


def build_clinical_text_pack_from_table(output_path: PathLike, table: Any, **options: Any) -> None:
    """:func:`build_clinical_text_pack` from a table of documents, with its ``options``.

    ``table`` is anything with ``__arrow_c_stream__``: a pandas or Polars frame, a pyarrow table, a
    DuckDB relation. Its columns are ``patient_id``, ``doc_id`` and ``text``, and as far as they are
    there ``institution``, ``doc_type``, ``encounter``, ``doc_category``, ``source``,
    ``doc_timestamp`` (text) and ``episode_index`` (integers); others are passed over. NULL is an
    error in the first three, and stands for nothing in the others.

    Patients come in the order of their first rows, documents in the order of theirs.

    Raises ValueError for a missing column, a missing id or text, and a patient of two institutions,
    TypeError for columns of other types; they name column and row, counted from 0.
    """
    rows = rows_of_table(table, _TEXTS)
    build_clinical_text_pack(
        output_path, patients_of_rows(rows, PatientText, ClinicalDoc), **options
    )


def build_clinical_text_pack_from_file(
    output_path: PathLike, rows_path: PathLike, **options: Any
) -> None:
    """:func:`build_clinical_text_pack_from_table` from a CSV, JSON Lines or Parquet file.

    The name ends in ``.csv``, ``.jsonl``, ``.ndjson`` or ``.parquet``, the first three also with
    ``.gz``. Files are UTF-8; a CSV file has a header row, and its cells are taken as they are,
    ``007`` and ``NA`` too. It is read in pieces where the rows of each patient stand together,
    else whole.
    """
    rows = rows_of_file(rows_path, _TEXTS)
    build_clinical_text_pack(
        output_path, patients_of_rows(rows, PatientText, ClinicalDoc), **options
    )


def _records(patients: Iterable[PatientText]) -> Iterator[tuple[dict[str, Any], bytes]]:
    for where, patient in checked_patients(patients):
        record, _ = frame(patient, where, _VERSION, _TEXTS)
        yield index_row(patient), record


class ClinicalTextReader(DocumentReader[PatientText]):
    """Reads patients' documents, by patient or by row, from packs of any codec of bytes.

    Opens eagerly, pickles as its absolute path, and may be shared by threads. Raises PackError for
    a pack of another payload type.
    """

    _payload_type = PAYLOAD_TYPE

    @staticmethod
    def _made(patient_id: str, institution: str, docs: list[tuple[Any, ...]]) -> PatientText:
        return PatientText(patient_id, institution, [ClinicalDoc(*doc) for doc in docs])
