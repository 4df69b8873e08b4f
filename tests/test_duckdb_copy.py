"""COPY ... TO 'x.iac': packs out of SQL."""

import hashlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from duckdb_columns import COLUMNS, plain
from iatro import iac as peer
from packs import DATA, IMAGES, MANIFEST, assemble, flip_payload, layout_index, write_encoded
from test_duckdb_types import repeat, write
from test_images import mixed_images, write_images

import iac_query as iac

pytestmark = pytest.mark.asan

BYTES = sorted(
    name
    for name, entry in MANIFEST.items()
    if name not in IMAGES and "codec" in entry["header"] and "feature_dim" not in entry["header"]
)


@pytest.fixture
def con(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    with iac.connect() as con:
        yield con


def copy(con, query: str, path: str = "x.iac", options: str = "LEVEL 1") -> Path:
    more = f", {options}" if options else ""
    con.execute(f"COPY (SELECT t FROM ({query}) t) TO '{path}' (FORMAT iac{more})")
    return Path(path)


def fails(con, query: str, reason: str, options: str = "LEVEL 1", path: str = "x.iac") -> None:
    """With that error, leaving the folder as it was."""
    before = {name: Path(name).read_bytes() for name in os.listdir()}
    with pytest.raises(duckdb.Error, match=reason):
        copy(con, query, path, options)
    assert {name: Path(name).read_bytes() for name in os.listdir()} == before


def header_of(path: Path) -> dict:
    with iac.PackReader(path) as pack:
        return pack.header


# Columns


@pytest.mark.parametrize("name", sorted(COLUMNS))
def test_every_type_of_a_scan_comes_back(con, tmp_path: Path, name: str):
    array, expected = repeat(COLUMNS[name], 5000)
    source = write(tmp_path / "source.iac", 5000, c=array)
    path = copy(con, f"SELECT c, 'x' AS payload FROM '{source}'")
    shown = COLUMNS[name].sql.format("c")
    values = con.sql(f"SELECT {shown} FROM '{path}'").fetchall()
    assert [plain(value) for (value,) in values] == expected
    assert con.sql(f"SELECT c FROM '{path}'").types == con.sql(f"SELECT c FROM '{source}'").types
    for reader in (iac.PackReader, peer.PackReader):
        table = reader(path).index_table
        table.validate(full=True)
        assert table.column_names == ["c", "offset", "length", "crc32"]


@pytest.mark.parametrize("name", sorted(COLUMNS))
def test_every_type_can_be_a_slide_column(con, tmp_path: Path, name: str):
    array, expected = repeat(COLUMNS[name], 3000)
    source = write(tmp_path / "source.iac", 3000, c=array)
    query = f"SELECT c, 'x' AS payload FROM '{source}'"
    path = copy(con, query, options="LEVEL 1, SLIDE_COLUMNS ['c']")
    shown = COLUMNS[name].sql.format("c")
    values = con.sql(f"SELECT {shown} FROM '{path}'").fetchall()
    assert [plain(value) for (value,) in values] == expected
    assert header_of(path)["num_slides"] <= len(COLUMNS[name].array)


TYPES = {
    "HUGEINT": ("(i - 5)::HUGEINT * 1000000000000000000000000000000::HUGEINT", "DECIMAL(38,0)"),
    "UHUGEINT": ("i::UHUGEINT * 7", "DECIMAL(38,0)"),
    "UUID": ("md5(i::VARCHAR)::UUID", "VARCHAR"),
    "ENUM": ("['red', 'green'][1 + i % 2]::ENUM('green', 'red')", "VARCHAR"),
    "list of ENUM": ("[['red', 'green'][1 + i % 2]::ENUM('green', 'red')]", "VARCHAR[]"),
    "JSON": ("json_object('i', i)", "VARCHAR"),
    "UNION": ("union_value(n := i)", "UNION(n BIGINT)"),
    "list_reverse": ("list_reverse([i, i + 1])", "BIGINT[]"),
    "list_sort": ("list_sort([3, i, 1])", "BIGINT[]"),
    "list_select": ("list_select([i, 7, 8], [3, 1])", "BIGINT[]"),
    "list slice": ("[1, i, 3][2:3]", "BIGINT[]"),
    "list_transform": ("list_transform([1, 2], lambda x: x + i)", "BIGINT[]"),
    "list of structs": ("[{'a': i, 'b': 'constant'}]", "STRUCT(a BIGINT, b VARCHAR)[]"),
    "constant": ("{'a': ['constant', NULL]}", "STRUCT(a VARCHAR[])"),
    "map": ("map_from_entries([('z', i), ('y', NULL)])", "MAP(VARCHAR, BIGINT)"),
    "NULL struct": ("CASE WHEN i % 3 > 0 THEN {'a': i, 'b': [i]} END", None),
    "NULL array": ("CASE WHEN i % 3 > 0 THEN [i, NULL]::BIGINT[2] END", "BIGINT[2]"),
    "infinity": ("'infinity'::TIMESTAMP", "TIMESTAMP"),
}


@pytest.mark.parametrize("name", sorted(TYPES))
def test_types_and_vectors_of_duckdb(con, name: str):
    """Whatever shape vectors have while a query runs."""
    expression, type = TYPES[name]
    query = f"SELECT i, {expression} AS c, 'x' AS payload FROM range(5000) r(i)"
    path = copy(con, query)
    shown = "SELECT c::VARCHAR FROM {} ORDER BY i"
    assert (
        con.sql(shown.format(f"'{path}'")).fetchall()
        == con.sql(shown.format(f"({query})")).fetchall()
    )
    if type:
        assert str(con.sql(f"SELECT c FROM '{path}'").types[0]).replace('"', "") == type


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("'101'::BIT", "column 'c': a pack cannot hold values of type BIT, cast them"),
        ("[TIMETZ '10:00+01']", "column 'c': .* TIME WITH TIME ZONE"),
        ("123::BIGNUM", "column 'c': .* BIGNUM"),
        ("'24:00:00'::TIME", "column 'c': a time is not below 24:00:00"),
        ("170141183460469231731687303715884105727", "column 'c': a HUGEINT has more than the 38"),
        (
            "to_years(300) + to_microseconds(9223372036854775807)",
            "column 'c': an interval has more",
        ),
    ],
)
def test_values_that_packs_cannot_hold(con, expression: str, reason: str):
    fails(con, f"SELECT {expression} AS c, 'x' AS payload", reason)


