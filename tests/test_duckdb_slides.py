"""iac_slides: the slide tables of one pack and of many."""

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from duckdb_columns import COLUMNS, plain
from packs import assemble, ipc_stream, layout_index, slide_table, write_pack

import iac_query as iac

pytestmark = pytest.mark.asan


def slides_of(con, path: Path, columns: str = "*") -> list[tuple]:
    return con.sql(f"SELECT {columns} FROM iac_slides('{path}')").fetchall()


def test_slides_of_every_type(con, tmp_path: Path):
    rows = 24
    names = [name for name in COLUMNS if name != "run_ends"]
    columns = {
        name: pa.chunked_array([COLUMNS[name].array] * (rows // len(COLUMNS[name].array) + 1))
        for name in names
    }
    table = pa.table({name: column.slice(0, rows) for name, column in columns.items()})
    path = assemble(tmp_path / "x.iac", layout_index([0], [0]), slides=table)
    relation = con.sql(f"FROM iac_slides('{path}')")
    assert relation.columns == names
    for name in names:
        column = COLUMNS[name]
        found = slides_of(con, path, column.sql.format(f'"{name}"'))
        expected = (column.expected() * rows)[:rows]
        assert [repr(plain(value)) for (value,) in found] == list(map(repr, expected)), name


@pytest.mark.parametrize("rows", [0, 1, 2048, 2049, 10_000])
def test_slide_tables_of_many_rows_and_batches(con, tmp_path: Path, rows: int):
    expected = [(i, f"slide {i}") for i in range(rows)]
    table = pa.table({"n": pa.array(range(rows), pa.int64()), "t": [text for _, text in expected]})
    stream = ipc_stream(pa.Table.from_batches(table.to_batches(3000), table.schema))
    path = assemble(tmp_path / "x.iac", layout_index([], []), slides=stream, rows=(rows, 0))
    assert slides_of(con, path) == expected
    assert slides_of(con, path, "t, n") == [(text, i) for i, text in expected]
    assert slides_of(con, path, "count(*)") == [(rows,)]


def test_slide_columns_have_names_of_their_own_and_types_that_duckdb_lacks_are_named(con, tmp_path):
    slides = pa.table(
        [[1], [2], pa.array([None], pa.decimal256(50)), [b"x"]], names=["a", "A", "wide", "record"]
    )
    path = assemble(tmp_path / "x.iac", layout_index([0], [0]), slides=slides)
    assert con.sql(f"FROM iac_slides('{path}')").columns == ["a", "A_1", "wide", "record"]
    assert slides_of(con, path, "a, A_1, record") == [(1, 2, b"x")]
    with pytest.raises(duckdb.Error, match=r"x\.iac: column 'wide': .*decimal256"):
        slides_of(con, path)


def test_prepared_slides_see_a_pack_that_was_replaced(con, tmp_path: Path):
    path = write_pack(tmp_path / "x.iac", [b"1"])
    con.execute(f"PREPARE slides AS SELECT slide_id FROM iac_slides('{path}')")
    assert con.execute("EXECUTE slides").fetchall() == [("slide-000",)]
    assemble(path, layout_index([0], [0]), slides=slide_table(2))
    assert con.execute("EXECUTE slides").fetchall() == [("slide-000",), ("slide-001",)]


# Many packs: as in a scan.


def write(path: Path, **columns) -> Path:
    """A pack without records, whose slide table has these columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return assemble(path, layout_index([], []), slides=pa.table(columns))


def test_slides_of_many_packs_are_joined_by_name_and_widened(con, tmp_path: Path):
    write(tmp_path / "a.iac", slide_idx=pa.array([0, 1], pa.uint8()), stain=["he", None])
    write(tmp_path / "b.iac", Slide_Idx=pa.array([-1], pa.int16()), site=["x"])
    write(tmp_path / "c.iac", slide_idx=pa.array([], pa.float32()))
    query = f"FROM iac_slides('{tmp_path}/*.iac')"
    described = con.sql(f"SELECT column_name, column_type FROM (DESCRIBE {query})").fetchall()
    assert described == [("slide_idx", "FLOAT"), ("stain", "VARCHAR"), ("site", "VARCHAR")]
    assert con.sql(query).fetchall() == [(0, "he", None), (1, None, None), (-1, None, "x")]
    assert con.sql(f"SELECT site, slide_idx {query} WHERE stain IS NULL").fetchall() == [
        (None, 1.0),
        ("x", -1.0),
    ]
    assert con.sql(f"SELECT count(*) {query}").fetchall() == [(3,)]


def test_types_that_do_not_go_together_are_named(con, tmp_path: Path):
    write(tmp_path / "a.iac", v=[1], n=[1])
    write(tmp_path / "b.iac", v=[b"x"], n=[2])
    query = f"FROM iac_slides(['{tmp_path}/a.iac', '{tmp_path}/b.iac'])"
    assert con.sql(f"SELECT n {query}").fetchall() == [(1,), (2,)]
    with pytest.raises(duckdb.Error, match=r"b\.iac: column 'v': it has type BLOB here"):
        con.sql(f"SELECT v {query}").fetchall()


def test_the_columns_that_options_add(con, tmp_path: Path):
    for site in "ab":
        write(tmp_path / f"site={site}" / "x.iac", slide_id=[f"slide {site}"])
    query = f"FROM iac_slides('{tmp_path}/*/*.iac', filename := 'f', hive_partitioning := true)"
    assert con.sql(query).fetchall() == [
        (f"slide {site}", f"{tmp_path}/site={site}/x.iac", site) for site in "ab"
    ]
    with pytest.raises(duckdb.Error, match="iac_slides: filename adds the column 'slide_id'"):
        con.sql(f"FROM iac_slides('{tmp_path}/*/*.iac', filename := 'slide_id')")
    with pytest.raises(duckdb.Error, match="layout"):
        con.sql(f"FROM iac_slides('{tmp_path}/*/*.iac', layout := true)")


def test_a_pack_without_slide_columns_beside_one_that_has_some(con, tmp_path: Path):
    write(tmp_path / "a.iac", n=[1, 2])
    nothing = ipc_stream(pa.table({}))
    empty = assemble(tmp_path / "b.iac", layout_index([], []), slides=nothing, rows=(0, 0))
    assert con.sql(f"FROM iac_slides('{tmp_path}/*.iac')").fetchall() == [(1,), (2,)]
    with pytest.raises(duckdb.Error, match=r"b\.iac: iac_slides: the slide table has no columns"):
        con.sql(f"FROM iac_slides('{empty}')")


def test_slides_and_records_meet_by_file(con, tmp_path: Path):
    for i in range(3):
        path = tmp_path / f"{i}.iac"
        index = pa.table({"slide_idx": pa.array([1, 0, 1], pa.uint8())})
        slides = slide_table(2).set_column(1, "slide_id", pa.array([f"{i}-0", f"{i}-1"]))
        iac.build_pack(path, {"payload_type": "x"}, slides, index, [b""] * 3)
    files = f"'{tmp_path}/*.iac', filename := true"
    joined = con.sql(
        f"SELECT s.slide_id, count(*) FROM iac_slides({files}) AS s "
        f"JOIN iac_scan({files}) AS r USING (filename, slide_idx) GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    assert joined == [(f"{i}-{slide}", 1 + slide) for i in range(3) for slide in (0, 1)]


def test_many_slides_on_several_threads(con, tmp_path: Path):
    rows = [0, 300_000, 3, 70_000, *[50] * 20]
    for i, count in enumerate(rows):
        batches = pa.table({"n": pa.array(range(count), pa.int64())}).to_batches(100_000)
        stream = ipc_stream(pa.Table.from_batches(batches, pa.schema([("n", pa.int64())])))
        path = tmp_path / f"{i:02}.iac"
        assemble(path, layout_index([], []), slides=stream, rows=(count, 0))
    query = f"FROM iac_slides('{tmp_path}/*.iac')"
    wanted = [n for count in rows for n in range(count)]
    assert con.sql(query).to_arrow_table()["n"].to_pylist() == wanted
    for threads in (1, 2, 8):
        con.execute(f"SET threads = {threads}")
        assert con.sql(f"SELECT count(*), sum(n) {query}").fetchall() == [(sum(rows), sum(wanted))]
