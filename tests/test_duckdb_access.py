"""DuckDB's rules for access to files hold for packs, those that are open already included."""

import os
from pathlib import Path

import duckdb
import pytest
from packs import write_pack

import iac_query as iac

REFUSED = "disabled by configuration"
#: Calls of every function that takes a record, ``{}``.
FUNCTIONS = [
    "iac_payload({})",
    "iac_stored({})",
    "iac_text({})",
    "iac_docs({})",
    "iac_doc_pairs({})",
    "iac_image({})",
    "iac_tags({})",
    "iac_tag({}, 'Rows')",
    "iac_hu({})",
    "iac_vector({})",
    "iac_vector_double({})",
    "iac_verify({})",
]


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    (tmp_path / "allowed").mkdir()
    write_pack(tmp_path / "outside.iac", [b"outside"])
    return write_pack(tmp_path / "allowed" / "x.iac", [b"one", b"two"])


@pytest.fixture
def con(pack: Path):
    """A connection that has every pack open already, and references to them."""
    with iac.connect() as con:
        outside = pack.parent.parent / "outside.iac"
        con.execute(f"CREATE TABLE refs AS SELECT record FROM '{pack}'")
        con.execute(f"CREATE TABLE outside AS SELECT record FROM '{outside}'")
        con.execute(f"PREPARE prepared AS SELECT count(item_id) FROM '{pack}'")
        for table in ("refs", "outside"):
            con.sql(f"SELECT iac_payload(record) FROM {table}").fetchall()
        yield con


@pytest.mark.parametrize("call", FUNCTIONS)
def test_no_function_reads_without_external_access(con, pack: Path, call: str):
    con.execute("SET enable_external_access = false")
    reference = f"{{'pack': '{pack}', 'row': 0}}"
    for query in (
        f"SELECT {call.format('record')} FROM refs",
        f"SELECT {call.format(reference)}",
        f"SELECT count({call.format('record')}) FROM iac_scan('{pack}')",
    ):
        with pytest.raises(duckdb.Error, match=REFUSED):
            con.execute(query).fetchall()
    nothing = con.execute(f"SELECT TRY({call.format('record')}) FROM refs").fetchall()
    assert nothing == [(None,), (None,)]


def test_no_scan_reads_without_external_access(con, pack: Path):
    con.execute("SET enable_external_access = false")
    for query in (
        f"FROM '{pack}'",
        f"SELECT count(*) FROM iac_scan('{pack}')",
        f"DESCRIBE FROM '{pack}'",
        f"FROM iac_slides('{pack}')",
        f"FROM iac_info('{pack}')",
        f"FROM iac_check('{pack}')",
        "EXECUTE prepared",
    ):
        with pytest.raises(duckdb.Error, match=REFUSED):
            con.execute(query).fetchall()


def test_every_cursor_of_the_instance_is_bound(con, pack: Path):
    other = con.cursor()
    con.execute("SET enable_external_access = false")
    with pytest.raises(duckdb.Error, match=REFUSED):
        other.execute(f"FROM '{pack}'").fetchall()


def test_another_instance_does_not_lend_its_open_packs(con, pack: Path):
    with iac.connect(enable_external_access=False) as strict:
        with pytest.raises(duckdb.Error, match=REFUSED):
            strict.sql(f"SELECT iac_text({{'pack': '{pack}', 'row': 0}})").fetchall()
        assert con.sql("SELECT iac_text(record) FROM refs").fetchall() == [("one",), ("two",)]


@pytest.mark.parametrize("setting", ["allowed_directories", "allowed_paths"])
def test_what_is_allowed_and_nothing_else(con, pack: Path, setting: str):
    allowed = f"{pack.parent}/" if setting == "allowed_directories" else str(pack)
    con.execute(f"SET {setting} = ['{allowed}']")
    con.execute("SET enable_external_access = false")
    assert con.sql("SELECT iac_text(record) FROM refs").fetchall() == [("one",), ("two",)]
    assert con.sql(f"SELECT count(*) FROM '{pack}'").fetchall() == [(2,)]
    assert con.execute("EXECUTE prepared").fetchall() == [(2,)]
    outside = pack.parent.parent / "outside.iac"
    (pack.parent / "link.iac").symlink_to(outside)
    for path in (outside, pack.parent / ".." / "outside.iac", pack.parent / "link.iac"):
        with pytest.raises(duckdb.Error, match=REFUSED):
            con.sql(f"FROM iac_scan('{path}')").fetchall()
        for function in ("iac_scan", "iac_slides", "iac_info"):  # behind one that is allowed
            with pytest.raises(duckdb.Error, match=REFUSED):
                con.sql(f"FROM {function}(['{pack}', '{path}'])").fetchall()
        with pytest.raises(duckdb.Error, match=REFUSED):
            con.sql(f"SELECT iac_text({{'pack': '{path}', 'row': 0}})").fetchall()
    with pytest.raises(duckdb.Error, match=REFUSED):
        con.sql("SELECT iac_text(record) FROM outside").fetchall()


def test_relative_paths_follow_the_same_rules(con, pack: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(pack.parent)
    con.execute(f"SET allowed_directories = ['{pack.parent}/']")
    con.execute("SET enable_external_access = false")
    assert con.sql("SELECT count(*) FROM 'x.iac'").fetchall() == [(2,)]
    with pytest.raises(duckdb.Error, match=REFUSED):
        con.sql("SELECT count(*) FROM '../outside.iac'").fetchall()


def test_disabled_file_systems(con, pack: Path):
    con.execute("SET disabled_filesystems = 'LocalFileSystem'")
    with pytest.raises(duckdb.Error, match=REFUSED):
        con.sql(f"FROM '{pack}'").fetchall()
    with pytest.raises(duckdb.Error, match=REFUSED):
        con.sql("SELECT iac_text(record) FROM refs").fetchall()


def test_paths_that_are_no_files(con, pack: Path, tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.iac")
    for path, reason in [
        (tmp_path / "pipe.iac", "it is a pipe"),
        (tmp_path, "cannot open"),
        (tmp_path / "nothing.iac", "No such file"),
    ]:
        with pytest.raises(duckdb.Error, match=reason):
            con.sql(f"FROM iac_scan('{path}')").fetchall()
        with pytest.raises(duckdb.Error, match=reason):
            con.sql(f"SELECT iac_text({{'pack': '{path}', 'row': 0}})").fetchall()
    for path, reason in [  # behind a pack that may be read, for which alone DuckDB is asked
        (tmp_path / "pipe.iac", "a pipe"),
        (Path("/dev/zero"), "a pipe, socket or device"),
        (tmp_path, "Is a directory"),
        (tmp_path / "nothing.iac", "No such file"),
    ]:
        for function in ("iac_scan", "iac_slides", "iac_info"):
            with pytest.raises(duckdb.Error, match=f"{path}.*{reason}"):
                con.sql(f"FROM {function}(['{pack}', '{path}'])").fetchall()
    with pytest.raises(duckdb.Error, match="the path of a pack has 1000000 bytes"):
        con.sql("SELECT iac_text({'pack': repeat('a/', 500_000), 'row': 0})").fetchall()
    with pytest.raises(duckdb.Error, match="zero byte"):
        con.sql("SELECT iac_text({'pack': 'a' || chr(0) || 'b', 'row': 0})").fetchall()
