"""Frames in every transfer syntax that the core has a codec for, and layouts of native ones."""

import imagecodecs
import numpy as np
import pytest
from dicoms import JPEG_XL, encapsulated, file_of, pack_of, pixels_of, read, set_pixels, slice_of
from pydicom.dataelem import DataElement
from pydicom.uid import ExplicitVRBigEndian

from iac_query import Codec

SHAPE = (24, 32)
COLOUR = (24, 32, 3)


def encoded(codec, array, **params):
    return Codec.create(codec, **params).encode(array)


def jpeg2000(array):
    """A signed codestream; ours are unsigned."""
    return imagecodecs.jpeg2k_encode(array, level=0, codecformat="j2k")


LOSSLESS = {
    "JPEG lossless": ("1.2.840.10008.1.2.4.57", lambda a: encoded("jpeg", a, lossless=True)),
    "JPEG lossless SV1": ("1.2.840.10008.1.2.4.70", lambda a: encoded("jpeg", a, lossless=True)),
    "JPEG-LS": ("1.2.840.10008.1.2.4.80", lambda a: encoded("jpegls", a)),
    "JPEG 2000": ("1.2.840.10008.1.2.4.90", lambda a: encoded("jpeg2000", a)),
    "HTJ2K": ("1.2.840.10008.1.2.4.201", lambda a: encoded("jpeg2000", a, profile="ht")),
    "HTJ2K RPCL": ("1.2.840.10008.1.2.4.202", lambda a: encoded("jpeg2000", a, profile="ht")),
    "JPEG XL": (JPEG_XL, lambda a: encoded("jxl", a, lossless=True, usecontainer=True)),
    "JPEG XL lossy": ("1.2.840.10008.1.2.4.112", lambda a: encoded("jxl", a, lossless=True)),
}


