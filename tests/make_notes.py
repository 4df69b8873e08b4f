"""Writes tests/data/notes.iac with the peer package: forty invented notes on eight patients.

The same bytes every time: ``python tests/make_notes.py``.
"""

from __future__ import annotations

import datetime
import random
from pathlib import Path

import pyarrow as pa
from iatro import iac as peer

SITES = {
    "colon": ("adenocarcinoma of the sigmoid colon", "tubulovillous adenoma", "CT of the abdomen"),
    "breast": ("invasive ductal carcinoma", "fibroadenoma", "Mammography, two views"),
    "lung": ("adenocarcinoma of the right upper lobe", "granuloma", "CT of the chest"),
    "prostate": ("acinar adenocarcinoma, Gleason 3+4", "nodular hyperplasia", "MRI of the pelvis"),
}
MALIGNANT = {"p01", "p03", "p04", "p06", "p08"}


def pathology(chance: random.Random, site: str, malignant: bool) -> str:
    cancer, benign, _ = SITES[site]
    if not malignant:
        return f"Biopsy, {site}. Diagnosis: {benign}. No atypia, no evidence of malignancy."
    margin = chance.choice(("Margins free", "Closest margin 1 mm", "Tumour at the deep margin"))
    nodes = chance.randint(8, 24)
    positive = chance.choice((0, 0, 1, 3))
    return (
        f"Resection, {site}. Diagnosis: {cancer}, {chance.randint(8, 45)} mm. {margin}. "
        f"Lymph nodes: {positive} of {nodes} with metastasis."
    )


def radiology(chance: random.Random, site: str, malignant: bool) -> str:
    size = chance.randint(6, 40)
    finding = f"a lesion of {size} mm" if malignant else f"a smooth nodule of {size // 3 + 3} mm"
    follow = "Biopsy advised." if malignant else "Unchanged, control in a year."
    return f"{SITES[site][2]}. Findings: {finding}, no effusion, no enlarged nodes. {follow}"


def discharge(chance: random.Random, site: str, malignant: bool) -> str:
    course = "without complications" if chance.random() < 0.7 else "with fever on day two"
    plan = "Tumour board next week." if malignant else "No further treatment."
    return f"Discharged after {chance.randint(2, 9)} days, {course}. {site.title()} clinic. {plan}"


WRITERS = {"pathology": pathology, "radiology": radiology, "discharge": discharge}


def notes() -> tuple[pa.Table, pa.Table, list[bytes]]:
    """Slide table, index table and texts."""
    chance = random.Random(7)
    patients = [f"p{number:02}" for number in range(1, 9)]
    sites = [chance.choice(list(SITES)) for _ in patients]
    rows, texts = [], []
    for number in range(40):
        who = number % len(patients)
        note_type = "pathology" if number < len(patients) else chance.choice(list(WRITERS))
        written = datetime.date(2024, 1, 8) + datetime.timedelta(days=9 * number)
        text = WRITERS[note_type](chance, sites[who], patients[who] in MALIGNANT)
        rows.append((f"n{number:03}", who, note_type, written, len(text.split())))
        texts.append(text.encode())
    note_id, slide_idx, note_type, written, words = zip(*rows, strict=True)
    slides = pa.table(
        {
            "slide_idx": pa.array(range(len(patients)), pa.uint8()),
            "slide_id": [f"case-{patient}" for patient in patients],
            "patient_id": patients,
            "site": sites,
        }
    )
    index = pa.table(
        {
            "note_id": note_id,
            "slide_idx": pa.array(slide_idx, pa.uint8()),
            "note_type": note_type,
            "written": pa.array(written, pa.date32()),
            "words": pa.array(words, pa.uint16()),
        }
    )
    return slides, index, texts


def main() -> None:
    slides, index, texts = notes()
    peer.VariableRecordPack.build(
        str(Path(__file__).parent / "data" / "notes.iac"),
        payload_type="clinical_notes",
        slide_table=slides,
        index_table=index,
        objects=texts,
        codec=peer.Codec.create("zstd", level=3),
        overwrite=True,
    )


if __name__ == "__main__":
    main()
