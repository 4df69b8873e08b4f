"""Validation: whatever is wrong with a pack of a schema is found, and its row is named."""

import numpy as np
import pyarrow as pa
import pytest
from damaged_packs import (
    COUNT,
    SCHEMAS,
    changed,
    errors_of,
    extended_features,
    extended_tiles,
    features,
    text,
    text_pair,
    tiles,
    with_payload,
)
from packs import replaced
from patients import PAIR, TEXT, entry, payload
from tile_data import images_of

import iac_query as iac

TILED = [name for name in SCHEMAS if "text" not in name and name != "bytes"]
TEXTS = ["clinical_text", "clinical_text_pair"]


def without(name: str):
    return lambda table: table.drop_columns([name])


def as_type(name: str, type: pa.DataType):
    def change(table: pa.Table) -> pa.Table:
        at = table.schema.get_field_index(name)
        return table.set_column(at, name, table[name].cast(type))

    return change


@pytest.mark.parametrize("name", TILED)
@pytest.mark.parametrize("column", ["slide_idx", "tile_x", "tile_y", "tile_id", "flags"])
def test_tiles_need_their_columns(tmp_path, name, column):
    path = changed(SCHEMAS[name](tmp_path / "x.iac"), index=without(column))
    assert errors_of(path) == [(None, "schema", f"the index table has no column {column!r}")]


@pytest.mark.parametrize("name", TILED)
@pytest.mark.parametrize("column", ["slide_idx", "slide_id", "patient_id"])
def test_slides_need_their_columns(tmp_path, name, column):
    path = changed(SCHEMAS[name](tmp_path / "x.iac"), slides=without(column))
    assert errors_of(path) == [(None, "schema", f"the slide table has no column {column!r}")]


@pytest.mark.parametrize("name", TILED)
def test_columns_are_of_a_type_and_without_null(tmp_path, name):
    path = changed(SCHEMAS[name](tmp_path / "x.iac"), index=as_type("tile_x", pa.string()))
    ((row, check, reason),) = errors_of(path)
    assert (row, check) == (None, "schema")
    assert reason.startswith("index table: column 'tile_x' is string, expected uint")
    path = changed(SCHEMAS[name](tmp_path / "y.iac"), index=replaced("tile_id", 4, None))
    assert errors_of(path) == [(4, "schema", "tile_id is NULL")]
    path = changed(SCHEMAS[name](tmp_path / "z.iac"), slides=replaced("patient_id", 1, None))
    assert errors_of(path) == [(None, "schema", "slide table: row 1: patient_id is NULL")]


def test_places_beyond_the_type_of_the_schema(tmp_path):
    def far(table: pa.Table) -> pa.Table:
        return replaced("tile_x", 2, 70_000)(as_type("tile_x", pa.uint32())(table))

    assert errors_of(changed(tiles(tmp_path / "x.iac"), index=far)) == [
        (2, "schema", "tile_x is no uint16")
    ]
    assert errors_of(changed(extended_tiles(tmp_path / "y.iac"), index=far)) == []


def test_other_types_that_hold_the_same_are_taken(tmp_path):
    def other(table: pa.Table) -> pa.Table:
        return as_type("slide_idx", pa.int64())(as_type("tile_id", pa.large_string())(table))

    assert errors_of(changed(tiles(tmp_path / "x.iac"), index=other)) == []


@pytest.mark.parametrize("name", TILED)
def test_ids_are_unique_and_slides_exist(tmp_path, name):
    path = changed(SCHEMAS[name](tmp_path / "x.iac"), index=replaced("tile_id", 5, "tile-é-1"))
    assert errors_of(path) == [(5, "ids", "tile_id is that of row 1 as well")]
    path = changed(SCHEMAS[name](tmp_path / "x.iac"), index=replaced("tile_id", 0, ""))
    assert errors_of(path) == [(0, "schema", "tile_id is empty")]
    path = changed(SCHEMAS[name](tmp_path / "x.iac"), index=replaced("slide_idx", 3, 9))
    assert errors_of(path) == [(3, "schema", "slide_idx is not in the slide table")]
    path = changed(SCHEMAS[name](tmp_path / "x.iac"), slides=replaced("slide_id", 1, "slide-0"))
    reason = "slide table: row 1: slide_id is that of row 0 as well"
    assert errors_of(path) == [(None, "ids", reason)]
    path = changed(SCHEMAS[name](tmp_path / "x.iac"), slides=replaced("slide_idx", 1, 0))
    reason = "slide table: row 1: slide_idx is that of row 0 as well"
    assert errors_of(path) == [
        (None, "ids", reason),
        *((row, "schema", "slide_idx is not in the slide table") for row in (1, 3, 5)),
    ]


