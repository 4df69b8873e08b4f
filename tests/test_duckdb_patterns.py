"""How iac_scan is told of many packs: by patterns and lists, as far as access rules allow it."""

import itertools
import os
from pathlib import Path

import duckdb
import pytest
from duckdb_many import texts, write

import iac_query as iac


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (
        *("x.iac", "A.iac", "a-b.iac", "ü.iac", "[x].iac", "{q}.iac", ".hidden.iac", "^.iac"),
        *("b/x.iac", "b/c/y.iac", "b/c/d/y.iac", ".hid/z.iac", "b.iac/inside.iac", "b2/x.iac"),
    ):
        write(tmp_path / "t" / name)
    os.symlink("..", tmp_path / "t" / "b" / "loop")
    os.symlink("nowhere.iac", tmp_path / "t" / "dangling.iac")
    os.symlink("x.iac", tmp_path / "t" / "link.iac")
    os.symlink("b", tmp_path / "t" / "linked")
    os.mkfifo(tmp_path / "t" / "pipe.iac")
    (tmp_path / "t" / "b" / "not a pack.txt").write_text("x")
    monkeypatch.chdir(tmp_path / "t")
    return tmp_path / "t"


@pytest.mark.parametrize(
    "pattern",
    [
        *("*.iac", "?.iac", "?-?.iac", "[!x].iac", "[a-z].iac", "[[]x].iac", "{q}.ia*"),
        *("**/*.iac", "**/y.iac", "b/**/*.iac", "b/c/**", "b**/x.iac", "**/c/*.iac", "b/**/d/*"),
        *("*/*.iac", "*/x.iac", "./*/x.iac", "b/../*/x.iac", "b//*.iac", "linked/*.iac", "*/*/*"),
        *(
            "b/loop/*/x.iac",
            "b/l*/*.iac",
            "linked/**/*.iac",
            ".h*/*.iac",
        ),
    ],
)
def test_patterns_find_what_those_of_duckdb_find(con, tree: Path, pattern: str):
    for given in (pattern, f"{tree}/{pattern}"):
        wanted = con.execute("SELECT file FROM glob(?) WHERE file LIKE '%.iac'", [given]).fetchall()
        assert wanted
        found = con.execute("SELECT filename FROM iac_scan(?, filename := true)", [given])
        rows = found.fetchall()
        if "**" in pattern:  # DuckDB has an order of its own
            rows, wanted = sorted(rows), sorted(wanted)
        assert rows == wanted


@pytest.mark.parametrize("pattern", ["*.nothing", "b/*/", "nowhere/*.iac", "x.iac/*", "[x.iac"])
def test_a_pattern_that_finds_nothing_is_an_error(con, tree: Path, pattern: str):
    for argument in (f"'{pattern}'", f"['x.iac', '{pattern}']"):
        with pytest.raises(duckdb.Error, match="no file matches this pattern"):
            con.sql(f"FROM iac_scan({argument})")
    with pytest.raises(duckdb.Error, match="No such file"):
        con.sql("FROM 'nowhere/x.iac'")
    with pytest.raises(duckdb.Error, match=r"a pattern can have only one \*\*"):
        con.sql("FROM iac_scan('**/**/x.iac')")


def test_a_file_of_just_that_name_comes_first(con, tree: Path):
    assert texts(con, "'[x].iac'") == ["[x] 0"]
    write(tree / "*.iac")
    assert texts(con, "'*.iac'") == ["* 0"]
    assert con.sql("SELECT record.pack FROM '*.iac'").fetchall() == [(f"{tree}/*.iac",)]


def test_names_that_are_no_text(con, tree: Path, monkeypatch: pytest.MonkeyPatch):
    folder = os.fsencode(tree) + b"/\xff"
    os.mkdir(folder)
    write(tree / "b" / "x.iac").rename(os.fsdecode(folder) + "/x.iac")
    write(tree / "c.iac").rename(tree / os.fsdecode(b"c\xff.iac"))
    functions = ("iac_scan", "iac_slides", "iac_info", "iac_check")
    patterns = ("*/x.iac", "c*.iac", f"{tree}/**/*.iac")
    for function, pattern in itertools.product(functions, patterns):
        with pytest.raises(duckdb.Error, match="the path is not UTF-8 text"):
            con.sql(f"FROM {function}('{pattern}')").fetchall()
    monkeypatch.chdir(folder)
    for query in ("FROM 'x.iac'", "FROM '*.iac'", "SELECT iac_text({'pack': 'x.iac', 'row': 0})"):
        with pytest.raises(duckdb.Error, match="the path is not UTF-8 text"):
            con.sql(query).fetchall()


def test_lists_keep_their_order_and_what_stands_twice(con, tree: Path):
    query = "FROM iac_scan(['x.iac', 'b*/*.iac', 'x.iac', './b/../A.iac'], filename := true)"
    rows = con.sql(f"SELECT filename, record.pack {query}").fetchall()
    names = ["x.iac", "b/x.iac", "b.iac/inside.iac", "b2/x.iac", "x.iac", "A.iac"]
    assert rows == [(name, f"{tree}/{name}") for name in names]


