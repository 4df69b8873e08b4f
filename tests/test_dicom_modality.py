"""The modality LUT (PS3.3 C.11.1) of broken and unusual headers: SQL and the reader give the same
values, or neither gives any."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from dicom_packs import PEER, column, rewritten, with_delta, with_template
from iac_query.adapters import dicom
from packs import replaced

import iac_query as iac

ROW = 1
SLOPE, INTERCEPT, TABLE, TRANSFORMATION = "00281053", "00281052", "00283000", "00289145"
SHARED, OWN = "52009229", "52009230"


def ds(*values: Any) -> dict:
    return {"vr": "DS", "Value": list(values)}


def sequence(*items: dict) -> dict:
    return {"vr": "SQ", "Value": list(items)}


def broken(*path: str | int, text: str = "2,5", vr: str = "DS", scope: str = "dataset") -> dict:
    """An entry of a header's errors."""
    raw = {"raw_base64": "Miw1IA==", "code": "invalid_numeric_value", "exception": "ValueError"}
    kept = {"stored_vr": vr, **({"value": text} if vr == "DS" else {})}
    return {"scope": scope, "path": list(path), "source_vr": "DS", **raw, **kept}


def table(*values: int, first: int = 0, bits: int = 16, **elements: dict) -> dict:
    descriptor = {"vr": "US", "Value": [len(values), first, bits]}
    item = {"00283002": descriptor, "00283006": {"vr": "US", "Value": list(values)}}
    return sequence({**item, **elements})


RESCALED = {SLOPE: ds(2), INTERCEPT: ds(-10)}
LUT = {TABLE: table(7, 8, 9, first=1)}


def group(slope: Any, intercept: Any = 5) -> dict:
    return {TRANSFORMATION: sequence({SLOPE: ds(slope), INTERCEPT: ds(intercept)})}


#: Elements and, behind them, errors.
HEADERS: dict[str, tuple[dict, list[dict]]] = {
    "nothing": ({}, []),
    "rescale": (RESCALED, []),
    "no slope": ({INTERCEPT: ds(5)}, []),
    "no intercept": ({SLOPE: ds(5)}, []),
    "text of a number": ({SLOPE: ds(" +2.50 "), INTERCEPT: ds("1e1")}, []),
    "text of none": ({SLOPE: ds("2,5"), INTERCEPT: ds(1)}, []),
    "two signs": ({SLOPE: ds("+-2"), INTERCEPT: ds(1)}, []),
    "two slopes": ({SLOPE: ds(1, 2), INTERCEPT: ds(1)}, []),
    "empty slope": ({SLOPE: {"vr": "DS"}, INTERCEPT: ds(1)}, []),
    "null slope": ({SLOPE: ds(None), INTERCEPT: ds(1)}, []),
    "NaN": ({SLOPE: ds("NaN"), INTERCEPT: ds(1)}, []),
    "infinite": ({SLOPE: ds(1), INTERCEPT: ds("-Infinity")}, []),
    "bytes": ({SLOPE: {"vr": "UN", "InlineBinary": "MiAg"}, INTERCEPT: ds(1)}, []),
    "slope of FD": ({SLOPE: {"vr": "FD", "Value": [0.5]}, INTERCEPT: ds(1)}, []),
    "broken slope": ({INTERCEPT: ds(1)}, [broken(SLOPE)]),
    "broken slope alone": ({}, [broken(SLOPE)]),
    "broken slope of bytes": ({INTERCEPT: ds(1)}, [broken(SLOPE, vr="UN")]),
    "broken slope beside a table": (LUT, [broken(SLOPE)]),
    "broken elsewhere": (RESCALED, [broken("00181151")]),
    "broken in file meta": (RESCALED, [broken("00020010", scope="file_meta")]),
    "broken in a table": (LUT, [broken(TABLE, 0, "00283003")]),
    "table": (LUT, []),
    "table before rescale": ({**LUT, **RESCALED}, []),
    "empty table sequence": ({TABLE: {"vr": "SQ"}, **RESCALED}, []),
    "table of other kind": ({TABLE: {"vr": "UN", "InlineBinary": "AAAA"}, **RESCALED}, []),
    "table of nothing": ({TABLE: sequence({})}, []),
    "table of 8 bits": ({TABLE: table(1, 2, 255, bits=8)}, []),
    "table of too many bits": ({TABLE: table(1, 2, 256, bits=8)}, []),
    "table of 12 bits": ({TABLE: table(1, 2, bits=12)}, []),
    "table of one": ({TABLE: table(17)}, []),
    "table from far below": ({TABLE: table(4, 5, 6, first=-30000)}, []),
    "table from far above": ({TABLE: table(4, 5, 6, first=65535)}, []),
    "table of no number": ({TABLE: table("a")}, []),
    "table of negative numbers": ({TABLE: table(-1, 2)}, []),
    "table of halves": ({TABLE: table(1, 2, first=0.5)}, []),
    "table too short": (
        {TABLE: table(1, 2, **{"00283002": {"vr": "US", "Value": [3, 0, 16]}})},
        [],
    ),
    "descriptor of two": ({TABLE: table(1, 2, **{"00283002": {"vr": "US", "Value": [2, 0]}})}, []),
    "shared group": ({SHARED: sequence(group(3)), **RESCALED}, []),
    "own group": ({OWN: sequence(group(4)), SHARED: sequence(group(3)), **RESCALED}, []),
    "slope of a group, intercept of the data set": (
        {SHARED: sequence({TRANSFORMATION: sequence({SLOPE: ds(3)})}), INTERCEPT: ds(9)},
        [],
    ),
    "group of another frame": ({OWN: sequence({}, group(4)), **RESCALED}, []),
    "group that is none": ({SHARED: sequence({TRANSFORMATION: ds(1)}), **RESCALED}, []),
    "broken group": (RESCALED, [broken(SHARED, vr="UN")]),
    "broken in a group": (
        {SHARED: sequence({TRANSFORMATION: sequence({INTERCEPT: ds(1)})})},
        [broken(SHARED, 0, TRANSFORMATION, 0, SLOPE)],
    ),
    "broken under a group": ({SHARED: sequence(group(3)), INTERCEPT: ds(1)}, [broken(SLOPE)]),
    "broken in another frame": (
        {OWN: sequence(group(4), {TRANSFORMATION: sequence({})})},
        [broken(OWN, 1, TRANSFORMATION, 0, SLOPE)],
    ),
    "inverted": ({"00280004": {"vr": "CS", "Value": ["MONOCHROME1"]}, **RESCALED}, []),
}
#: Those whose values cannot be had.
WITHOUT = {
    *("text of none", "two signs", "two slopes", "empty slope", "null slope", "NaN", "infinite"),
    *("bytes", "broken slope", "broken slope alone", "broken slope of bytes"),
    *("broken slope beside a table", "broken in a table", "table of other kind"),
    *("table of nothing", "table of too many bits", "table of 12 bits", "table of no number"),
    *("table of negative numbers", "table of halves", "table too short", "descriptor of two"),
    *("broken group", "broken in a group"),
}
FACTORS = {"rescale": (2, -10), "shared group": (3, 5), "own group": (4, 5), "inverted": (2, -10)}
FACTORS |= {"slope of a group, intercept of the data set": (3, 9), "text of a number": (2.5, 10)}
FACTORS |= {"broken under a group": (3, 5), "slope of FD": (0.5, 1), "broken elsewhere": (2, -10)}
FACTORS |= {"group of another frame": (2, -10), "broken in another frame": (4, 5)}
FACTORS |= {"broken in file meta": (2, -10), "empty table sequence": (2, -10)}
FACTORS |= {"group that is none": (2, -10)}
FACTORS |= dict.fromkeys(("nothing", "no slope", "no intercept"), (1, 0))


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Path:
    """A pack whose series have no elements in common, and rows are first frames."""
    path = tmp_path_factory.mktemp("modality")
    pack = with_template(PEER, path / "plain.iac", {"dataset": {}, "file_meta": {}})

    def frames(index: pa.Table) -> pa.Table:
        return index.append_column("frame_index", pa.array([0] * len(index), pa.uint32()))

    return rewritten(pack, path / "frames.iac", index=frames, header={"dicom_schema_version": 2})