@pytest.mark.parametrize("name", TILED)
@pytest.mark.parametrize("value", [0, -1, 2.0, "16", True, None])
def test_header_fields_of_the_grid(tmp_path, name, value):
    path = changed(SCHEMAS[name](tmp_path / "x.iac"), stride_x=value)
    assert errors_of(path) == [(None, "schema", "header field stride_x is no integer above 0")]
    path = changed(SCHEMAS[name](tmp_path / "x.iac"), drop=("stride_y",))
    assert errors_of(path) == [(None, "schema", "the header has no 'stride_y'")]
    path = changed(SCHEMAS[name](tmp_path / "x.iac"), stride_x=value, coordinate_mode="pixels")
    assert errors_of(path) == []


def test_too_many_slides(tmp_path):
    def many(table: pa.Table) -> pa.Table:
        numbers = np.arange(256)
        return pa.table(
            {
                "slide_idx": pa.array(numbers, pa.uint8()),
                "slide_id": [f"slide-{i}" for i in numbers],
                "patient_id": ["p"] * 256,
            }
        )

    path = changed(tiles(tmp_path / "x.iac"), slides=many)
    assert errors_of(path) == [(None, "schema", "256 slides, the schema allows 255")]
    assert errors_of(changed(extended_tiles(tmp_path / "y.iac"), slides=many)) == []


def test_the_header_of_tiles(tmp_path):
    path = changed(tiles(tmp_path / "x.iac"), tile_width="16")
    assert errors_of(path) == [(None, "schema", "header field tile_width is no integer above 0")]
    path = changed(tiles(tmp_path / "x.iac"), codec="jpegls")
    found = errors_of(path)
    assert found[0] == (None, "schema", "its codec is not 'jxl'")
    assert [row for row, *_ in found[1:]] == list(range(COUNT))
    reason = "the header does not tell the tiles' shape and dtype"
    for change in ({"tile_shape": [16, 16]}, {"tile_dtype": "object"}, {"tile_shape": None}):
        path = changed(extended_tiles(tmp_path / "x.iac"), **change)
        assert errors_of(path) == [(None, "schema", reason)]


def test_tiles_of_another_shape_or_dtype(tmp_path):
    encode = iac.Codec.create("jxl", lossless=True, effort=1).encode
    expected = ", expected 16 x 16 x 3 of uint8"
    path = tiles(tmp_path / "x.iac")
    with_payload(path, 1, encode(images_of(1, size=(16, 8))[0]))
    with_payload(path, 2, encode(images_of(1, dtype=np.uint16)[0]))
    with_payload(path, 4, encode(images_of(1, 0)[0]))
    assert errors_of(path) == [
        (1, "payload", f"the tile is 16 x 8 x 3 of uint8{expected}"),
        (2, "payload", f"the tile is 16 x 16 x 3 of uint16{expected}"),
        (4, "payload", f"the tile is 16 x 16 of uint8{expected}"),
    ]
    path = changed(extended_tiles(tmp_path / "y.iac"), tile_shape=[16, 8, 1])
    found = errors_of(path)
    assert found[0] == (0, "payload", "the tile is 16 x 16 of uint16, expected 16 x 8 of uint16")
    assert len(found) == COUNT


@pytest.mark.parametrize(
    ("build", "dtype"), [(features, "dtype"), (extended_features, "feature_dtype")]
)
def test_the_header_of_features(tmp_path, build, dtype):
    for value in ("", None, 5):
        path = changed(build(tmp_path / "x.iac"), teacher=value)
        assert errors_of(path) == [(None, "schema", "the header has no 'teacher'")]
    path = changed(build(tmp_path / "x.iac"), **{dtype: "float99"})
    ((row, check, reason),) = errors_of(path)
    assert (row, check) == (None, "container") and f"{dtype} is 'float99'" in reason
    path = changed(build(tmp_path / "y.iac"), feature_dim=3)
    ((row, check, reason),) = errors_of(path)
    assert (row, check) == (None, "container") and "feature_record_bytes" in reason
    path = changed(build(tmp_path / "z.iac"), drop=("feature_dim",))
    assert (None, "schema", "its records are no rows of a matrix") in errors_of(path)


def test_the_dtype_of_extended_features_has_its_own_name(tmp_path):
    path = extended_features(tmp_path / "x.iac")
    changed(path, dtype="float64", drop=("feature_dtype",))
    ((row, check, reason),) = errors_of(path)
    assert (row, check) == (None, "schema") and "has a 'dtype'" in reason


def test_features_that_are_not_finite_are_noted(tmp_path):
    path = features(tmp_path / "x.iac", dtype="float16")
    matrix = np.ones((COUNT, 4), np.float16)
    matrix[2, 3], matrix[5, 0] = np.nan, np.inf
    changed(path, data=matrix.tobytes())
    report = iac.validate(path)
    assert report.ok
    assert [(f.row, f.reason) for f in report.findings] == [
        (2, "has NaN or infinity"),
        (5, "has NaN or infinity"),
    ]


