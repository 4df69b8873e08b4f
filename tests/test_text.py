"""Packs of documents, clinical_text and clinical_text_pair: builders and readers."""

import os
import pickle
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packs import DATA, MANIFEST, assert_same_table, flip_payload
from patients import PAIR, SCHEMAS, TEXT, as_dict, as_dicts, make, patients_of, some_patients

import iac_query as iac

CODECS = [("none", {}), ("zstd", {"level": 3}), ("brotli", {"quality": 4})]

schemas = pytest.mark.parametrize("schema", SCHEMAS, ids=str)


def read_all(reader_type, path):
    reader = reader_type(path)
    try:
        return as_dicts([reader.read_patient_at(row) for row in range(reader.record_count)])
    finally:
        reader.close()


def assert_same_but_for_brotli(ours, theirs):
    """Two encoders may write the same in other bytes: a few records are some bytes longer."""
    with iac.VariableRecordPack(ours) as one, iac.VariableRecordPack(theirs) as other:
        assert {**one.header, "data_length": 0} == {**other.header, "data_length": 0}
        assert_same_table(one.slide_table, other.slide_table)
        assert one.index_table.schema == other.index_table.schema
        columns = [
            n for n in one.index_table.column_names if n not in ("offset", "length", "crc32")
        ]
        assert_same_table(one.index_table.select(columns), other.index_table.select(columns))
        assert one.read_many(range(len(one))) == other.read_many(range(len(other)))


@schemas
def test_the_peers_pack_reads_as_its_manifest_says(schema):
    name = f"{schema}.iac"
    expected = MANIFEST[name]["adapter"]["patients"]
    with schema.reader(DATA / name) as reader:
        assert as_dicts(reader.read_patients_at(range(len(reader)))) == expected
        assert reader.patient_ids == [patient["patient_id"] for patient in expected]
        for row, patient in enumerate(expected):
            assert as_dict(reader.read_patient(patient["patient_id"])) == patient
            assert as_dict(reader.read_patient_at(row)) == patient
            assert as_dict(reader.read_patient_at(row - len(expected))) == patient
        assert reader.header["payload_type"] == schema.name
        assert reader.index_table["num_docs"].to_pylist() == [len(p["docs"]) for p in expected]


@schemas
@settings(max_examples=40)
@given(data=st.data())
def test_packs_go_both_ways(schema, tmp_path, data):
    patients = data.draw(patients_of(schema))
    ours, theirs = tmp_path / "ours.iac", tmp_path / "theirs.iac"
    schema.build(ours, make(schema, patients), quality=1, overwrite=True)
    schema.peer_build(theirs, make(schema, patients, ours=False), quality=1, overwrite=True)
    assert read_all(schema.peer_reader, ours) == patients
    assert read_all(schema.reader, ours) == patients
    assert read_all(schema.reader, theirs) == patients
    assert_same_but_for_brotli(ours, theirs)


@schemas
def test_packs_are_the_peers(schema, tmp_path):
    patients = some_patients(schema, 12)
    for quality in (11, 5, 0):
        schema.build(tmp_path / "a.iac", make(schema, patients), quality=quality, overwrite=True)
        peers = make(schema, patients, ours=False)
        schema.peer_build(tmp_path / "b.iac", peers, quality=quality, overwrite=True)
        assert_same_but_for_brotli(tmp_path / "a.iac", tmp_path / "b.iac")


@schemas
@pytest.mark.parametrize(("codec", "params"), CODECS)
@pytest.mark.parametrize("workers", [1, 2])
def test_any_codec_of_bytes(schema, tmp_path, codec, params, workers):
    patients = some_patients(schema, 20)
    path = tmp_path / "x.iac"
    codec = iac.Codec.create(codec, **params)
    schema.build(path, iter(make(schema, patients)), codec=codec, workers=workers)
    assert iac.read_header(path)["codec"] == codec.name
    assert read_all(schema.reader, path) == patients
    assert read_all(schema.peer_reader, path) == patients


class Reversed(iac.Codec):
    name = "reversed"

    def encode(self, obj):
        return bytes(obj)[::-1]

    def decode(self, payload):
        return bytes(payload)[::-1]


def test_a_codec_of_the_users(tmp_path, monkeypatch):
    monkeypatch.setattr(iac.Codec, "_registered", {})
    iac.Codec.register("reversed", Reversed)
    patients = some_patients(TEXT)
    TEXT.build(tmp_path / "x.iac", make(TEXT, patients), codec=Reversed())
    assert read_all(TEXT.reader, tmp_path / "x.iac") == patients


