"""decode and iter_decode keep the kind of what they are given."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from packs import flip_payload, write_matrix
from references import ROWS, mixed, references, table_of
from test_images import image, write_images

import iac_query as iac


@pytest.fixture
def tiles(tmp_path):
    images = [image((8, 6, 3), "uint8", i) for i in range(5)]
    return str(write_images(tmp_path / "tiles.iac", images)), images


@pytest.fixture
def matrix(tmp_path):
    values = np.arange(24, dtype=np.float32).reshape(6, 4)
    return str(write_matrix(tmp_path / "matrix.iac", values)), values


def frame_of(kind, path, rows, **columns):
    table = table_of(references([path] * len(rows), rows), **columns)
    if kind == "polars":
        return pl.from_arrow(table)
    return table.to_pandas() if kind == "pandas" else table


def test_polars_columns_are_of_its_own_types(packs, tiles, matrix):
    text = next(iter(packs))
    tile, images = tiles
    vectors, values = matrix
    expected = {
        (text, "bytes"): pl.Binary,
        (text, "stored"): pl.Binary,
        (text, "text"): pl.String,
        (vectors, None): pl.Array(pl.Float32, 4),
        (vectors, "tensor"): pl.Array(pl.Float32, 4),
        (tile, "tensor"): pl.Array(pl.UInt8, (8, 6, 3)),
        (tile, None): pl.Struct(
            {
                "height": pl.Int32,
                "width": pl.Int32,
                "channels": pl.Int32,
                "dtype": pl.String,
                "data": pl.Binary,
            }
        ),
    }
    for (path, as_), dtype in expected.items():
        decoded = iac.decode(frame_of("polars", path, [3, 1]), as_=as_)
        assert isinstance(decoded, pl.DataFrame)
        assert decoded.schema["payload"] == dtype, as_
    tensor = iac.decode(frame_of("polars", tile, [3, 1]), as_="tensor")["payload"].to_numpy()
    assert np.array_equal(tensor, [images[3], images[1]])
    vector = iac.decode(frame_of("polars", vectors, [5, 0]))["payload"].to_numpy()
    assert np.array_equal(vector, values[[5, 0]])


def test_polars_keeps_types_that_arrow_lacks(packs):
    path, objects = next(iter(packs.items()))
    frame = frame_of("polars", path, [2, 0, 1]).with_columns(
        e=pl.Series(["b", "a", "b"], dtype=pl.Enum(["a", "b"])), o=pl.Series([{1}, {2}, {3}])
    )
    decoded = iac.decode(frame)
    assert decoded.drop("payload").schema == frame.schema
    assert decoded["o"].to_list() == [{1}, {2}, {3}]
    assert decoded["payload"].to_list() == [objects[2], objects[0], objects[1]]


def test_pandas_keeps_its_index(packs):
    path, objects = next(iter(packs.items()))
    frame = frame_of("pandas", path, [2, 0, 1], n=[1, 2, 3]).set_index("n").iloc[::-1]
    decoded = iac.decode(frame, as_="text")
    assert isinstance(decoded, pd.DataFrame)
    assert decoded.index.tolist() == [3, 2, 1]
    assert decoded["payload"].tolist() == [objects[row].decode() for row in (1, 0, 2)]
    assert decoded["payload"].dtype == pd.ArrowDtype(pa.large_string())
    assert list(frame.columns) == ["record"]


@pytest.mark.parametrize("kind", ["polars", "pandas", "table"])
@pytest.mark.parametrize("as_", [None, "tensor"])
def test_bad_rows_are_null_or_dropped(kind, as_, tiles):
    path, images = tiles
    flip_payload(path, 1)
    frame = frame_of(kind, path, [0, 1, 2], n=[5, 6, 7])
    report = []
    nulls = iac.decode(frame, as_=as_, on_error="null", report=report)
    assert type(nulls) is type(frame)
    assert [failure.position for failure in report] == [1]
    errors = pa.table(nulls)["payload_error"].to_pylist()
    assert [isinstance(error, str) for error in errors] == [False, True, False]
    assert "crc32" in errors[1]
    skipped = iac.decode(frame, as_=as_, on_error="skip")
    assert type(skipped) is type(frame)
    table = pa.table(skipped)
    assert table["n"].to_pylist() == [5, 7]
    for one, row in zip(table["payload"].to_pylist(), (0, 2), strict=True):
        pixels = one["data"] if as_ is None else np.array(one, np.uint8).tobytes()
        assert pixels == images[row].tobytes()


@pytest.mark.parametrize("kind", ["polars", "pandas"])
def test_frames_without_rows(kind, packs):
    path = next(iter(packs))
    for decode in (iac.decode, lambda frame: pd.DataFrame(list(iac.iter_decode(frame)))):
        assert len(decode(frame_of(kind, path, [0])[:0])) == 0


def test_a_lazy_frame_is_to_be_collected(packs):
    lazy = frame_of("polars", next(iter(packs)), [0]).lazy()
    for decode in (iac.decode, iac.iter_decode):
        with pytest.raises(TypeError, match=r"pass result.collect\(\)"):
            decode(lazy)


@pytest.mark.parametrize("kind", ["polars", "pandas", "table"])
def test_batches_are_of_the_kind_as_well(kind, packs):
    paths, rows, expected = mixed(packs, 50)
    table = table_of(references(paths, rows), n=range(50))
    frame = {"polars": pl.from_arrow, "pandas": pa.Table.to_pandas, "table": lambda t: t}[kind](
        table
    )
    batches = list(iac.iter_decode(frame, batch_rows=20))
    assert {type(batch) for batch in batches} == {type(frame)}
    assert [len(batch) for batch in batches] == [20, 20, 10]
    payloads = [one for batch in batches for one in pa.table(batch)["payload"].to_pylist()]
    assert payloads == expected


def test_duckdb_gives_arrow(packs):
    duckdb = pytest.importorskip("duckdb")
    path, objects = next(iter(packs.items()))
    query = f"SELECT {{'pack': '{path}', 'row': i}} AS record FROM range({ROWS}) r(i)"
    with duckdb.connect() as con:
        decoded = iac.decode(con.sql(query))
        assert isinstance(decoded, pa.Table)
        assert decoded["payload"].to_pylist() == objects
        frame = iac.decode(con.sql(query).df())
        assert frame["payload"].tolist() == objects