@pytest.mark.parametrize("name", TEXTS)
def test_texts_need_their_columns(tmp_path, name):
    for column in ("patient_id", "institution", "num_docs"):
        path = changed(SCHEMAS[name](tmp_path / f"{column}.iac"), index=without(column))
        assert errors_of(path) == [(None, "schema", f"the index table has no column {column!r}")]


@pytest.mark.parametrize("name", TEXTS)
def test_patients_are_unique_and_those_of_the_records(tmp_path, name):
    path = changed(SCHEMAS[name](tmp_path / "a.iac"), index=replaced("patient_id", 4, "患者-2"))
    assert errors_of(path) == [
        (4, "ids", "patient_id is that of row 2 as well"),
        (4, "payload", "patient_id is another one in the index"),
    ]
    path = changed(SCHEMAS[name](tmp_path / "b.iac"), index=replaced("num_docs", 1, 77))
    assert errors_of(path) == [(1, "payload", "num_docs is another one in the index")]
    path = changed(SCHEMAS[name](tmp_path / "c.iac"), index=replaced("institution", 5, "x"))
    assert errors_of(path) == [(5, "payload", "institution is another one in the index")]


@pytest.mark.parametrize("column", ["source_raw_bytes", "compressed_raw_bytes"])
def test_sizes_of_pairs(tmp_path, column):
    path = changed(text_pair(tmp_path / "x.iac"), index=replaced(column, 3, 1))
    assert errors_of(path) == [(3, "payload", f"{column} is another one in the index")]


@pytest.mark.parametrize(
    "name, field",
    [("clinical_text", "text_schema_version"), ("clinical_text_pair", "pair_schema_version")],
)
def test_versions_of_text(tmp_path, name, field):
    for value in (2, "1", True):
        path = changed(SCHEMAS[name](tmp_path / f"{value}.iac"), **{field: value})
        assert errors_of(path) == [(None, "schema", f"header field {field} is not 1")]


def manifest(**more):
    """What a record of the patient in row 2 would say."""
    return {"patient_id": "患者-2", "institution": "hospital é 0", "docs": [], **more}


@pytest.mark.parametrize(
    "record, reason",
    [
        (b"no record", "manifest of "),
        (payload(b"{"), "the manifest is not valid JSON"),
        (payload(manifest(text_schema_version=3)), "manifest: text_schema_version is 3"),
        (payload(manifest(docs=[entry(length=5)]), b"four"), "document 0: text at 0 + 5 ends out"),
        (
            payload(manifest(docs=[entry("d", 0, 3), entry("e", 2, 2)]), b"four"),
            "two texts overlap",
        ),
        (
            payload(manifest(docs=[entry(length=2)]), b"\xff\xfe"),
            "document 0: its text is not UTF-8",
        ),
        (payload(manifest(docs=[{"offset": 0, "length": 0}])), "document 0: "),
    ],
)
def test_records_that_are_no_documents(tmp_path, record, reason):
    stored = iac.Codec.create("brotli", quality=1).encode(record)
    path = with_payload(text(tmp_path / "x.iac"), 2, stored)
    ((row, check, found),) = errors_of(path)
    assert (row, check) == (2, "codec")
    assert found.startswith(reason)


def test_a_document_id_that_is_there_twice_is_noted(tmp_path):
    record = payload(manifest(docs=[entry("d", 0, 2), entry("d", 2, 2)]), b"four")
    stored = iac.Codec.create("brotli", quality=1).encode(record)
    path = with_payload(text(tmp_path / "x.iac"), 2, stored)
    changed(path, index=replaced("num_docs", 2, 2))
    report = iac.validate(path)
    assert report.ok
    (note,) = report.findings
    assert (note.row, note.reason) == (2, "two of its documents have one doc_id")


@pytest.mark.parametrize("schema", [TEXT, PAIR], ids=str)
def test_texts_of_a_codec_of_images(tmp_path, schema):
    path = SCHEMAS[schema.name](tmp_path / "x.iac")
    found = errors_of(changed(path, codec="jpegls", codec_params={}))
    assert found[0] == (None, "schema", "its codec is one of images")


@pytest.mark.parametrize("name", [name for name in SCHEMAS if name != "bytes"])
def test_nothing_of_a_record_is_in_a_report(tmp_path, name):
    path = SCHEMAS[name](tmp_path / "x.iac")
    column = "patient_id" if name in TEXTS else "tile_id"
    secret = iac.PackReader(path).index_table[column][0].as_py()
    changed(path, index=replaced(column, 3, secret))
    report = iac.validate(path)
    assert not report.ok and secret not in str(report)