def test_what_is_no_path(con, tree: Path):
    for argument, reason in [
        ("NULL", "the path is NULL"),
        ("[]", "the list of paths is empty"),
        ("[NULL]", "a path in the list is NULL"),
        ("['x.iac', NULL]", "a path in the list is NULL"),
        ("getvariable('unset')", "the path is NULL"),
        ("47", "expected a path or a list of paths"),
        ("[47]", "expected a path or a list of paths"),
        ("[['x.iac']]", "expected a path or a list of paths"),
        ("{'path': 'x.iac'}", "expected a path or a list of paths"),
        ("'x.iac'::BLOB", "expected a path or a list of paths"),
        ("['x.iac', '']", "the path of a pack is empty"),
        ("'x.iac' || chr(0) || '*'", "zero byte"),
        ("['x.iac' || chr(0)]", "zero byte"),
        ("'x.iac', filename := 3", "filename takes true, false or the name"),
    ]:
        with pytest.raises(duckdb.Error, match=reason):
            con.sql(f"FROM iac_scan({argument})")


def test_the_home_directory_and_folders_above(con, tree: Path, monkeypatch: pytest.MonkeyPatch):
    con.execute(f"SET home_directory = '{tree}'")
    monkeypatch.chdir(tree / "b" / "c")
    for pattern, filename in (("~/b2/*.iac", f"{tree}/b2/x.iac"), ("../../b2/*", "../../b2/x.iac")):
        query = f"SELECT filename, record.pack FROM iac_scan('{pattern}', filename := true)"
        assert con.sql(query).fetchall() == [(filename, f"{tree}/b2/x.iac")]


def test_parameters_and_variables(con, tree: Path):
    query = "SELECT count(*) FROM iac_scan(?)"
    assert con.execute(query, ["b*/x.iac"]).fetchall() == [(2,)]
    assert con.execute(query, [["x.iac", "b*/x.iac"]]).fetchall() == [(3,)]
    con.execute("PREPARE many AS SELECT count(*) FROM iac_scan(?) WHERE slide_idx = ?")
    assert con.execute("EXECUTE many('b*/x.iac', 0)").fetchall() == [(2,)]
    assert con.execute("EXECUTE many(['x.iac'], 1)").fetchall() == [(0,)]
    with pytest.raises(duckdb.Error, match="the path is NULL"):
        con.execute("EXECUTE many(NULL, 1)")
    con.execute("SET VARIABLE files = (SELECT list(file) FROM glob('b*/x.iac'))")
    assert con.sql("SELECT count(*) FROM iac_scan(getvariable('files'))").fetchall() == [(2,)]


def test_listing_follows_the_access_rules(con, tmp_path: Path):
    allowed = tmp_path / "allowed"
    write(allowed / "x.iac")
    write(allowed / "in" / "y.iac")
    write(tmp_path / "outside" / "o.iac")
    os.symlink("../outside", allowed / "link")
    con.execute(f"PREPARE prepared AS SELECT count(*) FROM '{tmp_path}/**/*.iac'")
    con.execute(f"SET allowed_directories = ['{allowed}/']")
    con.execute("SET enable_external_access = false")
    refused = "disabled by configuration"
    assert texts(con, f"'{allowed}/*.iac'") == ["x 0"]
    assert texts(con, f"'{allowed}/**/*.iac'") == ["x 0", "y 0"]
    assert texts(con, f"'{allowed}/in/../*.iac'") == ["x 0"]
    for pattern in (
        *("../*/x.iac", "../outside/*.iac", "../outside/nothing*.iac", "link/*.iac"),
        *("*/o.iac", "*/nothing.iac", "l*/*.iac", "*/../../outside/*.iac", "link/**/*.iac"),
    ):
        with pytest.raises(duckdb.Error, match=refused):
            con.sql(f"FROM '{allowed}/{pattern}'")
    with pytest.raises(duckdb.Error, match=refused):
        con.execute("EXECUTE prepared").fetchall()


def test_nothing_is_listed_without_external_access(tmp_path: Path):
    write(tmp_path / "x.iac")
    for setting in ("enable_external_access = false", "disabled_filesystems = 'LocalFileSystem'"):
        with iac.connect() as con:
            con.execute(f"SET {setting}")
            messages = set()
            for name in ("*.iac", "x*.iac", "nothing*.iac", "**/*.iac", "nowhere/*.iac"):
                for query in ("FROM iac_scan(['{}'])", "DESCRIBE FROM '{}'"):
                    with pytest.raises(duckdb.Error, match="disabled by configuration") as error:
                        con.sql(query.format(tmp_path / name))
                    messages.add(str(error.value).split("LINE")[0].replace(name, "").strip())
            assert len(messages) == 1
