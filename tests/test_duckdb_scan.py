"""iac_scan: which columns a pack has in SQL, how slides are joined, what is read."""

import os
import random
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from packs import DATA, assemble, ipc_stream, layout_index, slide_table, write_pack


def quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def columns_of(con, path: Path, more: str = "") -> list[str]:
    return con.sql(f"FROM iac_scan({quoted(path)}{more})").columns


def write_index(path: Path, slides: pa.Table | bytes | None = None, **columns) -> Path:
    rows = len(next(iter(columns.values())))
    return assemble(
        path, layout_index([0] * rows, [0] * rows, [0] * rows, **columns), slides=slides
    )


@pytest.mark.parametrize(
    "name",
    ["with space.iac", "it's.iac", '"double".iac', "100%.iac", "a*b?[c]{d}.iac", "ünï-日本.IAC"],
)
def test_names_of_files(con, tmp_path: Path, name: str):
    path = write_pack(tmp_path / name, [b"one", b"two"])
    write_pack(tmp_path / "axb.iac", [b"other"])
    for source in (quoted(path), f"iac_scan({quoted(path)})"):
        assert con.sql(f"SELECT record.pack, iac_text(record) FROM {source}").fetchall() == [
            (str(path), "one"),
            (str(path), "two"),
        ]


def test_references_have_absolute_paths_with_symbolic_links_kept(con, tmp_path, monkeypatch):
    write_pack(tmp_path / "real.iac", [b"one"])
    (tmp_path / "link.iac").symlink_to("real.iac")
    (tmp_path / "folder").mkdir()
    (tmp_path / "elsewhere").symlink_to(tmp_path / "folder" / "deep")
    (tmp_path / "folder" / "deep").mkdir()
    write_pack(tmp_path / "folder" / "real.iac", [b"inner"])
    monkeypatch.chdir(tmp_path)
    for given, pack, text in [
        ("real.iac", "real.iac", "one"),
        ("link.iac", "link.iac", "one"),
        ("./folder//../link.iac", "link.iac", "one"),
        ("elsewhere/../real.iac", "elsewhere/../real.iac", "inner"),
    ]:
        rows = con.sql(f"SELECT record.pack, iac_text(record) FROM '{given}'").fetchall()
        assert rows == [(f"{tmp_path}/{pack}", text)]


def test_the_home_directory(con, tmp_path: Path):
    write_pack(tmp_path / "x.iac", [b"one"])
    con.execute(f"SET home_directory = {quoted(tmp_path)}")
    assert con.sql("SELECT iac_text(record) FROM '~/x.iac'").fetchall() == [("one",)]


def test_names_that_collide(con, tmp_path: Path):
    path = write_index(
        tmp_path / "x.iac", a=[1], A=[2], a_1=[3], Record=[4], slide_idx=[0], PATIENT_ID=["mine"]
    )
    assert columns_of(con, path) == [
        *("a", "A_1", "a_1_1", "Record_1", "slide_idx", "PATIENT_ID"),
        *("slide_id", "patient_id_1", "record"),
    ]
    row = con.sql(f"SELECT a, A_1, a_1_1, Record_1, patient_id, patient_id_1 FROM '{path}'")
    assert row.fetchall() == [(1, 2, 3, 4, "mine", "patient-000")]


def test_names_given_twice_and_not_at_all(con, tmp_path: Path):
    index = pa.Table.from_arrays([pa.array([i]) for i in range(4)], ["", "x", "x", ""])
    path = assemble(tmp_path / "x.iac", ipc_stream(index), slides=slide_table(2), rows=(2, 1))
    assert columns_of(con, path) == ["v0", "x", "x_1", "v3", "record"]
    assert con.sql(f"SELECT * EXCLUDE record FROM '{path}'").fetchall() == [(0, 1, 2, 3)]


def test_layout_columns_are_those_of_variable_records_only(con, tmp_path: Path):
    path = write_index(tmp_path / "x.iac", a=[1, 2])
    assert columns_of(con, path) == ["a", "slide_idx", "slide_id", "patient_id", "record"]
    assert columns_of(con, path, ", layout := true")[:4] == ["a", "offset", "length", "crc32"]
    assert columns_of(con, path, ", layout := NULL")[:2] == ["a", "slide_idx"]
    fixed = DATA / "fixed_float32.iac"
    assert columns_of(con, fixed) == columns_of(con, fixed, ", layout := true")


