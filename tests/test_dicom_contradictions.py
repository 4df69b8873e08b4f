"""Index columns that contradict what is stored: the same error through every door, of that row."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
from dicom_packs import PEER, column, rewritten
from dicoms import build, encapsulated, pixels_of, slice_of
from iac_query.adapters import dicom
from imagecodecs import jpeg2k_encode
from packs import replaced
from test_dicom_encodings import big_endian, bits, colour, rle

import iac_query as iac

SHAPE = (12, 16)
JPEG2000, JPEGLS = "1.2.840.10008.1.2.4.90", "1.2.840.10008.1.2.4.80"


def compressed(codec: str, syntax: str):
    def make(number: int):
        array = pixels_of(number, SHAPE, "uint16")
        frame = iac.Codec.create(codec).encode(array)
        return encapsulated(slice_of(number, pixels=array), syntax, [frame])

    return make


def numbered(make):
    def build_one(number: int):
        ds = make()
        ds.SOPInstanceUID = ds.file_meta.MediaStorageSOPInstanceUID = f"1.2.3.{number}"
        return ds

    return build_one


SOURCES = {
    "JPEG XL": (slice_of, "jxl"),
    "pixels": (slice_of, "original"),
    "JPEG-LS": (compressed("jpegls", JPEGLS), "original"),
    "JPEG 2000": (compressed("jpeg2000", JPEG2000), "original"),
    "big-endian": (lambda number: big_endian(slice_of(number)), "original"),
    "RLE": (lambda number: rle(slice_of(number)), "original"),
    "RLE RGB": (numbered(lambda: rle(colour("uint8", 0))), "original"),
    "planes": (numbered(lambda: colour("uint8", 1)), "original"),
    "bits": (numbered(lambda: bits(SHAPE)), "original"),
}
EVERYWHERE: list[tuple[str, Any]] = [
    ("rows", 11),
    ("rows", 0),
    ("rows", (1 << 32) - 1),
    ("columns", 17),
    ("columns", 1 << 31),
    ("samples_per_pixel", 2),
    ("samples_per_pixel", 0),
    ("samples_per_pixel", 200),
    ("pixel_dtype", "float32"),
    ("pixel_dtype", "int64"),
    ("pixel_dtype", "object"),
    ("pixel_dtype", ""),
    ("has_pixel_data", False),
]
# Where frames are stored as they were, the rest of the row says what they are.
FRAMES = [
    ("bits_allocated", 32),
    ("bits_allocated", 12),
    ("bits_allocated", 0),
    ("bits_stored", 0),
    ("bits_stored", 33),
    ("pixel_representation", 7),
    ("photometric_interpretation", None),
]
ALL = ("JPEG XL", "pixels", "JPEG-LS", "RLE")
SOME = [("rows", 11), ("columns", 1 << 31), ("samples_per_pixel", 2), ("pixel_dtype", "int64")]
CASES = [
    *((source, *change) for source in ALL for change in EVERYWHERE),
    *((source, *change) for source in SOURCES if source not in ALL for change in SOME),
    *((source, *change) for source in ("big-endian", "RLE", "planes") for change in FRAMES),
    ("bits", "bits_allocated", 8),
    ("bits", "bits_stored", 2),
    ("JPEG XL", "pixel_representation", 0),
    ("JPEG XL", "pixel_dtype", "uint16"),
    ("JPEG XL", "bits_allocated", None),
    ("pixels", "pixel_dtype", "float16"),
    ("big-endian", "pixel_representation", 0),
    ("big-endian", "photometric_interpretation", "YBR_FULL"),
    ("planes", "planar_configuration", 2),
    ("planes", "photometric_interpretation", "YBR_FULL_422"),
    ("RLE", "bits_allocated", 1),
    ("RLE", "source_transfer_syntax", "1.2.840.10008.1.2.1"),
    ("big-endian", "source_transfer_syntax", "1.2.840.10008.1.2.5"),
    ("JPEG-LS", "bits_stored", 17),
]


@pytest.fixture(scope="module")
def packs(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("contradictions")
    paths = {}
    for name, (make, storage) in SOURCES.items():
        paths[name] = folder / f"{name}.iac"
        build(paths[name], make(0), make(1), strict=True, storage=storage)
    return paths


def doors(con, pack: Path) -> dict[str, Any]:
    """Ways to the image of row 1."""
    references = con.sql(f"SELECT record FROM '{pack}' WHERE record.row = 1").to_arrow_table()
    frame = iac.scan_iac(pack).select("record", image=pl.col("record").iac.image())

    def record() -> None:
        with iac.VariableRecordPack(pack) as reader:
            reader.read(1)

    return {
        "reader": lambda: dicom.DicomPatientReader(pack).read_pixel_array(1),
        "tensor": lambda: dicom.DicomPatientReader(pack).read_tensor([1, 1]),
        "iac_image": lambda: column(con, pack, "iac_image(record)"),
        "iac_hu": lambda: column(con, pack, "iac_hu(record)"),
        "decode": lambda: iac.decode(references, as_="image"),
        "scan_iac": frame.collect,
        "scan_arrow": lambda: iac.scan_arrow(pack, as_="image").read_all(),
        "records": record,
    }


@pytest.mark.parametrize(("source", "name", "value"), CASES)
def test_every_door_gives_the_same_error(con, packs, tmp_path, source: str, name: str, value):
    pack = rewritten(packs[source], tmp_path / "x.iac", index=replaced(name, 1, value))
    reasons = set()
    for door, read in doors(con, pack).items():
        with pytest.raises((iac.PackError, duckdb.Error, pl.exceptions.ComputeError)) as raised:
            read()
        found = re.search(r"x\.iac: row 1: ([^\n]*)", str(raised.value))
        assert found, door
        reasons.add(found[1])
    # The reader says first that there are no pixels, SQL of such a row NULL.
    assert len(reasons) == 1 or name == "has_pixel_data"


def test_without_columns_that_say_what_pixels_are(con, tmp_path):
    for name in ("rows", "columns", "pixel_dtype"):
        pack = rewritten(PEER, tmp_path / "x.iac", index=lambda t, n=name: t.drop_columns([n]))
        with pytest.raises(duckdb.Error, match=rf"x\.iac: row 0: {name}"):
            column(con, pack, "iac_image(record)")
        with pytest.raises(iac.PackError, match=name):
            dicom.DicomPatientReader(pack).read_pixel_array(0)


@pytest.mark.parametrize("signed", [False, True])
def test_a_stream_of_other_signs_than_its_row(con, tmp_path, signed: bool):
    """JPEG 2000 says whether numbers have signs; the row has the last word, as in pydicom."""
    unsigned = (np.arange(192) * 20 % 4096).reshape(SHAPE).astype(np.uint16)
    with_signs = (unsigned << 4).astype(np.int16) >> 4  # the same 12 bits
    stored, expected = (with_signs, unsigned) if signed else (unsigned, with_signs)
    frame = jpeg2k_encode(stored, level=0, codecformat="j2k", bitspersample=12)
    ds = slice_of(pixels=expected, BitsStored=12, HighBit=11)
    build(tmp_path / "x.iac", encapsulated(ds, JPEG2000, [frame]), strict=True, storage="original")
    reader = dicom.DicomPatientReader(tmp_path / "x.iac")
    assert np.array_equal(reader.read_pixel_array(0), expected)
    (image,) = column(con, tmp_path / "x.iac", "iac_image(record)")
    assert np.array_equal(np.frombuffer(image["data"], image["dtype"]).reshape(SHAPE), expected)


@pytest.mark.parametrize("name", ["has_pixel_data", "rows", "pixel_dtype"])
def test_a_row_that_says_nothing_leaves_the_others_alone(tmp_path, packs, name):
    pack = rewritten(packs["JPEG XL"], tmp_path / "x.iac", index=replaced(name, 1, None))
    expected = dicom.DicomPatientReader(packs["JPEG XL"]).read_pixel_array(0)
    reader = dicom.DicomPatientReader(pack)
    np.testing.assert_array_equal(reader.read_pixel_array(0), expected)
    report: list[iac.RecordFailure] = []
    first, second = reader.read_pixel_arrays([0, 1], on_error="null", report=report)
    np.testing.assert_array_equal(first, expected)
    assert second is None and [failure.row for failure in report] == [1]
