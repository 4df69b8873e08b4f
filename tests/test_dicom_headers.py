"""Headers of odd but legal files, and of broken ones: kept, and the same in Python and in SQL."""

import base64
import json
import struct

import duckdb
import pytest
from dicom_packs import PEER, header_of, rewritten, with_delta
from dicoms import build, file_of, pack_of, read, slice_of
from iac_query.adapters.dicom.model import MAX_SEQUENCE_DEPTH
from pydicom.dataelem import DataElement
from pydicom.dataset import Dataset

import iac_query as iac

TAG = "00211001"


@pytest.fixture(scope="module")
def con():
    with iac.connect() as con:
        yield con


def element(tag: int, vr: bytes, value: bytes) -> bytes:
    """An element in explicit VR little-endian."""
    size = b"\0\0" + struct.pack("<I", len(value)) if vr == b"SQ" else struct.pack("<H", len(value))
    return struct.pack("<HH", tag >> 16, tag & 0xFFFF) + vr + size + value


def file_with(added: bytes, number: int = 0) -> bytes:
    """A slice with raw bytes before its Image Pixel module."""
    data = file_of(slice_of(number))
    at = data.index(b"\x28\x00\x02\x00US")
    return data[:at] + added + data[at:]


def tags(con, pack, row: int = 0) -> dict:
    found = con.sql(f"SELECT iac_tags(record) FROM '{pack}' WHERE record.row = {row}")
    return json.loads(found.fetchall()[0][0])


def tag(con, pack, name: str = TAG) -> str | None:
    return con.sql(f"SELECT iac_tag(record, '{name}') FROM '{pack}'").fetchall()[0][0]


EMPTIES = [
    (b"DS", b"1\\\\2 ", [1.0, None, 2.0], "1.0\\\\2.0"),
    (b"DS", b"1\\ \\2 ", [1.0, None, 2.0], "1.0\\\\2.0"),
    (b"DS", b"\\\\", [None, None, None], "\\\\"),
    (b"IS", b"\\3", [None, 3], "\\3"),
    (
        b"PN",
        b"\\A\\\\",
        [None, {"Alphabetic": "A"}, None, None],
        "\\A\\\\",
    ),
]


def of_text(elem: DataElement) -> list[str | float]:
    """The values, where they are numbers whatever their text was."""
    texts = [str(value).strip() for value in elem.value]
    return [float(text) if text and elem.VR in ("DS", "IS") else text for text in texts]


@pytest.mark.parametrize("vr, raw, values, text", EMPTIES)
def test_empty_values_are_null(con, tmp_path, vr, raw, values, text):
    file = file_with(element(0x00211001, vr, raw))
    path = tmp_path / "x.iac"
    with pack_of(path, file) as pack:
        expected = {"vr": vr.decode(), "Value": values}
        assert pack.read_tags(0)[TAG] == expected and "errors" not in pack.header
        again = read(pack.read_dicom(0))
        assert of_text(again[TAG]) == of_text(read(file)[TAG])
        assert pack.header["dicom_schema_version"] == (1 if vr == b"PN" else 2)
    assert tags(con, path)[TAG] == expected and tag(con, path) == text
    assert con.sql(f"SELECT * FROM iac_check('{path}')").fetchall() == []


def test_empty_values_in_sequences(con, tmp_path):
    inner = element(0x00211001, b"DS", b"1\\\\2 ")
    item = b"\xfe\xff\x00\xe0" + struct.pack("<I", len(inner)) + inner
    with pack_of(tmp_path / "x.iac", file_with(element(0x00211010, b"SQ", item))) as pack:
        assert pack.read_tags(0)["00211010"]["Value"][0][TAG]["Value"] == [1.0, None, 2.0]
        assert b"None" not in pack.read_dicom(0)
        assert pack.header["dicom_schema_version"] == 2


@pytest.mark.parametrize("raw, values", [(b"thin\\2", ["thin", "2"]), (b"a\xff", None)])
def test_numbers_that_are_none_are_kept(con, tmp_path, raw, values):
    path = tmp_path / "x.iac"
    build(path, file_with(element(0x00211001, b"DS", raw)))
    kept = {"vr": "UN", "InlineBinary": base64.b64encode(raw).decode()}
    assert tags(con, path)[TAG] == ({"vr": "DS", "Value": values} if values else kept)
    assert con.sql(f"SELECT * FROM iac_check('{path}')").fetchall() == []


@pytest.mark.parametrize("raw", [b"thin\\2 ", b"\xe4"])
def test_entries_without_text_are_read_from_their_bytes(con, tmp_path, raw):
    entry = {"path": [TAG], "stored_vr": "DS", "raw_base64": base64.b64encode(raw).decode()}
    delta = {**header_of(PEER, 1), "errors": [entry]}
    pack = rewritten(PEER, tmp_path / "x.iac", index=with_delta(1, delta))
    text = {"vr": "DS", "Value": ["thin", "2 "]}
    kept = {"vr": "UN", "InlineBinary": entry["raw_base64"]}
    assert tags(con, pack, 1)[TAG] == (text if raw.isascii() else kept)


def test_a_bad_header_is_that_of_its_row_alone(con, tmp_path):
    pack = rewritten(PEER, tmp_path / "x.iac", index=with_delta(1, b"{"))
    query = f"SELECT record.row FROM '{pack}' WHERE TRY(iac_tags(record)) IS NULL"
    assert con.sql(query).fetchall() == [(1,)]
    with pytest.raises(duckdb.Error, match="row 1: dicom_delta"):
        con.sql(f"SELECT iac_tags(record) FROM '{pack}'").fetchall()


def nested(depth: int) -> Dataset:
    ds = slice_of(0)
    inner = Dataset()
    inner.CodeValue = "T-1"
    for _ in range(depth - 1):
        outer = Dataset()
        outer.ContentSequence = [inner]
        inner = outer
    ds.ContentSequence = [inner]
    return ds


def test_sequences_as_deep_as_may_be(con, tmp_path):
    path = tmp_path / "x.iac"
    with pack_of(path, nested(MAX_SEQUENCE_DEPTH), slice_of(1)) as pack:
        python = pack.read_tags(0)
        assert (
            read(pack.read_dicom(0)).ContentSequence == nested(MAX_SEQUENCE_DEPTH).ContentSequence
        )
    assert tags(con, path)["0040A730"] == python["0040A730"]
    assert con.sql(f"SELECT iac_tag(record, 'Modality') FROM '{path}'").fetchall() == [("CT",)] * 2
    assert len(con.sql(f"SELECT iac_hu(record) FROM '{path}'").fetchall()) == 2


def test_deeper_sequences_are_refused(tmp_path):
    result = build(tmp_path / "x.iac", nested(MAX_SEQUENCE_DEPTH + 1), slice_of(1))
    assert result.instances == 1
    assert "nested deeper than 64 levels" in str(result.failures[0].error)


@pytest.mark.parametrize("number", [0x00000110, 0x00020010])
def test_elements_that_no_dataset_may_have(con, tmp_path, number):
    file = file_with(element(number, b"UI", b"1.2.840.10008.1.2\0"))
    path = tmp_path / "x.iac"
    with pack_of(path, file, exact=True) as pack:
        assert f"{number:08X}" not in pack.read_tags(0)
        assert read(pack.read_dicom(0)).Modality == "CT"
        assert read(pack.read_dicom(0, exact=True)).Modality == "CT"
    syntax = tag(con, path, "TransferSyntaxUID")
    assert syntax == "1.2.840.10008.1.2.1"
    assert tag(con, path, "Modality") == "CT"
