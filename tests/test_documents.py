"""What payloads of documents may hold: the same rules in Python's readers and in SQL."""

import re

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packs import DATA, write_pack
from patients import SCHEMAS, TEXT, as_dict, entry, make, payload, some_patients, write_payloads

import iac_query as iac

pytestmark = pytest.mark.asan

schemas = pytest.mark.parametrize("schema", SCHEMAS, ids=str)


def docs_in_sql(con, schema, path):
    """The documents of each row as the reader gives them: -1 for no episode."""
    rows = con.sql(f"SELECT {schema.function}(record) FROM '{path}'").fetchall()
    return [
        [
            {**doc, "episode_index": -1 if doc["episode_index"] is None else doc["episode_index"]}
            for doc in docs
        ]
        for (docs,) in rows
    ]


def text_of(path, on_error="raise"):
    with iac.connect() as con:
        return iac.decode(con.sql(f"SELECT record FROM '{path}'"), as_="text", on_error=on_error)


@schemas
@pytest.mark.parametrize("count", [1, 3, 2049])
@pytest.mark.parametrize("codec", ["none", "zstd", "brotli"])
def test_documents_in_sql_are_those_of_the_reader(con, schema, tmp_path, count, codec):
    patients = some_patients(schema, count)
    params = {"quality": 1} if codec == "brotli" else {}
    path = tmp_path / "x.iac"
    schema.build(path, make(schema, patients), codec=iac.Codec.create(codec, **params))
    con.execute("SET threads = 2")
    assert docs_in_sql(con, schema, path) == [patient["docs"] for patient in patients]
    region = ["".join(d[t] for d in p["docs"] for t in schema.texts) for p in patients]
    texts = con.sql(f"SELECT iac_text(record) FROM '{path}'").fetchall()
    assert [text for (text,) in texts] == region
    assert text_of(path)["payload"].to_pylist() == region
    bytes_ = iac.decode(con.sql(f"SELECT record FROM '{path}'"), as_="bytes")["payload"]
    with iac.VariableRecordPack(path) as pack:
        assert bytes_.to_pylist() == pack.read_many(range(count))


def test_documents_of_several_packs_in_one_vector(con, tmp_path):
    found = {}
    for number in range(3):
        patients = some_patients(TEXT, 50)
        for patient in patients:
            patient["patient_id"] += f" {number}"
            found[patient["patient_id"]] = patient["docs"]
        TEXT.build(tmp_path / f"{number}.iac", make(TEXT, patients), quality=1)
    rows = con.sql(
        f"""
        SELECT patient_id, iac_docs(CASE WHEN patient_id NOT LIKE '%-7 %' THEN record END)
        FROM (FROM '{tmp_path}/*.iac' ORDER BY md5(patient_id))
        """
    ).fetchall()
    assert len(rows) == 150
    for patient_id, docs in rows:
        if "-7 " in patient_id:
            assert docs is None
            continue
        assert [
            {**d, "episode_index": -1 if d["episode_index"] is None else d["episode_index"]}
            for d in docs
        ] == found[patient_id]


def test_a_rewritten_pack_is_the_same(con, tmp_path):
    con.execute(
        f"""
        COPY (SELECT t FROM (SELECT patient_id, institution, num_docs,
                                    iac_payload(record) AS payload
                             FROM '{DATA}/clinical_text.iac') AS t)
        TO '{tmp_path}/x.iac' (FORMAT iac, CODEC 'zstd', PAYLOAD_TYPE 'clinical_text',
                                SLIDE_COLUMNS [])
        """
    )
    assert docs_in_sql(con, TEXT, tmp_path / "x.iac") == docs_in_sql(
        con, TEXT, DATA / "clinical_text.iac"
    )
    with TEXT.reader(tmp_path / "x.iac") as ours, TEXT.reader(DATA / "clinical_text.iac") as first:
        rows = range(len(first))
        assert ours.patient_ids == first.patient_ids
        assert ours.read_patients_at(rows) == first.read_patients_at(rows)


