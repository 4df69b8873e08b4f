"""COPY ... TO 'x.iac': files that appear whole or not at all."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import pytest
from duckdb_copies import copy, fails, header_of
from iatro import iac as peer
from packs import write_encoded

pytestmark = [pytest.mark.asan, pytest.mark.usefixtures("work")]


def test_failures_leave_the_old_file(con):
    old = copy(con, "SELECT 1 AS k, 'old' AS payload").read_bytes()
    fails(con, "SELECT 1 AS k, 'x' AS payload", "unknown codec", "CODEC nothing")
    fails(
        con,
        "SELECT i AS k, CASE WHEN i < 4000 THEN 'x' END AS payload FROM range(5000) r(i)",
        r"/x\.iac: row 4000",
    )
    fails(
        con,
        """SELECT i AS k, CASE WHEN i < 4000 THEN 'x' ELSE error('boom') END AS payload
            FROM range(5000) r(i)""",
        "boom",
    )
    fails(con, "SELECT 1 AS k, 'x' AS payload", "header", f"LEVEL 1, PAYLOAD_TYPE '{'x' * 70000}'")
    assert Path("x.iac").read_bytes() == old
    copy(con, "SELECT 2 AS k, 'new' AS payload")
    assert con.sql("SELECT k, iac_text(record) FROM 'x.iac'").fetchall() == [(2, "new")]
    assert os.listdir() == ["x.iac"]


@pytest.mark.parametrize(
    "option", ["USE_TMP_FILE false", "USE_TMP_FILE true", "OVERWRITE true", "RETURN_FILES true"]
)
def test_the_options_of_duckdb_itself(con, option: str):
    for k in (1, 2):
        copy(con, f"SELECT {k} AS k, 'x' AS payload", options=f"LEVEL 1, {option}")
        assert con.sql("SELECT k FROM 'x.iac'").fetchall() == [(k,)]
    fails(con, "SELECT 1 AS k, NULL::VARCHAR AS payload", r"/x\.iac: row 0", option)
    assert os.listdir() == ["x.iac"]


def test_partitions_and_threads_write_a_pack_each(con):
    con.execute(
        """CREATE TABLE items AS
            SELECT i % 3 AS part, {'i': i, 'payload': 'x' || i} AS t FROM range(9000) r(i)"""
    )
    con.execute(
        "COPY (SELECT part, t FROM items) TO 'parts' (FORMAT iac, LEVEL 1, PARTITION_BY (part))"
    )
    packs = sorted(path for path in Path("parts").rglob("*") if path.is_file())
    assert len(packs) == 3
    assert (
        sum(con.sql(f"SELECT count(*) FROM iac_scan('{path}')").fetchall()[0][0] for path in packs)
        == 9000
    )


def test_a_prepared_copy_runs_again(con):
    con.execute("CREATE TABLE items AS SELECT 1 AS k, 'one' AS payload")
    con.execute("PREPARE again AS COPY (SELECT items FROM items) TO 'x.iac' (LEVEL 1)")
    for k, text in [(1, "one"), (2, "two"), (3, "three")]:
        con.execute("DELETE FROM items")
        con.execute("INSERT INTO items VALUES (?, ?)", [k, text])
        con.execute("EXECUTE again")
        assert con.sql("SELECT k, iac_text(record) FROM 'x.iac'").fetchall() == [(k, text)]
    con.execute("UPDATE items SET payload = NULL")
    old = Path("x.iac").read_bytes()
    with pytest.raises(duckdb.Error, match=r"x\.iac: row 0: the payload is NULL"):
        con.execute("EXECUTE again")
    assert Path("x.iac").read_bytes() == old and os.listdir() == ["x.iac"]


def test_an_interrupt_leaves_nothing(con):
    query = "SELECT i, repeat('abc' || i, 300) AS payload FROM range(100000000) r(i)"
    timer = threading.Timer(0.4, con.interrupt)
    timer.start()
    began = time.monotonic()
    fails(con, query, "(?i)interrupt")
    assert time.monotonic() - began < 10
    timer.join()


def test_a_process_that_is_killed_leaves_the_old_file(con):
    old = copy(con, "SELECT 1 AS k, 'old' AS payload").read_bytes()
    script = """