@pytest.mark.parametrize("rows", [0, 1, 2047, 2048, 2049, 100_000])
def test_every_number_of_rows(con, rows: int):
    query = f"""SELECT i, i // 10 AS patient_id,
        CASE WHEN i % 7 > 0 THEN repeat('s', i % 50) END AS s,
        'payload ' || i AS payload FROM range({rows}) r(i)"""
    path = copy(con, query)
    scan = f"SELECT i, patient_id, s, iac_text(record) FROM '{path}'"
    assert con.sql(scan).fetchall() == con.sql(query).fetchall()
    header = header_of(path)
    assert header["num_records"] == rows
    assert header["num_slides"] == (rows + 9) // 10
    assert [row[0] for row in con.sql(scan).description] == [
        "i",
        "patient_id",
        "s",
        "iac_text(record)",
    ]


def test_a_million_rows(con):
    query = """SELECT i, i // 1000 AS patient_id, 'payload ' || i AS payload
        FROM range(1_000_000) r(i)"""
    path = copy(con, query, options="CODEC 'none'")
    (found,) = con.sql(
        f"""SELECT count(*), sum(i), bool_and(record.row = i AND patient_id = i // 1000),
            bool_and(iac_text(record) = 'payload ' || i) FROM '{path}'"""
    ).fetchall()
    assert found == (1_000_000, 999_999 * 500_000, True, True)
    assert con.sql(f"FROM iac_check('{path}')").fetchall() == []
    theirs = peer.PackReader(path)
    assert theirs.read_payload(999_999) == b"payload 999999"
    assert theirs.header["num_slides"] == 1000