def test_one_large_note(tmp_path):
    note = "Befund: unauffällig. 日本 " * 200_000
    assert len(note.encode()) > 5 << 20
    doc = {"doc_id": "d", "text": note}
    patients = make(TEXT, [{"patient_id": "p", "docs": [doc]}])
    TEXT.build(tmp_path / "x.iac", patients, quality=1)
    with TEXT.reader(tmp_path / "x.iac") as reader:
        assert reader.read_patient("p").docs[0].text == note


@schemas
def test_rows_in_any_order(schema, tmp_path):
    patients = some_patients(schema, 30)
    path = tmp_path / "x.iac"
    schema.build(path, make(schema, patients), quality=1)
    rows = [7, 0, -1, 7, 29]
    with schema.reader(path) as reader:
        for workers in (None, 1, 2):
            found = reader.read_patients_at(rows, workers=workers)
            assert as_dicts(found) == [patients[row] for row in rows]
        assert reader.read_patients_at([]) == []
        for row in (30, -31):
            with pytest.raises(IndexError):
                reader.read_patient_at(row)
        with pytest.raises(KeyError, match="'nobody'"):
            reader.read_patient("nobody")
        with pytest.raises(KeyError):
            reader.read_patient(["no", "id"])


@schemas
def test_damaged_rows_among_good_ones(schema, tmp_path):
    patients = some_patients(schema, 6)
    path = tmp_path / "x.iac"
    schema.build(path, make(schema, patients), quality=1)
    for row in (1, 4):
        flip_payload(path, row)
    with schema.reader(path) as reader:
        with pytest.raises(iac.ChecksumError) as caught:
            reader.read_patients_at(range(6))
        assert (caught.value.pack, caught.value.row) == (str(path), 1)
        report = []
        found = reader.read_patients_at([5, 4, 1, 0], on_error="null", report=report)
        assert [p and as_dict(p) for p in found] == [patients[5], None, None, patients[0]]
        assert [(f.position, f.row) for f in report] == [(1, 4), (2, 1)]
        found = reader.read_patients_at(range(6), on_error="skip")
        assert as_dicts(found) == [patients[row] for row in (0, 2, 3, 5)]
        with pytest.raises(ValueError, match="on_error"):
            reader.read_patients_at([0], on_error="ignore")


