"""Every Arrow type comes out of a scan with the values that pyarrow gives."""

import random
from pathlib import Path

import pyarrow as pa
import pytest
from duckdb_columns import COLUMNS, LONG, Column, plain
from packs import assemble, ipc_stream, layout_index

import iac_query as iac

pytestmark = pytest.mark.asan

NAMES = sorted(COLUMNS)
SIZES = [0, 1, 2047, 2048, 2049, 5000]


@pytest.fixture(scope="module")
def con():
    with iac.connect() as con:
        yield con


def write(path: Path, rows: int, slides: pa.Table | None = None, batch: int = 0, **columns) -> Path:
    """A pack of empty records; ``batch``: rows a record batch of the index."""
    index = layout_index([0] * rows, [0] * rows, [0] * rows, **columns)
    if batch:
        index = pa.Table.from_batches(index.to_batches(batch), index.schema)
    return assemble(path, index, slides=slides)


def look(con, path: Path, column: Column, name: str = "c", more: str = "") -> list:
    shown = column.sql.format(name)
    return [plain(value) for (value,) in con.sql(f"SELECT {shown} FROM '{path}' {more}").fetchall()]


def repeat(column: Column, rows: int) -> tuple[pa.Array, list]:
    """The column's values over and over, and what is expected of them."""
    array, expected = column.array, column.expected()
    take = [i % len(expected) for i in range(rows)]
    if pa.types.is_run_end_encoded(array.type):
        ends = pa.array(range(1, rows + 1), pa.int32())
        values = array.to_pylist()
        array = pa.RunEndEncodedArray.from_arrays(
            ends, pa.array([values[i] for i in take], pa.string())
        )
    elif pa.types.is_union(array.type) or "view" in str(array.type):
        chunk = pa.chunked_array([array] * (rows // len(array) + 1)).slice(0, rows)
        array = chunk  # pyarrow cannot take from these
    else:
        array = array.take(pa.array(take, pa.int64()))
    return array, [expected[i] for i in take]


@pytest.mark.parametrize("name", NAMES)
def test_type_and_values(con, tmp_path: Path, name: str):
    column = COLUMNS[name]
    path = write(tmp_path / "x.iac", len(column.array), c=column.array)
    assert look(con, path, column) == column.expected()
    found = con.sql(f"SELECT c FROM '{path}'").types[0]
    assert found == column.duckdb_type or (name == "null" and found == "INTEGER")  # up to 1.5


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rows", SIZES)
def test_every_number_of_rows(con, tmp_path: Path, name: str, rows: int):
    array, expected = repeat(COLUMNS[name], rows)
    path = write(tmp_path / "x.iac", rows, c=array)
    assert look(con, path, COLUMNS[name]) == expected
    if "union" not in name:  # a union whose member is NULL is not NULL itself
        present = sum(value is not None for value in expected)
        assert con.sql(f"SELECT count(c) FROM '{path}'").fetchall() == [(present,)]


@pytest.mark.parametrize("name", NAMES)
def test_slide_columns_in_any_order(con, tmp_path: Path, name: str):
    """Rows without a slide give NULL, at every level of a nested type."""
    column = COLUMNS[name]
    count, expected = len(column.array), column.expected()
    slides = pa.table({"slide_idx": pa.array(range(count), pa.int64()), "c": column.array})
    keys = random.Random(name).choices([*range(count), None, 99], k=5000)
    path = write(tmp_path / "x.iac", 5000, slides, slide_idx=pa.array(keys, pa.int16()))
    assert look(con, path, column) == [
        None if key is None or key == 99 else expected[key] for key in keys
    ]


@pytest.mark.parametrize("name", NAMES)
def test_slide_columns_of_several_batches_and_of_none(con, tmp_path: Path, name: str):
    column = COLUMNS[name]
    count, expected = len(column.array), column.expected()
    slides = pa.table({"slide_idx": pa.array(range(count), pa.uint8()), "c": column.array})
    slides = pa.Table.from_batches(slides.to_batches(2), slides.schema)
    keys = [*range(count), None] * 3
    path = write(tmp_path / "x.iac", len(keys), slides, slide_idx=pa.array(keys, pa.uint64()))
    assert look(con, path, column) == [None if key is None else expected[key] for key in keys]

    none = pa.Table.from_batches([], slides.schema)
    path = write(tmp_path / "y.iac", len(keys), none, slide_idx=pa.array(keys, pa.uint64()))
    assert look(con, path, column) == [None] * len(keys)


def test_all_types_at_once_through_a_table(con, tmp_path: Path):
    """The vectors are whole: DuckDB stores, sorts and gives them back."""
    rows = 5000
    data = {name: repeat(COLUMNS[name], rows) for name in NAMES}
    columns = {name: array for name, (array, _) in data.items()}
    path = write(tmp_path / "x.iac", rows, batch=1777, **columns)
    con.execute(f"CREATE OR REPLACE TABLE copy AS FROM '{path}'")
    for name, (_, expected) in data.items():
        shown = COLUMNS[name].sql.format(f'"{name}"')
        values = con.sql(f"SELECT {shown} FROM copy ORDER BY record.row DESC").fetchall()
        assert [plain(value) for (value,) in reversed(values)] == expected, name


def test_arrow_compression_and_batches(con, tmp_path: Path):
    index = layout_index([0] * 4000, [0] * 4000, s=pa.array([LONG, None] * 2000))
    for codec in ("lz4", "zstd"):
        stream = ipc_stream(index, compression=codec)
        path = assemble(tmp_path / f"{codec}.iac", stream, rows=(1, 4000))
        assert con.sql(f"SELECT s, count(*) FROM '{path}' GROUP BY s ORDER BY s").fetchall() == [
            (LONG, 2000),
            (None, 2000),
        ]


def test_types_that_duckdb_lacks_name_their_column_and_hide_no_other(con, tmp_path: Path):
    wide = pa.array([1, None], pa.decimal256(40, 2))
    path = write(
        tmp_path / "x.iac", 2, n=[1, 2], wide=wide, empty=pa.array([{}, {}], pa.struct([]))
    )
    assert con.sql(f"SELECT n FROM '{path}'").fetchall() == [(1,), (2,)]
    with pytest.raises(Exception, match=r"x\.iac: column 'wide': .*decimal256"):
        con.sql(f"SELECT * FROM '{path}'").fetchall()
    with pytest.raises(Exception, match=r"column 'empty': .*struct without members"):
        con.sql(f"SELECT empty FROM '{path}'").fetchall()


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (pa.array([10**15], pa.int64()).cast(pa.timestamp("s", "UTC")), "outside the range"),
        (pa.array([2**62], pa.duration("s")), "outside the range"),
        (pa.array([86_400_001], pa.int32()).view(pa.time32("ms")), "outside the range"),
        (pa.array([-1], pa.int64()).view(pa.time64("us")), "outside the range"),
        (pa.array([2**62], pa.int64()).view(pa.date64()), "outside the range"),
    ],
)
def test_values_that_duckdb_cannot_hold_are_errors(con, tmp_path: Path, array, reason: str):
    path = write(tmp_path / "x.iac", 1, c=array)
    with pytest.raises(Exception, match=rf"x\.iac: column 'c': .*{reason}"):
        con.sql(f"SELECT c FROM '{path}'").fetchall()


def test_a_decimal_of_too_many_digits_is_an_error(con, tmp_path: Path):
    big = pa.array([10**20], pa.decimal128(38, 0))
    narrow = pa.Array.from_buffers(pa.decimal128(4, 0), 1, big.buffers())
    path = write(tmp_path / "x.iac", 1, c=narrow)
    with pytest.raises(Exception, match=r"column 'c': .*more than the 4 digits"):
        con.sql(f"SELECT c FROM '{path}'").fetchall()


def test_lists_that_overlap_share_their_elements(con, tmp_path: Path):
    views = pa.ListViewArray.from_arrays(
        pa.array([0] * 2000, pa.int32()),
        pa.array([50_000] * 2000, pa.int32()),
        pa.array(range(50_000), pa.int64()),
    )
    path = write(tmp_path / "x.iac", 2000, c=views)
    assert con.sql(f"SELECT sum(len(c)), max(c[50000]) FROM '{path}'").fetchall() == [
        (100_000_000, 49_999)
    ]
