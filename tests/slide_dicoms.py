"""DICOM whole-slide images made up for tests: a file an image, frames of given payloads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from dicoms import ROOT, encapsulated, file_of
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, VLWholeSlideMicroscopyImageStorage
from slides import ICC, cut_tiles

JPEG, JPEG2000_LOSSLESS, JPEG2000 = (f"1.2.840.10008.1.2.4.{n}" for n in (50, 90, 91))


def image_of(
    pixels: np.ndarray,
    number: int = 0,
    *,
    kind: str = "VOLUME",
    side: int = 64,
    spacing: float = 0.0005,
    payloads: list[bytes] | None = None,
    syntax: str = ExplicitVRLittleEndian,
    **elements: Any,
) -> Dataset:
    """A VL Whole Slide Microscopy Image, TILED_FULL, of half a micrometre a pixel.

    Its frames are ``payloads``, or the pixels as they are.
    """
    height, width, channels = pixels.shape
    tiles = cut_tiles(pixels, side)
    ds = Dataset()
    ds.file_meta = FileMetaDataset()
    ds.file_meta.TransferSyntaxUID = syntax
    ds.preamble = b"\0" * 128
    ds.SOPClassUID = VLWholeSlideMicroscopyImageStorage
    ds.SOPInstanceUID = f"{ROOT}.8.{number}"
    ds.StudyInstanceUID, ds.SeriesInstanceUID = f"{ROOT}.8", f"{ROOT}.8.1"
    ds.FrameOfReferenceUID = f"{ROOT}.8.2"
    ds.Modality, ds.Manufacturer, ds.SoftwareVersions = "SM", "Made Up", ["1", "2"]
    ds.PatientName, ds.PatientID = "Made^Up", "P-1"
    ds.InstanceNumber = number + 1
    ds.ImageType = ["ORIGINAL", "PRIMARY", kind, "NONE"]
    ds.Rows = ds.Columns = side
    ds.TotalPixelMatrixColumns, ds.TotalPixelMatrixRows = width, height
    ds.ImagedVolumeWidth, ds.ImagedVolumeHeight = width * spacing, height * spacing
    ds.ImagedVolumeDepth = 0.001
    ds.SamplesPerPixel = channels
    ds.PhotometricInterpretation = "RGB" if channels == 3 else "MONOCHROME2"
    if channels == 3:
        ds.PlanarConfiguration = 0
    ds.BitsAllocated = ds.BitsStored = 8 * pixels.dtype.itemsize
    ds.HighBit = ds.BitsStored - 1
    ds.PixelRepresentation = 0
    ds.NumberOfFrames = len(tiles)
    ds.DimensionOrganizationType = "TILED_FULL"
    ds.TotalPixelMatrixFocalPlanes = ds.NumberOfOpticalPaths = 1
    ds.LossyImageCompression = "01" if syntax == JPEG else "00"
    ds.ImageOrientationSlide = [0, -1, 0, -1, 0, 0]
    ds.TotalPixelMatrixOriginSequence = [origin()]
    ds.OpticalPathSequence = [optical_path()]
    measures = Dataset()
    measures.PixelSpacing, measures.SliceThickness = [spacing, spacing], 0.001
    shared = Dataset()
    shared.PixelMeasuresSequence = [measures]
    ds.SharedFunctionalGroupsSequence = [shared]
    ds.SpecimenLabelInImage = "YES" if kind == "LABEL" else "NO"
    for keyword, value in elements.items():
        setattr(ds, keyword, value)
    ds.file_meta.MediaStorageSOPClassUID = ds.SOPClassUID
    ds.file_meta.MediaStorageSOPInstanceUID = ds.SOPInstanceUID
    if payloads is None:
        ds.add_new("PixelData", "OW", b"".join(tile.tobytes() for tile in tiles))
        return ds
    return encapsulated(ds, syntax, payloads)


def origin() -> Dataset:
    ds = Dataset()
    ds.XOffsetInSlideCoordinateSystem, ds.YOffsetInSlideCoordinateSystem = 20, 40
    return ds


def optical_path() -> Dataset:
    ds = Dataset()
    ds.OpticalPathIdentifier = "0"
    ds.ICCProfile = ICC
    ds.ObjectiveLensPower = 20
    return ds


def sparse(ds: Dataset, places: list[tuple[int, int]]) -> Dataset:
    """The image as TILED_SPARSE, whose frames lie at places (column, row) of its tiles."""
    ds.DimensionOrganizationType = "TILED_SPARSE"
    ds.NumberOfFrames = len(places)
    groups = []
    for column, row in places:
        position, group = Dataset(), Dataset()
        position.ColumnPositionInTotalImagePixelMatrix = column * ds.Columns + 1
        position.RowPositionInTotalImagePixelMatrix = row * ds.Rows + 1
        position.XOffsetInSlideCoordinateSystem = position.YOffsetInSlideCoordinateSystem = 0
        position.ZOffsetInSlideCoordinateSystem = 0
        group.PlanePositionSlideSequence = [position]
        groups.append(group)
    ds.PerFrameFunctionalGroupsSequence = groups
    return ds


def write(folder: Path, *datasets: Dataset) -> Path:
    """The folder with a file of each dataset."""
    folder.mkdir(exist_ok=True)
    for number, ds in enumerate(datasets):
        (folder / f"{number}.dcm").write_bytes(file_of(ds))
    return folder
