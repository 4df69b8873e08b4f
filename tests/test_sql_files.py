"""The sessions in sql/*.test, in DuckDB's Python package and in its command line.

A query stands behind ``D`` and runs to its semicolon; below are the rows expected, with ``|``
between columns, or ``error:`` and a part of the error's text. A blank line ends them. A comment
starts with ``#``. ``@name;`` is the query in sql/queries/name.sql. The working folder holds the
packs of tests/data, two of them damaged, and one also in cohort/year=.../site=... . The notes are
there by patient as well, in patients.iac, where those of one institution are damaged.
"""

import os
import re
import shutil
import subprocess
import sysconfig
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

import pytest
from iac_query.adapters.text import build_clinical_text_pack_from_table
from packs import DATA, flip_payload, patch, segments_of

import iac_query as iac

SQL = files("iac_query") / "sql"
SESSIONS = sorted((Path(__file__).parent / "sql").glob("*.test"))


@dataclass
class Query:
    sql: str
    rows: list[str] = field(default_factory=list)
    error: str = ""


def parse(text: str) -> list[Query]:
    queries: list[Query] = []
    is_open = False
    for line in text.splitlines():
        if is_open:
            queries[-1].sql += f"\n{line}"
        elif line.startswith("D "):
            queries.append(Query(line[2:]))
        elif line.startswith("error: "):
            queries[-1].error = line.removeprefix("error: ")
        elif line and not line.startswith("#"):
            queries[-1].rows.append(line)
        if line.startswith("D @"):
            name = line.removeprefix("D @").removesuffix(";")
            queries[-1].sql = (SQL / "queries" / f"{name}.sql").read_text(encoding="utf-8")
        is_open = bool(queries) and not queries[-1].sql.rstrip().endswith(";")
    return queries


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = Path(shutil.copytree(DATA, tmp_path / "data"))
    for part in ("year=2023/site=a", "year=2024/site=a", "year=2024/site=b"):
        (folder / "cohort" / part).mkdir(parents=True)
        shutil.copy(folder / "raw_basic.iac", folder / "cohort" / part / "basic.iac")
    damaged = Path(shutil.copy(folder / "raw_basic.iac", folder / "damaged.iac"))
    for row in (2, 3):
        flip_payload(damaged, row)
    broken = Path(shutil.copy(folder / "raw_basic.iac", folder / "broken.iac"))
    patch(broken, segments_of(broken)[0]["index_table_offset"], b"not Arrow")
    by_patient(folder / "notes.iac", folder / "patients.iac")
    return folder


def by_patient(notes: Path, path: Path) -> None:
    """Writes the notes as a pack of patients' documents. Patients of the south are damaged."""
    with iac.connect() as con:
        rows = con.sql(
            f"""
            SELECT patient_id, note_id AS doc_id, note_type AS doc_type,
                   written::VARCHAR AS doc_timestamp, iac_text(record) AS text,
                   CASE WHEN patient_id < 'p06' THEN 'north' ELSE 'south' END AS institution
            FROM '{notes}' ORDER BY note_id
            """
        ).to_arrow_table()
    build_clinical_text_pack_from_table(path, rows, quality=1)
    with iac.PackReader(path) as reader:
        institutions = reader.index_table["institution"].to_pylist()
    for row, institution in enumerate(institutions):
        if institution == "south":
            flip_payload(path, row)


def rows_of(con, sql: str) -> list[str]:
    """The rows as DuckDB writes them."""
    relation = con.sql(sql)
    if relation is None or sql.split()[0] in ("CREATE", "COPY"):
        return []
    texts = relation.project("COLUMNS(*)::VARCHAR").fetchall()
    return [" | ".join("NULL" if text is None else text for text in row) for row in texts]


@pytest.mark.parametrize("session", SESSIONS, ids=lambda path: path.stem)
def test_in_python(session: Path, folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(folder)
    with iac.connect() as con:
        for query in parse(session.read_text(encoding="utf-8")):
            if query.error:
                with pytest.raises(Exception, match=re.escape(query.error)):
                    rows_of(con, query.sql)
            else:
                assert rows_of(con, query.sql) == query.rows, query.sql


@pytest.mark.parametrize("session", SESSIONS, ids=lambda path: path.stem)
def test_in_the_command_line(session: Path, folder: Path):
    queries = parse(session.read_text(encoding="utf-8"))
    script = ".mode list\n.headers off\n.nullvalue NULL\n.separator ' | '\n"
    script += f"LOAD '{files('iac_query') / 'iac.duckdb_extension'}';\n"
    script += (SQL / "macros.sql").read_text(encoding="utf-8")
    for query in queries:
        script += f".print ----\n{query.sql}\n"
    shell = Path(sysconfig.get_path("scripts")) / "duckdb"
    run = subprocess.run(
        [shell, "-unsigned", "-no-init"],
        input=script,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "TERM": "dumb"},
        timeout=120,
    )
    answers = run.stdout.split("----\n")[1:]
    assert len(answers) == len(queries), run.stderr
    errors = run.stderr
    for query, answer in zip(queries, answers, strict=True):
        assert answer.splitlines() == query.rows, f"{query.sql}\n{run.stderr}"
        if query.error:
            _, found, errors = errors.partition(query.error)
            assert found, f"{query.sql}\n{run.stderr}"
    assert run.stderr.count("Error:") == sum(bool(query.error) for query in queries), run.stderr


def test_every_worked_query_is_run_and_documented():
    names = {path.name.removesuffix(".sql") for path in (SQL / "queries").iterdir()}
    sessions = "".join(session.read_text(encoding="utf-8") for session in SESSIONS)
    docs = (Path(__file__).parent.parent / "docs" / "sql.md").read_text(encoding="utf-8")
    assert names == set(re.findall(r"^D @(\w+);$", sessions, re.MULTILINE))
    assert names == set(re.findall(r"^\| (\w+)\.sql \|", docs, re.MULTILINE))
