"""COPY ... TO 'x.iac': payloads that are encoded, and options of codecs."""

import hashlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from duckdb_copies import copy, fails, header_of
from iatro import iac as peer
from test_images import mixed_images, write_images

import iac_query as iac

pytestmark = [pytest.mark.asan, pytest.mark.usefixtures("work")]


@pytest.mark.parametrize(
    ("options", "codec", "params"),
    [
        ("", "zstd", {"level": 19}),
        ("LEVEL 3", "zstd", {"level": 3}),
        ("LEVEL -5", "zstd", {"level": -5}),
        ("CODEC 'ZSTD', LEVEL 3", "zstd", {"level": 3}),
        ("CODEC brotli, QUALITY 2, LGWIN 20", "brotli", {"quality": 2, "lgwin": 20}),
        ("CODEC none", "none", None),
    ],
)
def test_codecs_of_bytes(con, options: str, codec: str, params: dict | None):
    query = "SELECT i, encode(repeat('é' || i, i % 3 * i)) AS payload FROM range(3000) r(i)"
    path = copy(con, query, options=options + (", " if options else "") + "PAYLOAD_TYPE 'note'")
    header = header_of(path)
    assert (header["payload_type"], header["codec"]) == ("note", codec)
    assert header.get("codec_params") == params
    found = con.sql(f"SELECT i, iac_payload(record) FROM '{path}'").fetchall()
    assert found == con.sql(query).fetchall()
    expected = [iac.Codec.create(codec, **(params or {})).encode(blob) for _, blob in found[:50]]
    with iac.PackReader(path) as pack:
        assert [pack.read_payload(i) for i in range(50)] == expected
    theirs = peer.VariableRecordPack(path)
    assert [bytes(theirs.read(i)) for i in range(50)] == [blob for _, blob in found[:50]]


@pytest.mark.parametrize(
    "options",
    [
        "CODEC jxl, LOSSLESS, EFFORT 3",
        "CODEC jxl, DISTANCE 0.5, EFFORT 3",
        "CODEC jpeg, QUALITY 80, SUBSAMPLING '444', PROGRESSIVE true",
        "CODEC jpeg, LOSSLESS",
        "CODEC jpeg2000",
        "CODEC jpeg2000, PROFILE 'ht'",
        "CODEC jpegls, NEAR_LOSSLESS 2",
        "CODEC 'jpegls'",
    ],
)
def test_codecs_of_images(con, tmp_path: Path, options: str):
    """The stored bytes are those that Python's codec makes, and the peer decodes them alike."""
    random = np.random.default_rng(1)
    images = [random.integers(0, 255, (9 + i, 20, 3), np.uint8) for i in range(20)]
    source = write_images(tmp_path / "source.iac", images)
    path = copy(con, f"SELECT tile, iac_image(record) AS payload FROM '{source}'", options=options)
    with iac.PackReader(path) as pack:
        codec = iac.Codec.create(pack.header["codec"], **pack.header.get("codec_params", {}))
        payloads = pack.read_payloads(range(20))
    assert payloads == [codec.encode(image) for image in images]
    theirs = peer.VariableRecordPack(path)
    rounded = 1 if "DISTANCE" in options or "QUALITY" in options else 0
    for row, payload in enumerate(payloads):
        decoded = theirs.read(row).astype(int)
        np.testing.assert_allclose(decoded, codec.decode(payload), rtol=0, atol=rounded)


def test_images_of_every_kind_and_alignment(con, tmp_path: Path):
    source = write_images(tmp_path / "source.iac", mixed_images())
    path = copy(
        con,
        f"""SELECT tile, {{'data': i.data,
            'dtype': i.dtype::ENUM('uint8', 'uint16', 'float16', 'float32'),
            'channels': i.channels::UTINYINT, 'width': i.width, 'height': i.height::UBIGINT,
            'more': 1}} AS payload
            FROM (SELECT tile, iac_image(record) AS i FROM '{source}')""",
        options="CODEC jxl, LOSSLESS, EFFORT 1",
    )
    both = f"""SELECT iac_image(a.record), iac_image(b.record)
        FROM '{path}' a JOIN '{source}' b USING (tile)"""
    rows = con.sql(both).fetchall()
    assert len(rows) == len(mixed_images()) and all(a == b for a, b in rows)


