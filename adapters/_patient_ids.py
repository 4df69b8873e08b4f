"""Patient IDs as DICOM files of one patient have them."""

from __future__ import annotations

import unicodedata


def normalised(patient_id: str) -> str:
    """A Patient ID (0010,0020) as it is compared: width, case and spaces around it do not count."""
    return unicodedata.normalize("NFKC", patient_id).strip().casefold()
