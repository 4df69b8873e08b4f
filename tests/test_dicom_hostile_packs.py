"""Packs whose tables and headers are of other types than the schema says: errors of this package
that name the pack, from every door, and never another door's pixels.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from dicom_packs import ZSTD, header_of, rewritten, with_delta
from dicoms import build, pixels_of, set_pixels, slice_of
from iac_query.adapters import dicom
from packs import replaced

import iac_query as iac

ERRORS = (iac.PackError, duckdb.Error, pl.exceptions.PolarsError)


@pytest.fixture(scope="module", params=["jxl", "original"])
def source(request, tmp_path_factory) -> Path:
    """A pack of a slice, of one in three frames, and of another series."""
    path = tmp_path_factory.mktemp("hostile") / "x.iac"
    frames = slice_of(1)
    set_pixels(frames, np.stack([pixels_of(i, (6, 8)) for i in range(3)]), frames=True)
    build(path, slice_of(0), frames, slice_of(2, series=2), storage=request.param, exact=True)
    return path


def calls(pack: Path, con) -> dict[str, Callable[[], Any]]:
    """Everything that may be asked of row 0."""

    def ask(method: str, *arguments: Any, **options: Any) -> Callable[[], Any]:
        def call():
            with dicom.DicomPatientReader(pack) as reader:
                return getattr(reader, method)(*arguments, **options)

        return call

    def sql(expression: str) -> Callable[[], Any]:
        query = f"SELECT {expression} FROM '{pack}' WHERE record.row = 0"
        return lambda: con.sql(query).fetchall()

    def frame() -> pl.DataFrame:
        rows = iac.scan_iac(pack)
        record = pl.col("record").iac
        return rows.select(record.image(), tags=record.tags()).collect()

    return {
        "pixels": ask("read_pixel_array", 0),
        "values": ask("read_pixel_array", 0, modality_lut=True),
        "window": ask("read_pixel_array", 0, voi_lut=True),
        "tags": ask("read_tags", 0),
        "dataset": ask("read_dataset", 0),
        "file": ask("read_dicom", 0),
        "exact file": ask("read_dicom", 0, exact=True),
        "volume": ask("read_volume", rows=[0]),
        "iac_image": sql("iac_image(record)"),
        "iac_hu": sql("iac_hu(record)"),
        "iac_tags": sql("iac_tags(record)"),
        "iac_tag": sql("iac_tag(record, 'RescaleSlope')"),
        "columns": sql("* EXCLUDE record"),
        "Polars": frame,
        "repair": lambda: iac.repair(pack, pack.with_name("out.iac"), overwrite=True),
    }


def ask_everything(pack: Path, con) -> list[str]:
    """The calls that failed, each with an error of this package that is one line or SQL's own."""
    failed = []
    for name, call in calls(pack, con).items():
        try:
            call()
        except ERRORS as error:
            assert pack.name in str(error), name
            assert "Traceback" not in str(error), name
            failed.append(name)
    return failed


RETYPED = [
    ("index", "frame_index", pa.string()),
    ("index", "number_of_frames", pa.string()),
    ("index", "series_idx", pa.string()),
    ("index", "rows", pa.string()),
    ("index", "has_pixel_data", pa.int64()),
    ("index", "pixel_dtype", pa.binary()),
    ("index", "dicom_delta", pa.null()),
    ("series", "series_idx", pa.string()),
    ("series", "template_offset", pa.string()),
    ("series", "template_crc32", pa.null()),
    ("series", "patient_id", pa.binary()),
]


@pytest.mark.parametrize(("table", "name", "type"), RETYPED, ids=str)
def test_columns_of_another_type(source, tmp_path, con, table, name, type):
    def retyped(rows: pa.Table) -> pa.Table:
        at = rows.schema.get_field_index(name)
        column = pa.nulls(len(rows)) if pa.types.is_null(type) else rows[name].cast(type)
        return rows.set_column(at, name, column)

    pack = rewritten(source, tmp_path / "y.iac", **{table: retyped})
    ask_everything(pack, con)
    assert not iac.validate(pack, max_decode=0).ok


