"""Documents of record references in Polars expressions: those that SQL gives."""

import re

import fsspec
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packs import DATA, flip_payload, write_pack
from patients import PAIR, SCHEMAS, TEXT, entry, make, patients_of, payload, some_patients
from patients import write_payloads as write_text
from test_documents import HOSTILE

import iac_query as iac

schemas = pytest.mark.parametrize("schema", SCHEMAS, ids=str)
engines = pytest.mark.parametrize("engine", ["in-memory", "streaming"])
TEXTS = pl.element().struct.field("text")


def docs(schema=TEXT, **options):
    record = pl.col("record").iac
    return record.docs(**options) if schema is TEXT else record.doc_pairs(**options)


def in_sql(schema, path, order=""):
    """The documents of all rows as DuckDB gives them to Polars."""
    with iac.connect() as con:
        query = f"SELECT {schema.function}(record) AS docs FROM '{path}' {order}"
        return con.sql(query).pl()["docs"]


@schemas
@engines
@pytest.mark.parametrize("codec", ["zstd", "brotli"])
def test_documents_are_those_of_sql(schema, engine, codec, tmp_path):
    patients = some_patients(schema, 70)
    params = {"quality": 1} if codec == "brotli" else {}
    path = tmp_path / "x.iac"
    schema.build(path, make(schema, patients), codec=iac.Codec.create(codec, **params))
    lazy = iac.scan_iac(path).select(docs=docs(schema))
    found = lazy.collect(engine=engine)
    assert found.schema == lazy.collect_schema()
    expected = in_sql(schema, path)
    assert found["docs"].dtype == expected.dtype
    assert found["docs"].to_list() == expected.to_list()
    assert sum(found["docs"].list.len()) == sum(len(patient["docs"]) for patient in patients)


@schemas
def test_documents_of_the_peers_packs(schema):
    path = DATA / f"{schema.name}.iac"
    found = iac.scan_iac(path).select(docs=docs(schema)).collect()["docs"]
    assert found.to_list() == in_sql(schema, path).to_list()


@schemas
@settings(max_examples=25)
@given(data=st.data())
def test_any_documents(schema, data, tmp_path):
    path = tmp_path / "x.iac"
    patients = make(schema, data.draw(patients_of(schema)))
    schema.build(path, patients, codec="zstd", overwrite=True)
    found = iac.scan_iac(path).select(docs=docs(schema)).collect()["docs"]
    assert found.to_list() == in_sql(schema, path).to_list()


@engines
def test_rows_of_several_packs_in_any_order_with_nulls(engine, tmp_path):
    for number in range(3):
        patients = some_patients(TEXT, 20)
        for patient in patients:
            patient["patient_id"] += f" {number}"
        TEXT.build(tmp_path / f"{number}.iac", make(TEXT, patients), quality=1)
    order = ["患者-7 2", "患者-3 0", "nobody", "患者-7 2", "患者-11 1"]
    keys = pl.LazyFrame({"patient_id": order})
    notes = iac.scan_iac(tmp_path / "*.iac").select("patient_id", "record")
    joined = keys.join(notes, on="patient_id", how="left", maintain_order="left")
    found = joined.select(docs=docs()).collect(engine=engine)["docs"]
    with iac.connect() as con:
        rows = f"FROM '{tmp_path}/*.iac' SELECT patient_id, iac_docs(record)"
        expected = dict(con.sql(rows).fetchall())
    assert found.to_list() == [expected.get(patient_id) for patient_id in order]
    assert found.is_null().to_list() == [False, False, True, False, False]


@schemas
def test_nothing_and_none_have_the_type_of_documents(schema):
    path = DATA / f"{schema.name}.iac"
    frame = iac.scan_iac(path)
    nulls = frame.select(record=pl.lit(None, frame.collect_schema()["record"]))
    for rows in (frame.head(0), nulls):
        lazy = rows.select(docs=docs(schema))
        found = lazy.collect()
        assert found.schema == lazy.collect_schema() == {"docs": in_sql(schema, path).dtype}
        assert found["docs"].null_count() == found.height


def test_documents_become_rows():
    frame = iac.scan_iac(DATA / "clinical_text.iac")
    rows = frame.select("patient_id", doc=docs()).explode("doc").unnest("doc")
    found = rows.filter(pl.col("doc_type") == "admission").select("patient_id", "doc_id", "text")
    assert found.collect().rows() == [("患者-1", "d1", "Admission note — é 日本 🩺\r\n")]


@engines
def test_in_filters_only_rows_that_are_left_are_read(engine, tmp_path):
    good = payload({"docs": [entry(length=2)]}, b"ok")
    path = write_text(tmp_path / "x.iac", [b"bad", good, b"bad"])
    frame = iac.scan_iac(path).filter(pl.col("item_id") == "item-1")
    found = frame.filter(docs().list.len() == 1).select("item_id").collect(engine=engine)
    assert found.rows() == [("item-1",)]


