"""The settings of the extension, and packs found under iac_root."""

import os
import shutil
from pathlib import Path

import duckdb
import pytest
from packs import flip_payload, write_encoded, write_pack

SETTINGS = {
    "iac_threads": 3,
    "iac_verify": False,
    "iac_max_record_bytes": 10,
    "iac_max_batch_bytes": 10,
    "iac_cache_packs": 0,
    "iac_root": "/nowhere",
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_is_the_connections_own_and_changes_no_scan(con, tmp_path: Path, name: str):
    path = write_encoded(tmp_path / "x.iac", [b"x" * 500] * 10, "zstd")
    other = con.cursor()
    value = f"SELECT current_setting('{name}')"
    default = con.sql(value).fetchall()
    scans = [f"FROM '{path}'", f"FROM iac_slides('{path}')", f"FROM iac_info('{path}')"]
    expected = [con.sql(scan).fetchall() for scan in scans]
    con.execute(f"SET {name} = '{SETTINGS[name]}'")
    assert con.sql(value).fetchall() == [(SETTINGS[name],)]
    assert other.sql(value).fetchall() == default
    assert [con.sql(scan).fetchall() for scan in scans] == expected
    con.execute(f"RESET {name}")
    assert con.sql(value).fetchall() == default


def test_settings_are_documented(con):
    found = con.sql(
        "SELECT name, description FROM duckdb_settings() WHERE starts_with(name, 'iac_')"
    ).fetchall()
    assert {name for name, _ in found} == set(SETTINGS)
    docs = (Path(__file__).parent.parent / "docs" / "sql.md").read_text(encoding="utf-8")
    assert all(description for _, description in found)
    for name in SETTINGS:
        assert f"`{name}`" in docs, name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("iac_threads", -1),
        ("iac_threads", 5000),
        ("iac_max_record_bytes", 0),
        ("iac_max_batch_bytes", -5),
        ("iac_cache_packs", -1),
    ],
)
def test_a_value_out_of_range_is_an_error_that_names_the_setting(
    con, tmp_path: Path, name: str, value: int
):
    path = write_pack(tmp_path / "x.iac", [b"1"])
    con.execute(f"SET {name} = {value}")
    with pytest.raises(duckdb.Error, match=rf"the setting {name} is {value}, expected a number"):
        con.sql(f"SELECT iac_text({{'pack': '{path}', 'row': 0}})").fetchall()


def test_without_verification_damage_is_returned_to_who_asks_for_it(con, tmp_path: Path):
    path = write_pack(tmp_path / "x.iac", [b"one"])
    flip_payload(path, 0)
    query = f"SELECT iac_payload(record), iac_stored(record) FROM '{path}'"
    with pytest.raises(duckdb.Error, match="crc32"):
        con.sql(query).fetchall()
    con.execute("SET iac_verify = false")
    assert con.sql(query).fetchall() == [(b"/ne", b"/ne")]
    with pytest.raises(duckdb.Error, match="crc32"):
        con.cursor().sql(query).fetchall()


@pytest.mark.parametrize("threads", [0, 1, 2])
def test_every_number_of_threads_gives_the_same(con, tmp_path: Path, threads: int):
    objects = [b"%d" % i * 500 for i in range(3000)]
    path = write_encoded(tmp_path / "x.iac", objects, "zstd")
    con.execute(f"SET iac_threads = {threads}")
    found = con.sql(f"SELECT iac_payload(record) FROM '{path}'").fetchall()
    assert [row for (row,) in found] == objects


def open_files(folder: Path) -> int:
    links = (os.path.join("/proc/self/fd", name) for name in os.listdir("/proc/self/fd"))
    return sum(
        os.path.islink(link) and os.readlink(link).startswith(f"{folder}/") for link in links
    )


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_so_many_packs_stay_open(con, tmp_path: Path):
    paths = [write_pack(tmp_path / f"{i}.iac", [b"%d" % i]) for i in range(12)]
    for keep in (12, 5, 1, 0):
        con.execute(f"SET iac_cache_packs = {keep}")
        for i, path in enumerate(paths):
            found = con.sql(f"SELECT iac_text(record) FROM '{path}'").fetchall()
            assert found == [(str(i),)]
        assert open_files(tmp_path) == keep


# Packs that moved


@pytest.fixture
def moved(con, tmp_path: Path) -> Path:
    """References to the packs of two sites, which then were moved to another folder."""
    for site in "ab":
        (tmp_path / "old" / site).mkdir(parents=True)
        write_pack(tmp_path / "old" / site / "x.iac", [f"site {site}".encode()])
        con.execute(
            f"CREATE TABLE {site} AS SELECT record FROM '{tmp_path / 'old' / site / 'x.iac'}'"
        )
    (tmp_path / "old").rename(tmp_path / "new")
    return tmp_path / "new"


