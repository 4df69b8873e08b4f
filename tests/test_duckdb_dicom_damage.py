"""DICOM packs that are damaged or made to do harm: errors that name pack and row, and no more."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from dicom_packs import (
    PEER,
    encoded,
    header_of,
    rewritten,
    with_delta,
    with_template,
)
from hypothesis import given
from hypothesis import strategies as st
from packs import replaced, segments_of

import iac_query as iac

pytestmark = pytest.mark.asan
EMPTY = {"dataset": {}, "file_meta": {}}
MODALITY = {"vr": "CS", "Value": ["CT"]}


@pytest.fixture(scope="module")
def con():
    with iac.connect() as con:
        yield con


def tags(con, pack: Path, row: int = 1) -> str:
    query = f"SELECT iac_tags({{'pack': '{pack}', 'row': {row}}})"
    return con.sql(query).fetchall()[0][0]


def assert_refused(con, pack: Path, reason: str, row: int = 1) -> None:
    """The row alone fails, and every function that needs its header says the same."""
    for call in ("iac_tags(record)", "iac_tag(record, 'Modality')", "iac_hu(record)"):
        query = f"SELECT {call} FROM '{pack}' WHERE record.row = {row}"
        with pytest.raises(duckdb.Error) as raised:
            con.sql(query).fetchall()
        assert f"{pack}: row {row}: {reason}" in str(raised.value)
    query = f"SELECT TRY(iac_tags(record)) IS NULL FROM '{pack}' ORDER BY record.row"
    assert [x for (x,) in con.sql(query).fetchall()].count(True) >= 1
    checked = con.sql(f"SELECT row, reason FROM iac_check('{pack}')").fetchall()
    assert any(row == found and text.startswith(reason) for found, text in checked)


ITEM = {"vr": "SQ", "Value": [{"00080060": MODALITY}]}


@pytest.mark.parametrize(
    "delta, reason",
    [
        (b"", "its text is not a JSON object"),
        (b"{", "JSON is invalid at byte 1: expected a string"),
        (b"[]", "its text is not a JSON object"),
        (b"{} x", "JSON is invalid at byte 3: expected the end"),
        (b"{}", "it does not have its dataset and its file_meta once each"),
        (b'{"dataset":{},"dataset":{},"file_meta":{}}', "it does not have its dataset"),
        (b'{"dataset":[],"file_meta":{}}', "its elements are not in a JSON object"),
        (b'{"dataset":null,"file_meta":{}}', "its elements are not in a JSON object"),
        ({**EMPTY, "dataset": {"00080060": 7}}, "element 00080060 is not a JSON object"),
        ({**EMPTY, "dataset": {"80060": MODALITY}}, "an element's key is not a tag of eight"),
        ({**EMPTY, "dataset": {"0008006G": MODALITY}}, "an element's key is not a tag of eight"),
        (
            b'{"dataset":{"00080060":{},"00080060":{}},"file_meta":{}}',
            "element 00080060 stands there twice",
        ),
        (
            b'{"dataset":{"0008006a":{},"0008006A":{}},"file_meta":{}}',
            "element 0008006A stands there twice",
        ),
        (
            b'{"dataset":{"00020010":{}},"file_meta":{"00020010":{}}}',
            "element 00020010 stands there twice",
        ),
        (b'{"dataset":{"00080060":{"a":"\xff"}},"file_meta":{}}', "JSON is invalid at byte 0: it"),
        (b'{"dataset":{"00080060":{"a":"\\ud800"}},"file_meta":{}}', "JSON is invalid at byte "),
        (b'{"dataset":{"00080060":{"a":"\n"}},"file_meta":{}}', "JSON is invalid at byte "),
        (b'{"dataset":{"00080060":{"a":NaN}},"file_meta":{}}', "JSON is invalid at byte "),
        (b'{"dataset":{"00080060":{"a":01}},"file_meta":{}}', "JSON is invalid at byte "),
        (b'{"dataset":{"00080060":{"a":' + b"[" * 10**6, "JSON is invalid at byte "),
        ({**EMPTY, "errors": {}}, "its errors are not in a JSON array"),
        ({**EMPTY, "errors": [7]}, "an errors entry is not a JSON object"),
        ({**EMPTY, "errors": [{}]}, "an errors entry has no path of tags and items"),
        ({**EMPTY, "errors": [{"path": ["00080060"]}]}, "an errors entry has no raw_base64"),
        (
            {**EMPTY, "errors": [{"path": ["00080060"], "stored_vr": "DS", "value": 7}]},
            "an errors entry has no raw_base64",
        ),
        (
            {**EMPTY, "errors": [{"path": ["00080060"], "stored_vr": "DS", "raw_base64": "?"}]},
            "the raw_base64 of an errors entry is not base64",
        ),
        (
            {**EMPTY, "errors": [{"path": ["x"], "raw_base64": ""}]},
            "the path of an errors entry has a tag that is none",
        ),
        *(
            (
                {
                    "dataset": {"00081115": ITEM},
                    "file_meta": {},
                    "errors": [{"path": path, "raw_base64": ""}],
                },
                "the path of an errors entry leads nowhere",
            )
            for path in [
                ["00081115", 1, "00080060"],
                ["00081115", -1, "00080060"],
                ["00081115", "0", "00080060"],
                ["00081116", 0, "00080060"],
                ["00081115", 0, "00080060", 0, "00080061"],
            ]
        ),
    ],
)
def test_a_delta_that_is_no_header(con, tmp_path: Path, delta: Any, reason: str):
    pack = rewritten(PEER, tmp_path / "x.iac", index=with_delta(1, delta))
    assert_refused(con, pack, f"dicom_delta: {reason}")


@pytest.mark.parametrize(
    "change, reason",
    [
        (replaced("dicom_delta", 1, None), "dicom_delta: it is NULL"),
        (replaced("dicom_delta_crc32", 1, 7), "dicom_delta: its stored bytes are damaged: their"),
        (replaced("series_idx", 1, None), "its series_idx is NULL, which no row"),
        (replaced("series_idx", 1, 9), "its series_idx is 9, which no row"),
    ],
)
def test_an_instance_that_is_wrong_in_the_index(
    con, tmp_path: Path, change: Callable[[pa.Table], pa.Table], reason: str
):
    assert_refused(con, rewritten(PEER, tmp_path / "x.iac", index=change), reason)


def test_a_delta_that_is_not_zstd(con, tmp_path: Path):
    def change(table: pa.Table) -> pa.Table:
        table = replaced("dicom_delta", 1, b"plain text")(table)
        return table.drop_columns(["dicom_delta_crc32"])

    pack = rewritten(PEER, tmp_path / "x.iac", index=change)
    assert_refused(con, pack, "dicom_delta: zstd: payload is not a zstd frame")


def test_a_bomb_is_not_unpacked(con, tmp_path: Path):
    bomb = b" " * (300 << 20)
    pack = rewritten(PEER, tmp_path / "x.iac", index=with_delta(1, bomb))
    assert pack.stat().st_size < 200_000
    assert_refused(con, pack, "dicom_delta: it decodes to more than 268435456 bytes")


@pytest.mark.parametrize(
    "series, reason",
    [
        (replaced("template_offset", 0, 1 << 63), "no place of its template"),
        (replaced("template_offset", 0, None), "no place of its template"),
        (replaced("template_length", 0, None), "no place of its template"),
        (replaced("series_idx", 1, 0), "series in row 1 has the series_idx of another one"),
        (lambda table: table.drop_columns(["template_offset"]), "no column 'template_offset'"),
        (
            lambda table: table.set_column(5, "template_offset", pa.array(["a", "b", "c"])),
            "column 'template_offset' has type string, expected integers",
        ),
    ],
)
def test_a_slide_table_without_templates(con, tmp_path: Path, series, reason: str):
    pack = rewritten(PEER, tmp_path / "x.iac", series=series)
    with pytest.raises(duckdb.Error) as raised:
        tags(con, pack)
    assert f"{pack}: " in str(raised.value) and reason in str(raised.value)
    findings = con.sql(f"SELECT row, reason FROM iac_check('{pack}')").fetchall()
    # Two series of one number are in the way of iac_scan as well, which says it in its own words.
    expected = ["two rows have the same series_idx"] if "of another one" in reason else []
    assert [row for row, _ in findings] == [None] * (1 + len(expected))
    for text, (_, found) in zip([*expected, reason], findings, strict=True):
        assert text in found


@pytest.mark.parametrize(
    "series, reason",
    [
        (replaced("template_offset", 0, 1 << 62), "it lies outside the metadata of the pack: off"),
        (replaced("template_offset", 0, 1379), "it lies outside the metadata of the pack: off"),
        (replaced("template_length", 0, (1 << 32) - 1), "it lies outside the metadata"),
        (replaced("template_length", 0, 478), "its stored bytes are damaged: their crc32 is"),
        (replaced("template_crc32", 0, 7), "its stored bytes are damaged: their crc32 is"),
    ],
)
def test_a_template_that_is_elsewhere(con, tmp_path: Path, series, reason: str):
    pack = rewritten(PEER, tmp_path / "x.iac", series=series)
    assert_refused(con, pack, f"template of its series: {reason}")
    with pytest.raises(duckdb.Error, match="row 0: column 'patient_id': template of its"):
        con.sql(f"SELECT patient_id FROM '{pack}'").fetchall()
    assert len(con.sql(f"SELECT modality FROM '{pack}'").fetchall()) == 6


def test_a_template_that_is_no_header(con, tmp_path: Path):
    pack = with_template(PEER, tmp_path / "x.iac", [])
    assert_refused(con, pack, "template of its series: its text is not a JSON object")


def test_no_verification_reads_what_is_there(tmp_path: Path):
    index, series = replaced("dicom_delta_crc32", 1, 7), replaced("template_crc32", 0, 7)
    pack = rewritten(PEER, tmp_path / "x.iac", index=index, series=series)
    with iac.connect() as con:
        con.execute("SET iac_verify = false")
        whole = tags(con, pack)
        assert whole == tags(con, PEER)
        con.execute("SET iac_verify = true")
        with pytest.raises(duckdb.Error, match="template of its series: its stored bytes"):
            tags(con, pack)


@pytest.mark.parametrize(
    "fields, reason",
    [
        ({"dicom_schema_version": 3}, "header field dicom_schema_version is 3, this reads"),
        ({"dicom_schema_version": "1"}, 'header field dicom_schema_version is "1", this reads'),
        ({"metadata_codec": "brotli"}, 'header field metadata_codec is "brotli", expected "zstd"'),
        ({"metadata_length": -1}, "header field metadata_length is -1, expected bytes of"),
        ({"metadata_offset": 1 << 40}, "header field metadata_offset is 1099511627776, expec"),
    ],
)
def test_a_header_that_says_something_else(con, tmp_path: Path, fields: dict, reason: str):
    pack = rewritten(PEER, tmp_path / "x.iac", header=fields)
    with pytest.raises(duckdb.Error) as raised:
        tags(con, pack)
    assert f"{pack}: {reason}" in str(raised.value)


@pytest.mark.parametrize(
    "element, reason",
    [
        ({}, "a DICOM element has no vr of two letters"),
        ({"vr": "LONG", "Value": []}, "a DICOM element has no vr of two letters"),
        ({"vr": 7}, "a DICOM element has a member of another type than the DICOM JSON model"),
        ({"vr": "CS", "Value": "CT"}, "a DICOM element has a member of another type"),
        ({"vr": "OB", "InlineBinary": 7}, "a DICOM element has a member of another type"),
        ({"vr": "CS", "Value": [["CT"]]}, "a value is none of the DICOM JSON model"),
        ({"vr": "CS", "Value": [True]}, "a value is none of the DICOM JSON model"),
        ({"vr": "PN", "Value": [{"Alphabetic": 7}]}, "a person's name is not text"),
    ],
)
def test_an_element_that_is_none(con, tmp_path: Path, element: dict, reason: str):
    delta = {**EMPTY, "dataset": {"00080060": element}}
    pack = rewritten(PEER, tmp_path / "x.iac", index=with_delta(1, delta))
    assert json.loads(tags(con, pack))["00080060"] == element  # not looked into
    with pytest.raises(duckdb.Error) as raised:
        con.sql(f"SELECT iac_tag(record, 'Modality') FROM '{pack}'").fetchall()
    assert f"{pack}: row 1: {reason}" in str(raised.value)


NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(dataset=st.dictionaries(st.from_regex("[0-9A-F]{8}", fullmatch=True), JSON, max_size=5))
def test_any_json_is_taken_as_it_is_or_refused(con, tmp_path_factory, dataset: dict):
    delta = {**header_of(PEER, 1), "dataset": dataset}
    pack = rewritten(PEER, tmp_path_factory.mktemp("any") / "x.iac", index=with_delta(1, delta))
    meta = {key: dict for key in delta["file_meta"]}
    valid = all(isinstance(element, dict) for element in dataset.values())
    valid = valid and not meta.keys() & dataset.keys()
    if valid:
        found = json.loads(tags(con, pack))
        assert {key: found[key] for key in dataset} == dataset
    else:
        with pytest.raises(duckdb.Error, match="row 1: dicom_delta: element"):
            tags(con, pack)


@given(at=st.integers(0, 1 << 20), byte=st.integers(1, 255))
def test_a_flipped_byte_is_noticed(con, tmp_path_factory, at: int, byte: int):
    text = bytearray(json.dumps(header_of(PEER, 1)).encode())
    text[at % len(text)] ^= byte
    pack = rewritten(
        PEER, tmp_path_factory.mktemp("flip") / "x.iac", index=with_delta(1, bytes(text))
    )
    try:
        found = tags(con, pack)
    except duckdb.Error as error:
        assert f"{pack}: row 1: dicom_delta: " in str(error)
    else:
        json.loads(found)


def test_the_data_segment_of_a_stored_pack_is_as_expected():
    fields, _, _, data = segments_of(PEER)
    assert len(data) == fields["data_length"] and encoded(EMPTY)[:4] == data[:4]
