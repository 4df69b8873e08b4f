"""Packs of clinical notes: building one, and all documents of 1,000 patients.

Building with two workers against the builder of iatro-iac-adapters, which has one; both encode
the same bytes. Reading through SQL, through Polars, and with the reader in one batch or patient by
patient, against that package's reader in a loop.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from iac_query.adapters import text
from iatro.iac.adapters import text as peer

import iac_query

from ._measure import interleaved, print_table

TEXT = """patient admitted with pain fever and cough no evidence of metastasis margin free lymph
nodes tumour of the sigmoid colon biopsy advised discharged after days without complications lesion
mm chest abdomen findings effusion enlarged follow up in weeks dose mg daily unremarkable"""
WORDS = TEXT.split()


def notes(package: Any, patients: int, docs: int, words: int) -> list[Any]:
    """Made-up patients, of either package's classes."""
    random = np.random.default_rng(7)
    made = []
    for i in range(patients):
        docs_of_patient = []
        for k in range(docs):
            chosen = random.zipf(1.3, words) % len(WORDS)
            body = " ".join(WORDS[word] for word in chosen.tolist())
            numbers = " ".join(map(str, random.integers(0, 999, words // 8).tolist()))
            docs_of_patient.append(
                package.ClinicalDoc(f"n{i}-{k}", f"{body} {numbers}", "pathology", f"e{k}")
            )
        made.append(package.PatientText(f"p{i:05}", "hospital", docs_of_patient))
    return made


def build_lines(folder: Path, rounds: int) -> list[list[Any]]:
    ours, theirs = folder / "ours.iac", folder / "theirs.iac"
    patients = {package: notes(package, 40, 8, 150) for package in (text, peer)}
    builds: dict[str, Callable[[], None]] = {
        f"{workers} workers": lambda workers=workers: text.build_clinical_text_pack(
            ours, patients[text], workers=workers, overwrite=True
        )
        for workers in (1, 2)
    }
    builds["peer"] = lambda: peer.build_clinical_text_pack(theirs, patients[peer], overwrite=True)
    for build in builds.values():
        build()
    with iac_query.VariableRecordPack(ours) as one, iac_query.VariableRecordPack(theirs) as other:
        rows = range(len(one))
        if one.read_many(rows) != other.read_many(rows):
            raise AssertionError("other records")
    times = interleaved(builds, rounds)
    return [
        [
            f"build, {name}",
            times.median("peer") * 1e3,
            times.median(name) * 1e3,
            times.ratio("peer", to=name),
            target,
        ]
        for name, target in (("1 workers", ""), ("2 workers", 1.5))
    ]


def read_lines(folder: Path, rounds: int) -> list[list[Any]]:
    path = folder / "patients.iac"
    text.build_clinical_text_pack(path, notes(text, 1000, 10, 150), quality=5)
    con, scan = iac_query.connect(), iac_query.scan_iac(path)
    ours, theirs = text.ClinicalTextReader(path), peer.ClinicalTextReader(path)
    rows = range(len(ours))
    reads: dict[str, Callable[[], Any]] = {
        "iac_docs in SQL": lambda: con.sql(
            f"SELECT patient_id, UNNEST(iac_docs(record), recursive := true) FROM '{path}'"
        ).to_arrow_table(),
        "iac.docs() in Polars": lambda: scan.select("patient_id", doc=pl.col("record").iac.docs())
        .explode("doc")
        .unnest("doc")
        .collect(),
        "reader, one batch": lambda: ours.read_patients_at(rows),
        "reader, one by one": lambda: [ours.read_patient_at(row) for row in rows],
        "peer": lambda: [theirs.read_patient_at(row) for row in rows],
    }
    expected = [doc.text for patient in reads["peer"]() for doc in patient.docs]
    table: pa.Table = reads["iac_docs in SQL"]()
    found = [doc.text for patient in reads["reader, one batch"]() for doc in patient.docs]
    frame = reads["iac.docs() in Polars"]()
    if not table["text"].to_pylist() == frame["text"].to_list() == found == expected:
        raise AssertionError("other documents")
    times = interleaved(reads, rounds)
    con.close()
    return [
        [
            name,
            times.median("peer") * 1e3,
            times.median(name) * 1e3,
            times.ratio("peer", to=name),
            {"iac_docs in SQL": 2.0}.get(name, ""),
        ]
        for name in reads
        if name != "peer"
    ]


def main(rounds: int = 7) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lines = build_lines(Path(folder), rounds) + read_lines(Path(folder), rounds)
    columns = ["", "peer", "this", "times as fast", "at least"]
    print_table("Clinical notes; milliseconds", columns, lines)


if __name__ == "__main__":
    main()