DEEP = b'{"docs": [], "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
GOOD = {"docs": [entry()], "patient_id": "p", "institution": "", "text_schema_version": 1}
HOSTILE = [
    (b"", "payload of 0 bytes is too short"),
    (b"\1\0\0", "payload of 3 bytes is too short"),
    (payload(GOOD, length=10_000), "manifest of 10000 bytes ends outside the payload of"),
    (payload(GOOD, length=2**32 - 1), "manifest of 4294967295 bytes ends outside"),
    (payload(b""), "not valid JSON, from byte"),
    (payload(b"{"), "not valid JSON, from byte"),
    (payload(b'{"docs": []} x'), "not valid JSON, from byte"),
    (payload(b'{"docs": [],}'), "not valid JSON"),
    (payload(b'\xef\xbb\xbf{"docs": []}'), "it has a byte order mark or a NUL"),
    (payload(b'{"docs": []}\0'), "it has a byte order mark or a NUL"),
    (payload(b'{"x": "\xff"}'), "not valid JSON"),
    (payload(b'{"x": "\\ud800"}'), "not valid JSON"),
    (payload(b'{"x": NaN}'), "not valid JSON"),
    (payload(b'{"x": 1e999}'), "not valid JSON"),
    (payload(DEEP), "nested deeper than 127 levels"),
    (payload(b"[" * 200_000), "the manifest is an array, expected an object"),
    (payload([]), "the manifest is an array, expected an object"),
    (payload(b"null"), "the manifest is null, expected an object"),
    (payload(b"7"), "the manifest is an integer, expected an object"),
    (payload({"docs": {}}), "docs is an object, expected an array"),
    (payload({"docs": None}), "docs is null, expected an array"),
    (payload({"docs": [1]}), "an entry of docs is an integer, expected an object"),
    (payload({"docs": [[]]}), "an entry of docs is an array, expected an object"),
    (payload({"docs": [], "patient_id": 7}), "patient_id is an integer, expected text"),
    (payload({"docs": [], "institution": {}}), "institution is an object, expected text"),
    (payload({"docs": [], "text_schema_version": 2}), "text_schema_version is 2, this reads ver"),
    (payload({"docs": [], "text_schema_version": "1"}), "text_schema_version is text, this reads"),
    (payload(b'{"docs": [], "docs": []}'), "manifest: docs is there twice"),
    (
        payload(b'{"docs": [{"doc_id": "d", "offset": 0, "offset": 0, "length": 0}]}'),
        "document 0: offset is there twice",
    ),
    (payload({"docs": [entry(), {"doc_id": "d", "length": 0}]}), "document 1: offset is missing"),
    (payload({"docs": [{"offset": 0, "length": 0}]}), "document 0: doc_id is missing"),
    (payload({"docs": [entry(None)]}), "document 0: doc_id is null, expected text"),
    (payload({"docs": [entry(7)]}), "document 0: doc_id is an integer, expected text"),
    (payload({"docs": [entry(source=[1])]}), "document 0: source is an array, expected text"),
    (payload({"docs": [entry(source=True)]}), "document 0: source is a boolean, expected text"),
    (payload({"docs": [entry(offset=None)]}), "offset is null, expected an integer"),
    (payload({"docs": [entry(offset="0")]}), "offset is text, expected an integer"),
    (payload({"docs": [entry(offset=0.0)]}), "offset is a floating-point number, expected"),
    (payload({"docs": [entry(offset=True)]}), "offset is a boolean, expected an integer"),
    (payload({"docs": [entry(offset=-1)]}), "document 0: offset is negative"),
    (payload({"docs": [entry(length=-5)]}, b"texts"), "document 0: length is negative"),
    (payload({"docs": [entry(offset=2**63)]}), "offset is an integer beyond 64 bits"),
    (payload({"docs": [entry(offset=2**70)]}), "offset is a floating-point number"),
    (payload({"docs": [entry(offset=2**63 - 1, length=2**63 - 1)]}), "ends outside the text regi"),
    (payload({"docs": [entry(length=6)]}, b"texts"), "text at 0 + 6 ends outside the text region"),
    (payload({"docs": [entry(offset=6)]}, b"texts"), "text at 6 + 0 ends outside the text region"),
    (
        payload({"docs": [entry(length=3), entry("e", 2, 3)]}, b"texts"),
        "two texts overlap at byte 2 of the text region",
    ),
    (
        payload({"docs": [entry("e", 2, 3), entry(length=5)]}, b"texts"),
        "two texts overlap at byte 2",
    ),
    (payload({"docs": [entry(length=1)]}, "é".encode()), "document 0: its text is not UTF-8, or"),
    (payload({"docs": [entry(offset=1, length=1)]}, "é".encode()), "starts or ends within a char"),
    (payload({"docs": [entry(length=3)]}, b"\xed\xa0\x80"), "its text is not UTF-8"),
    (payload({"docs": [entry(episode_index=1.0)]}), "episode_index is a floating-point number"),
    (payload({"docs": [entry(episode_index="1")]}), "episode_index is text, expected an integer"),
]