def test_names_come_from_the_struct_or_from_columns(con):
    one = copy(con, "SELECT 1 AS k, 'x' AS payload").read_bytes()
    con.execute("COPY (SELECT 1, 'x') TO 'y.iac' (LEVEL 1, COLUMNS ['k', 'payload'])")
    assert Path("y.iac").read_bytes() == one
    con.execute("CREATE TABLE items AS SELECT 1 AS k, 'x' AS payload")
    con.execute("COPY (SELECT items FROM items) TO 'z.iac' (LEVEL 1)")
    assert Path("z.iac").read_bytes() == one


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT 1 AS k, 'x' AS payload, 1 AS \"Offset\"", "a column is called 'offset'"),
        ("SELECT 1 AS k", "no column is called payload .* or record"),
        ("SELECT {'pack': 'x', 'row': 1} AS record, 'x' AS payload", "leave one of them out"),
        ("SELECT 1 AS payload", "codec zstd is one of bytes, so the payload must be"),
        ("SELECT 1 AS record", "expected a record"),
        ("SELECT 'a' AS slide_idx, 'x' AS payload", "'slide_idx' numbers slides, so it must be"),
    ],
)
def test_columns_that_make_no_pack(con, query: str, reason: str):
    fails(con, query, reason, "")


def test_a_row_that_is_null(con):
    con.execute(
        """CREATE TABLE rows AS
        SELECT CASE WHEN i <> 2500 THEN {'payload': 'x'} END AS t FROM range(5000) r(i)"""
    )
    with pytest.raises(duckdb.Error, match="row 2500: the struct is NULL"):
        con.execute("COPY (SELECT t FROM rows) TO 'x.iac' (LEVEL 1)")
    with pytest.raises(duckdb.Error, match="two columns are called 'K'"):
        con.execute("COPY (SELECT 1, 2, 'x') TO 'x.iac' (COLUMNS ['k', 'K', 'payload'])")
    with pytest.raises(duckdb.Error, match="COLUMNS: the text is empty"):
        con.execute("COPY (SELECT 1, 'x') TO 'x.iac' (COLUMNS ['', 'payload'])")
    assert os.listdir() == []


# Slides


def slides_of(path: Path) -> list[dict]:
    with iac.PackReader(path) as pack:
        return pack.slide_table.to_pylist()


def test_each_combination_of_slide_columns_is_a_slide(con):
    query = """SELECT i AS k, ['s1', 's2', NULL][1 + i % 3] AS slide_id, i % 2 AS patient_id,
        'x' AS payload FROM range(12) r(i)"""
    path = copy(con, query)
    slides = slides_of(path)
    assert slides[0] == {"slide_idx": 0, "slide_id": "s1", "patient_id": 0}
    assert slides[2] == {"slide_idx": 2, "slide_id": None, "patient_id": 0}
    assert len(slides) == 6
    found = con.sql(f"SELECT k, slide_id, patient_id FROM '{path}'").fetchall()
    assert found == con.sql(f"SELECT k, slide_id, patient_id FROM ({query})").fetchall()


@pytest.mark.parametrize("name", ["Slide_Idx", "SERIES_IDX"])
def test_the_number_of_a_slide_is_found_in_any_case(con, tmp_path: Path, name: str):
    path = tmp_path / "x.iac"
    con.execute(
        f"""COPY (SELECT t FROM (
            SELECT i // 2 AS "{name}", 's' || (i // 2) AS slide_id, 'x' AS payload
            FROM range(6) AS r(i)) AS t) TO '{path}' (FORMAT iac)"""
    )
    assert con.sql(f"FROM '{path}'").columns == [name.lower(), "slide_id", "record"]


