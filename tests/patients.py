"""Patients with documents, for both schemas of text, and payloads made by hand."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from iac_query.adapters import text, text_pair
from iatro.iac.adapters import text as peer_text
from iatro.iac.adapters import text_pair as peer_pair
from packs import write_pack


@dataclass(frozen=True)
class Schema:
    """One of the two schemas, as we and the peer have it."""

    name: str
    texts: tuple[str, ...]
    patient: type
    doc: type
    build: Callable[..., None]
    build_from_table: Callable[..., None]
    build_from_file: Callable[..., None]
    reader: type
    peer_patient: type
    peer_doc: type
    peer_build: Callable[..., None]
    peer_reader: type
    function: str

    def __str__(self) -> str:
        return self.name


TEXT = Schema(
    "clinical_text",
    ("text",),
    text.PatientText,
    text.ClinicalDoc,
    text.build_clinical_text_pack,
    text.build_clinical_text_pack_from_table,
    text.build_clinical_text_pack_from_file,
    text.ClinicalTextReader,
    peer_text.PatientText,
    peer_text.ClinicalDoc,
    peer_text.build_clinical_text_pack,
    peer_text.ClinicalTextReader,
    "iac_docs",
)
PAIR = Schema(
    "clinical_text_pair",
    ("source_text", "compressed_text"),
    text_pair.PatientTextPairs,
    text_pair.ClinicalTextPairDoc,
    text_pair.build_clinical_text_pair_pack,
    text_pair.build_clinical_text_pair_pack_from_table,
    text_pair.build_clinical_text_pair_pack_from_file,
    text_pair.ClinicalTextPairReader,
    peer_pair.PatientTextPairs,
    peer_pair.ClinicalTextPairDoc,
    peer_pair.build_clinical_text_pair_pack,
    peer_pair.ClinicalTextPairReader,
    "iac_doc_pairs",
)
SCHEMAS = [TEXT, PAIR]


def as_dict(patient: Any) -> dict[str, Any]:
    """A patient of ours or of the peer as plain values."""
    return {**vars(patient), "docs": [vars(doc) for doc in patient.docs]}


def as_dicts(patients: list[Any]) -> list[dict[str, Any]]:
    return [as_dict(patient) for patient in patients]


def make(schema: Schema, patients: list[dict[str, Any]], ours: bool = True) -> list[Any]:
    """Patients of ours or of the peer from plain values."""
    patient = schema.patient if ours else schema.peer_patient
    doc = schema.doc if ours else schema.peer_doc
    return [patient(**{**p, "docs": [doc(**d) for d in p["docs"]]}) for p in patients]


def some_patients(schema: Schema, count: int = 3) -> list[dict[str, Any]]:
    """Patients with 0 to 3 documents of text from everywhere, some of them empty."""
    words = ["", "No tumour seen.\r\n", "é 日本 🩺\0 מה", "Closest margin 1 mm. " * 40]
    return [
        {
            "patient_id": f"患者-{i}",
            "institution": f"hospital é {i % 2}",
            "docs": [
                {
                    "doc_id": f"d{k}",
                    **{name: words[(i + k + at) % 4] for at, name in enumerate(schema.texts)},
                    "doc_type": ["pathology", "radiology"][k % 2],
                    "encounter": f"e{i}",
                    "doc_category": "note",
                    "source": 'a "quoted" \\ path',
                    "doc_timestamp": f"2024-01-0{k + 1}",
                    "episode_index": k - 1,
                }
                for k in range((i + 2) % 4)
            ],
        }
        for i in range(count)
    ]


def patients_of(schema: Schema) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Any patients that can be stored."""
    words = st.text(max_size=20)
    doc = st.fixed_dictionaries(
        {
            "doc_id": st.text(min_size=1, max_size=5),
            **dict.fromkeys(schema.texts, st.text(max_size=200)),
            **dict.fromkeys(
                ("doc_type", "encounter", "doc_category", "source", "doc_timestamp"), words
            ),
            "episode_index": st.integers(-(2**31), 2**31 - 1),
        }
    )
    patient = st.fixed_dictionaries(
        {
            "patient_id": st.text(min_size=1, max_size=5),
            "institution": words,
            "docs": st.lists(doc, max_size=4, unique_by=lambda d: d["doc_id"]),
        }
    )
    return st.lists(patient, min_size=1, max_size=4, unique_by=lambda p: p["patient_id"])


def payload(manifest: Any, region: bytes = b"", length: int | None = None) -> bytes:
    """A payload with this manifest, an object or JSON bytes."""
    raw = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
    return struct.pack("<I", len(raw) if length is None else length) + raw + region


def entry(doc_id: Any = "d", offset: Any = 0, length: Any = 0, **more: Any) -> dict[str, Any]:
    """What a manifest of clinical_text says of a document."""
    return {"doc_id": doc_id, "offset": offset, "length": length, **more}


def write_payloads(path: Path, payloads: list[bytes], name: str = "clinical_text") -> Path:
    """A pack of payloads as they are."""
    return write_pack(path, payloads, payload_type=name)