import iac_query, os, signal, threading
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
iac_query.connect().execute(
    "COPY (SELECT repeat('abc' || i, 300) FROM range(100000000) r(i)) TO 'x.iac' (COLUMNS payload)"
)
"""
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == -9
    assert Path("x.iac").read_bytes() == old


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("nowhere/x.iac", "cannot write: its folder does not exist"),
        ("https://example.org/x.iac", "packs can be written to local files only"),
        ("folder.iac", "is not a file that can be replaced"),
        ("pipe.iac", "is not a file that can be replaced"),
    ],
)
def test_targets_that_are_no_files(con, path: str, reason: str):
    os.mkdir("folder.iac")
    os.mkfifo("pipe.iac")
    with pytest.raises(duckdb.Error, match=reason):
        copy(con, "SELECT 1 AS k, 'x' AS payload", path, "USE_TMP_FILE false")
    assert sorted(os.listdir()) == ["folder.iac", "pipe.iac"]


def test_errors_name_the_target_and_not_what_is_renamed_to_it(con):
    copy(con, "SELECT 1 AS k, 'x' AS payload")
    os.mkdir("tmp_x.iac")
    with pytest.raises(duckdb.Error, match=r"work/x\.iac: is not a file that can be replaced"):
        copy(con, "SELECT 1 AS k, 'x' AS payload")


def test_links(con):
    os.mkdir("real")
    os.symlink("real", "folder")
    for k in (1, 2):
        copy(con, f"SELECT {k} AS k, 'x' AS payload", "folder/x.iac")
    assert os.path.islink("folder") and os.listdir("real") == ["x.iac"]
    os.symlink("real/x.iac", "link.iac")
    copy(con, "SELECT 3 AS k, 'x' AS payload", "link.iac", "LEVEL 1, USE_TMP_FILE false")
    assert os.path.islink("link.iac")
    assert con.sql("SELECT k FROM 'real/x.iac'").fetchall() == [(3,)]
    copy(con, "SELECT 4 AS k, 'x' AS payload", "link.iac")
    assert not os.path.islink("link.iac")
    rows = con.sql("SELECT k FROM iac_scan(['folder/x.iac', 'link.iac'])").fetchall()
    assert rows == [(3,), (4,)]
    os.symlink("loop.iac", "loop.iac")
    with pytest.raises(duckdb.Error, match="symbolic links"):
        con.sql("FROM 'loop.iac'")


def test_a_full_disk_is_an_error(con, tmp_path: Path):
    script = """
import iac_query, resource
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    iac_query.connect().execute(
        "COPY (SELECT 'text ' || i FROM range(900000) r(i)) TO 'x.iac' (COLUMNS payload, LEVEL 1)"
    )
except Exception as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", script], timeout=60, capture_output=True, text=True)
    assert "x.iac: cannot write: File too large" in run.stdout, run
    assert os.listdir() == []


def test_the_access_rules_of_duckdb_hold(con, tmp_path: Path):
    (tmp_path / "allowed").mkdir()
    (tmp_path / "work" / "link.iac").symlink_to(tmp_path / "allowed" / "link.iac")
    secret = write_encoded(tmp_path / "secret.iac", [b"x"], "zstd")
    con.execute(f"SET allowed_directories = ['{tmp_path / 'allowed'}/']")
    con.execute("SET enable_external_access = false")
    query = "SELECT 1 AS k, 'x' AS payload"
    for target in (tmp_path / "x.iac", tmp_path / "allowed" / ".." / "x.iac", "x.iac", "~/x.iac"):
        for options in ("LEVEL 1", "LEVEL 1, USE_TMP_FILE false"):
            with pytest.raises(duckdb.Error, match="disabled by configuration"):
                copy(con, query, str(target), options)
    assert not (tmp_path / "x.iac").exists() and os.listdir() == ["link.iac"]
    inside = tmp_path / "allowed" / "x.iac"
    for _ in range(2):
        copy(con, query, str(inside))
    record = f"SELECT {{'pack': '{secret}', 'row': 0}} AS record"
    with pytest.raises(duckdb.Error, match="disabled by configuration"):
        copy(con, record, str(inside), "")
    assert con.sql(f"SELECT k FROM '{inside}'").fetchall() == [(1,)]
    con.execute("RESET threads")


def test_the_mode_is_what_the_umask_says(con):
    old = os.umask(0o027)
    try:
        path = copy(con, "SELECT 1 AS k, 'x' AS payload")
        assert path.stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(old)


def test_the_header(con):
    header = header_of(copy(con, "SELECT 1 AS k, 'x' AS payload"))
    names = {"payload_type", "codec", "codec_params", "num_slides", "num_records"}
    assert names <= header.keys() and header["payload_type"] == "records"
    assert peer.PackReader("x.iac").header == header