@pytest.mark.parametrize(("data", "message"), HOSTILE, ids=[f"{i}" for i in range(len(HOSTILE))])
def test_hostile_payloads(con, tmp_path, data, message):
    good = payload({"docs": [entry(length=2)]}, b"ok")
    path = write_payloads(tmp_path / "x.iac", [good, data, good])
    with TEXT.reader(path) as reader:
        with pytest.raises(iac.CodecError, match=re.escape(message)) as caught:
            reader.read_patients_at(range(3))
        assert (caught.value.pack, caught.value.row) == (str(path), 1)
        found = reader.read_patients_at(range(3), on_error="null", report=(report := []))
        assert [p and [d.text for d in p.docs] for p in found] == [["ok"], None, ["ok"]]
        assert [(f.position, f.row, type(f.error)) for f in report] == [(1, 1, iac.CodecError)]
    with pytest.raises(duckdb.Error, match=re.escape(f"{path}: row 1: ")) as in_sql:
        con.sql(f"SELECT iac_docs(record) FROM '{path}'").fetchall()
    assert str(caught.value) in str(in_sql.value)
    rows = con.sql(f"SELECT TRY(iac_docs(record)) FROM '{path}'").fetchall()
    assert [docs and [doc["text"] for doc in docs] for (docs,) in rows] == [["ok"], None, ["ok"]]


GENTLE = [
    ({}, b"", []),
    ({"docs": []}, b"never named", []),
    ({"docs": [], "x": {"docs": [{"doc_id": 1}]}, "y": [[[{}]]]}, b"", []),
    ({"docs": [], "patient_id": None, "institution": None}, b"", []),
    ({"docs": [entry(doc_type=None, episode_index=None, more={"doc_id": [1, {}]})]}, b"", [""]),
    ({"docs": [entry("b", 2, 3), entry("a", 0, 2)]}, b"texts", ["xts", "te"]),
    ({"docs": [entry("a", 5, 0), entry("b", 0, 5), entry("c", 3, 0)]}, b"texts", ["", "texts", ""]),
    ({"docs": [entry(length=2)]}, b"ok\xff\xfe", ["ok"]),
]


@pytest.mark.parametrize(("manifest", "region", "texts"), GENTLE)
def test_what_other_writers_may_write(con, tmp_path, manifest, region, texts):
    path = write_payloads(tmp_path / "x.iac", [payload(manifest, region)])
    with TEXT.reader(path) as reader:
        patient = reader.read_patient_at(0)
    assert (patient.patient_id, patient.institution) == ("", "")
    assert [doc.text for doc in patient.docs] == texts
    assert all((doc.doc_type, doc.episode_index) == ("", -1) for doc in patient.docs)
    (in_sql,) = docs_in_sql(con, TEXT, path)
    assert in_sql == as_dict(patient)["docs"]


@settings(max_examples=40)
@given(data=st.data())
def test_any_change_of_a_payload_is_read_alike_or_refused(con, tmp_path, data):
    raw = bytearray(payload({"docs": [entry("a", 0, 3), entry("b", 3, 2)]}, "é1日".encode()))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
    path = write_payloads(tmp_path / "x.iac", [bytes(raw)])
    (found,) = TEXT.reader(path).read_patients_at([0], on_error="null")
    ((docs,),) = con.sql(f"SELECT TRY(iac_docs(record)) FROM '{path}'").fetchall()
    assert (found is None) == (docs is None)
    if found is not None:
        peers = TEXT.peer_reader(path).read_patient_at(0)
        assert [doc.text for doc in peers.docs] == [doc.text for doc in found.docs]
        assert [doc["text"] for doc in docs] == [doc.text for doc in found.docs]