@pytest.mark.parametrize("name", HEADERS)
def test_sql_and_the_reader_agree(con, plain: Path, tmp_path: Path, name: str):
    elements, errors = HEADERS[name]
    meta = {"00020010": {"vr": "UI", "Value": ["1.2.840.10008.1.2.1"]}}
    model = {"dataset": elements, "file_meta": {} if errors else meta, "errors": errors}
    pack = rewritten(plain, tmp_path / "x.iac", index=with_delta(ROW, {**model, "preamble": None}))
    reader = dicom.DicomPatientReader(pack)
    stored = reader.read_pixel_array(ROW)
    query = f"SELECT iac_hu(record).data FROM '{pack}' WHERE record.row = {ROW}"
    if name in WITHOUT:
        reason = rf"x\.iac: row {ROW}: "
        with pytest.raises(duckdb.Error, match=reason) as in_sql:
            con.sql(query).fetchall()
        with pytest.raises(iac.PackError, match=reason) as in_python:
            reader.read_pixel_array(ROW, modality_lut=True)
        assert str(in_python.value) in str(in_sql.value)
        return
    found = reader.read_pixel_array(ROW, modality_lut=True)
    ((values,),) = con.sql(query).fetchall()
    assert np.array_equal(np.array(values, np.float32), found.reshape(-1).astype(np.float32))
    if name in FACTORS:
        slope, intercept = FACTORS[name]
        assert np.array_equal(found, stored * float(slope) + intercept)
    else:
        item = elements[TABLE]["Value"][0]
        _, first, bits = item["00283002"]["Value"]
        entries = np.array(item["00283006"]["Value"], f"uint{bits}")
        expected = entries[np.clip(stored.astype(int) - first, 0, len(entries) - 1)]
        assert found.dtype == expected.dtype
        assert np.array_equal(found, expected)


def test_floats_have_no_table(con, tmp_path: Path, plain: Path):
    index = replaced("pixel_dtype", ROW, "float16")
    pack = rewritten(plain, tmp_path / "x.iac", index=index)
    for what in ("iac_hu", "iac_image"):
        with pytest.raises(duckdb.Error, match=rf"x\.iac: row {ROW}: "):
            column(con, pack, f"{what}(record)")