@pytest.mark.parametrize(("data", "message"), HOSTILE[::4], ids=lambda value: None)
def test_a_manifest_that_is_wrong(data, message, tmp_path):
    good = payload({"docs": [entry(length=2)]}, b"ok")
    path = write_text(tmp_path / "x.iac", [good, data, good])
    frame = iac.scan_iac(path).select("record").collect()
    with pytest.raises(iac.CodecError, match=re.escape(message)) as caught:
        frame.select(docs())
    assert str(caught.value).startswith(f"{path}: row 1: ")
    found = frame.select(docs(on_error="null").list.eval(TEXTS)).to_series()
    assert found.to_list() == [["ok"], None, ["ok"]]


def test_episodes_beyond_int32(tmp_path):
    records = [payload({"docs": [entry(episode_index=e)]}) for e in (2**31 - 1, -(2**31), 2**31)]
    frame = iac.scan_iac(write_text(tmp_path / "x.iac", records)).select("record").collect()
    with pytest.raises(iac.CodecError, match="row 2: Int32 cannot hold an episode_index of it"):
        frame.select(docs())
    episodes = docs(on_error="null").list.eval(pl.element().struct.field("episode_index"))
    assert frame.select(episodes).to_series().to_list() == [[2**31 - 1], [-(2**31)], None]


def test_damaged_missing_and_changed_records(tmp_path):
    path = tmp_path / "x.iac"
    good = payload({"docs": [entry(length=2)]}, b"ok")
    other = payload({"docs": []}, b"other")
    write_text(path, [good, good, other])
    frame = iac.scan_iac(path).select("record").collect()
    flip_payload(path, 1)
    with pytest.raises(iac.ChecksumError, match="row 1"):
        frame.select(docs())
    counts = docs(on_error="null", workers=2).list.len()
    assert frame.select(counts).to_series().to_list() == [1, None, 0]
    beyond = pl.DataFrame({"record": [{"pack": str(path), "row": 9}]})
    with pytest.raises(iac.PackIndexError, match="row 9"):
        beyond.select(docs())
    write_text(path, [other, other, good])
    with pytest.raises(iac.StaleReferenceError, match=r"row 0: .* run the query again"):
        frame.select(docs())
    assert frame.select(counts).to_series().to_list() == [None, None, None]
    path.unlink()
    with pytest.raises(iac.PackNotFoundError):
        frame.select(docs())
    assert frame.select(counts).to_series().null_count() == 3


def test_options(tmp_path):
    frame = iac.scan_iac(DATA / "clinical_text.iac").select("record").collect()
    with pytest.raises(iac.PackError, match="not among the packs that were allowed"):
        frame.select(docs(packs=[tmp_path]))
    with pytest.raises(TypeError, match="report is no option"):
        docs(report=[])
    with pytest.raises(ValueError, match="on_error is 'skip'"):
        docs(on_error="skip")
    with pytest.raises(TypeError, match="workers is 'two'"):
        frame.select(docs(workers="two"))
    with pytest.raises(TypeError, match="expected a struct"):
        pl.DataFrame({"record": [1]}).select(docs())


def test_packs_behind_urls(tmp_path):
    files = fsspec.filesystem("memory")
    good = payload({"docs": [entry(length=2)]}, b"ok")
    path = write_text(tmp_path / "x.iac", [good, b"bad"])
    files.pipe("/documents.iac", path.read_bytes())
    frame = iac.scan_iac("memory://documents.iac").select("record").collect()
    assert frame.head(1).select(docs(storage=files).list.eval(TEXTS)).item().to_list() == ["ok"]
    with pytest.raises(iac.CodecError, match=r"memory://documents\.iac: row 1: payload of 3 bytes"):
        frame.select(docs(storage=files))
    with pytest.raises(iac.PackError, match="storage="):
        frame.select(docs())


def test_packs_of_other_records(tmp_path):
    jpeg = f"{DATA}/jpeg_default.iac: its records are not documents"
    for schema, pack, message in [
        (TEXT, DATA / "clinical_text_pair.iac", "'clinical_text_pair', use iac.doc_pairs()"),
        (PAIR, DATA / "clinical_text.iac", "not pairs of documents, its payload type is 'clinical"),
        (PAIR, DATA / "clinical_text.iac", "use iac.docs()"),
        (TEXT, DATA / "jpeg_default.iac", jpeg),
        (TEXT, DATA / "features_f32.iac", "its records are not documents, its payload type is"),
        (TEXT, write_pack(tmp_path / "x.iac", [b"x"]), f"{tmp_path}/x.iac: its records are not"),
    ]:
        with pytest.raises(iac.CodecError, match=re.escape(message)):
            iac.scan_iac(pack).select(docs(schema, on_error="null")).collect()