def test_a_link_to_nothing_is_not_followed(con, tmp_path: Path):
    link = tmp_path / "link.iac"
    link.symlink_to(tmp_path / "folder" / "x.iac")
    with pytest.raises(duckdb.Error, match="a link to a file that does not exist"):
        con.execute(f"COPY (SELECT t FROM (SELECT 'x' AS payload) AS t) TO '{link}' (FORMAT iac)")
    assert not (tmp_path / "folder").exists() and link.is_symlink()


def test_slide_columns_are_chosen(con):
    query = "SELECT 'a' AS slide_id, i % 2 AS stain, i AS k, 'x' AS payload FROM range(4) r(i)"
    path = copy(con, query, options="LEVEL 1, SLIDE_COLUMNS ['STAIN']")
    assert slides_of(path) == [{"slide_idx": 0, "stain": 0}, {"slide_idx": 1, "stain": 1}]
    path = copy(con, query, options="LEVEL 1, SLIDE_COLUMNS []")
    assert slides_of(path) == [] and header_of(path)["num_slides"] == 0
    assert con.sql(f"SELECT slide_id, stain, k FROM '{path}'").fetchall()[3] == ("a", 1, 3)
    fails(con, query, "SLIDE_COLUMNS names 'other', which is no column", "SLIDE_COLUMNS ['other']")
    fails(con, query, "'payload' cannot be a slide column", "SLIDE_COLUMNS ['payload']")


def test_slides_keep_the_numbers_they_have(con):
    query = """SELECT (7 - i // 3)::UTINYINT AS slide_idx, 's' || i // 3 AS slide_id, i AS k,
        'x' AS payload FROM range(9) r(i)"""
    path = copy(con, query)
    assert slides_of(path) == [{"slide_idx": 7 - i, "slide_id": f"s{i}"} for i in range(3)]
    with iac.PackReader(path) as pack:
        assert pack.index_table.schema.field("slide_idx").type == pa.uint8()
    wrong = "SELECT i // 3 AS slide_idx, i // 2 AS slide_id, 'x' AS payload FROM range(9) r(i)"
    fails(con, wrong, "row 2: column 'slide_idx': the number of this slide is that of another one")
    wrong = "SELECT NULL::INT AS slide_idx, i AS slide_id, 'x' AS payload FROM range(9) r(i)"
    fails(con, wrong, "row 0: column 'slide_idx': it is NULL, but 'slide_id' is not")


def test_records_without_a_slide(con):
    query = """SELECT CASE WHEN i < 2 THEN i END AS slide_idx,
        CASE WHEN i < 2 THEN 's' END AS slide_id,
        i AS k, 'x' AS payload FROM range(4) r(i)"""
    path = copy(con, query)
    assert len(slides_of(path)) == 2
    found = con.sql(f"SELECT slide_idx, slide_id FROM '{path}' ORDER BY k").fetchall()
    assert found == [(0, "s"), (1, "s"), (None, None), (None, None)]


# Payloads


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
    """The stored bytes are those that Python's codec makes."""
    random = np.random.default_rng(1)
    images = [random.integers(0, 255, (9 + i, 20, 3), np.uint8) for i in range(20)]
    source = write_images(tmp_path / "source.iac", images)
    path = copy(con, f"SELECT tile, iac_image(record) AS payload FROM '{source}'", options=options)
    with iac.PackReader(path) as pack:
        codec = iac.Codec.create(pack.header["codec"], **pack.header.get("codec_params", {}))
        assert pack.read_payloads(range(20)) == [codec.encode(image) for image in images]


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


# Records


@pytest.mark.parametrize("name", BYTES + IMAGES)
def test_records_are_copied_as_they_are_stored(con, name: str):
    header = MANIFEST[name]["header"]
    source = DATA / name
    if "record_codecs" in header or not MANIFEST[name]["records"]:
        pytest.skip("of several codecs, or without records")
    if header["payload_type"] == "dicom_patient":
        pytest.skip("an instance without pixels is a damaged image in other packs")
    query = f"SELECT * FROM '{source}' ORDER BY record.row DESC"
    path = copy(con, query, options="SLIDE_COLUMNS []")
    stored = "SELECT iac_stored(record), iac_payload(record) FROM '{}' ORDER BY record.row {}"
    assert (
        con.sql(stored.format(path, "")).fetchall()
        == con.sql(stored.format(source, "DESC")).fetchall()
    )
    assert header_of(path).get("codec_params", {}) == (header.get("codec_params") or {})
    assert header_of(path)["codec"] == header["codec"]