def test_slides_are_joined_by_slide_idx_before_series_idx(con, tmp_path: Path):
    slides = pa.table({"series_idx": [7, 8], "slide_idx": [0, 1], "name": ["a", "b"]})
    both = write_index(tmp_path / "x.iac", slides, slide_idx=[1, 0], series_idx=[7, 7])
    assert columns_of(con, both) == ["slide_idx", "series_idx", "series_idx_1", "name", "record"]
    assert con.sql(f"SELECT slide_idx, name FROM '{both}'").fetchall() == [(1, "b"), (0, "a")]
    series = write_index(tmp_path / "y.iac", slides, series_idx=[8, 7, 9, None])
    assert columns_of(con, series) == ["series_idx", "slide_idx", "name", "record"]
    rows = con.sql(f"SELECT series_idx, name FROM '{series}'").fetchall()
    assert rows == [(8, "b"), (7, "a"), (9, None), (None, None)]


def test_one_slide_without_a_key_belongs_to_every_row(con, tmp_path: Path):
    path = write_index(tmp_path / "x.iac", slide_table(1), a=list(range(3000)))
    assert con.sql(f"SELECT slide_id, count(*) FROM '{path}' GROUP BY ALL").fetchall() == [
        ("slide-000", 3000)
    ]


def test_several_slides_without_a_key_are_left_out(con, tmp_path: Path):
    path = write_index(tmp_path / "x.iac", slide_table(2), a=[1])
    assert columns_of(con, path) == ["a", "record"]


def test_slides_that_cannot_be_joined_are_errors_where_they_are_asked_for(con, tmp_path: Path):
    twice = pa.table({"slide_idx": [0, 1, 0], "name": ["a", "b", "c"]})
    path = write_index(tmp_path / "x.iac", twice, slide_idx=[1, 0])
    assert con.sql(f"SELECT count(*) FROM '{path}'").fetchall() == [(2,)]
    with pytest.raises(
        duckdb.Error, match=r"x\.iac: slide table: two rows have the same slide_idx"
    ):
        con.sql(f"SELECT name FROM '{path}'").fetchall()
    texts = pa.table({"slide_idx": ["0"], "name": ["a"]})
    path = write_index(tmp_path / "y.iac", texts, slide_idx=["0"])
    with pytest.raises(
        duckdb.Error, match=r"y\.iac: index table: column 'slide_idx' has type string"
    ):
        con.sql(f"SELECT name FROM '{path}'").fetchall()


def test_keys_of_different_integer_types(con, tmp_path: Path):
    slides = pa.table(
        {"slide_idx": pa.array([2**64 - 1, 5, None], pa.uint64()), "name": ["big", "five", "none"]}
    )
    path = write_index(tmp_path / "x.iac", slides, slide_idx=pa.array([-1, 5, None], pa.int64()))
    assert con.sql(f"SELECT name FROM '{path}'").fetchall() == [(None,), ("five",), (None,)]


def test_order_and_cardinality(con, tmp_path: Path):
    rows = 300_000
    index = layout_index([0] * rows, [0] * rows, [0] * rows, n=range(rows), slide_idx=[0] * rows)
    index = pa.Table.from_batches(index.to_batches(70_001), index.schema)
    path = assemble(tmp_path / "x.iac", index)
    assert "~300,000 rows" in con.sql(f"EXPLAIN FROM '{path}'").fetchall()[0][1]
    con.execute("SET threads = 4")
    result = con.sql(f"SELECT n, record.row AS row FROM '{path}'").to_arrow_table()
    assert result["n"].to_pylist() == list(range(rows))
    assert result["row"].equals(result["n"])
    sums = con.sql(f"SELECT sum(n), sum(record.row), count(*), count(slide_id) FROM '{path}'")
    total = rows * (rows - 1) // 2
    assert sums.fetchall() == [(total, total, rows, rows)]


