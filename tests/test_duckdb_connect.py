"""Connections with the extension, and databases it leaves alone."""

import builtins
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from packs import DATA

import iac_query as iac

PACK = DATA / "raw_basic.iac"


def test_connect_to_memory_and_to_a_file(tmp_path: Path):
    with iac.connect() as con:
        assert con.sql(f"SELECT count(*) FROM '{PACK}'").fetchall() == [(6,)]
    with iac.connect(tmp_path / "x.db", threads=1) as con:
        con.execute(f"CREATE TABLE t AS FROM '{PACK}'")
        assert con.sql("SELECT current_setting('threads')").fetchall() == [(1,)]
    with iac.connect(str(tmp_path / "x.db"), access_mode="read_only") as con:
        assert con.sql("SELECT iac_text(record) FROM t LIMIT 1").fetchall() == [("first",)]


def test_macros_come_with_the_connection_and_stay_out_of_the_database(tmp_path: Path):
    query = f"SELECT count(iac_text_where(slide_idx = 0, record)) FROM '{PACK}'"
    with iac.connect(tmp_path / "x.db") as con:
        expected = con.sql(query).fetchall()
        assert 0 < expected[0][0] < 6
    with iac.connect(tmp_path / "x.db", access_mode="read_only") as con:
        assert con.sql(query).fetchall() == expected
    with duckdb.connect(tmp_path / "x.db") as con:
        names = con.sql("SELECT function_name FROM duckdb_functions()").fetchall()
    assert ("iac_text_where",) not in names


def test_load_into_an_existing_connection(tmp_path: Path):
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as con:
        iac.load(con)
        iac.load(con)
        assert con.cursor().sql(f"SELECT count(*) FROM '{PACK}'").fetchall() == [(6,)]


def test_an_instance_that_refuses_the_extension_names_the_setting_and_the_way():
    with duckdb.connect() as con, pytest.raises(duckdb.IOException) as refused:
        iac.load(con)
    assert "allow_unsigned_extensions" in str(refused.value)
    assert "iac_query.connect" in str(refused.value)


def test_settings_that_forbid_loading_hold_afterwards():
    limits = {"enable_external_access": False, "lock_configuration": True}
    with iac.connect(allowed_directories=[str(DATA)], **limits) as con:
        assert con.sql(f"SELECT count(*) FROM '{PACK}'").fetchall() == [(6,)]
        with pytest.raises(duckdb.Error, match="disabled by configuration"):
            con.sql("FROM iac_scan('/etc/x.iac')")
        with pytest.raises(duckdb.Error, match="locked"):
            con.execute("SET enable_external_access = true")


def test_without_duckdb_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    real_import = builtins.__import__

    def without_duckdb(name, globals=None, locals=None, fromlist=(), level=0):
        if name == "duckdb" and level == 0:
            raise ImportError(name)
        return real_import(name, globals, locals, fromlist, level)

    monkeypatch.setattr(builtins, "__import__", without_duckdb)
    with pytest.raises(ImportError, match=r"pip install iac-query\[duckdb\]"):
        iac.connect()


def test_importing_the_package_does_not_import_duckdb():
    code = "import sys, iac_query; sys.exit('duckdb' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_nothing_is_written_to_the_database(tmp_path: Path):
    with iac.connect(tmp_path / "x.db") as con:
        con.sql(f"SELECT count(iac_payload(record)) FROM '{PACK}'").fetchall()
    with duckdb.connect(str(tmp_path / "x.db")) as con:
        for listing in ("duckdb_functions()", "duckdb_views()", "duckdb_tables()"):
            found = con.sql(f"FROM {listing} WHERE NOT internal AND database_name = 'x'").fetchall()
            assert found == []


def test_another_process_can_open_the_database_after_close(tmp_path: Path):
    database = tmp_path / "x.db"
    con = iac.connect(database)
    con.execute(f"CREATE TABLE t AS SELECT record, iac_payload(record) AS p FROM '{PACK}'")
    con.close()
    code = f"import duckdb; duckdb.connect({str(database)!r}).execute('CREATE TABLE u (i INT)')"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_results_outlive_the_connection_and_the_file(tmp_path: Path):
    path = tmp_path / "gone.iac"
    path.write_bytes(PACK.read_bytes())
    con = iac.connect()
    table = con.sql(f"SELECT item_id, iac_payload(record) AS p FROM '{path}'").to_arrow_table()
    con.close()
    os.unlink(path)
    assert table["p"][0].as_py() == b"first"
    assert table.schema.field("item_id").type == pa.string()
