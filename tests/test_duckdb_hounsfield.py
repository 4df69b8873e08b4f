"""iac_hu in SQL: the pixels of DICOM instances after their modality LUT (PS3.3 C.11.1)."""

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pydicom
import pytest
from dicom_packs import (
    PEER,
    SERIES,
    build,
    column,
    dataset,
    file_of,
    pixel_arrays,
    rewritten,
    with_delta,
    with_template,
)
from packs import replaced
from pydicom.pixels import apply_modality_lut

pytestmark = pytest.mark.asan
EMPTY = {"dataset": {}, "file_meta": {}}
FILES = ("CT_small.dcm", "MR_small.dcm", "SC_rgb_small_odd.dcm")


def test_hounsfield_units_are_pydicoms(con, tmp_path: Path):
    packs = [build(tmp_path / f"{name}.iac", file_of(name)) for name in FILES]
    for pack in [PEER, SERIES, *packs]:
        for row, value in enumerate(column(con, pack, "iac_hu(record)")):
            if value is None:
                continue
            pixels = pixel_arrays(pack)[row]
            expected = apply_modality_lut(pixels, dataset(pack, row)).astype(np.float32)
            found = np.array(value["data"], np.float32).reshape(expected.shape)
            assert np.array_equal(found, expected)
            shape = (value["height"], value["width"], value["channels"])
            assert shape == (*expected.shape, 1)[:3]


@pytest.mark.parametrize("depth", [8, 16])
@pytest.mark.parametrize("vr", ["US", "OW"])
def test_a_table_comes_before_rescaling(con, tmp_path: Path, depth: int, vr: str):
    ds = pydicom.dcmread(file_of("CT_small.dcm"))
    table = pydicom.Dataset()
    low = int(ds.pixel_array.min()) + 20
    entries = (np.arange(500) * 3 % (1 << depth)).astype(np.uint16)
    table.add_new("LUTDescriptor", "SS", [500, low, depth])
    data = entries.tobytes() if vr == "OW" else entries.tolist()
    table.add_new("LUTData", vr, data)
    ds.ModalityLUTSequence = [table]
    ds.save_as(tmp_path / "a.dcm")
    pack = build(tmp_path / "x.iac", tmp_path / "a.dcm")
    ((value, *_),) = [(v,) for v in column(con, pack, "iac_hu(record).data")]
    expected = apply_modality_lut(ds.pixel_array, ds)
    assert np.array_equal(np.array(value, np.float32).reshape(128, 128), expected)


def test_the_type_of_hounsfield_units(con):
    (found,) = con.sql(f"SELECT typeof(iac_hu(record)) FROM '{SERIES}' LIMIT 1").fetchall()[0]
    fields = "height INTEGER, width INTEGER, channels INTEGER, data FLOAT[]"
    assert found.replace('"', "") == f"STRUCT({fields})"


@pytest.mark.parametrize("rows", [1, 2048, 2049])
def test_nulls_between_hounsfield_units(con, rows: int):
    query = f"""
        SELECT i, list_sum(iac_hu(r).data) FROM (
            SELECT i, CASE WHEN i % 3 <> 1 THEN {{'pack': '{PEER}', 'row': i % 6}} END AS r
            FROM range({rows}) t(i)) ORDER BY i"""
    expected = column(con, PEER, "list_sum(iac_hu(record).data)")
    for i, found in con.sql(query).fetchall():
        assert found == (None if i % 3 == 1 else expected[i % 6])


def test_frames_have_the_header_of_their_instance(con, tmp_path: Path):
    """Of an instance's frames, which are rows behind each other, the first has the delta."""
    transformations = {"vr": "SQ", "Value": [rescaled(slope) for slope in (1, 10, 100)]}

    def frames(table: pa.Table) -> pa.Table:
        table = with_delta(0, {**EMPTY, "dataset": {"52009230": transformations}})(table)
        for row in (1, 2):
            table = replaced("dicom_delta", row, None)(table)
        return table.append_column("frame_index", pa.array([0, 1, 2, 0, 0, 0], pa.uint32()))

    plain = with_template(PEER, tmp_path / "plain.iac", EMPTY)
    pack = rewritten(plain, tmp_path / "x.iac", index=frames, header={"dicom_schema_version": 2})
    tags = column(con, pack, "iac_tags(record)")
    assert tags[0] == tags[1] == tags[2] != tags[3]
    values = column(con, pack, "iac_hu(record).data")
    for found, pixels, slope in zip(values, pixel_arrays(PEER)[:3], (1, 10, 100), strict=False):
        assert np.array_equal(found, pixels.reshape(-1) * np.float32(slope) + 5)


def rescaled(slope: float) -> dict:
    item = {"00281053": {"vr": "DS", "Value": [slope]}, "00281052": {"vr": "DS", "Value": [5]}}
    return {"00289145": {"vr": "SQ", "Value": [item]}}


@pytest.mark.parametrize(
    "elements, reason",
    [
        ({"00281053": {"vr": "DS", "Value": ["one"]}}, "a value is no number"),
        ({"00281053": {"vr": "DS", "Value": [1, 2]}}, "RescaleSlope is not one number"),
        ({"00281052": {"vr": "DS", "Value": ["NaN"]}}, "RescaleIntercept is not one number"),
        ({"00281052": {"vr": "DS"}}, "RescaleIntercept is not one number"),
        *(
            ({"00283000": {"vr": "SQ", "Value": [item]}}, reason)
            for item, reason in [
                ({}, "ModalityLUTSequence has no LUTDescriptor or LUTData"),
                (
                    {
                        "00283002": {"vr": "US", "Value": [2, 0]},
                        "00283006": {"vr": "US", "Value": [1, 2]},
                    },
                    "LUTDescriptor is not one of three numbers",
                ),
                (
                    {
                        "00283002": {"vr": "US", "Value": [0, 0, 16]},
                        "00283006": {"vr": "US", "Value": [1, 2]},
                    },
                    "LUTData is too short",
                ),
                (
                    {
                        "00283002": {"vr": "US", "Value": [2, 0, 16]},
                        "00283006": {"vr": "OW", "InlineBinary": "AAA="},
                    },
                    "LUTData is too short",
                ),
                (
                    {
                        "00283002": {"vr": "US", "Value": [2, 0, 16]},
                        "00283006": {"vr": "US", "Value": [1, 1e9]},
                    },
                    "LUTData has a value of more than 16 bits",
                ),
                (
                    {
                        "00283002": {"vr": "US", "Value": [2, 0, 16]},
                        "00283006": {"vr": "OW", "InlineBinary": "!!!!"},
                    },
                    "the bytes of a DICOM element are not base64",
                ),
            ]
        ),
    ],
)
def test_a_modality_lut_that_is_none(con, tmp_path: Path, elements: dict, reason: str):
    pack = rewritten(PEER, tmp_path / "x.iac", index=with_delta(1, {**EMPTY, "dataset": elements}))
    with pytest.raises(duckdb.Error) as raised:
        con.sql(f"SELECT iac_hu(record) FROM '{pack}'").fetchall()
    assert f"{pack}: row 1: {reason}" in str(raised.value)