def texts(con, table: str) -> list[tuple]:
    return con.sql(f"SELECT iac_text(record) FROM {table}").fetchall()


def test_moved_packs_are_found_under_the_root(con, moved: Path):
    for table in "ab":
        with pytest.raises(duckdb.Error, match="No such file"):
            texts(con, table)
    con.execute(f"SET iac_root = '{moved}'")
    for table in "ab":
        assert texts(con, table) == [(f"site {table}",)]
        assert con.sql(f"SELECT iac_verify(record) FROM {table}").fetchall() == [(True,)]
    with pytest.raises(duckdb.Error, match="No such file"):
        texts(con.cursor(), "a")


def test_the_longest_end_of_the_path_wins(con, moved: Path):
    con.execute(f"SET iac_root = '{moved}'")
    shutil.copy(moved / "b" / "x.iac", moved / "x.iac")
    assert texts(con, "a") == [("site a",)]
    (moved / "a" / "x.iac").unlink()
    with pytest.raises(duckdb.Error, match=r"new/x\.iac: row 0: the pack has changed"):
        texts(con, "a")
    assert con.sql("SELECT TRY(iac_text(record)) FROM a").fetchall() == [(None,)]


def test_the_pack_at_the_path_comes_first(con, moved: Path):
    con.execute(f"SET iac_root = '{moved}'")
    old = moved.parent / "old" / "a"
    old.mkdir(parents=True)
    write_pack(old / "x.iac", [b"another"])
    with pytest.raises(duckdb.Error, match=r"old/a/x\.iac: row 0: the pack has changed"):
        texts(con, "a")
    (old / "x.iac").write_bytes(b"no pack")
    with pytest.raises(duckdb.Error, match=r"old/a/x\.iac: file of 7 bytes"):
        texts(con, "a")
    (old / "x.iac").unlink()
    (old / "x.iac").symlink_to("nothing")
    with pytest.raises(duckdb.Error, match=r"old/a/x\.iac"):
        texts(con, "a")


def test_references_without_a_stamp_are_not_looked_for(con, moved: Path):
    con.execute(f"SET iac_root = '{moved}'")
    with pytest.raises(duckdb.Error, match=r"old/a/x\.iac.*: No such file.*iac_root.*no stamp"):
        con.sql("SELECT iac_text({'pack': record.pack, 'row': record.row}) FROM a").fetchall()
    mixed = (
        "SELECT record FROM a UNION ALL "
        "SELECT {'pack': record.pack, 'row': 0::BIGINT, 'stamp': NULL::UINTEGER} FROM a"
    )
    con.execute(f"CREATE TABLE mixed AS {mixed}")
    with pytest.raises(duckdb.Error, match="no stamp"):
        texts(con, "mixed")
    con.execute("SET threads = 1")
    con.execute(
        """CREATE TABLE later AS SELECT {'pack': record.pack, 'row': 0::BIGINT,
            'stamp': CASE WHEN i < 5000 THEN record.stamp END} AS record
        FROM a, range(6000) AS r(i) ORDER BY i"""
    )
    with pytest.raises(duckdb.Error, match="no stamp"):
        con.execute("SELECT iac_text(record) FROM later").fetchall()
    assert len(con.execute("SELECT iac_text(record) FROM later LIMIT 4000").fetchall()) == 4000


def test_the_root_lends_no_access(con, moved: Path):
    con.execute(f"SET iac_root = '{moved}'")
    con.execute(f"SET allowed_directories = ['{moved / 'a'}/']")
    con.execute("SET enable_external_access = false")
    assert texts(con, "a") == [("site a",)]
    with pytest.raises(duckdb.Error, match=r"old/b/x\.iac.* disabled by configuration") as there:
        texts(con, "b")
    (moved / "b" / "x.iac").unlink()
    with pytest.raises(duckdb.Error) as missing:
        texts(con, "b")
    assert str(missing.value) == str(there.value)


def test_only_the_end_of_a_deep_path_is_looked_for(con, moved: Path):
    con.execute(f"SET iac_root = '{moved}'")
    (moved / "a" / "x.iac").rename(moved / "x.iac")
    for folders in (1, 31, 32, 1000):
        found = con.execute(
            "SELECT iac_text({'pack': ?, 'row': 0, 'stamp': record.stamp}) FROM a",
            ["/" + "d/" * folders + "x.iac"],
        ).fetchall()
        assert found == [("site a",)]


def test_scans_do_not_look_under_the_root(con, moved: Path):
    con.execute(f"SET iac_root = '{moved}'")
    with pytest.raises(duckdb.Error, match="No such file"):
        con.sql(f"FROM '{moved.parent / 'old' / 'a' / 'x.iac'}'")
