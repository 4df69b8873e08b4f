"""Pixels of packs with several codecs as images, outside the DICOM reader: whatever kind of record
holds them, they are what the reader gives, and rows that have none fail alone."""

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from dicom_packs import column, file_of, rewritten
from dicoms import build, encapsulated, pixels_of, slice_of
from iac_query.adapters import dicom
from packs import replaced, write_pack
from pydicom.dataset import Dataset
from pydicom.pixels import apply_modality_lut
from test_dicom_bundled import FILES as BUNDLED_FILES
from test_dicom_bundled import REASONS, uid_of

import iac_query as iac

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:pydicom")
#: Ordinary, of 32 bits, without pixels, and RLE.
FILES = ("CT_small.dcm", "rtdose.dcm", "test-SR.dcm", "MR_small_RLE.dcm")


def array_of(value: dict) -> np.ndarray:
    array = np.frombuffer(value["data"], value["dtype"])
    shape = (value["height"], value["width"], value["channels"])
    return array.reshape(shape[:2] if shape[2] == 1 else shape)


def arrays_of(pack: Path) -> list[np.ndarray | None]:
    """What the reader gives of each row."""
    reader = dicom.DicomPatientReader(pack)
    return reader.read_pixel_arrays(range(len(reader)), on_error="null")


def assert_same(images: list[dict | None], expected: list[np.ndarray | None]) -> None:
    assert [image is None for image in images] == [array is None for array in expected]
    for image, array in zip(images, expected, strict=True):
        if array is not None:
            assert image["dtype"] == array.dtype.name
            assert np.array_equal(array_of(image), array, equal_nan=array.dtype.kind == "f")


@pytest.fixture(params=["jxl", "original"])
def pack(request, tmp_path: Path) -> Path:
    sources = [*map(file_of, FILES), *(floats_of(kind) for kind in ("float32", "float64"))]
    build(tmp_path / "x.iac", *sources, patients="many", storage=request.param)
    return tmp_path / "x.iac"


def floats_of(kind: str) -> Dataset:
    """A slice of floats (PS3.3 C.7.6.24, C.7.6.25)."""
    values = np.array([[0.1, -1e30, np.inf], [np.nan, 5, 1e-30]], kind)
    ds = slice_of(pixels=values.view(np.uint8)[:, :3], SOPInstanceUID=f"1.2.3.{values.itemsize}")
    del ds.PixelData, ds.BitsStored, ds.HighBit, ds.PixelRepresentation
    ds.BitsAllocated = 8 * values.itemsize
    keyword = "FloatPixelData" if kind == "float32" else "DoubleFloatPixelData"
    setattr(ds, keyword, values.tobytes())
    return ds


def test_rows_of_a_pack_with_several_codecs_are_images(con, pack: Path):
    expected = arrays_of(pack)
    types = {array.dtype.name for array in expected if array is not None}
    assert types == {"int16", "uint32", "float32", "float64"}
    table = con.sql(f"SELECT record FROM '{pack}' ORDER BY record.row").to_arrow_table()
    assert_same(iac.decode(table, as_="image")["payload"].to_pylist(), expected)
    assert_same(column(con, pack, "iac_image(record)"), expected)
    with iac.VariableRecordPack(pack) as plain:
        rows = range(len(expected))
        for ours, array in zip(plain.read_many_contiguous(rows), expected, strict=True):
            assert array is None or ours.tobytes() == array.tobytes()


def converted_by_pydicom() -> Dataset:
    """Numbers of more bits than are stored, whose signs are those of the stream's bits."""
    array = pixels_of(0, (6, 8), "int16") * 8
    ds = slice_of(pixels=array, BitsStored=12, HighBit=11)
    frame = iac.Codec.create("jpegls").encode(array.view(np.uint16))
    return encapsulated(ds, "1.2.840.10008.1.2.4.80", [frame])


def test_a_row_that_is_no_image_fails_alone(con, tmp_path: Path):
    files = [file_of("CT_small.dcm"), converted_by_pydicom()]
    build(tmp_path / "x.iac", *files, patients="many", storage="original")
    pack = tmp_path / "x.iac"
    assert all(array is not None for array in arrays_of(pack))
    bad = dicom.DicomPatientReader(pack).instance_table["codec_id"].to_pylist().index(3)
    reason = rf"x\.iac: row {bad}: codec_id 3 \(none\) is a frame as it stood .*DicomPatientReader"
    table = con.sql(f"SELECT record FROM '{pack}' ORDER BY record.row").to_arrow_table()
    for kind in ("image", "tensor"):
        with pytest.raises(iac.CodecError, match=reason):
            iac.decode(table, as_=kind)
    report: list = []
    images = iac.decode(table, as_="image", on_error="null", report=report)["payload"]
    assert [failure.row for failure in report] == [bad]
    assert [image is None for image in images.to_pylist()] == [r == bad for r in range(2)]
    with pytest.raises(duckdb.Error, match=reason):
        column(con, pack, "iac_image(record)")
    assert column(con, pack, "TRY(iac_hu(record)) IS NULL")[bad]
    assert len(column(con, pack, "iac_payload(record)")[bad]) > 0
    with iac.VariableRecordPack(pack) as plain, pytest.raises(iac.CodecError, match=reason):
        plain.read(bad)
    payloads = iac.scan_arrow(pack, as_="image", on_error="null").read_all()
    assert payloads["payload"].null_count == 1


