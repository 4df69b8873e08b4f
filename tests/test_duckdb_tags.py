"""iac_tags and iac_tag: the headers of DICOM instances in SQL."""

import json
import re
from pathlib import Path

import duckdb
import pydicom
import pytest
from dicom_packs import FILES, PEER, SERIES, build, dataset, file_of

pytestmark = pytest.mark.asan


def tags(con, pack: Path) -> list[dict]:
    query = f"SELECT iac_tags(record) FROM '{pack}' ORDER BY record.row"
    return [json.loads(text) for (text,) in con.sql(query).fetchall()]


def tag(con, pack: Path, name: str) -> list[str | None]:
    query = f"SELECT iac_tag(record, ?) FROM '{pack}' ORDER BY record.row"
    return [text for (text,) in con.execute(query, [name]).fetchall()]


def expected_of(ds: pydicom.Dataset) -> dict:
    """The model of an instance without its pixels."""
    model = ds.to_json_dict(bulk_data_threshold=1 << 40, suppress_invalid_tags=True)
    model.pop("7FE00010", None)
    return without_empty(model)


def split(model: dict) -> tuple[dict, dict]:
    """The elements of the file meta information, and of the data set."""
    meta = {tag: element for tag, element in model.items() if tag.startswith("0002")}
    return meta, {tag: element for tag, element in model.items() if tag not in meta}


