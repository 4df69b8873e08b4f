"""Packs of documents from tables, a row a document: frames of any kind and files."""

import csv
import gzip
import json
import os

import duckdb
import iac_query.adapters._document_tables as document_tables
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from patients import PAIR, SCHEMAS, TEXT, as_dicts, make, patients_of, some_patients

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


def csv_of(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(table, sink)
    return sink.getvalue().to_pybytes()


def json_lines(rows) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


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
        patch.setattr(document_tables, "_BLOCK_ROWS", block)
        if not rows:
            with pytest.raises(ValueError, match="column patient_id is missing"):
                schema.build_from_table(tmp_path / "x.iac", table, overwrite=True)
            return
        schema.build_from_table(tmp_path / "x.iac", table, quality=1, overwrite=True)
    assert built(schema, tmp_path / "x.iac") == list(by_id.values())


FILES = {
    "x.csv": lambda table: csv_of(table),
    "x.CSV.gz": lambda table: gzip.compress(csv_of(table)),
    "x.jsonl": lambda table: json_lines(table.to_pylist()),
    "x.ndjson.gz": lambda table: gzip.compress(json_lines(table.to_pylist())),
}


@schemas
@pytest.mark.parametrize("name", [*FILES, "x.parquet"])
@pytest.mark.parametrize("order", ["together", "apart"])
def test_files(schema, tmp_path, name, order):
    patients = with_docs(schema)
    rows = rows_of(patients)
    if order == "apart":
        rows.sort(key=lambda row: row["doc_id"])
        patients.sort(key=lambda patient: rows.index(rows_of([patient])[0]))
    table = pa.Table.from_pylist([{"other": i, **row} for i, row in enumerate(rows)])
    path = tmp_path / name
    if name == "x.parquet":
        pq.write_table(table, path, row_group_size=4)
    else:
        path.write_bytes(FILES[name](table))
    schema.build_from_file(tmp_path / "x.iac", path, quality=1)
    assert built(schema, tmp_path / "x.iac") == patients
    schema.build(tmp_path / "y.iac", make(schema, patients), quality=1)
    assert (tmp_path / "x.iac").read_bytes() == (tmp_path / "y.iac").read_bytes()


def test_cells_of_csv_are_text_as_they_are(tmp_path):
    (tmp_path / "x.csv").write_text(
        "\ufeffpatient_id,doc_id,text,doc_timestamp,episode_index\n"
        '007,1e3,NA,2024-01-01,\n007,true,"a\r\n""b"",\n",,12\n'
    )
    TEXT.build_from_file(tmp_path / "x.iac", tmp_path / "x.csv")
    (patient,) = built(TEXT, tmp_path / "x.iac")
    assert patient["patient_id"] == "007"
    assert [list(doc.values()) for doc in patient["docs"]] == [
        ["1e3", "NA", "", "", "", "", "2024-01-01", -1],
        ["true", 'a\r\n"b",\n', "", "", "", "", "", 12],
    ]


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


def test_notes_of_5_mb(tmp_path):
    note = 'Befund: "unauffällig", 日本\n' * 170_000
    assert len(note.encode()) > 5 << 20
    rows = [{"patient_id": f"p{i}", "doc_id": "d", "text": note} for i in range(2)]
    table = pa.Table.from_pylist(rows)
    (tmp_path / "x.csv").write_bytes(csv_of(table))
    (tmp_path / "x.jsonl").write_bytes(json_lines(rows))
    for name in ("x.csv", "x.jsonl"):
        TEXT.build_from_file(tmp_path / f"{name}.iac", tmp_path / name, quality=0)
        with TEXT.reader(tmp_path / f"{name}.iac") as reader:
            assert [p.docs[0].text == note for p in reader.read_patients_at([0, 1])] == [True] * 2


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


HEAD = b"patient_id,doc_id,text\n"
WRONG_FILES = [
    ("x.csv", b"", "cannot be read as CSV: Empty CSV file"),
    ("x.csv", HEAD, "no patients to pack"),
    ("x.csv", HEAD + b"p,a,SECRET,x\n", "CSV: row 0 has 4 columns, the header has 3"),
    ("x.csv", HEAD + b"p,a,x\np,SECRET\n", "CSV: row 1 has 2 columns, the header has 3"),
    ("x.csv", HEAD + b'p,a,"SECRET\np,b,x\n', "its quotes do not pair up"),
    ("x.csv", HEAD + b"p,a,SECRET \xff\n", "CSV: row 0: column text: .*invalid UTF8 data"),
    ("x.csv", HEAD + b"p,,SECRET\n", "x.csv: row 0: doc_id is missing"),
    ("x.csv", b"patient_id,doc_id,episode_index,text\np,a,SECRET,x\n", "row 0: episode_index is"),
    ("x.csv", b"patient_id,doc_id\np,a\n", "x.csv: column text is missing"),
    ("x.csv", b"patient_id,doc_id,text,text\np,a,x,y\n", "x.csv: column text is there twice"),
    ("x.jsonl", b"", "cannot be read as JSON Lines"),
    ("x.jsonl", b'{"patient_id": "p", "doc_id": "a"}\n', "x.jsonl: row 0: text is missing"),
    ("x.jsonl", b'{"patient_id": "p", "text": "SECRET', "cannot be read as JSON Lines"),
    ("x.jsonl", b'{"patient_id": 7, "text": "SECRET"}\n', "row 0: patient_id is of type number, .* quotes"),
    ("x.jsonl", b'{"patient_id": "p", "text": "SECRET\\ud800"}\n', "row 0: .*surrogate"),
    ("x.jsonl", b'{"patient_id": "p", "text": "SECRET \xff"}\n', "rows from 0 on: .*UTF8"),
    ("x.jsonl", b'{"patient_id": "SECRET \xff"}\n', "rows from 0 on: .*UTF8"),
    (
        "x.jsonl",
        b'{"patient_id": "p", "doc_id": "a", "text": "x", "episode_index": 1.25}\n',
        "row 0: episode_index is not an integer",
    ),
    ("x.jsonl", b'[{"patient_id": "p"}]\n', "row 0: it is of type array, expected object"),
    (
        "x.jsonl",
        b'{"patient_id": "p", "episode_index": "SECRET"}\n',
        "row 0: episode_index is of type string, expected number: write it without quotes",
    ),
    (
        "x.csv",
        b"patient_id,doc_id,text,episode_index\np,a,x,1_0\n",
        "row 0: episode_index is not an integer",
    ),
    (
        "x.csv",
        b"patient_id,doc_id,text,episode_index\np,a,x,7.0\np,b,x,7.5\n",
        "row 1: episode_index is not an integer",
    ),
    ("x.parquet", b"SECRET no Parquet", "cannot be read as Parquet"),
    ("x.txt", b"", "its name ends in none of .csv"),
    ("x.csv.gz", b"SECRET not compressed", r"x\.csv\.gz: is damaged: .*header check"),
]


@pytest.mark.parametrize(("name", "data", "message"), WRONG_FILES)
def test_broken_files_leave_nothing(tmp_path, name, data, message):
    (tmp_path / name).write_bytes(data)
    with pytest.raises((ValueError, OSError), match=message) as caught:
        TEXT.build_from_file(tmp_path / "x.iac", tmp_path / name)
    assert "SECRET" not in str(caught.value)
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("row", [0, 4, 8])
@pytest.mark.parametrize("block", [100, 1 << 20])
def test_rows_of_broken_files_count_from_the_first(tmp_path, monkeypatch, row, block):
    monkeypatch.setattr(document_tables, "_BLOCK_BYTES", block)
    lines = [b'{"patient_id": "p", "doc_id": "d%d", "text": "x"}\n' % i for i in range(9)]
    lines[row] = lines[row].replace(b'"x"', b"7")
    cells = [b"p,d%d,x\n" % i for i in range(9)]
    cells[row] = cells[row].replace(b"x", b"\xff")
    for name, data, told in (
        ("x.jsonl", lines, "text is of type number, expected string"),
        ("x.csv", [HEAD, *cells], "column text: "),
    ):
        (tmp_path / name).write_bytes(b"".join(data))
        with pytest.raises(ValueError, match=f"{name}: cannot .*: row {row}: {told}"):
            TEXT.build_from_file(tmp_path / "x.iac", tmp_path / name)


def test_integers_that_pandas_wrote_as_floats(tmp_path):
    frame = pd.DataFrame({"patient_id": "p", "doc_id": ["a", "b", "c"], "text": "x"})
    frame["episode_index"] = [7, None, -2]
    frame.to_csv(tmp_path / "x.csv", index=False)
    assert b",7.0\n" in (tmp_path / "x.csv").read_bytes()
    TEXT.build_from_file(tmp_path / "x.iac", tmp_path / "x.csv")
    (patient,) = built(TEXT, tmp_path / "x.iac")
    assert [doc["episode_index"] for doc in patient["docs"]] == [7, -1, -2]


def test_a_row_may_not_be_longer_than_a_block(tmp_path, monkeypatch):
    monkeypatch.setattr(document_tables, "_BLOCK_BYTES", 1 << 20)
    (tmp_path / "x.csv").write_bytes(HEAD + b"p,a," + b"x" * (2 << 20) + b"\np,b,y\n")
    with pytest.raises(ValueError, match="CSV: a row is longer than 1 MiB"):
        TEXT.build_from_file(tmp_path / "x.iac", tmp_path / "x.csv")


@pytest.mark.parametrize("name", ["none.csv", "none.jsonl", "none.parquet"])
def test_a_missing_file(tmp_path, name):
    with pytest.raises(FileNotFoundError, match=name):
        PAIR.build_from_file(tmp_path / "x.iac", tmp_path / name)


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        (b'p,a,5" tall\nq,b,6" SECRET\n', 2),
        (b'p,a,x\nq,b,"c" SECRET\n', 3),
        (b'p,a,"abc\nq,b,"SECRET"x"\n', 3),
        (b'p,a, "SECRET, b"\n', 2),
        (b'p,a,"x \\" b"\nq,b,"c"\n', 2),
        (b'p,a,"x"""\n\nq,b,"c\n', 5),
    ],
)
@pytest.mark.parametrize("block", [1, 3, 1 << 20])
def test_stray_quotes_merge_no_rows(tmp_path, monkeypatch, rows, line, block):
    monkeypatch.setattr(document_tables, "_QUOTES_BYTES", block)
    (tmp_path / "x.csv").write_bytes(HEAD + rows)
    with pytest.raises(ValueError, match=rf"x\.csv: .* line {line}: its quotes") as caught:
        TEXT.build_from_file(tmp_path / "x.iac", tmp_path / "x.csv")
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("block", [4, 7, 1 << 20])
def test_quotes_where_they_belong(tmp_path, monkeypatch, block):
    monkeypatch.setattr(document_tables, "_QUOTES_BYTES", block)
    texts = ["", '"', 'a ""q"" b', 'x,"\r\n",y', '"\n"', "plain"]
    with (tmp_path / "x.csv").open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(["patient_id", "doc_id", "text"])
        writer.writerows(["p", f"d{i}", text] for i, text in enumerate(texts))
    TEXT.build_from_file(tmp_path / "x.iac", tmp_path / "x.csv")
    (patient,) = built(TEXT, tmp_path / "x.iac")
    assert [doc["text"] for doc in patient["docs"]] == texts