def test_the_text_of_a_record_without_a_manifest(con, tmp_path):
    good = payload({"docs": []}, "text, not in the manifest é".encode())
    bad = [b"", payload(b"{}", length=9), payload(b"{}", b"\xff")]
    path = write_payloads(tmp_path / "x.iac", [good, *bad, good])
    expected = ["text, not in the manifest é", None, None, None, "text, not in the manifest é"]
    rows = con.sql(f"SELECT TRY(iac_text(record)) FROM '{path}'").fetchall()
    assert [text for (text,) in rows] == expected
    decoded = text_of(path, on_error="null")
    assert decoded["payload"].to_pylist() == expected
    assert [
        error and error[len(str(path)) :][:8] for error in decoded["payload_error"].to_pylist()
    ] == [None, ": row 1:", ": row 2:", ": row 3:", None]
    assert text_of(path, on_error="skip")["payload"].to_pylist() == [expected[0]] * 2
    with pytest.raises(iac.CodecError, match="row 1: payload of 0 bytes is too short"):
        text_of(path)
    with pytest.raises(duckdb.Error, match="row 1: payload of 0 bytes is too short"):
        con.sql(f"SELECT iac_text(record) FROM '{path}'").fetchall()


def test_text_of_other_packs_is_whole(con, tmp_path):
    framed = payload({"docs": []}, b"text")
    path = write_pack(tmp_path / "x.iac", [framed])
    assert text_of(path)["payload"].to_pylist() == [framed.decode()]
    assert con.sql(f"SELECT iac_text(record) FROM '{path}'").fetchall() == [(framed.decode(),)]


def test_the_wrong_function_names_the_right_one(con):
    for function, pack, message in [
        ("iac_docs", "clinical_text_pair", "'clinical_text_pair', use iac_doc_pairs"),
        ("iac_doc_pairs", "clinical_text", "'clinical_text', use iac_docs"),
        ("iac_docs", "raw_basic", "its records are not documents, its payload type is 'raw_bytes'"),
        ("iac_doc_pairs", "fixed_float32", "its records are not pairs of documents"),
    ]:
        with pytest.raises(duckdb.Error, match=message):
            con.sql(f"SELECT {function}(record) FROM '{DATA}/{pack}.iac'").fetchall()


def test_episodes_beyond_sql(con, tmp_path):
    path = write_payloads(tmp_path / "x.iac", [payload({"docs": [entry(episode_index=2**40)]})])
    with TEXT.reader(path) as reader:
        assert reader.read_patient_at(0).docs[0].episode_index == 2**40
    with pytest.raises(duckdb.Error, match="row 0: INTEGER cannot hold an episode_index"):
        con.sql(f"SELECT iac_docs(record) FROM '{path}'").fetchall()


def test_the_documents_of_one_vector_are_bounded(con, tmp_path):
    docs = [entry(f"d{i}", 0, 0) for i in range(5000)]
    path = write_payloads(tmp_path / "x.iac", [payload({"docs": docs})])
    con.execute("SET iac_max_batch_bytes = 500_000")
    with pytest.raises(duckdb.Error, match=r"iac_docs: .* larger than iac_max_batch_bytes"):
        con.sql(f"SELECT iac_docs(record) FROM '{path}'").fetchall()


def test_only_the_documents_of_rows_that_are_left_are_read(con, tmp_path):
    good = payload({"docs": [entry(length=2)]}, b"ok")
    path = write_payloads(tmp_path / "x.iac", [b"bad", good, b"bad"])
    rows = con.sql(
        f"""
        SELECT d.text FROM (FROM '{path}' WHERE item_id = 'item-1') AS p,
        UNNEST(iac_docs(p.record)) AS u(d)
        """
    ).fetchall()
    assert rows == [("ok",)]


def test_no_record_has_no_documents(con):
    assert con.sql("SELECT iac_docs(NULL), iac_doc_pairs(NULL)").fetchall() == [(None, None)]
    types = con.sql("DESCRIBE SELECT iac_docs(NULL), iac_doc_pairs(NULL)").fetchall()
    shared = (
        "STRUCT(doc_id VARCHAR, doc_type VARCHAR, doc_category VARCHAR, doc_timestamp VARCHAR, "
        "encounter VARCHAR, episode_index INTEGER, source VARCHAR, "
    )
    assert [type.replace('"', "") for _, type, *_ in types] == [
        shared + "text VARCHAR)[]",
        shared + "source_text VARCHAR, compressed_text VARCHAR)[]",
    ]
