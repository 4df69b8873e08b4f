"""DICOM files for tests, made here or bundled with pydicom, and packs of them."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
from iac_query.adapters import dicom
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.encaps import encapsulate
from pydicom.uid import UID, ExplicitVRBigEndian, ExplicitVRLittleEndian, ImplicitVRLittleEndian

ROOT = "1.2.826.0.1.3680043.8.498"
BUNDLED = Path(pydicom.__file__).parent / "data"
JPEG_XL = "1.2.840.10008.1.2.4.110"


def pixels_of(number: int, shape: tuple[int, ...], dtype: str = "int16") -> np.ndarray:
    """A ramp that is another one for each number, over all that 12 bits hold."""
    size = int(np.prod(shape))
    ramp = (np.arange(size) * 7 + number * 311) % 4096
    ramp = ramp - 1024 if dtype.startswith("i") else ramp
    return (ramp % 256 if dtype.endswith("int8") else ramp).reshape(shape).astype(dtype)


def slice_of(number: int = 0, *, series: int = 1, pixels: Any = None, **elements: Any) -> Dataset:
    """A CT slice of 12 x 16 pixels, 2.5 mm behind the one before, with ``elements`` over it."""
    array = pixels_of(number, (12, 16)) if pixels is None else pixels
    ds = Dataset()
    ds.file_meta = FileMetaDataset()
    ds.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    ds.preamble = b"\0" * 128
    ds.SOPClassUID = "1.2.840.10008.5.1.4.1.1.2"
    ds.SOPInstanceUID = f"{ROOT}.1.{series}.{number}"
    ds.Modality = "CT"
    ds.PatientName = "Made^Up"
    ds.PatientID = "P-1"
    ds.StudyInstanceUID = f"{ROOT}.1"
    ds.SeriesInstanceUID = f"{ROOT}.1.{series}"
    ds.InstanceNumber = number + 1
    ds.ImagePositionPatient = [-4.0, -3.0, 2.5 * number]
    ds.ImageOrientationPatient = [1, 0, 0, 0, 1, 0]
    ds.PixelSpacing = [0.5, 0.25]
    ds.SliceThickness = "2.50"
    ds.RescaleSlope, ds.RescaleIntercept = "2", "-1000"
    set_pixels(ds, array)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # values may be wrong on purpose
        for keyword, value in elements.items():
            setattr(ds, keyword, value)
    ds.file_meta.MediaStorageSOPClassUID = ds.SOPClassUID
    ds.file_meta.MediaStorageSOPInstanceUID = ds.SOPInstanceUID
    return ds


def set_pixels(ds: Dataset, array: np.ndarray, frames: bool = False) -> None:
    """Pixel Data and the elements that describe it."""
    shape = array.shape[1:] if frames else array.shape
    ds.Rows, ds.Columns = shape[:2]
    ds.SamplesPerPixel = shape[2] if len(shape) == 3 else 1
    ds.PhotometricInterpretation = "RGB" if len(shape) == 3 else "MONOCHROME2"
    if len(shape) == 3:
        ds.PlanarConfiguration = 0
    ds.BitsAllocated = ds.BitsStored = 8 * array.dtype.itemsize
    ds.HighBit = ds.BitsStored - 1
    ds.PixelRepresentation = int(array.dtype.kind == "i")
    if frames:
        ds.NumberOfFrames = len(array)
    value = array.astype(array.dtype.newbyteorder("<")).tobytes()
    ds.add_new("PixelData", "OW", value + b"\0" * (len(value) % 2))


def encapsulated(ds: Dataset, syntax: str, frames: list[bytes]) -> Dataset:
    """The dataset with those frames in a compressed transfer syntax."""
    ds.file_meta.TransferSyntaxUID = UID(syntax)
    ds.PixelData = encapsulate(frames, has_bot=len(frames) > 1)
    ds["PixelData"].VR = "OB"
    ds["PixelData"].is_undefined_length = True
    return ds


def file_of(ds: Dataset) -> bytes:
    """The file of a dataset."""
    out = io.BytesIO()
    syntax = ds.file_meta.TransferSyntaxUID
    encoding = {
        "implicit_vr": syntax == ImplicitVRLittleEndian,
        "little_endian": syntax != ExplicitVRBigEndian,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pydicom.dcmwrite(out, ds, **encoding, force_encoding=True)
    return out.getvalue()


def build(path: Path, *datasets: Dataset | bytes | Path, **options: Any) -> dicom.DicomBuild:
    """A pack of datasets and files, at low effort and over an old one unless told otherwise."""
    files = [file_of(each) if isinstance(each, Dataset) else each for each in datasets]
    options = {"effort": 1, "overwrite": True, **options}
    return dicom.build_dicom_patient_package_from_files(files, path, **options)


def pack_of(path: Path, *datasets: Any, **options: Any) -> dicom.DicomPatientReader:
    """The reader of a pack of datasets and files."""
    build(path, *datasets, **{"strict": True, **options})
    return dicom.DicomPatientReader(path)


def read(data: bytes | Path) -> Dataset:
    """A file as pydicom reads it, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pydicom.dcmread(io.BytesIO(data) if isinstance(data, bytes) else data)