def without_empty(value):
    """pydicom writes the Value of an empty sequence, the peer does not."""
    if isinstance(value, dict):
        return {k: without_empty(v) for k, v in value.items() if (k, v) != ("Value", [])}
    return [without_empty(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", FILES)
def test_every_element_is_what_the_peers_reader_restores(con, tmp_path: Path, name: str):
    pack = build(tmp_path / "x.iac", file_of(name))
    (found,) = tags(con, pack)
    meta, elements = split(found)
    assert elements == expected_of(dataset(pack, 0))
    assert meta == pydicom.dcmread(file_of(name)).file_meta.to_json_dict()
    assert list(found) == sorted(found)


@pytest.mark.parametrize("pack", [PEER, SERIES], ids=lambda path: path.stem)
def test_template_and_delta_are_one(con, pack: Path):
    for row, found in enumerate(tags(con, pack)):
        assert split(found)[1] == expected_of(dataset(pack, row))


def test_the_type_is_json(con):
    query = f"SELECT iac_tags(record) AS tags FROM '{SERIES}' ORDER BY record.row LIMIT 1"
    assert con.sql(f"SELECT typeof(tags) FROM ({query})").fetchall()[0] == ("JSON",)
    found = con.sql(f"""
        SELECT tags->>'$."00080060".Value[0]', (tags->'00180050'->'Value'->0)::DOUBLE,
               json_array_length(tags, '$."00200032".Value') FROM ({query})""").fetchall()[0]
    assert found == ("CT", 1.25, 3)


def test_elements_that_json_cannot_express_are_put_back(con, tmp_path: Path):
    ds = pydicom.dcmread(file_of("MR_small.dcm"))
    item = pydicom.Dataset()
    item.CodeValue = "T-1"
    item._dict[pydicom.tag.Tag("SliceThickness")] = raw("SliceThickness", "DS", b"1.5.2 ")
    item.CodeMeaning = "123456"
    ds.ProcedureCodeSequence = [pydicom.Dataset(), item]
    ds._dict[pydicom.tag.Tag("SliceThickness")] = raw("SliceThickness", "DS", b"thin\\2")
    file = tmp_path / "odd.dcm"
    ds.save_as(file)
    text = b"\x08\x00\x04\x01LO\x06\x00123456"
    assert file.read_bytes().count(text) == 1
    six_of_eight_bytes = b"\x08\x00\x34\x21FD\x06\x00123456"  # Event Time Offset
    file.write_bytes(file.read_bytes().replace(text, six_of_eight_bytes))
    pack = build(tmp_path / "x.iac", file)
    (found,) = tags(con, pack)
    assert found["00180050"] == {"vr": "DS", "Value": ["thin", "2"]}
    restored = found["00081032"]["Value"]
    assert restored[0] == {} and restored[1]["00080100"] == {"vr": "SH", "Value": ["T-1"]}
    assert restored[1]["00180050"]["Value"][0].strip() == "1.5.2"
    assert restored[1]["00082134"] == {"vr": "UN", "InlineBinary": "MTIzNDU2"}
    assert tag(con, pack, "SliceThickness") == ["thin\\2"]


def raw(tag, vr: str, value: bytes) -> pydicom.dataelem.RawDataElement:
    return pydicom.dataelem.RawDataElement(
        pydicom.tag.Tag(tag), vr, len(value), value, 0, False, True, True
    )


def test_one_element_by_keyword_and_by_number(con):
    thickness = ["1.25"] * 9 + ["5.0"] * 4 + ["3.0"] * 5 + [None]
    for name in ("SliceThickness", "00180050", "(0018,0050)", "0018,0050"):
        assert tag(con, SERIES, name) == thickness
    assert tag(con, SERIES, "0020000d") == tag(con, SERIES, "StudyInstanceUID")
    assert tag(con, PEER, "00091001")[0] == "AQIDBA=="


def test_values_are_written_as_dicom_does(con, tmp_path: Path):
    ds = pydicom.dcmread(file_of("MR_small.dcm"))
    ds.SpecificCharacterSet = "ISO_IR 192"
    ds.PatientName = "Yamada^Tarou=山田^太郎=やまだ^たろう"
    ds.OtherPatientNames = ["A^B", "C=D"]
    ds.ImageType = ["ORIGINAL", "", "AXIAL"]
    ds.FrameIncrementPointer = pydicom.tag.Tag("EchoTime")
    ds.PatientComments = 'a "quoted"\tword'
    ds.InstitutionName = ""
    ds.ReferencedImageSequence = []
    ds.RequestAttributesSequence = [pydicom.Dataset()]
    ds.add_new(0x00090010, "LO", "ACME")
    ds.add_new(0x00091001, "OB", b"\x00\x01")
    ds.add_new(0x00091002, "FD", [0.1, 1e300])
    ds.save_as(tmp_path / "a.dcm")
    pack = build(tmp_path / "x.iac", tmp_path / "a.dcm")
    for name, value in {
        "PatientName": ds.PatientName,
        "OtherPatientNames": "A^B\\C=D",
        "ImageType": "ORIGINAL\\\\AXIAL",
        "FrameIncrementPointer": "00180081",
        "PatientComments": ds.PatientComments,
        "InstitutionName": None,
        "ReferencedImageSequence": "[]",
        "RequestAttributesSequence": "[{}]",
        "00091001": "AAE=",
        "00091002": "0.1\\1e+300",
        "PixelSpacing": "0.3125\\0.3125",
        "PixelData": None,
        "TransferSyntaxUID": ds.file_meta.TransferSyntaxUID,
    }.items():
        assert tag(con, pack, name) == [value], name


def test_the_keyword_may_be_a_column(con):
    rows = con.sql(f"""
        SELECT k, iac_tag(record, k), iac_tag(NULL, k) FROM '{SERIES}',
               (VALUES ('Modality'), ('PatientID'), (NULL)) AS t(k)
        WHERE record.row = 0 ORDER BY k NULLS LAST""").fetchall()
    assert rows == [("Modality", "CT", None), ("PatientID", "P-01", None), (None, None, None)]


@pytest.mark.parametrize(
    "name, reason",
    [
        ("SliceThicknes", "there is no DICOM keyword 'SliceThicknes', did you mean 'SliceThickn"),
        ("slicethickness", "did you mean 'SliceThickness'"),
        ("0018005", "there is no DICOM keyword '0018005'; tags are written as '00180050' or"),
        ("(0018,005)", "no DICOM keyword"),
        ("", "no DICOM keyword ''"),
        ("x" * 1000, "a text of 1000 bytes is no DICOM keyword"),
    ],
)
def test_a_keyword_that_there_is_not(con, name: str, reason: str):
    with pytest.raises(duckdb.Error) as raised:
        tag(con, SERIES, name)
    assert reason in str(raised.value)


def test_the_keywords_are_those_of_pydicom():
    text = Path(__file__).parent.parent.joinpath("native/iac/dicom/keywords.inc").read_text()
    entries = re.findall(r'^\{"(\w+)", 0x([0-9A-F]{8})\},$', text, re.MULTILINE)
    keywords = [keyword for keyword, _ in entries]
    assert keywords == sorted(set(keywords)) and len(keywords) > 5000
    for keyword, number in entries:
        assert pydicom.datadict.dictionary_keyword(int(number, 16)) == keyword


@pytest.mark.parametrize("rows", [1, 2047, 2048, 2049, 5000])
def test_nulls_and_many_vectors(con, rows: int):
    query = f"""
        SELECT i, iac_tags(r), iac_tag(r, 'InstanceNumber') FROM (
            SELECT i, CASE WHEN i % 3 <> 1 THEN {{'pack': '{SERIES}', 'row': i % 19}} END AS r
            FROM range({rows}) t(i)) ORDER BY i"""
    whole = [json.dumps(found) for found in tags(con, SERIES)]
    number = tag(con, SERIES, "InstanceNumber")
    for i, text, value in con.sql(query).fetchall():
        if i % 3 == 1:
            assert (text, value) == (None, None)
        else:
            assert json.dumps(json.loads(text)) == whole[i % 19] and value == number[i % 19]


def test_what_is_no_dicom_pack(con, pack: Path):
    for call in ("iac_tags(record)", "iac_tag(record, 'PatientID')", "iac_hu(record)"):
        with pytest.raises(duckdb.Error, match=r"ten\.iac: its payload_type is 'raw_bytes': only"):
            con.sql(f"SELECT {call} FROM '{pack}'").fetchall()


def test_headers_of_one_vector_are_bounded(con):
    con.execute("SET iac_max_batch_bytes = 2000")
    with pytest.raises(duckdb.Error, match=r"iac_tags: the payloads of one vector of rows are"):
        con.sql(f"SELECT iac_tags(record) FROM '{SERIES}'").fetchall()
    assert con.sql(f"SELECT iac_tags(record) FROM '{SERIES}' WHERE record.row = 18").fetchall()[0]
