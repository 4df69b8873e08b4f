"""CT and MR series of made-up patients, from the example files that pydicom brings along."""

from __future__ import annotations

import copy
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pydicom
from iac_query.adapters.dicom import build_dicom_patient_package_from_files
from pydicom.data import get_testdata_file

SLICES = 5
THICKNESSES = {"CT": (1.25, 2.5, 5.0), "MR": (3.0,)}  # of slices, in mm


def build_scans(folder: Path, patient_ids: list[str], random: np.random.Generator) -> None:
    """Writes a pack a patient, with one CT and one MR series, over what is there."""
    folder.mkdir(exist_ok=True)
    sources = [pydicom.dcmread(get_testdata_file(f"{name}_small.dcm")) for name in THICKNESSES]
    for number, patient_id in enumerate(patient_ids, 1):
        files = []
        for source in sources:
            thickness = float(random.choice(THICKNESSES[source.Modality]))
            files += series(source, patient_id, f"2.25.{number}{len(files)}", thickness)
        pack = folder / f"{patient_id}.iac"
        build_dicom_patient_package_from_files(files, pack, effort=3, overwrite=True)


def series(
    source: pydicom.FileDataset, patient_id: str, uid: str, thickness: float
) -> Iterator[bytes]:
    """The file's slice again and again, each above the one before, as another patient's."""
    x, y, z = source.ImagePositionPatient
    for number in range(1, SLICES + 1):
        image = copy.deepcopy(source)
        image.PatientID = image.PatientName = patient_id
        image.StudyInstanceUID, image.SeriesInstanceUID = f"{uid}.1", f"{uid}.2"
        image.SOPInstanceUID = image.file_meta.MediaStorageSOPInstanceUID = f"{uid}.3.{number}"
        image.InstanceNumber, image.SliceThickness = number, thickness
        image.ImagePositionPatient = [x, y, z + number * thickness]
        file = io.BytesIO()
        image.save_as(file)
        yield file.getvalue()