@pytest.mark.parametrize("storage", ["jxl", "original"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16"])
@pytest.mark.parametrize("name", LOSSLESS)
def test_lossless(tmp_path, name, dtype, storage):
    array = pixels_of(5, SHAPE, dtype)
    ds = slice_of(pixels=array)
    syntax, encode = LOSSLESS[name]
    file = file_of(encapsulated(ds, syntax, [encode(array.view(f"u{array.itemsize}"))]))
    pack = pack_of(tmp_path / "x.iac", file, storage=storage)
    assert np.array_equal(pack.read_pixel_array(0), array)
    assert pack.read_pixel_array(0).dtype == array.dtype
    assert np.array_equal(pack.read_tensor([0, 0])[1], array)
    if storage == "original":
        assert pack.read_dicom(0) == file
        if dtype != "int16":  # signs are restored frame by frame where bits alone do not tell
            assert pack.header["record_codecs"][0]["name"] not in ("none", "zstd")


@pytest.mark.parametrize("storage", ["jxl", "original"])
@pytest.mark.parametrize("name", ["JPEG lossless", "JPEG-LS", "JPEG 2000", "HTJ2K", "JPEG XL"])
def test_lossless_colour_in_two_frames(tmp_path, name, storage):
    arrays = np.stack([pixels_of(i, COLOUR, "uint8") for i in range(2)])
    ds = slice_of(pixels=arrays[0], NumberOfFrames=2)
    syntax, encode = LOSSLESS[name]
    file = file_of(encapsulated(ds, syntax, [encode(array) for array in arrays]))
    pack = pack_of(tmp_path / "x.iac", file, storage=storage)
    assert np.array_equal(pack.read_tensor([1, 0]), arrays[::-1])
    assert pack.instance_table["frame_index"].to_pylist() == [0, 1]
    if storage == "original":
        assert pack.read_dicom(1) == file


@pytest.mark.parametrize("storage", ["jxl", "original"])
@pytest.mark.parametrize("bits", [10, 12, 13])
def test_signs_of_fewer_bits_than_are_allocated(tmp_path, bits, storage):
    """JPEG-LS knows no signs, and JPEG 2000 may have been told the wrong one."""
    low = -(1 << bits - 1)
    array = (low + np.arange(24 * 32) % (1 << bits)).reshape(SHAPE).astype(np.int16)
    masked = array.view(np.uint16) & np.uint16((1 << bits) - 1)
    described = {"BitsStored": bits, "HighBit": bits - 1}
    frames = {
        "1.2.840.10008.1.2.4.80": encoded("jpegls", masked, bits_per_sample=bits),
        "1.2.840.10008.1.2.4.90": jpeg2000(array),
        "1.2.840.10008.1.2.4.70": encoded("jpeg", masked, lossless=True),
    }
    files = [
        encapsulated(slice_of(i, pixels=array, **described), syntax, [frame])
        for i, (syntax, frame) in enumerate(frames.items())
    ]
    pack = pack_of(tmp_path / "x.iac", *files, storage=storage)
    for found in pack.read_pixel_arrays(range(3)):
        assert np.array_equal(found, array)
    assert np.array_equal(pack.read_tensor([2, 1, 0]), np.stack([array] * 3))


@pytest.mark.parametrize("storage", ["jxl", "original"])
def test_lossy_jpeg_of_12_bits(tmp_path, storage):
    array = np.linspace(0, 4095, 24 * 32).reshape(SHAPE).astype(np.uint16)
    frame = imagecodecs.jpeg_encode(array, level=95, bitspersample=12)
    ds = slice_of(pixels=array, BitsStored=12, HighBit=11)
    pack = pack_of(
        tmp_path / "x.iac", encapsulated(ds, "1.2.840.10008.1.2.4.51", [frame]), storage=storage
    )
    expected = imagecodecs.jpeg_decode(frame)
    assert abs(pack.read_pixel_array(0).astype(int) - expected).max() <= 1


@pytest.mark.parametrize("storage", ["jxl", "original"])
@pytest.mark.parametrize("planar", [0, 1])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32"])
@pytest.mark.parametrize("big_endian", [False, True])
def test_native_colour(tmp_path, dtype, planar, big_endian, storage):
    array = pixels_of(3, (5, 7, 3), dtype)
    ds = slice_of(pixels=array, PlanarConfiguration=planar)
    order = ">" if big_endian else "<"
    stored = array.transpose(2, 0, 1) if planar else array
    value = np.ascontiguousarray(stored, array.dtype.newbyteorder(order)).tobytes()
    ds["PixelData"] = DataElement(0x7FE00010, "OB" if dtype == "uint8" else "OW", value + b"\0")
    if len(value) % 2 == 0:
        ds["PixelData"].value = value
    if big_endian:
        ds.file_meta.TransferSyntaxUID = ExplicitVRBigEndian
    file = file_of(ds)
    pack = pack_of(tmp_path / "x.iac", file, storage=storage)
    assert np.array_equal(pack.read_pixel_array(0), array)
    if storage == "original":
        assert pack.read_dicom(0) == file
    else:
        back = read(pack.read_dicom(0))
        assert back.PlanarConfiguration == 0
        assert np.array_equal(pack_of(tmp_path / "y.iac", file).read_pixel_array(0), array)


@pytest.mark.parametrize("storage", ["jxl", "original"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats(tmp_path, dtype, storage):
    array = np.linspace(-2e3, 3e5, 2 * 24 * 32).reshape(2, *SHAPE).astype(dtype)
    array[0, 0, :3] = np.nan, np.inf, -np.inf
    ds = slice_of(pixels=np.zeros(SHAPE, np.uint8), NumberOfFrames=2)
    del ds.PixelData, ds.PixelRepresentation, ds.BitsStored, ds.HighBit
    ds.BitsAllocated = array.itemsize * 8
    setattr(ds, "FloatPixelData" if dtype == "float32" else "DoubleFloatPixelData", array.tobytes())
    pack = pack_of(tmp_path / "x.iac", ds, storage=storage)
    assert pack.header["dicom_schema_version"] == 2
    assert np.array_equal(pack.read_tensor([0, 1]), array, equal_nan=True)
    again = pack_of(tmp_path / "y.iac", pack.read_dicom(1))
    assert np.array_equal(again.read_tensor([0, 1]), array, equal_nan=True)


@pytest.mark.parametrize("storage", ["jxl", "original"])
def test_bits_shared_by_frames(tmp_path, storage):
    bits = (np.arange(3 * 5 * 7) * 5 % 3 == 0).reshape(3, 5, 7).astype(np.uint8)
    ds = slice_of(pixels=bits[0], NumberOfFrames=3, BitsAllocated=1, BitsStored=1, HighBit=0)
    packed = np.packbits(bits.reshape(-1), bitorder="little").tobytes()
    ds.PixelData = packed + b"\0" * (len(packed) % 2)
    pack = pack_of(tmp_path / "x.iac", ds, storage=storage)
    assert np.array_equal(pack.read_tensor(range(3)), bits)
    again = pack_of(tmp_path / "y.iac", pack.read_dicom(2))
    assert np.array_equal(again.read_tensor(range(3)), bits)
    if storage == "original":
        assert pack.read_dicom(1) == file_of(ds)


def test_unused_bits_are_no_part_of_a_pixel(tmp_path):
    array = pixels_of(1, SHAPE, "uint16") & 0x0FFF
    ds = slice_of(pixels=array | 0xA000, BitsStored=12, HighBit=11)
    for storage in ("jxl", "original"):
        pack = pack_of(tmp_path / f"{storage}.iac", ds, storage=storage)
        assert np.array_equal(pack.read_pixel_array(0), array)
    assert pack.read_dicom(0) == file_of(ds)


def test_fragments_and_offset_tables(tmp_path):
    arrays = [pixels_of(i, SHAPE, "uint16") for i in range(3)]
    frames = [encoded("jpegls", array) for array in arrays]
    frames = [frame + b"\0" * (len(frame) % 2) for frame in frames]
    ds = slice_of(pixels=arrays[0], NumberOfFrames=3)
    ds = encapsulated(ds, "1.2.840.10008.1.2.4.80", frames)
    whole = ds.PixelData
    tables = {"basic": whole, "none": b"\xfe\xff\x00\xe0\0\0\0\0" + whole[8 + 12 :]}
    from pydicom.encaps import encapsulate, encapsulate_extended

    tables["fragments"] = encapsulate(frames, fragments_per_frame=2)
    extended, offsets, lengths = encapsulate_extended(frames)
    tables["extended"] = extended
    for number, (name, value) in enumerate(tables.items()):
        ds.PixelData, ds.SOPInstanceUID = value, f"1.2.3.{number}"
        ds["PixelData"].is_undefined_length = True
        if name == "extended":
            ds.ExtendedOffsetTable, ds.ExtendedOffsetTableLengths = offsets, lengths
        for storage in ("jxl", "original"):
            pack = pack_of(tmp_path / "x.iac", ds, storage=storage)
            assert np.array_equal(pack.read_tensor([0, 1, 2]), np.stack(arrays)), name
        assert pack.read_dicom(2) == file_of(ds)


@pytest.mark.parametrize(("count", "shape"), [(1, (1, 1)), (3, (1, 1)), (1, (3, 1)), (2, (2, 1))])
def test_small_frames_are_padded_to_an_even_length(tmp_path, count, shape):
    frames = np.arange(1, 1 + count * shape[0], dtype=np.uint8).reshape(count, *shape)
    ds = slice_of(0, pixels=frames[0])
    ds.NumberOfFrames = count
    ds.PixelData = frames.tobytes() + b"\0" * (frames.size % 2)
    with pack_of(tmp_path / "x.iac", ds, strict=True) as reader:
        np.testing.assert_array_equal(reader.read_tensor(range(count)), frames)


def test_frames_of_pixels_that_do_not_fit(tmp_path):
    from dicoms import build

    array = pixels_of(0, SHAPE, "uint16")
    frame = encoded("jpegls", array)
    wrong = [
        encapsulated(slice_of(pixels=array, Rows=25), "1.2.840.10008.1.2.4.80", [frame]),
        encapsulated(slice_of(pixels=array, NumberOfFrames=2), "1.2.840.10008.1.2.4.80", [frame]),
        encapsulated(slice_of(pixels=array), "1.2.840.10008.1.2.4.80", [frame[:-20]]),
        encapsulated(slice_of(pixels=array), "1.2.840.10008.1.2.4.80", [b"nothing"]),
        encapsulated(slice_of(pixels=array), "1.2.840.10008.1.2.4.100", [frame]),  # MPEG-2
        slice_of(pixels=array, Rows=25),
        slice_of(pixels=array, BitsAllocated=24),
        slice_of(pixels=array, SamplesPerPixel=3),
    ]
    for storage in ("jxl", "original"):
        for number, ds in enumerate(wrong):
            ds.SOPInstanceUID = f"1.2.4.{number}"
        result = build(tmp_path / "x.iac", *wrong, slice_of(), storage=storage)
        assert (result.instances, len(result.failures)) == (1, len(wrong))
        for failure in result.failures:
            assert str(failure.error)


def test_set_pixels_pads():
    ds = slice_of()
    set_pixels(ds, np.zeros((3, 3), np.uint8))
    assert len(ds.PixelData) == 10