@schemas
def test_readers_are_shared_and_pickled(schema, tmp_path):
    patients = some_patients(schema, 8)
    schema.build(tmp_path / "x.iac", make(schema, patients), quality=1)
    reader = pickle.loads(pickle.dumps(schema.reader(tmp_path / "x.iac")))
    found = [None] * 8

    def read(row):
        found[row] = as_dict(reader.read_patient(patients[row]["patient_id"]))

    threads = [threading.Thread(target=read, args=(row,)) for row in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == patients
    assert schema.reader.__name__ in repr(reader)
    reader.close()
    with pytest.raises(ValueError, match="closed"):
        reader.read_patient_at(0)


def test_packs_of_other_kinds_are_refused(tmp_path):
    with pytest.raises(iac.PackError, match=r"is not a clinical_text pack, .*clinical_text_pair"):
        TEXT.reader(DATA / "clinical_text_pair.iac")
    with pytest.raises(iac.PackError, match="is not a clinical_text_pair pack"):
        PAIR.reader(DATA / "raw_basic.iac")
    with pytest.raises(iac.PackNotFoundError):
        TEXT.reader(tmp_path / "none.iac")


def test_two_rows_of_one_patient_are_read_by_row(tmp_path):
    docs = [{"doc_id": "d", "text": text} for text in ("first", "second", "third")]
    patients = [{"patient_id": id, "docs": [d]} for id, d in zip("aba", docs, strict=True)]
    TEXT.peer_build(tmp_path / "x.iac", make(TEXT, patients, ours=False))
    with TEXT.reader(tmp_path / "x.iac") as reader:
        with pytest.raises(iac.PackError, match="rows 0 and 2 have the same patient_id"):
            reader.read_patient("b")
        assert [p.docs[0].text for p in reader.read_patients_at(range(3))] == [
            "first",
            "second",
            "third",
        ]


def one(**changed):
    """A builder's input that is wrong in one field of its second patient's second document."""
    patients = some_patients(TEXT, 2)
    patients[1]["docs"][1].update(changed)
    return make(TEXT, patients)


SURROGATE = "caf\udce9"
WRONG = [
    ([], ValueError, "no patients to pack"),
    (one(doc_id=""), ValueError, "patient 1: document 1: doc_id is missing"),
    (one(doc_id=None), ValueError, "patient 1: document 1: doc_id is missing"),
    (one(doc_id=7), TypeError, "patient 1: document 1: doc_id is int, expected a str"),
    (one(doc_id="d0"), ValueError, "patient 1: documents 0 and 1 have the same doc_id"),
    (one(text=None), TypeError, "patient 1: document 1: text is NoneType, expected a str"),
    (one(text=b"bytes"), TypeError, "text is bytes"),
    (one(text=SURROGATE), ValueError, "document 1: text has a lone surrogate at character 3"),
    (one(source=SURROGATE), ValueError, "document 1: source has a lone surrogate"),
    (one(doc_type=None), TypeError, "doc_type is NoneType"),
    (one(episode_index=1.0), TypeError, "episode_index is float, expected an int"),
    (one(episode_index=True), TypeError, "episode_index is bool"),
    (one(episode_index=1 << 31), ValueError, "episode_index does not fit in 32 bits"),
    (make(TEXT, some_patients(TEXT, 2) * 2), ValueError, "patients 0 and 2 have the same patient"),
    ([TEXT.patient("")], ValueError, "patient 0: patient_id is missing"),
    ([TEXT.patient(None)], ValueError, "patient 0: patient_id is missing"),
    ([TEXT.patient(SURROGATE)], ValueError, "patient 0: patient_id has a lone surrogate"),
    ([TEXT.patient("p", SURROGATE)], ValueError, "patient 0: institution has a lone surrogate"),
    ([TEXT.patient("p", None)], TypeError, "patient 0: institution is NoneType"),
]


@pytest.mark.parametrize(("patients", "kind", "message"), WRONG, ids=[w[2] for w in WRONG])
@pytest.mark.parametrize("old", [None, b"an old file"])
def test_what_cannot_be_stored_leaves_nothing(tmp_path, patients, kind, message, old):
    path = tmp_path / "x.iac"
    if old is not None:
        path.write_bytes(old)
    with pytest.raises(kind, match=message) as caught:
        TEXT.build(path, patients, quality=1, overwrite=True)
    assert caught.value.__context__ is None
    assert "caf" not in str(caught.value)
    assert os.listdir(tmp_path) == ([] if old is None else ["x.iac"])
    assert old is None or path.read_bytes() == old


def test_a_failing_iterator_leaves_nothing(tmp_path):
    def patients():
        yield from make(TEXT, some_patients(TEXT, 9))
        raise RuntimeError("the source failed")

    with pytest.raises(RuntimeError, match="the source failed"):
        TEXT.build(tmp_path / "x.iac", patients(), quality=1, workers=2)
    assert os.listdir(tmp_path) == []


@schemas
def test_where_a_pack_may_go(schema, tmp_path):
    path = tmp_path / "new" / "x.iac"
    patients = make(schema, some_patients(schema))

    def never():
        raise AssertionError("patients were asked for")
        yield

    schema.build(path, patients, quality=1)
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="overwrite=True"):
        schema.build(path, never())
    with pytest.raises(IsADirectoryError):
        schema.build(tmp_path, never(), overwrite=True)
    assert path.read_bytes() == before
    schema.build(path, patients[:1], quality=1, overwrite=True)
    assert iac.read_header(path)["num_records"] == 1


@schemas
def test_options_that_make_no_sense(schema, tmp_path):
    patients = make(schema, some_patients(schema))
    for options, message in [
        ({"quality": 12}, "quality"),
        ({"quality": 5, "codec": "zstd"}, "quality"),
        ({"codec": "jxl"}, "codec jxl is one of images"),
        ({"codec": "lzma"}, "lzma"),
        ({"workers": 0}, "workers"),
    ]:
        with pytest.raises(ValueError, match=message):
            schema.build(tmp_path / "x.iac", patients, **options)
    assert os.listdir(tmp_path) == []


def test_further_header_fields_of_pairs(tmp_path):
    patients = make(PAIR, some_patients(PAIR))
    PAIR.build(tmp_path / "x.iac", patients, quality=1, extra_header={"site": "X"})
    assert iac.read_header(tmp_path / "x.iac")["site"] == "X"
    with pytest.raises(ValueError, match=r"extra_header.*payload_type"):
        PAIR.build(tmp_path / "y.iac", patients, extra_header={"payload_type": "other"})


def test_progress_is_shown_when_wanted(tmp_path, capsys):
    TEXT.build(tmp_path / "x.iac", make(TEXT, some_patients(TEXT)), quality=1)
    assert capsys.readouterr().err == ""
    TEXT.build(tmp_path / "y.iac", make(TEXT, some_patients(TEXT)), quality=1, progress=True)
    assert "3/3" in capsys.readouterr().err
