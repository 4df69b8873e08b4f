"""Packs of documents from files, a row a document: CSV, JSON Lines and Parquet."""

import csv
import gzip
import json
import os

import iac_query.adapters._document_files as document_files
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from patients import PAIR, TEXT, make
from test_document_tables import built, rows_of, schemas, with_docs


def csv_of(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(table, sink)
    return sink.getvalue().to_pybytes()


def json_lines(rows) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


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
    (
        "x.jsonl",
        b'{"patient_id": 7, "text": "SECRET"}\n',
        "row 0: patient_id is of type number, expected string: write it in quotes",
    ),
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
    monkeypatch.setattr(document_files, "_BLOCK_BYTES", block)
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


def test_json_that_is_read_whole_tells_no_row(tmp_path, monkeypatch):
    monkeypatch.delattr(document_files.pyarrow.json, "open_json", raising=False)
    row = b'{"patient_id": "p", "doc_id": "a", "text": "x"}\n'
    (tmp_path / "x.jsonl").write_bytes(row)
    TEXT.build_from_file(tmp_path / "x.iac", tmp_path / "x.jsonl")
    assert len(built(TEXT, tmp_path / "x.iac")) == 1
    (tmp_path / "x.jsonl").write_bytes(row + row.replace(b'"x"', b"7"))
    with pytest.raises(ValueError, match="JSON Lines: a row: text is of type number"):
        TEXT.build_from_file(tmp_path / "y.iac", tmp_path / "x.jsonl")


def test_integers_that_pandas_wrote_as_floats(tmp_path):
    frame = pd.DataFrame({"patient_id": "p", "doc_id": ["a", "b", "c"], "text": "x"})
    frame["episode_index"] = [7, None, -2]
    frame.to_csv(tmp_path / "x.csv", index=False)
    assert b",7.0\n" in (tmp_path / "x.csv").read_bytes()
    TEXT.build_from_file(tmp_path / "x.iac", tmp_path / "x.csv")
    (patient,) = built(TEXT, tmp_path / "x.iac")
    assert [doc["episode_index"] for doc in patient["docs"]] == [7, -1, -2]


def test_a_row_may_not_be_longer_than_a_block(tmp_path, monkeypatch):
    monkeypatch.setattr(document_files, "_BLOCK_BYTES", 1 << 20)
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
    monkeypatch.setattr(document_files, "_QUOTES_BYTES", block)
    (tmp_path / "x.csv").write_bytes(HEAD + rows)
    with pytest.raises(ValueError, match=rf"x\.csv: .* line {line}: its quotes") as caught:
        TEXT.build_from_file(tmp_path / "x.iac", tmp_path / "x.csv")
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("block", [4, 7, 1 << 20])
def test_quotes_where_they_belong(tmp_path, monkeypatch, block):
    monkeypatch.setattr(document_files, "_QUOTES_BYTES", block)
    texts = ["", '"', 'a ""q"" b', 'x,"\r\n",y', '"\n"', "plain"]
    with (tmp_path / "x.csv").open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(["patient_id", "doc_id", "text"])
        writer.writerows(["p", f"d{i}", text] for i, text in enumerate(texts))
    TEXT.build_from_file(tmp_path / "x.iac", tmp_path / "x.csv")
    (patient,) = built(TEXT, tmp_path / "x.iac")
    assert [doc["text"] for doc in patient["docs"]] == texts