def test_nulls_against_pyarrow_under_every_filter(con, tmp_path: Path):
    chooser = random.Random(5)
    values = [chooser.choice([None, *range(20)]) for _ in range(10_000)]
    path = write_index(tmp_path / "x.iac", n=pa.array(values, pa.int32()))
    for condition, keep in [
        ("n IS NULL", lambda v: v is None),
        ("n IS NOT NULL", lambda v: v is not None),
        ("n = 7", lambda v: v == 7),
        ("n < 3", lambda v: v is not None and v < 3),
        ("n IN (1, 19)", lambda v: v in (1, 19)),
        ("n BETWEEN 4 AND 6", lambda v: v in (4, 5, 6)),
        ("n IS DISTINCT FROM 7", lambda v: v != 7),
    ]:
        found = con.sql(f"SELECT record.row FROM '{path}' WHERE {condition}").fetchall()
        assert [row for (row,) in found] == [i for i, v in enumerate(values) if keep(v)], condition


def test_only_the_columns_in_use_are_read(con, tmp_path: Path):
    """A damaged column is an error only where it is asked for."""
    index = layout_index([0] * 50, [0] * 50, [0] * 50, good=range(50), bad=["text"] * 50)
    stream = bytearray(ipc_stream(index))
    start = stream.index(b"texttext")
    stream[start : start + 4] = b"\xff\xfe\xff\xfe"
    path = assemble(tmp_path / "x.iac", bytes(stream), rows=(1, 50))
    query = f"SELECT count(*), sum(good), max(record.row) FROM '{path}'"
    assert con.sql(query).fetchall() == [(50, 1225, 49)]
    with pytest.raises(duckdb.Error, match=r"x\.iac: index table: .*'bad'.*not UTF-8"):
        con.sql(f"SELECT bad FROM '{path}'").fetchall()


def test_a_replaced_pack_is_seen_by_the_next_query_and_by_prepared_ones(con, tmp_path: Path):
    path = write_pack(tmp_path / "x.iac", [b"one", b"two"])
    con.execute(f"PREPARE texts AS SELECT iac_text(record) FROM '{path}'")
    con.execute(f"CREATE TABLE refs AS SELECT record FROM '{path}'")
    assert con.execute("EXECUTE texts").fetchall() == [("one",), ("two",)]
    write_pack(path, [b"three", b"four", b"five"])
    assert con.sql(f"SELECT count(*) FROM '{path}'").fetchall() == [(3,)]
    assert con.execute("EXECUTE texts").fetchall() == [("three",), ("four",), ("five",)]
    with pytest.raises(duckdb.Error, match=r"x\.iac: row 0: the pack has changed since"):
        con.sql("SELECT iac_text(record) FROM refs").fetchall()


def test_a_prepared_query_whose_pack_got_other_columns(con, tmp_path: Path):
    path = write_pack(tmp_path / "x.iac", [b"one"])
    con.execute(f"PREPARE items AS SELECT item_id FROM '{path}'")
    write_pack(path, [b"one"], index=pa.table({"item_id": [17]}))
    try:
        assert con.execute("EXECUTE items").fetchall() == [(17,)]  # planned again
    except duckdb.Error as error:
        assert "replaced by one with other columns" in str(error)


def test_a_pack_that_shrinks_while_it_is_open_is_an_error(con, tmp_path: Path):
    path = write_pack(tmp_path / "x.iac", [b"x" * 5000] * 10)
    assert con.sql(f"SELECT count(*) FROM '{path}'").fetchall() == [(10,)]
    os.truncate(path, 70_000)
    with pytest.raises(duckdb.Error, match=r"x\.iac: "):
        con.sql(f"SELECT iac_payload(record) FROM '{path}'").fetchall()


def test_many_packs_in_one_connection(con, tmp_path: Path):
    paths = [write_pack(tmp_path / f"{i}.iac", [b"%d" % i]) for i in range(150)]
    union = " UNION ALL ".join(f"SELECT record FROM '{path}'" for path in paths)
    con.execute(f"CREATE TABLE refs AS {union}")
    for _ in range(2):
        texts = con.sql("SELECT iac_text(record) FROM refs").fetchall()
        assert sorted(int(text) for (text,) in texts) == list(range(150))
    assert len(os.listdir("/proc/self/fd")) < 300