def test_records_of_many_packs_in_any_order(con, tmp_path: Path):
    objects = {level: [f"{level} {i}".encode() * 50 for i in range(100)] for level in (1, 3, 9)}
    packs = [
        write_encoded(tmp_path / f"{level}.iac", objects[level], "zstd", level=level)
        for level in objects
    ]
    refs = " UNION ALL ".join(
        f"SELECT {n} AS n, record FROM '{path}'" for n, path in enumerate(packs)
    )
    path = copy(con, f"FROM ({refs}) ORDER BY record.row, n", options="CODEC zstd")
    found = [blob for (blob,) in con.sql(f"SELECT iac_payload(record) FROM '{path}'").fetchall()]
    assert found == [objects[level][i] for i in range(100) for level in objects]
    assert "codec_params" not in header_of(path)  # the packs agree on no level


def test_records_of_a_matrix(con):
    source = DATA / "fixed_float32.iac"
    path = copy(con, f"SELECT * FROM '{source}'", options="")
    assert header_of(path)["codec"] == "none"
    rows = "SELECT iac_payload(record) FROM '{}'"
    assert con.sql(rows.format(path)).fetchall() == con.sql(rows.format(source)).fetchall()


def test_records_of_a_pack_of_several_codecs(con, tmp_path: Path):
    stored = [b"plain", iac.Codec.create("zstd").encode(b"packed"), b"again"]
    offsets = [0, len(stored[0]), len(stored[0]) + len(stored[1])]
    index = layout_index(offsets, [*map(len, stored)], codec_id=pa.array([4, 7, 4], pa.uint8()))
    codecs = [{"id": 7, "name": "zstd", "params": {"level": 3}}, {"id": 4, "name": "none"}]
    source = assemble(tmp_path / "source.iac", index, b"".join(stored), record_codecs=codecs)
    query = f"SELECT * FROM '{source}'"
    fails(con, query, "row 1: its codec is zstd, that of records before it none", "")
    for id, codec, found in [(4, "none", [b"plain", b"again"]), (7, "zstd", [b"packed"])]:
        path = copy(con, f"{query} WHERE codec_id = {id}", options="")
        assert header_of(path)["codec"] == codec
        rows = con.sql(f"SELECT iac_payload(record) FROM '{path}'").fetchall()
        assert [row for (row,) in rows] == found


@pytest.mark.parametrize(
    ("record", "reason", "options"),
    [
        ("CASE WHEN i <> 30 THEN {'pack': 'PACK', 'row': i % 5} END", "row 30: the record is", ""),
        ("{'pack': 'PACK', 'row': i}", "l3.iac: row 5: payload row out of range", ""),
        ("{'pack': 'PACK', 'row': i % 5, 'stamp': 1}", "the pack has changed since", ""),
        ("{'pack': 'nothing.iac', 'row': i}", "nothing.iac", ""),
        ("{'pack': 'PACK', 'row': i % 5}", "no parameters of a codec apply", "LEVEL 3"),
        ("{'pack': 'PACK', 'row': i % 5}", "its codec is zstd, CODEC is brotli", "CODEC brotli"),
    ],
)  # fmt: skip
def test_records_that_cannot_be_copied(con, record: str, reason: str, options: str):
    record = record.replace("PACK", str(DATA / "zstd_l3.iac"))
    fails(con, f"SELECT i, {record} AS record FROM range(5000) r(i)", reason, options)


