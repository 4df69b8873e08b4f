"""iac_image in SQL, and iac_payload of images."""

from pathlib import Path

import duckdb
import numpy as np
import pytest
from packs import write_encoded
from test_images import damage, image, mixed_images, write_images

import iac_query as iac

pytestmark = pytest.mark.asan


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    return write_images(tmp_path / "mixed.iac", mixed_images())


def array_of(value: dict) -> np.ndarray:
    array = np.frombuffer(value["data"], value["dtype"])
    return array.reshape(value["height"], value["width"], value["channels"])


def test_an_image_is_a_struct_of_its_shape_and_pixels(con, mixed: Path):
    query = f"SELECT iac_image(record), iac_payload(record) FROM '{mixed}' ORDER BY tile"
    rows = con.sql(query).fetchall()
    for (value, payload), expected in zip(rows, mixed_images(), strict=True):
        assert value["dtype"] == expected.dtype.name
        found = array_of(value)
        assert np.array_equal(found.reshape(expected.shape), expected)
        assert payload == expected.tobytes()


def test_the_type(con, mixed: Path):
    (type,) = con.sql(f"SELECT typeof(iac_image(record)) FROM '{mixed}' LIMIT 1").fetchall()[0]
    fields = "height INTEGER, width INTEGER, channels INTEGER, dtype VARCHAR, data BLOB"
    assert type.replace('"', "") == f"STRUCT({fields})"


@pytest.mark.parametrize("rows", [1, 2047, 2048, 2049])
def test_nulls_lie_between_images_and_fields_can_be_used_alone(con, tmp_path: Path, rows: int):
    pack = write_images(
        tmp_path / "x.iac", [np.full((1, 1 + i % 3), i % 250, np.uint8) for i in range(rows)]
    )
    query = f"""
        SELECT tile, i, i.width, i.data FROM (
            SELECT tile, iac_image(CASE WHEN tile % 3 <> 1 THEN record END) AS i FROM '{pack}')"""
    for tile, value, width, data in con.sql(query).fetchall():
        if tile % 3 == 1:
            assert (value, width, data) == (None, None, None)
        else:
            assert width == 1 + tile % 3 and data == bytes([tile % 250]) * width


def test_images_of_several_packs_in_one_vector(con, tmp_path: Path):
    packs = [
        write_images(tmp_path / f"{i}.iac", [image((3 + i, 2), "uint16", i)] * 3, codec)
        for i, codec in enumerate(["jpegls", "jpeg2000"])
    ]
    union = " UNION ALL ".join(f"SELECT {i} AS n, record FROM '{p}'" for i, p in enumerate(packs))
    for n, value in con.sql(f"SELECT n, iac_image(record) FROM ({union})").fetchall():
        assert np.array_equal(array_of(value)[:, :, 0], image((3 + n, 2), "uint16", n))


def test_what_decodes_to_no_image_is_an_error_with_the_way_out(con, tmp_path: Path):
    pack = write_encoded(tmp_path / "x.iac", [b"a", b"b"], "zstd")
    with pytest.raises(duckdb.Error, match=r"x\.iac: row 0: its codec does not decode to images"):
        con.sql(f"SELECT iac_image(record) FROM '{pack}'").fetchall()


def test_a_damaged_image_is_named_and_try_leaves_the_others(con, tmp_path: Path):
    pack = write_images(tmp_path / "x.iac", [image((8, 8), "uint8", i) for i in range(5)])
    damage(pack, 3)
    with pytest.raises(duckdb.Error, match=r"x\.iac: row 3"):
        con.sql(f"SELECT iac_image(record) FROM '{pack}'").fetchall()
    rows = con.sql(f"SELECT TRY(iac_image(record)) IS NULL FROM '{pack}' ORDER BY tile").fetchall()
    assert rows == [(False,), (False,), (False,), (True,), (False,)]


def test_images_can_be_stored_and_sent_through_arrow(con, mixed: Path):
    con.execute(f"CREATE TABLE t AS SELECT tile, iac_image(record) AS i FROM '{mixed}'")
    table = con.sql("SELECT i FROM t ORDER BY tile").to_arrow_table()
    for value, expected in zip(table["i"].to_pylist(), mixed_images(), strict=True):
        assert value["data"] == expected.tobytes()
    assert iac.decode(con.sql(f"FROM '{mixed}'")).num_rows == len(mixed_images())