def test_every_bundled_file(con, tmp_path: Path):
    chosen = {uid_of(path): path for path in BUNDLED_FILES if path.stem not in REASONS}
    for storage in ("jxl", "original"):
        path = tmp_path / f"{storage}.iac"
        build(path, *chosen.values(), patients="many", storage=storage, effort=1)
        images = column(con, path, "TRY(iac_image(record))")
        expected = arrays_of(path)
        assert_same(images, expected)
        found = {array.dtype.name for array in expected if array is not None}
        assert found >= {"uint8", "int16", "uint16", "uint32"}


def test_modality_values_of_wide_pixels(con, tmp_path: Path):
    kinds = ("int32", "uint32")
    slices = []
    for number, kind in enumerate(kinds):
        limits = np.iinfo(kind)
        pixels = np.array([[limits.min, limits.max, 5], [0, 1, 1 << 20]], kind)
        slices.append(slice_of(number, pixels=pixels, RescaleSlope="0.1", RescaleIntercept="7"))
    build(tmp_path / "x.iac", *slices)
    found = column(con, tmp_path / "x.iac", "iac_hu(record).data")
    for ds, values in zip(slices, found, strict=True):
        expected = apply_modality_lut(ds.pixel_array, ds).astype(np.float32).reshape(-1)
        assert np.array_equal(np.array(values, np.float32), expected)


def test_a_tensor_of_wide_pixels(con, tmp_path: Path):
    pixels = [np.full((3, 4), 1 << (20 + n), "uint32") for n in range(3)]
    build(tmp_path / "x.iac", *(slice_of(n, pixels=array) for n, array in enumerate(pixels)))
    table = con.sql(f"SELECT record FROM '{tmp_path}/x.iac' ORDER BY record.row").to_arrow_table()
    tensor = iac.decode(table, as_="tensor")["payload"].combine_chunks()
    assert np.array_equal(tensor.to_numpy_ndarray(), pixels)


@pytest.mark.parametrize(
    "name, value, reason",
    [
        ("rows", 0, "rows is 0"),
        ("rows", 11, r"zstd: record has \d+ bytes, the index table says 11x\d+ uint32, which has"),
        ("columns", (1 << 32) - 1, "zstd: record has"),
        ("samples_per_pixel", 200, "samples_per_pixel is 200"),
        ("pixel_dtype", "float64", "bits_allocated is 32, pixel_dtype says float64"),
        ("bits_allocated", None, "bits_allocated is missing"),
        ("pixel_representation", 1, "pixel_representation is 1, pixel_dtype says uint32"),
        ("pixel_dtype", "object", "pixel_dtype says no type of pixels"),
        ("pixel_dtype", None, "pixel_dtype says no type of pixels"),
    ],
)
def test_sizes_that_contradict_each_other(con, tmp_path: Path, name: str, value, reason: str):
    build(tmp_path / "good.iac", file_of("rtdose.dcm"))
    pack = rewritten(tmp_path / "good.iac", tmp_path / "x.iac", index=replaced(name, 1, value))
    with pytest.raises(duckdb.Error, match=rf"x\.iac: row 1: {reason}"):
        column(con, pack, "iac_image(record)")
    bad = column(con, pack, "TRY(iac_image(record)) IS NULL")
    assert bad == [row == 1 for row in range(len(bad))]


def test_frames_of_fewer_bits_than_their_pixels(con, tmp_path: Path):
    """Bits Allocated may be more than a codec's samples have."""
    narrow = {"uint8": [[0, 255, 7]], "uint16": [[0, 4095, 2048]]}
    codec = iac.Codec.create("jpegls")
    payloads = [codec.encode(np.array(values, kind)) for kind, values in narrow.items()]
    index = pa.table(
        {
            "series_idx": pa.array([0, 0], pa.uint16()),
            "rows": pa.array([1, 1], pa.uint32()),
            "columns": pa.array([3, 3], pa.uint32()),
            "pixel_dtype": ["uint16", "int32"],
            "bits_stored": pa.array([8, 12], pa.uint8()),
        }
    )
    path = tmp_path / "x.iac"
    write_pack(path, payloads, index, payload_type="dicom_patient", codec="jpegls")
    first, second = (array_of(image) for image in column(con, path, "iac_image(record)"))
    assert first.dtype == np.uint16 and first.tolist() == narrow["uint8"]
    assert second.dtype == np.int32 and second.tolist() == [[0, -1, -2048]]
