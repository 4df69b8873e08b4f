"""Packs of documents from tables, a row a document: frames of any kind."""

import os

import duckdb
import iac_query.adapters._document_tables as document_tables
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from patients import SCHEMAS, TEXT, as_dicts, patients_of, some_patients

schemas = pytest.mark.parametrize("schema", SCHEMAS, ids=str)


def rows_of(patients):
    """The documents of all patients, one behind the other."""
    return [
        {"patient_id": p["patient_id"], "institution": p["institution"], **doc}
        for p in patients
        for doc in p["docs"]
    ]


def with_docs(schema, count=9):
    return [patient for patient in some_patients(schema, count) if patient["docs"]]


def built(schema, path):
    with schema.reader(path) as reader:
        return as_dicts(reader.read_patients_at(range(len(reader))))


FRAMES = {
    "pyarrow": lambda table: table,
    "chunks": lambda table: pa.concat_tables([table.slice(0, 2), table.slice(2)]),
    "reader": lambda table: table.to_reader(max_chunksize=3),
    "pandas": lambda table: table.to_pandas(),
    "polars": pl.from_arrow,
    "categories": lambda table: pl.from_arrow(table).with_columns(
        pl.col("patient_id", "doc_type").cast(pl.Categorical)
    ),
    "dictionaries": lambda table: pa.table(
        {name: table[name].dictionary_encode() for name in table.column_names if name != "source"}
    ).append_column("source", table["source"].cast(pa.large_string())),
    "duckdb": lambda table: duckdb.from_arrow(table),
}


@schemas
@pytest.mark.parametrize("kind", [kind for kind in FRAMES if kind != "dictionaries"])
@pytest.mark.parametrize("order", ["together", "apart"])
def test_frames(schema, tmp_path, kind, order):
    patients = with_docs(schema)
    rows = rows_of(patients)
    if order == "apart":  # the first documents of all, the second of all, ...
        rows.sort(key=lambda row: row["doc_id"])
        patients.sort(key=lambda patient: rows.index(rows_of([patient])[0]))
    table = FRAMES[kind](pa.Table.from_pylist(rows))
    schema.build_from_table(tmp_path / "x.iac", table, quality=1)
    assert built(schema, tmp_path / "x.iac") == patients


@schemas
@pytest.mark.parametrize("block", [1, 3, 1024])
@settings(max_examples=25)
@given(data=st.data())
def test_rows_in_any_order(schema, tmp_path, block, data):
    patients = [p for p in data.draw(patients_of(schema)) if p["docs"]]
    rows = data.draw(st.permutations(rows_of(patients)))
    by_id = {}
    for row in rows:
        doc = {k: v for k, v in row.items() if k not in ("patient_id", "institution")}
        patient = {"patient_id": row["patient_id"], "institution": row["institution"], "docs": []}
        by_id.setdefault(row["patient_id"], patient)["docs"].append(doc)
    table = pa.Table.from_pylist(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(document_tables, "BLOCK_ROWS", block)
        if not rows:
            with pytest.raises(ValueError, match="column patient_id is missing"):
                schema.build_from_table(tmp_path / "x.iac", table, overwrite=True)
            return
        schema.build_from_table(tmp_path / "x.iac", table, quality=1, overwrite=True)
    assert built(schema, tmp_path / "x.iac") == list(by_id.values())


def test_missing_values_and_columns_are_nothing(tmp_path):
    frame = pd.DataFrame(
        {
            "patient_id": ["p", "p"],
            "doc_id": ["a", "b"],
            "text": ["x", ""],
            "source": [None, "s"],
            "encounter": [None, None],
            "episode_index": [float("nan"), 3.0],
        }
    )
    TEXT.build_from_table(tmp_path / "x.iac", frame)
    (patient,) = built(TEXT, tmp_path / "x.iac")
    assert patient["institution"] == ""
    assert [(d["source"], d["encounter"], d["episode_index"]) for d in patient["docs"]] == [
        ("", "", -1),
        ("s", "", 3),
    ]


def table(**changed):
    """Three rows of one patient, with other values in some columns."""
    columns = {"patient_id": ["p"] * 3, "doc_id": ["a", "b", "c"], "text": ["x"] * 3, **changed}
    return pa.table({name: column for name, column in columns.items() if column is not None})


NOT_TEXT = pa.array([b"x", b"SECRET \xff", b"x"]).view(pa.string())
WRONG = [
    (table(text=None), ValueError, "table: column text is missing, there are"),
    (table(patient_id=None), ValueError, "column patient_id is missing"),
    (table(doc_id=["a", None, "c"]), ValueError, "table: row 1: doc_id is missing"),
    (table(doc_id=["a", "b", ""]), ValueError, "row 2: doc_id is missing"),
    (table(doc_id=["a", "b", "a"]), ValueError, "patient 0: documents 0 and 2 have the same"),
    (table(patient_id=["p", None, "p"]), ValueError, "row 1: patient_id is missing"),
    (table(text=["x", "y", None]), ValueError, "row 2: text is missing"),
    (table(text=NOT_TEXT), ValueError, "table: rows from 0 on: .*UTF8"),
    (table(patient_id=[1, 2, 3]), TypeError, "column patient_id is int64, expected text"),
    (table(text=[b"x", b"y", b"z"]), TypeError, "column text is binary, expected text"),
    (
        table(doc_timestamp=pa.array([1, 2, 3], pa.timestamp("us"))),
        TypeError,
        "column doc_timestamp is timestamp.us., expected text",
    ),
    (table(episode_index=["1", "2", "3"]), TypeError, "episode_index is string, expected integers"),
    (table(episode_index=[1, 2.5, 3]), ValueError, "row 1: episode_index is not an integer"),
    (table(episode_index=[1, 2, float("inf")]), ValueError, "row 2: episode_index is not an"),
    (table(episode_index=[1, 2, 1 << 31]), ValueError, "document 2: episode_index does not fit"),
    (table(institution=["h", "h", "SECRET"]), ValueError, "row 2: its institution is not that"),
    (table().slice(0, 0), ValueError, "no patients to pack"),
    (table().append_column("text", pa.array(["y"] * 3)), ValueError, "column text is there twice"),
    ([{"patient_id": "p"}], TypeError, "table is <class 'list'>, expected something with __arrow"),
    (pl.LazyFrame({"text": ["x"]}), TypeError, "a lazy one collected"),
]


@pytest.mark.parametrize(("rows", "kind", "message"), WRONG, ids=[w[2] for w in WRONG])
def test_what_is_no_table_of_documents_leaves_nothing(tmp_path, rows, kind, message):
    with pytest.raises(kind, match=message) as caught:
        TEXT.build_from_table(tmp_path / "x.iac", rows)
    assert "SECRET" not in str(caught.value)
    assert os.listdir(tmp_path) == []
