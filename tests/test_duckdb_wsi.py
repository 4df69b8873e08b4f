"""Slides in SQL and through decode: tiles cut to the raster, what is no image, places of tiles."""

import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from iac_query.adapters.features import build_teacher_feature_package
from iac_query.adapters.manifests import TileRecord
from iac_query.adapters.wsi import WsiImageReader
from packs import DATA, flip_payload
from slides import ICC, build, tissue, write_svs, write_tiff

import iac_query as iac

PIXELS = tissue(200, 150)
QUERIES = files("iac_query") / "sql/queries"


@pytest.fixture(scope="module")
def slide(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slide")
    return build(write_svs(folder / "s.svs", PIXELS), lossless=True, tile_size=(48, 64))


def image_of(value: dict) -> np.ndarray:
    shape = value["height"], value["width"], value["channels"]
    return np.frombuffer(value["data"], value["dtype"]).reshape(shape)


def source_pixels(slide) -> np.ndarray:
    with WsiImageReader(slide) as reader:
        return reader.read_native_region(0, 0, *reader.dimensions)


def test_tiles_are_cut_and_the_rest_is_null(con, slide):
    rows = con.execute(
        "SELECT kind, name, tile_x, tile_y, iac_image(record) FROM iac_scan(?)", [str(slide)]
    ).fetchall()
    whole = source_pixels(slide)
    assert {kind for kind, *_ in rows} == {0, 1, 2, 3}
    for kind, name, x, y, image in rows:
        if kind == 0:
            expected = whole[64 * y : 64 * y + 64, 48 * x : 48 * x + 48]
            np.testing.assert_array_equal(image_of(image), expected)
        elif kind == 3:
            with WsiImageReader(slide) as reader:
                np.testing.assert_array_equal(image_of(image), reader.read_associated_image(name))
        else:
            assert image is None


def test_decode_agrees_with_sql(con, slide):
    query = f"SELECT kind, record FROM iac_scan('{slide}')"
    in_sql = con.sql(f"SELECT iac_image(record) FROM ({query})").to_arrow_table()
    for as_ in (None, "image"):
        decoded = iac.decode(con.sql(query), as_=as_)
        assert decoded["payload"].to_pylist() == in_sql.column(0).to_pylist()
    payloads = con.sql(f"SELECT iac_payload(record) FROM ({query})").to_arrow_table()
    decoded = iac.decode(con.sql(query), as_="bytes")
    assert decoded["payload"].to_pylist() == payloads.column(0).to_pylist()
    assert ICC in decoded["payload"].to_pylist()
    tensor = (
        iac.decode(con.sql(f"{query} WHERE kind = 0 AND tile_x < 4 AND tile_y < 2"), as_="tensor")[
            "payload"
        ]
        .chunk(0)
        .to_numpy_ndarray()
    )
    whole = source_pixels(slide)
    np.testing.assert_array_equal(tensor[0], whole[:64, :48])
    assert tensor.shape[1:] == (64, 48, 3)


def test_tensors_have_nulls_for_what_is_no_image(con, slide):
    query = f"SELECT record FROM iac_scan('{slide}') WHERE kind = 1 OR tile_x = 0 AND tile_y = 0"
    column = iac.decode(con.sql(query), as_="tensor")["payload"]
    assert column.null_count == 1
    assert len(column) == 2


def test_text_is_the_scanner_metadata(con, slide):
    query = f"SELECT record FROM iac_scan('{slide}') WHERE kind = 1"
    [(text,)] = con.execute(f"SELECT iac_text(record) FROM ({query})").fetchall()
    with WsiImageReader(slide) as reader:
        assert json.loads(text) == reader.scanner_metadata
    assert iac.decode(con.sql(query), as_="text")["payload"].to_pylist() == [text]


def test_damaged_tiles_are_errors_of_their_rows(con, tmp_path):
    path = build(write_tiff(tmp_path / "s.tif", PIXELS), lossless=True, tile_size=64)
    flip_payload(path, 1)
    for function in ("iac_image", "iac_payload"):
        with pytest.raises(Exception, match="row 1: "):
            con.execute(f"SELECT {function}(record) FROM iac_scan('{path}')").fetchall()
    found = iac.decode(con.sql(f"FROM iac_scan('{path}')"), as_="image", on_error="null")
    assert [value is None for value in found["payload"].to_pylist()][:3] == [False, True, False]


def test_places_of_tiles_when_asked_for(con, slide):
    names = ["x", "y", "x_um", "y_um", "mpp_x", "mpp_y"]
    assert not set(names) & set(con.sql(f"FROM iac_scan('{slide}')").columns)
    table = con.sql(
        f"SELECT kind, tile_x, tile_y, {', '.join(names)} FROM iac_scan('{slide}', layout := true)"
    ).to_arrow_table()
    assert table.schema.field("x").type == pa.int64()
    assert table.schema.field("x_um").type == pa.float64()
    for row in table.to_pylist():
        if row["kind"] != 0:
            assert [row[name] for name in names] == [None] * 6
            continue
        x, y = 48 * row["tile_x"], 64 * row["tile_y"]
        assert [row[name] for name in names] == [x, y, x * 0.5, y * 0.5, 0.5, 0.5]


def test_places_of_several_slides(con, tmp_path):
    coarse = build(
        write_tiff(tmp_path / "c.tif", PIXELS, resolution=(10000, 5000)),
        lossless=True,
        tile_size=64,
    )
    paths = [str(coarse), str(DATA / "wsi_jxl_lossless.iac"), str(DATA / "tiles_lossless.iac")]
    rows = con.execute(
        "SELECT filename, max(x_um), max(y_um), any_value(mpp_y) FROM "
        "iac_scan(?, layout := true, filename := true) GROUP BY ALL ORDER BY ALL",
        [paths],
    ).fetchall()
    found = {path: values for path, *values in rows}
    assert found[paths[0]] == [128, 256, 2]  # the right column is background
    assert found[paths[1]] == [32, 48, 0.5]
    assert found[paths[2]] == [None, None, None]


def test_tiles_in_a_rectangle(con, slide):
    con.execute(f"SET VARIABLE pack = '{slide}'")
    for name, value in {"x_um": 20, "y_um": 30, "width_um": 30, "height_um": 20}.items():
        con.execute(f"SET VARIABLE {name} = {value}")
    found = con.sql((QUERIES / "tiles_in_rectangle.sql").read_text(encoding="utf-8"))
    places = {(x, y) for x, y, *_ in found.fetchall()}
    assert places == {(x, y) for x in (0, 48, 96) for y in (0, 64) if x + 48 > 40 and x < 100}


def test_tissue_tiles(con, slide):
    with WsiImageReader(slide) as reader:
        grid = reader.grid(tile_size=24, mpp=1.0)
    con.register("grid", grid)
    con.execute(f"SET VARIABLE pack = '{slide}'")
    found = con.sql((QUERIES / "tissue_tiles.sql").read_text(encoding="utf-8")).fetchall()
    assert found
    everything = con.sql(f"FROM iac_scan('{slide}') WHERE kind = 0").fetchall()
    assert len(found) < len(everything)
    assert all(row[-1] >= 0.5 for row in found)


def test_packs_whose_header_does_not_say(con, slide, tmp_path):
    with iac.PackReader(slide) as pack:
        header = {k: v for k, v in pack.header.items() if k != "tile_width"}
        payloads = pack.read_payloads(range(len(pack)))
        iac.build_pack(tmp_path / "x.iac", header, pack.slide_table, pack.index_table, payloads)
    for query in (
        "SELECT iac_image(record) FROM iac_scan('{}')",
        "SELECT x_um FROM iac_scan('{}', layout := true)",
    ):
        with pytest.raises(Exception, match="tile_width"):
            con.execute(query.format(tmp_path / "x.iac")).fetchall()


def test_features_of_tissue(con, slide, tmp_path):
    with WsiImageReader(slide) as reader:
        grid = reader.grid(tile_size=32, mpp=0.5)
    records = [
        TileRecord(f"t{i}", "p", "slide-1", Path("x"), row["column"] * 32, row["row"] * 32, "")
        for i, row in enumerate(grid.to_pylist())
    ]
    matrix = np.arange(2.0 * len(records), dtype=np.float32).reshape(-1, 2)
    build_teacher_feature_package(records, matrix, tmp_path / "f.iac", "teacher")
    con.register("grid", grid)
    con.execute(f"SET VARIABLE features = '{tmp_path / 'f.iac'}'")
    con.execute("SET VARIABLE slide = 'slide-1'")
    found = con.sql((QUERIES / "features_of_tissue.sql").read_text(encoding="utf-8")).fetchall()
    expected = [(f"t{i}", i) for i, row in enumerate(grid.to_pylist()) if row["tissue"] >= 0.5]
    assert [(row[0], row[-1]) for row in found] == expected
    assert 0 < len(found) < len(records)


def test_scans_in_python_have_the_same_columns(con, slide, tmp_path):
    deep = build(write_tiff(tmp_path / "l.tif", PIXELS), lossless=True, tile_size=32, levels=(2, 8))
    for path in (slide, deep, DATA / "wsi_jpeg_passthrough.iac", DATA / "wsi_all_background.iac"):
        for layout in (False, True):
            query = f"FROM iac_scan('{path}', layout := {layout})"
            expected = con.sql(query).to_arrow_table()
            found = iac.scan_arrow(path, expected.column_names, layout=layout).read_all()
            assert found.column_names == expected.column_names
            for name in found.column_names:
                assert found[name].to_pylist() == expected[name].to_pylist(), name


def with_column(table: pa.Table, name: str, type: pa.DataType, value: int) -> pa.Table:
    """The table with a value in the first row of a column of another type."""
    if name not in table.column_names:
        return table.append_column(name, pa.array([value] + [None] * (len(table) - 1), type))
    values = pa.array([value, *table[name].to_pylist()[1:]], type)
    return table.set_column(table.schema.get_field_index(name), name, values)


LEVELS = [{"downsample": 2}]


@pytest.mark.parametrize(
    ("header", "column", "match"),
    [
        ({}, ("tile_x", pa.uint64(), (1 << 64) - 1), "lies beyond 64 bits"),
        ({}, ("tile_x", pa.int64(), 1 << 62), "lies beyond 64 bits"),
        ({"levels": LEVELS}, ("level", pa.uint8(), 2), "its level is 2, there are 2"),
        ({"levels": LEVELS}, ("level", pa.int8(), -1), "its level is -1, there are 2"),
        ({"levels": [5]}, ("level", pa.uint8(), 0), "levels is missing or wrong"),
        ({"levels": 5}, ("level", pa.uint8(), 0), "levels is missing or wrong"),
        ({"tile_width": 64.5}, ("flags", pa.uint8(), 0), "tile_width is missing or wrong"),
        ({"native_mpp_x": "1"}, ("flags", pa.uint8(), 0), "native_mpp_x is missing or wrong"),
        ({"levels": LEVELS}, ("level", pa.uint8(), 1), None),
        ({"levels": LEVELS}, ("level", pa.string(), "1"), None),
        ({"levels": LEVELS}, ("flags", pa.uint8(), 0), None),
    ],
)
def test_places_of_packs_that_lie_are_the_same_everywhere(
    con, slide, tmp_path, header, column, match
):
    path = str(tmp_path / "x.iac")
    with iac.PackReader(slide) as pack:
        index = with_column(pack.index_table, *column)
        payloads = pack.read_payloads(range(len(pack)))
        iac.build_pack(path, {**pack.header, **header}, pack.slide_table, index, payloads)
    relation = con.sql(f"SELECT x, y, x_um, mpp_x FROM iac_scan('{path}', layout := true)")
    names = relation.columns
    if match is None:
        found = iac.scan_arrow(path, names, layout=True).read_all()
        assert found.to_pylist() == relation.to_arrow_table().to_pylist()
        return
    with pytest.raises(iac.PackError, match=match) as raised:
        iac.scan_arrow(path, names, layout=True).read_all()
    assert path in str(raised.value)
    with pytest.raises(Exception, match=match):
        relation.fetchall()
