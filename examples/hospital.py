"""A small hospital as packs, of patients who do not exist. One seed makes the same ones always."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from iac_query.adapters.features import build_teacher_feature_package_from_tile_package
from iac_query.adapters.manifests import TileRecord
from iac_query.adapters.text import ClinicalDoc, PatientText, build_clinical_text_pack
from iac_query.adapters.tiles import build_tile_package_from_arrays
from scans import build_scans
from tissue import SIZE, features, tile

COLUMNS, ROWS = 4, 3  # tiles of a slide


@dataclass(frozen=True)
class Patient:
    """Somebody made up, with one slide."""

    patient_id: str
    age: int
    has_tumour: bool
    is_invasive: bool  # the tumour, where there is one, has grown into vessels

    @property
    def pathology(self) -> str:
        if not self.has_tumour:
            return "Tubular adenoma of the colon. No carcinoma. Margins free."
        found = "is present" if self.is_invasive else "is not seen"
        return f"Adenocarcinoma of the colon, G2. Vascular invasion {found}."

    @property
    def radiology(self) -> str:
        mass = "Wall thickening of the sigmoid" if self.has_tumour else "No mass"
        return f"CT of the abdomen. {mass}. Vascular invasion cannot be assessed."

    @property
    def documents(self) -> PatientText:
        admission = f"{self.age} years old, admitted for colonoscopy."
        docs = [
            ClinicalDoc(f"{self.patient_id}-{doc_type}", text, doc_type=doc_type, doc_timestamp=day)
            for doc_type, text, day in [
                ("admission", admission, "2024-03-01"),
                ("radiology", self.radiology, "2024-03-02"),
                ("pathology", self.pathology, "2024-03-05"),
            ]
        ]
        return PatientText(self.patient_id, "Example Hospital", docs)

    def tissues(self, random: np.random.Generator) -> Iterator[str]:
        """What the tiles of the slide show, row by row: tumour on the left, where there is one."""
        edge = random.uniform(0.5, 2.5) if self.has_tumour else 0.0
        for i in range(ROWS * COLUMNS):
            if i % COLUMNS < edge:
                yield "tumour"
            else:
                yield str(random.choice(["stroma", "stroma", "lymphocytes", "fat"]))


def patients_of(random: np.random.Generator, count: int) -> list[Patient]:
    return [
        Patient(
            f"P{number:03}",
            age=int(random.integers(35, 90)),
            has_tumour=bool(random.random() < 0.6),
            is_invasive=bool(random.random() < 0.4),
        )
        for number in range(1, count + 1)
    ]


def build_hospital(folder: Path, patients: int = 24, seed: int = 1) -> None:
    """Writes notes.iac, tiles.iac, features.iac, labels.csv and scans/, over what is there.

    A record of notes.iac is a patient's documents, one of tiles.iac an image, one of features.iac
    the vector of the tile in the same row. labels.csv says what tissue the tiles show. In scans/
    is a pack of CT and MR slices for each patient.
    """
    random = np.random.default_rng(seed)
    people = patients_of(random, patients)
    build_clinical_text_pack(
        folder / "notes.iac", [patient.documents for patient in people], overwrite=True
    )
    records, tissues = [], []
    for patient in people:
        for i, tissue in enumerate(patient.tissues(random)):
            y, x = divmod(i, COLUMNS)
            tile_id = f"{patient.patient_id}-tile-{i:02}"
            slide_id = f"{patient.patient_id}-slide"
            place = {"x": x * SIZE, "y": y * SIZE}
            records.append(
                TileRecord(tile_id, patient.patient_id, slide_id, Path(), split="train", **place)
            )
            tissues.append(tissue)
    tiles = np.stack([tile(tissue, random) for tissue in tissues])
    build_tile_package_from_arrays(
        records, tiles, folder / "tiles.iac", lossless=True, effort=3, overwrite=True
    )
    build_teacher_feature_package_from_tile_package(
        folder / "tiles.iac", features(tiles), folder / "features.iac", "texture", overwrite=True
    )
    with (folder / "labels.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["tile_id", "tissue"])
        writer.writerows(zip([r.tile_id for r in records], tissues, strict=True))
    build_scans(folder / "scans", [patient.patient_id for patient in people], random)
