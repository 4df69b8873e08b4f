"""Grids of places over a slide, the tissue in each, and their tiles as tensors."""

import numpy as np
import pyarrow as pa
import pytest
from iac_query.adapters.wsi import WsiImageReader
from iac_query.adapters.wsi.grid import otsu, tissue_mask
from slides import build, tissue, write_tiff

PIXELS = tissue(200, 150)


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    source = write_tiff(tmp_path_factory.mktemp("slide") / "s.tif", PIXELS)
    with WsiImageReader(build(source, lossless=True, tile_size=(48, 32))) as reader:
        yield reader


def test_grids_cover_the_slide_and_find_tissue(reader):
    grid = reader.grid(tile_size=20, mpp=1.0, overlap=4)
    assert grid.column_names == ["column", "row", "x_um", "y_um", "size", "mpp", "tissue"]
    assert grid["x_um"].to_pylist()[:2] == [0, 16]
    assert max(grid["x_um"].to_pylist()) + 20 >= 100 > max(grid["x_um"].to_pylist()) + 4
    assert max(grid["y_um"].to_pylist()) + 20 >= 75 > max(grid["y_um"].to_pylist()) + 4
    y, x = np.mgrid[:150, :200]
    inside = ((x / 200 - 0.4) / 0.35) ** 2 + ((y / 150 - 0.5) / 0.45) ** 2 < 1
    for row in grid.to_pylist():
        left, top = int(2 * row["x_um"]), int(2 * row["y_um"])
        expected = inside[top : top + 40, left : left + 40].sum() / 1600
        assert abs(row["tissue"] - expected) < 0.15
    some = reader.grid(tile_size=20, mpp=1.0, overlap=4, tissue=0.5)
    assert 0 < some.num_rows < grid.num_rows
    assert min(some["tissue"].to_pylist()) >= 0.5
    batches = list(reader.iter_grid(some.take(pa.array([3, 0, 1])), batch_size=2))
    assert [batch.shape for batch in batches] == [(2, 20, 20, 3), (1, 20, 20, 3)]
    first = some.slice(3, 1).to_pylist()[0]
    expected = reader.read_region(first["x_um"], first["y_um"], 20, 20, mpp=1.0)
    np.testing.assert_array_equal(batches[0][0], expected)


def test_otsu_parts_two_groups():
    counts = np.bincount([10] * 50 + [12] * 30 + [200] * 40 + [210] * 5, minlength=256)
    assert 12 <= otsu(counts) < 200
    assert otsu(np.bincount([7] * 9, minlength=256)) == 255
    assert not tissue_mask(np.full((4, 5, 3), 240, np.uint8)).any()


@pytest.mark.parametrize("parts", [1, 3, 7])
def test_batches_are_of_one_size_however_places_come(reader, parts):
    grid = reader.grid(tile_size=20, mpp=1.0)
    step = -(-len(grid) // parts)
    places = pa.concat_tables([grid.slice(at, step) for at in range(0, len(grid), step)])
    batches = list(reader.iter_grid(places, batch_size=8))
    assert [len(batch) for batch in batches] == [8, 8, len(grid) - 16]
    for place, tile in zip(places.to_pylist(), np.concatenate(batches), strict=True):
        expected = reader.read_region(place["x_um"], place["y_um"], 20, 20, mpp=1.0)
        np.testing.assert_array_equal(tile, expected)


def test_places_that_a_query_picked(reader, con):
    con.register("grid", reader.grid(tile_size=20, mpp=1.0))
    query = """SELECT x_um, y_um, size, CAST(mpp * 2 AS DECIMAL(9, 3)) AS mpp FROM grid
        WHERE tissue >= 0.5 ORDER BY tissue DESC, x_um, y_um LIMIT 3"""
    (tiles,) = reader.iter_grid(con.sql(query))
    x, y, size, _ = con.sql(query).fetchall()[2]
    np.testing.assert_array_equal(tiles[2], reader.read_region(x, y, size, size, mpp=2.0))
    assert list(reader.iter_grid(con.sql("FROM grid WHERE false"))) == []


def places(**columns) -> pa.Table:
    given = {"x_um": [0.0, 1], "y_um": [0.0, 1], "size": [5, 5], "mpp": [1.0, 1], **columns}
    return pa.table(given)


@pytest.mark.parametrize(
    ("table", "error", "match"),
    [
        (places(x_um=[None, 1.0]), ValueError, "NULLs in column 'x_um'"),
        (places(size=[5, None]), ValueError, "NULLs in column 'size'"),
        (places(size=[5, 6]), ValueError, "of several sizes"),
        (places(size=[0, 0]), ValueError, "width is 0"),
        (places(size=[1.5, 1.5]), TypeError, "width is 1.5"),
        (places(mpp=[0.1, 0.1]), ValueError, "finer"),
        (places(x_um=[float("nan"), 0]), ValueError, "x_um is nan"),
        (places().drop(["mpp"]), KeyError, "mpp"),
    ],
)
def test_places_that_are_none(reader, table, error, match):
    with pytest.raises(error, match=match):
        next(reader.iter_grid(table))


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"tile_size": 10, "overlap": 10}, ValueError, "overlap is 10"),
        ({"tile_size": 10, "overlap": -1}, ValueError, "overlap is -1"),
        ({"tile_size": 10, "mpp": 0.1}, ValueError, "finer"),
        ({"tile_size": 10, "mpp": (1, 2)}, ValueError, "mpp is 1.0, 2.0, expected one number"),
        ({"tile_size": 10.0}, TypeError, "tile_size is 10.0"),
        ({"tile_size": 1 << 31}, ValueError, "tile_size is 2147483648, expected at most"),
        ({"tile_size": 10, "tissue": float("nan")}, ValueError, "tissue is nan"),
    ],
)
def test_bad_arguments(reader, options, error, match):
    with pytest.raises(error, match=match):
        reader.grid(**options)


def test_grids_of_too_many_places(reader, monkeypatch):
    monkeypatch.setattr("iac_query.adapters.wsi.grid.MAX_PLACES", 100)
    with pytest.raises(ValueError, match="tiles of 10 pixels are 20 x 15 places, at most 100"):
        reader.grid(tile_size=10)
