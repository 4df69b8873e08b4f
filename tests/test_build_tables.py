"""Tables of packs that are written: layout columns, plain types, and what is refused."""

import os

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from iatro import iac as peer
from packs import (
    build,
    item_table,
    payloads_of,
    slide_table,
)

import iac_query as iac


def test_layout_columns_are_replaced_in_place_or_come_last(tmp_path):
    index = pa.table({"crc32": ["x"] * 3, "a": [1, 2, 3], "offset": [0.5] * 3, "b": [4, 5, 6]})
    table = iac.PackReader(build(tmp_path / "x.iac", index=index)).index_table
    assert table.column_names == ["crc32", "a", "offset", "b", "length"]
    assert [table.schema.field(n).type for n in ("offset", "length", "crc32")] == [
        pa.uint64(),
        pa.uint32(),
        pa.uint32(),
    ]


def test_two_columns_of_a_layout_name_are_refused(tmp_path):
    index = pa.table([[1, 2, 3], [1, 2, 3]], names=["offset", "offset"])
    with pytest.raises(ValueError, match="2 columns called 'offset'"):
        build(tmp_path / "x.iac", index=index)


@pytest.mark.parametrize(
    ("column", "stored"),
    [
        (pa.array(["a", None, "b" * 30], pa.string_view()), pa.string()),
        (pa.array([b"a", None, b"b" * 30], pa.binary_view()), pa.binary()),
        (pc.run_end_encode(pa.array([7, 7, None])), pa.int64()),
        (pa.array([[1], None, [2, 3]], pa.list_view(pa.int8())), pa.list_(pa.int8())),
        (pa.array([[1], None, [2]], pa.large_list_view(pa.int8())), pa.large_list(pa.int8())),
        (
            pa.array([["a"], None, ["b" * 30]], pa.list_(pa.string_view())),
            pa.list_(pa.string()),
        ),
        (
            pa.array([{"a": "x"}, None, {"a": None}], pa.struct([("a", pa.string_view())])),
            pa.struct([("a", pa.string())]),
        ),
        (
            pa.DictionaryArray.from_arrays([0, 1, 0], pa.array(["a", "b"], pa.string_view())),
            pa.dictionary(pa.int64(), pa.string()),
        ),
        (
            pa.array([[("k", "v")], None, []], pa.map_(pa.string_view(), pa.binary_view())),
            pa.map_(pa.string(), pa.binary()),
        ),
        (
            pa.array([["a", "b"], None, ["c", None]], pa.list_(pa.string_view(), 2)),
            pa.list_(pa.string(), 2),
        ),
        (
            pa.array([[[1], None], None, []], pa.list_view(pa.large_list_view(pa.int8()))),
            pa.list_(pa.large_list(pa.int8())),
        ),
        (
            pa.RunEndEncodedArray.from_arrays([2, 3], pa.array(["a", None], pa.string_view())),
            pa.string(),
        ),
        (
            pa.StructArray.from_arrays([pc.run_end_encode(pa.array([1, 1, 2]))], ["a"]),
            pa.struct([("a", pa.int64())]),
        ),
        (
            pa.UnionArray.from_dense(
                pa.array([0, 1, 0], pa.int8()),
                pa.array([0, 0, 1], pa.int32()),
                [pa.array([1, 2]), pa.array(["x"], pa.string_view())],
            ),
            pa.dense_union([pa.field("0", pa.int64()), pa.field("1", pa.string())]),
        ),
        (
            pa.UnionArray.from_sparse(
                pa.array([0, 1, 0], pa.int8()),
                [pa.array([1, 2, 3]), pa.array(["x", "y", "z"], pa.string_view())],
            ),
            pa.sparse_union([pa.field("0", pa.int64()), pa.field("1", pa.string())]),
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, pa.DataType) else "",
)
def test_types_that_not_every_reader_knows_are_stored_as_plain_ones(tmp_path, column, stored):
    table = pa.table([column], schema=pa.schema([pa.field("x", column.type, metadata={"k": "v"})]))
    path = build(tmp_path / "x.iac", index=table)
    read = iac.PackReader(path).index_table
    assert read.schema.field("x").type == stored
    assert read.schema.field("x").metadata == {b"k": b"v"}
    assert read["x"].to_pylist() == column.to_pylist()
    assert peer.read_tables(path)[2]["x"].to_pylist() == column.to_pylist()

    doubled = pa.chunked_array([column, column.slice(1), column.slice(0, 0), column.slice(2)])
    path = build(
        path, index=pa.table({"x": doubled}), payloads=payloads_of(len(doubled)), overwrite=True
    )
    assert iac.PackReader(path).index_table["x"].to_pylist() == doubled.to_pylist()
    assert peer.read_tables(path)[2]["x"].to_pylist() == doubled.to_pylist()


def test_slide_tables_are_normalised_too(tmp_path):
    slides = pa.table({"slide_id": pa.array(["a" * 40], pa.string_view())})
    iac.build_pack(tmp_path / "x.iac", {}, slides, item_table(0), [])
    assert iac.PackReader(tmp_path / "x.iac").slide_table.schema.field(0).type == pa.string()


@pytest.mark.parametrize("table", [None, {"a": [1]}, item_table(3).to_batches()[0]], ids=repr)
def test_tables_are_pyarrow_tables(tmp_path, table):
    with pytest.raises(TypeError, match="index_table"):
        iac.build_pack(tmp_path / "x.iac", {}, slide_table(), table, payloads_of(3))
    with pytest.raises(TypeError, match="slide_table"):
        iac.build_pack(tmp_path / "x.iac", {}, table, item_table(3), payloads_of(3))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "table",
    [pa.table({"a\0b": [1, 2, 3]}), pa.table({"a": pa.array([{"x\0": 1}] * 3)})],
    ids=["column", "field"],
)
def test_a_column_name_with_a_nul_is_refused(tmp_path, table):
    with pytest.raises(ValueError, match="has a NUL in it"):
        build(tmp_path / "x.iac", index=table)
    assert os.listdir(tmp_path) == []