@pytest.mark.parametrize("name", ["series_idx", "template_offset", "template_length", "series_uid"])
def test_series_without_a_column(source, tmp_path, con, name):
    pack = rewritten(source, tmp_path / "y.iac", series=lambda t: t.drop_columns([name]))
    ask_everything(pack, con)
    assert not iac.validate(pack, max_decode=0).ok


#: Not what their VR says, and JSON of that form all the same.
STRANGE = [{"vr": "ZZ", "Value": [1]}, {"vr": "CS", "Value": [7]}]
ELEMENTS = [
    *STRANGE,
    None,
    7,
    [],
    {},
    {"vr": 7},
    {"vr": "SQ", "Value": [None]},
    {"vr": "SQ", "Value": "x"},
    {"vr": "SQ", "Value": [{"00280010": 5}]},
    {"vr": "DS", "Value": "1"},
    {"vr": "DS", "Value": [{"a": 1}]},
    {"vr": "OW", "InlineBinary": "!!!"},
]
TAGS = ["00281053", "00281050", "52009230", "00200032", "00280004"]


@pytest.mark.parametrize("tag", TAGS)
def test_elements_that_are_none(source, tmp_path, con, tag):
    for element in ELEMENTS:
        delta = header_of(source, 0)
        delta["dataset"][tag] = element
        pack = rewritten(source, tmp_path / "y.iac", index=with_delta(0, delta))
        ask_everything(pack, con)
        report = iac.validate(pack, max_decode=0)
        assert {f.row for f in report.findings} == (set() if element in STRANGE else {0})
        with dicom.DicomPatientReader(pack) as reader:  # the others are what they were
            assert reader.read_pixel_array(4, modality_lut=True).shape == (12, 16)
            assert reader.read_volume("1.2.826.0.1.3680043.8.498.1.2").rows == (4,)
        pack.unlink()


ERROR_LISTS = [
    1,
    [None],
    [{}],
    [{"scope": "dataset", "path": [], "raw_base64": "", "stored_vr": "UN"}],
    [{"scope": "x", "path": ["zz"], "raw_base64": "?", "stored_vr": 7}],
    [{"scope": "dataset", "path": [0, 0], "raw_base64": "MQ==", "stored_vr": "SQ"}],
    [{"scope": "dataset", "path": ["00281053"] * 50, "raw_base64": None, "stored_vr": "DS"}],
    [
        {
            "scope": "dataset",
            "path": ["52009230", 10**9, "00289145", 0, "00281053"],
            "raw_base64": "MQ==",
            "stored_vr": "DS",
        }
    ],
]


@pytest.mark.parametrize("errors", ERROR_LISTS, ids=range(len(ERROR_LISTS)))
def test_entries_of_elements_that_are_none(source, tmp_path, con, errors):
    delta = {**header_of(source, 0), "errors": errors}
    ask_everything(rewritten(source, tmp_path / "y.iac", index=with_delta(0, delta)), con)


@pytest.mark.parametrize("value", [b"", b"\xff\xff\xff\xff", b"\0" * 4 + b"II*\0" * 9], ids=len)
def test_original_headers_that_are_none(source, tmp_path, con, value):
    stored = ZSTD.encode(value)

    def change(table: pa.Table) -> pa.Table:
        table = replaced("dicom_header", 0, stored)(table)
        return replaced("dicom_header_crc32", 0, zlib.crc32(stored))(table)

    pack = rewritten(source, tmp_path / "y.iac", index=change)
    assert "exact file" in ask_everything(pack, con) or value.endswith(b"II*\0")


def test_what_is_asked_is_there(source, con):
    assert ask_everything(source, con) == []
    assert json.loads(con.sql(f"SELECT iac_tags(record) FROM '{source}'").fetchall()[0][0])
