"""DICOM instances (``dicom_patient`` packs): files in, pixels, headers and volumes out.

A row is a frame. The series table holds what a series' instances have in common, the instance
table the rest; both are JSON of DICOM PS3.18 Annex F. Packs within the limits of iatro-base-iac
0.1.4 are written as it writes them (``dicom_schema_version`` 1), all others say version 2.
"""

try:
    import pydicom  # noqa: F401
except ImportError as error:
    raise ImportError("DICOM packs need pydicom: pip install iac-query[dicom]") from error

from .build import (
    DicomBuild,
    build_dicom_patient_package,
    build_dicom_patient_package_from_files,
)
from .conflicts import DicomConflict, DicomConflictError
from .intake import FileFailure
from .read import DicomPatientReader
from .schema import PAYLOAD_TYPE
from .sources import DicomInput
from .volume import Volume

__all__ = [
    "PAYLOAD_TYPE",
    "DicomBuild",
    "DicomConflict",
    "DicomConflictError",
    "DicomInput",
    "DicomPatientReader",
    "FileFailure",
    "Volume",
    "build_dicom_patient_package",
    "build_dicom_patient_package_from_files",
]