IMAGE = {"height": 1, "width": 1, "channels": 1, "dtype": "uint8", "data": b"a"}
SIDE = 2**32 - 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"dtype": None}, "the field dtype of the image is NULL"),
        ({"data": None}, "the field data of the image is NULL"),
        ({"width": 2}, "1x2 uint8 has 2 bytes, its data 1"),
        ({"height": -1}, "the image has the height -1"),
        ({"width": 0, "data": b""}, "the image has the width 0"),
        ({"width": 2**32}, "the image has the width 4294967296"),
        ({"height": SIDE, "width": SIDE, "channels": SIDE, "dtype": "float32"}, "its data 1"),
        ({"dtype": "uint32", "data": b"aaaa"}, "images of uint32 cannot be encoded"),
        ({"dtype": "int8"}, "codec jxl"),
        ({"channels": 9, "data": b"a" * 9}, "codec jxl"),
    ],
)
def test_images_that_are_none(con, change: dict, reason: str):
    images = [IMAGE] * 5 + [{**IMAGE, **change}, IMAGE]
    con.register("images", pa.table({"k": range(7), "payload": images}))
    fails(con, "FROM images", rf"x\.iac: row 5: .*{reason}", "CODEC jxl, LOSSLESS, EFFORT 1")


def test_an_image_that_is_null(con):
    con.register("images", pa.table({"payload": [IMAGE] * 5 + [None]}))
    fails(con, "FROM images", "row 5: the payload is NULL", "CODEC jxl, LOSSLESS, EFFORT 1")


@pytest.mark.parametrize(
    ("payload", "options", "reason"),
    [
        ("{'a': 1}", "", "the payload is a struct: name a CODEC of images"),
        ("{'a': 1}", "CODEC jxl", "it has no field height"),
        ("{'height': 1, 'width': 'x'}", "CODEC jxl", "its field width has another type"),
        ("'x'", "CODEC jpeg", "codec jpeg is one of images"),
        ("'x'", "CODEC lzma", "unknown codec: 'lzma'"),
        ("'x'", "CODEC 7", "COPY option CODEC: expected a text"),
        ("'x'", "CODEC", "COPY option CODEC: expected a text"),
        ("'x'", "LEVEL 3.5", "level is 3.5, expected an integer"),
        ("'x'", "LEVEL '3'", "level is \"3\", expected an integer"),
        ("'x'", "LEVEL [1]", "COPY option LEVEL: expected a number"),
        ("'x'", "LEVEL 99999999999", "level is 99999999999, expected an integer"),
        ("'x'", "PAYLOAD_TYPE ''", "COPY option PAYLOAD_TYPE: the text is empty"),
        ("'x'", "COMPRESSION zstd", "unknown parameter 'compression'; options are CODEC"),
    ],
)  # fmt: skip
def test_options_that_do_not_fit(con, payload: str, options: str, reason: str):
    fails(con, f"SELECT 1 AS k, {payload} AS payload", reason, options)


def test_large_payloads_and_memory_of_chunks(con):
    """Payloads wait for each other over many chunks, and are encoded before they are many bytes."""
    con.execute("SET threads = 2")
    query = """SELECT i, repeat(chr(65 + (i % 26)::INT), 1 + (i * 7919) % 300000) AS payload
        FROM range(400) r(i) WHERE i % 3 < 2"""
    path = copy(con, query)
    found = con.sql(f"SELECT i, md5(iac_payload(record)) FROM '{path}'").fetchall()
    assert found == con.sql(f"SELECT i, md5(payload) FROM ({query})").fetchall()


def test_inputs_alone_decide_the_bytes(con):
    query = """SELECT i, CASE WHEN i % 3 = 0 THEN i END AS n,
        CASE WHEN i % 5 > 0 THEN {'a': i, 'b': [i]} END AS s,
        i // 100 AS slide_id, 'x' || i AS payload FROM range(10000) r(i)"""
    found = set()
    for threads in (1, 4):
        con.execute(f"SET threads = {threads}")
        for _ in range(3):
            found.add(hashlib.sha256(copy(con, query).read_bytes()).hexdigest())
    assert len(found) == 1