def test_a_damaged_record_is_not_copied(con, tmp_path: Path):
    source = write_encoded(tmp_path / "source.iac", [b"x" * 90] * 9, "zstd")
    flip_payload(source, 6)
    fails(con, f"SELECT * FROM '{source}'", r"source\.iac: row 6: .*crc32", "")


def test_a_pack_may_be_copied_onto_itself(con):
    query = "SELECT i, 'payload ' || i AS payload FROM range(3000) r(i)"
    path = copy(con, query)
    copy(con, f"SELECT * FROM '{path}' WHERE i % 2 = 0", options="")
    assert con.sql(f"SELECT count(*), min(iac_text(record)) FROM '{path}'").fetchall() == [
        (1500, "payload 0")
    ]


# Files


def test_failures_leave_the_old_file(con):
    old = copy(con, "SELECT 1 AS k, 'old' AS payload").read_bytes()
    fails(con, "SELECT 1 AS k, 'x' AS payload", "unknown codec", "CODEC nothing")
    fails(
        con,
        "SELECT i AS k, CASE WHEN i < 4000 THEN 'x' END AS payload FROM range(5000) r(i)",
        r"/x\.iac: row 4000",
    )
    fails(
        con,
        """SELECT i AS k, CASE WHEN i < 4000 THEN 'x' ELSE error('boom') END AS payload
            FROM range(5000) r(i)""",
        "boom",
    )
    fails(con, "SELECT 1 AS k, 'x' AS payload", "header", f"LEVEL 1, PAYLOAD_TYPE '{'x' * 70000}'")
    assert Path("x.iac").read_bytes() == old
    copy(con, "SELECT 2 AS k, 'new' AS payload")
    assert con.sql("SELECT k, iac_text(record) FROM 'x.iac'").fetchall() == [(2, "new")]
    assert os.listdir() == ["x.iac"]


@pytest.mark.parametrize(
    "option", ["USE_TMP_FILE false", "USE_TMP_FILE true", "OVERWRITE true", "RETURN_FILES true"]
)
def test_the_options_of_duckdb_itself(con, option: str):
    for k in (1, 2):
        copy(con, f"SELECT {k} AS k, 'x' AS payload", options=f"LEVEL 1, {option}")
        assert con.sql("SELECT k FROM 'x.iac'").fetchall() == [(k,)]
    fails(con, "SELECT 1 AS k, NULL::VARCHAR AS payload", r"/x\.iac: row 0", option)
    assert os.listdir() == ["x.iac"]


def test_partitions_and_threads_write_a_pack_each(con):
    con.execute(
        """CREATE TABLE items AS
            SELECT i % 3 AS part, {'i': i, 'payload': 'x' || i} AS t FROM range(9000) r(i)"""
    )
    con.execute(
        "COPY (SELECT part, t FROM items) TO 'parts' (FORMAT iac, LEVEL 1, PARTITION_BY (part))"
    )
    packs = sorted(path for path in Path("parts").rglob("*") if path.is_file())
    assert len(packs) == 3
    assert (
        sum(con.sql(f"SELECT count(*) FROM iac_scan('{path}')").fetchall()[0][0] for path in packs)
        == 9000
    )


def test_a_prepared_copy_runs_again(con):
    con.execute("CREATE TABLE items AS SELECT 1 AS k, 'one' AS payload")
    con.execute("PREPARE again AS COPY (SELECT items FROM items) TO 'x.iac' (LEVEL 1)")
    for k, text in [(1, "one"), (2, "two"), (3, "three")]:
        con.execute("DELETE FROM items")
        con.execute("INSERT INTO items VALUES (?, ?)", [k, text])
        con.execute("EXECUTE again")
        assert con.sql("SELECT k, iac_text(record) FROM 'x.iac'").fetchall() == [(k, text)]
    con.execute("UPDATE items SET payload = NULL")
    old = Path("x.iac").read_bytes()
    with pytest.raises(duckdb.Error, match=r"x\.iac: row 0: the payload is NULL"):
        con.execute("EXECUTE again")
    assert Path("x.iac").read_bytes() == old and os.listdir() == ["x.iac"]


