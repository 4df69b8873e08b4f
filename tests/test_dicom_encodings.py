"""Native and RLE pixel data (PS3.5 8, annex G): through every door pydicom's pixel_array."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import pytest
from dicom_doors import DOORS, Case
from dicom_packs import column
from dicoms import encapsulated, pixels_of, slice_of
from imagecodecs import packbits_encode
from pydicom.dataelem import DataElement
from pydicom.dataset import Dataset
from pydicom.pixels import apply_modality_lut
from pydicom.uid import (
    DeflatedExplicitVRLittleEndian,
    ExplicitVRBigEndian,
    ImplicitVRLittleEndian,
    RLELossless,
)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:pydicom")


def gray(dtype: str, shape: tuple[int, int] = (5, 7), **elements: object) -> Dataset:
    """All bits of pixels that say something else in each, with ``elements`` over the dataset."""
    size = np.dtype(dtype).itemsize
    values = np.random.default_rng(7).integers(0, 256, (*shape, size), np.uint8)
    return slice_of(pixels=np.ascontiguousarray(values).view(dtype)[..., 0], **elements)


def colour(dtype: str, planar: int, interpretation: str = "RGB", **elements: object) -> Dataset:
    values = np.random.default_rng(8).integers(0, 256, (6, 7, 3), np.uint8)
    array = values if dtype == "uint8" else values.astype(dtype) * 257
    ds = slice_of(pixels=array, PhotometricInterpretation=interpretation, **elements)
    ds.PlanarConfiguration = planar
    stored = np.ascontiguousarray(array.transpose(2, 0, 1)) if planar else array
    value = stored.tobytes()
    ds.PixelData = value + b"\0" * (len(value) % 2)
    return ds


def halved_colours() -> Dataset:
    ds = colour("uint8", 0, "YBR_FULL_422")
    ds.PixelData = ds.PixelData[: 6 * 7 * 2]
    return ds


def bits(shape: tuple[int, int]) -> Dataset:
    array = (pixels_of(1, shape, "uint16") % 5 < 2).astype(np.uint8)
    ds = slice_of(pixels=array, BitsAllocated=1, BitsStored=1, HighBit=0)
    packed = np.packbits(array.reshape(-1), bitorder="little").tobytes()
    ds.PixelData = packed + b"\0" * (len(packed) % 2)
    return ds


def floats(dtype: str) -> Dataset:
    array = np.linspace(-1e3, 1e5, 35).reshape(5, 7).astype(dtype)
    ds = slice_of(pixels=array.view(np.uint8))
    ds.Columns, ds.BitsAllocated = 7, array.itemsize * 8
    del ds.PixelData, ds.PixelRepresentation, ds.BitsStored, ds.HighBit
    setattr(ds, "FloatPixelData" if dtype == "float32" else "DoubleFloatPixelData", array.tobytes())
    return ds


def with_syntax(ds: Dataset, syntax: str) -> Dataset:
    ds.file_meta.TransferSyntaxUID = syntax
    return ds


def big_endian(ds: Dataset) -> Dataset:
    """The dataset with its words in the other order."""
    keyword = next(k for k in ("PixelData", "FloatPixelData", "DoubleFloatPixelData") if k in ds)
    width = max(ds.BitsAllocated // 8, 1)
    value = ds[keyword].value
    words = np.frombuffer(value[: len(value) // width * width], f"u{width}").byteswap().tobytes()
    element = ds[keyword]
    vr = "OB" if width == 1 else element.VR
    ds[keyword] = DataElement(element.tag, vr, words + value[len(words) :])
    return with_syntax(ds, ExplicitVRBigEndian)


def rle(ds: Dataset) -> Dataset:
    """The dataset with its pixels as RLE: a segment a byte of a sample, the highest first."""
    size, samples = ds.BitsAllocated // 8, ds.SamplesPerPixel
    count = ds.Rows * ds.Columns
    array = np.frombuffer(ds.PixelData, np.uint8, count * samples * size)
    if samples > 1 and ds.PlanarConfiguration == 0:
        array = array.reshape(count, samples, size).transpose(1, 0, 2)
    planes = array.reshape(samples, count, size)[:, :, ::-1].transpose(0, 2, 1)
    segments = [packbits_encode(plane.tobytes()) for plane in planes.reshape(-1, count)]
    segments = [segment + b"\0" * (len(segment) % 2) for segment in segments]
    starts = np.cumsum([64, *map(len, segments)])[:-1]
    header = struct.pack("<16I", len(segments), *starts, *[0] * (15 - len(segments)))
    return encapsulated(ds, RLELossless, [header + b"".join(segments)])


def unused(ds: Dataset, stored: int, high: int | None = None) -> Dataset:
    """Fewer bits stored: what is in the others, overlays once, is no part of a pixel."""
    ds.BitsStored, ds.HighBit = stored, stored - 1 if high is None else high
    return ds


ENCODINGS: dict[str, Callable[[], Dataset]] = {
    **{dtype: (lambda d=dtype: gray(d)) for dtype in ("uint8", "int8", "uint16", "int16")},
    **{dtype: (lambda d=dtype: gray(d)) for dtype in ("uint32", "int32", "uint64", "int64")},
    **{dtype: (lambda d=dtype: floats(d)) for dtype in ("float32", "float64")},
    "even length": lambda: gray("uint8", (4, 7)),
    "implicit VR": lambda: with_syntax(gray("int16"), ImplicitVRLittleEndian),
    "deflated": lambda: with_syntax(unused(gray("int16"), 11), DeflatedExplicitVRLittleEndian),
    "uint8 of 5 bits": lambda: unused(gray("uint8"), 5),
    "int8 of 7 bits": lambda: unused(gray("int8"), 7),
    "uint16 of 12 bits": lambda: unused(gray("uint16"), 12),
    "int16 of 12 bits": lambda: unused(gray("int16"), 12),
    "int16 of 1 bit": lambda: unused(gray("int16"), 1),
    "int16 of 12 bits, no garbage": lambda: unused(
        slice_of(pixels=pixels_of(2, (5, 7), "int16") % 1024 - 512), 12
    ),
    "uint16 of 12 bits, high bit 15": lambda: unused(gray("uint16"), 12, 15),
    "int16 of 10 bits, high bit 12": lambda: unused(gray("int16"), 10, 12),
    "uint32 of 20 bits": lambda: unused(gray("uint32"), 20),
    "int32 of 31 bits": lambda: unused(gray("int32"), 31),
    "MONOCHROME1": lambda: gray("int16", PhotometricInterpretation="MONOCHROME1"),
    "1 bit": lambda: bits((5, 7)),
    "1 bit, whole bytes": lambda: bits((8, 16)),
    "RGB": lambda: colour("uint8", 0),
    "RGB in planes": lambda: colour("uint8", 1),
    "RGB of 16 bits in planes": lambda: colour("uint16", 1),
    "RGB of 7 bits in planes": lambda: unused(colour("uint8", 1), 7),
    "RGB of 32 bits": lambda: colour("uint32", 0),
    "YBR_FULL": lambda: colour("uint8", 0, "YBR_FULL"),
    "YBR_FULL in planes": lambda: colour("uint8", 1, "YBR_FULL"),
    "YBR_FULL_422": halved_colours,
    "big-endian uint8": lambda: big_endian(gray("uint8")),
    "big-endian uint16": lambda: big_endian(gray("uint16")),
    "big-endian int16 of 12 bits": lambda: big_endian(unused(gray("int16"), 12)),
    "big-endian int32": lambda: big_endian(gray("int32")),
    "big-endian float32": lambda: big_endian(floats("float32")),
    "big-endian float64": lambda: big_endian(floats("float64")),
    "big-endian RGB of 16 bits in planes": lambda: big_endian(colour("uint16", 1)),
    "RLE uint8": lambda: rle(gray("uint8")),
    "RLE int8 of 6 bits": lambda: rle(unused(gray("int8"), 6)),
    "RLE uint16": lambda: rle(gray("uint16")),
    "RLE int16": lambda: rle(gray("int16")),
    "RLE int16 of 12 bits": lambda: rle(unused(gray("int16"), 12)),
    "RLE uint32": lambda: rle(gray("uint32")),
    "RLE int64": lambda: rle(gray("int64")),
    "RLE with runs": lambda: rle(slice_of(pixels=np.repeat(np.int16([[7], [-9], [500]]), 300, 1))),
    "RLE RGB": lambda: rle(colour("uint8", 0)),
    "RLE RGB from planes": lambda: rle(colour("uint8", 1)),
    "RLE RGB of 16 bits": lambda: rle(colour("uint16", 0)),
    "RLE RGB of 32 bits": lambda: rle(colour("uint32", 1)),
    "RLE YBR_FULL": lambda: rle(colour("uint8", 0, "YBR_FULL")),
}


@pytest.fixture(scope="module")
def case(tmp_path_factory) -> Case:
    return Case(tmp_path_factory.mktemp("encodings") / "x.iac", ENCODINGS)


@pytest.fixture(scope="module", params=DOORS)
def arrays(request, case: Case) -> list[np.ndarray]:
    """What a door gives of all rows."""
    return DOORS[request.param](case)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_pixels(case: Case, arrays: list[np.ndarray], encoding: str):
    found, expected = arrays[case.row_of[encoding]], case.slices[encoding].pixel_array
    assert found.dtype == expected.dtype.newbyteorder("=")
    assert np.array_equal(found, expected)


def test_modality_values(case: Case):
    """As pydicom computes them; the reader leaves colours as they are."""
    found = column(case.con, case.path, "iac_hu(record)")
    for name, ds in case.slices.items():
        array = ds.pixel_array
        expected = apply_modality_lut(array, ds)
        value = found[case.row_of[name]]
        values = np.array(value["data"], np.float32).reshape(expected.shape)
        assert np.array_equal(values, expected.astype(np.float32)), name
        read = case.reader.read_pixel_array(case.row_of[name], modality_lut=True)
        assert np.array_equal(read, expected if ds.SamplesPerPixel == 1 else array), name


def test_files_come_back(case: Case):
    for name, file in case.files.items():
        assert case.reader.read_dicom(case.row_of[name]) == file, name
