"""The demo that the README promises."""

import csv
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from iac_query.adapters.dicom import DicomPatientReader
from iac_query.adapters.features import FeatureCacheReader, read_feature_package_records
from iac_query.adapters.text import ClinicalTextReader
from iac_query.adapters.tiles import TilePackageReader
from PIL import Image

import iac_query as iac

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("it's a demo")


@pytest.fixture(scope="module")
def shown(folder: Path) -> str:
    run = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / "demo.py", folder],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_what_the_demo_says(shown: str, folder: Path):
    assert "iac_docs(record)" in shown
    assert "payload: (12, 64, 64, 3) uint8" in shown
    assert f"contact sheet: {folder / 'cohort.png'}" in shown
    assert "iatro-iac-adapters reads it, too" in shown
    assert shown.count("Vascular invasion is present.") >= 2  # in Polars, a line a patient
    assert "payload: 16 images" in shown
    command_line = shown.partition("command line")[2]
    assert command_line.count("-tile-") == 3


def invaded(folder: Path) -> set[str]:
    """Patients whose pathology report finds vascular invasion."""
    with ClinicalTextReader(folder / "notes.iac") as notes:
        return {
            patient.patient_id
            for patient in notes.read_patients_at(range(len(notes)))
            for doc in patient.docs
            if doc.doc_type == "pathology" and "Vascular invasion is present" in doc.text
        }


def wanted_tiles(folder: Path) -> list[str]:
    """The cohort without a query: the tiles that are most like the first one."""
    patients = invaded(folder)
    with (folder / "labels.csv").open() as file:
        tissues = {row["tile_id"]: row["tissue"] for row in csv.DictReader(file)}
    records = read_feature_package_records(folder / "features.iac")
    rows = [
        row
        for row, record in enumerate(records)
        if record.patient_id in patients and tissues[record.tile_id] == "tumour"
    ]
    with FeatureCacheReader(folder / "features.iac") as features:
        vectors = features.read_matrix(rows).astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    order = np.argsort(-(vectors @ vectors[0]), kind="stable")[:12]
    return [records[rows[i]].tile_id for i in order]


@pytest.mark.usefixtures("shown")
def test_the_cohort_is_what_was_asked_for(folder: Path):
    with TilePackageReader(folder / "cohort.iac") as cohort:
        found = [cohort.tile_id_at(row) for row in range(cohort.record_count)]
        images = cohort.read_batch(range(cohort.record_count))
        similarity = cohort.index_table["similarity"].to_numpy()
    assert found == wanted_tiles(folder)
    assert (np.diff(similarity) <= 0).all() and similarity[0] == pytest.approx(1)
    with TilePackageReader(folder / "tiles.iac") as tiles:
        assert (tiles.read_batch_of(found) == images).all()
    with Image.open(folder / "cohort.png") as sheet:
        left = np.asarray(sheet)[6 : 6 + 128, 6 : 6 + 128]
    assert (left[::2, ::2] == images[0]).all()


@pytest.mark.usefixtures("shown")
def test_the_picture_of_the_readme_is_that_of_the_demo(folder: Path):
    made, kept = (
        np.asarray(Image.open(path).convert("RGB")).astype(int)
        for path in (folder / "cohort.png", EXAMPLES.parent / "docs" / "cohort.png")
    )
    assert made.shape == kept.shape
    assert np.abs(made - kept).mean() < 8  # it has fewer colours, and the labels' font may differ


def test_a_seed_makes_the_same_hospital(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    from hospital import build_hospital

    for name, seed in [("a", 5), ("b", 5), ("c", 6)]:
        (tmp_path / name).mkdir()
        build_hospital(tmp_path / name, patients=4, seed=seed)
    a, b, c = (
        {
            str(path.relative_to(tmp_path / name)): path.read_bytes()
            for path in (tmp_path / name).rglob("*.*")
        }
        for name in "abc"
    )
    assert a == b
    assert all(a[name] != c[name] for name in a if not name.startswith("scans"))
    assert len(iac.PackReader(tmp_path / "a" / "tiles.iac")) == 4 * 12


def test_patients_across_modalities(shown: str, folder: Path):
    thin = set()
    for path in (folder / "scans").iterdir():
        with DicomPatientReader(path) as scans:
            modalities = scans.series_table["modality"].to_pylist()
            row = scans.instance_table["series_idx"].to_pylist().index(modalities.index("CT"))
            if scans.read_dataset(row).SliceThickness < 3:
                thin.add(path.stem)
    told = shown.partition("Across modalities")[2].partition("command line")[0]
    assert set(re.findall(r"P\d{3}", told)) == invaded(folder) & thin
    assert invaded(folder) & thin