def test_an_interrupt_leaves_nothing(con):
    query = "SELECT i, repeat('abc' || i, 300) AS payload FROM range(100000000) r(i)"
    timer = threading.Timer(0.4, con.interrupt)
    timer.start()
    began = time.monotonic()
    fails(con, query, "(?i)interrupt")
    assert time.monotonic() - began < 10
    timer.join()


def test_a_process_that_is_killed_leaves_the_old_file(con):
    old = copy(con, "SELECT 1 AS k, 'old' AS payload").read_bytes()
    script = """
import iac_query, os, signal, threading
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
iac_query.connect().execute(
    "COPY (SELECT repeat('abc' || i, 300) FROM range(100000000) r(i)) TO 'x.iac' (COLUMNS payload)"
)
"""
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == -9
    assert Path("x.iac").read_bytes() == old


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("nowhere/x.iac", "cannot write: its folder does not exist"),
        ("https://example.org/x.iac", "packs can be written to local files only"),
        ("folder.iac", "is not a file that can be replaced"),
        ("pipe.iac", "is not a file that can be replaced"),
    ],
)
def test_targets_that_are_no_files(con, path: str, reason: str):
    os.mkdir("folder.iac")
    os.mkfifo("pipe.iac")
    with pytest.raises(duckdb.Error, match=reason):
        copy(con, "SELECT 1 AS k, 'x' AS payload", path, "USE_TMP_FILE false")
    assert sorted(os.listdir()) == ["folder.iac", "pipe.iac"]


def test_a_full_disk_is_an_error(con, tmp_path: Path):
    script = """
import iac_query, resource
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    iac_query.connect().execute(
        "COPY (SELECT 'text ' || i FROM range(900000) r(i)) TO 'x.iac' (COLUMNS payload, LEVEL 1)"
    )
except Exception as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", script], timeout=60, capture_output=True, text=True)
    assert "x.iac: cannot write: File too large" in run.stdout, run
    assert os.listdir() == []


def test_the_access_rules_of_duckdb_hold(con, tmp_path: Path):
    (tmp_path / "allowed").mkdir()
    (tmp_path / "work" / "link.iac").symlink_to(tmp_path / "allowed" / "link.iac")
    secret = write_encoded(tmp_path / "secret.iac", [b"x"], "zstd")
    con.execute(f"SET allowed_directories = ['{tmp_path / 'allowed'}/']")
    con.execute("SET enable_external_access = false")
    query = "SELECT 1 AS k, 'x' AS payload"
    for target in (tmp_path / "x.iac", tmp_path / "allowed" / ".." / "x.iac", "x.iac", "~/x.iac"):
        for options in ("LEVEL 1", "LEVEL 1, USE_TMP_FILE false"):
            with pytest.raises(duckdb.Error, match="disabled by configuration"):
                copy(con, query, str(target), options)
    assert not (tmp_path / "x.iac").exists() and os.listdir() == ["link.iac"]
    inside = tmp_path / "allowed" / "x.iac"
    for _ in range(2):
        copy(con, query, str(inside))
    record = f"SELECT {{'pack': '{secret}', 'row': 0}} AS record"
    with pytest.raises(duckdb.Error, match="disabled by configuration"):
        copy(con, record, str(inside), "")
    assert con.sql(f"SELECT k FROM '{inside}'").fetchall() == [(1,)]
    con.execute("RESET threads")


def test_the_mode_is_what_the_umask_says(con):
    old = os.umask(0o027)
    try:
        path = copy(con, "SELECT 1 AS k, 'x' AS payload")
        assert path.stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(old)


def test_the_header(con):
    header = header_of(copy(con, "SELECT 1 AS k, 'x' AS payload"))
    names = {"payload_type", "codec", "codec_params", "num_slides", "num_records"}
    assert names <= header.keys() and header["payload_type"] == "records"
    assert peer.PackReader("x.iac").header == header
