"""Writing packs: their bytes, and what is refused."""

import os
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from iatro import iac as peer
from packs import (
    DATA,
    assert_same_table,
    build,
    item_table,
    payloads_of,
    slide_table,
    write_matrix,
    write_pack,
)

import iac_query as iac

ROWS = 5


def many_types() -> pa.Table:
    """A column of nearly every Arrow type that both packages store as it is."""
    moments = [1_700_000_000, None, 0, -5, 7]
    columns = {
        "null": pa.nulls(ROWS),
        "bool": pa.array([True, None, False, True, False]),
        **{
            name: pa.array([1, None, 3, 4, 5], type)
            for name, type in [
                ("int8", pa.int8()),
                ("uint64", pa.uint64()),
                ("half", pa.float16()),
                ("double", pa.float64()),
                ("date32", pa.date32()),
                ("decimal", pa.decimal128(20, 2)),
            ]
        },
        "time": pa.array([1, None, 3, 4, 5], pa.int64()).cast(pa.time64("us")),
        "moment": pa.array(moments, pa.int64()).cast(pa.timestamp("s", "Europe/Paris")),
        "duration": pa.array(moments, pa.int64()).cast(pa.duration("ns")),
        "interval": pa.array([pa.MonthDayNano([1, 2, 3]), None] * 2 + [None]),
        "text": pa.array(["é", None, "", "日本", "x" * 50]),
        "large_text": pa.array(["é", None, "", "日本", "x" * 50], pa.large_string()),
        "bytes": pa.array([b"\0", None, b"", b"\xff", b"x" * 50]),
        "fixed_bytes": pa.array([b"ab", None, b"cd", b"ef", b"gh"], pa.binary(2)),
        "list": pa.array([[1], None, [], [2, None], [3]], pa.list_(pa.int16())),
        "large_list": pa.array([["a"], None, [], ["b", None], []], pa.large_list(pa.string())),
        "fixed_list": pa.array([[1, 2], None, [3, 4], [5, 6], [7, 8]], pa.list_(pa.int8(), 2)),
        "struct": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": None}, {}, {"a": 2}]),
        "map": pa.array([[("a", 1)], None, [], [("b", None)], []], pa.map_(pa.string(), pa.int8())),
        "dictionary": pa.array(["u", None, "v", "u", "v"]).dictionary_encode(),
        "dense_union": pa.UnionArray.from_dense(
            pa.array([0, 1, 0, 1, 0], pa.int8()),
            pa.array([0, 0, 1, 1, 2], pa.int32()),
            [pa.array([1, 2, 3]), pa.array(["x", "y"])],
        ),
        "tensor": pa.ExtensionArray.from_storage(
            pa.fixed_shape_tensor(pa.int8(), [2]),
            pa.array([[1, 2], None, [3, 4], [5, 6], [7, 8]], pa.list_(pa.int8(), 2)),
        ),
    }
    fields = [
        pa.field(name, column.type, metadata={"note": name} if name == "text" else None)
        for name, column in columns.items()
    ]
    return pa.table(
        list(columns.values()), schema=pa.schema(fields, metadata={"made by": "a test, é"})
    )


def tables() -> dict[str, pa.Table]:
    types = many_types()
    plain = item_table(ROWS)
    return {
        "plain": plain,
        "many types": types,
        "several chunks": pa.concat_tables([types.slice(0, 2), types.slice(2, 1), types.slice(3)]),
        "sliced": pa.concat_tables([plain, plain]).slice(3, ROWS),
        "chunks that differ from column to column": pa.table(
            {
                "a": pa.chunked_array([[1, 2], [3, 4, 5]]),
                "b": pa.chunked_array([["u"], ["v", "w", "x"], ["y"]]),
            }
        ),
        "empty chunks": pa.table({"a": pa.chunked_array([[], [1, 2, 3], [], [4, 5]], pa.int8())}),
        "no columns": plain.select([]),
        "layout columns that are replaced": plain.add_column(
            0, "crc32", pa.array(["x"] * ROWS)
        ).append_column(
            pa.field("offset", pa.float64(), metadata={"a": "b"}), pa.nulls(ROWS, pa.float64())
        ),
        "not nullable": plain.cast(
            pa.schema([pa.field("item_id", pa.string(), False), plain.schema.field(1)])
        ),
    }


HEADER = {
    "payload_type": "raw_bytes",
    "codec": "none",
    "text": 'é "quoted" \\ \n\t\x01\x7f\u2028 日本 🩺',
    "nested": {"z": [1, [], {}, None, True, False], "a": {"b": [{"c": -1}]}},
    "numbers": [0, -1, 2**64 - 1, -(2**63), 1.5, 0.1, 1e16, 1e-5, -0.0, 123456.789, 1e300],
    "Zed": 1,
    "ä": 2,
    "": "an empty key",
}


def build_both(tmp_path: Path, build: str, *args, **options) -> tuple[bytes, bytes]:
    files = []
    for module in (iac, peer):
        path = tmp_path / f"{module.__name__}.iac"
        getattr(module, build)(path, *args, **options)
        files.append(path.read_bytes())
    return files[0], files[1]


# Bytes


@pytest.mark.parametrize("name", tables())
def test_bytes_are_those_of_the_peer(tmp_path, name):
    table = tables()[name]
    ours, theirs = build_both(
        tmp_path, "build_pack", HEADER, many_types(), table, payloads_of(ROWS)
    )
    assert ours == theirs


def test_bytes_of_empty_packs_are_those_of_the_peer(tmp_path):
    for slides, index in [(slide_table(), item_table(0)), (pa.table({}), pa.table({}))]:
        ours, theirs = build_both(tmp_path, "build_pack", {}, slides, index, [], overwrite=True)
        assert ours == theirs


def test_bytes_of_data_segments_are_those_of_the_peer(tmp_path):
    data = os.urandom(3 << 20)
    ours, theirs = build_both(
        tmp_path, "build_pack_data_segment", HEADER, slide_table(), item_table(3), data
    )
    assert ours == theirs
    (tmp_path / "data").write_bytes(data)
    ours, theirs = build_both(
        tmp_path,
        "build_pack_data_segment_from_file",
        HEADER,
        slide_table(),
        item_table(3),
        tmp_path / "data",
        data_length=len(data),
        overwrite=True,
    )
    assert ours == theirs


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64", "bool", "complex64"])
def test_bytes_of_matrices_are_those_of_the_peer(tmp_path, dtype):
    matrix = (np.arange(12).reshape(4, 3) % 2).astype(dtype)
    files = []
    for module in (iac, peer):
        module.FixedRecordPack.build(
            tmp_path / "m.iac",
            payload_type="embeddings",
            slide_table=slide_table(),
            index_table=item_table(4),
            matrix=matrix,
            extra_header={"model": "toy"},
            overwrite=True,
        )
        files.append((tmp_path / "m.iac").read_bytes())
    assert files[0] == files[1]


def test_a_golden_pack_is_written_again_byte_by_byte(tmp_path):
    for name in ("raw_basic.iac", "zstd_l3.iac", "brotli_default.iac", "index_many_types.iac"):
        with iac.PackReader(DATA / name) as reader:
            iac.build_pack(
                tmp_path / name,
                reader.header,
                reader.slide_table,
                reader.index_table,
                reader.read_payloads(range(len(reader))),
            )
        assert (tmp_path / name).read_bytes() == (DATA / name).read_bytes(), name


def test_the_same_input_gives_the_same_bytes(tmp_path):
    a = build(tmp_path / "a.iac", index=many_types(), payloads=payloads_of(ROWS), header=HEADER)
    b = build(tmp_path / "b.iac", index=many_types(), payloads=payloads_of(ROWS), header=HEADER)
    assert a.read_bytes() == b.read_bytes()
    for codec in ("zstd", "brotli"):
        files = []
        for workers in (1, 4):
            iac.VariableRecordPack.build(
                tmp_path / f"{codec}{workers}.iac",
                payload_type="t",
                slide_table=slide_table(),
                index_table=item_table(300),
                objects=payloads_of(300, 2000),
                codec=codec,
                workers=workers,
            )
            files.append((tmp_path / f"{codec}{workers}.iac").read_bytes())
        assert files[0] == files[1]


# Layout columns and tables


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


# Counts


class Watched:
    """An iterator of payloads that tells how many were taken."""

    def __init__(self, count: int) -> None:
        self.count, self.taken = count, 0

    def __iter__(self):
        for i in range(self.count):
            self.taken += 1
            yield str(i).encode()


@pytest.mark.parametrize("count", [2, 4])
def test_a_list_of_another_length_is_refused_before_anything_is_written(tmp_path, count):
    with pytest.raises(ValueError, match=f"{count} payloads for 3 rows"):
        build(tmp_path / "new" / "x.iac", payloads=payloads_of(count))
    assert os.listdir(tmp_path) == []


def test_an_iterator_is_stopped_at_the_first_payload_too_many(tmp_path):
    endless = Watched(1 << 40)
    with pytest.raises(ValueError, match="more payloads than the 3 rows"):
        iac.build_pack_streaming(tmp_path / "x.iac", {}, slide_table(), item_table(3), endless)
    assert endless.taken < 1000
    assert os.listdir(tmp_path) == []


def test_an_iterator_that_ends_early_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="2 payloads for 3 rows"):
        iac.build_pack_streaming(tmp_path / "x.iac", {}, slide_table(), item_table(3), Watched(2))
    assert os.listdir(tmp_path) == []


def test_an_iterator_is_fine_where_a_list_is_expected(tmp_path):
    build(tmp_path / "x.iac", payloads=iter(payloads_of(3)))
    assert list(iac.iter_payloads(tmp_path / "x.iac")) == payloads_of(3)


def test_matrix_and_objects_are_counted_as_well(tmp_path):
    common = {"payload_type": "t", "slide_table": slide_table(), "index_table": item_table(3)}
    with pytest.raises(ValueError, match="2 matrix rows for 3 rows"):
        iac.FixedRecordPack.build(tmp_path / "x.iac", matrix=np.zeros((2, 2)), **common)
    with pytest.raises(ValueError, match="4 objects for 3 rows"):
        iac.VariableRecordPack.build(tmp_path / "x.iac", objects=payloads_of(4), **common)
    assert os.listdir(tmp_path) == []


# Headers


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"x": float("nan")}, "nan|NaN|JSON compliant"),
        ({"x": [float("inf")]}, "inf|JSON compliant"),
        ({"x": 2**64}, "18446744073709551616 does not fit in 64 bits"),
        ({"x": {"y": [-(2**63) - 1]}}, "does not fit in 64 bits"),
        ({"x": "\ud800"}, "header JSON"),
        ({"\udfff": 1}, "header JSON"),
        ({"x": "y" * 65520}, "at most 65520 fit"),
    ],
    ids=["nan", "infinity", "large", "small", "surrogate", "surrogate key", "too long"],
)
def test_a_header_that_cannot_be_stored_exactly_is_refused(tmp_path, fields, message):
    with pytest.raises(ValueError, match=message):
        build(tmp_path / "x.iac", header=fields)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("value", [b"x", {1}, Decimal("1.5"), np.float32(1), object()], ids=repr)
def test_a_header_value_that_json_has_not_is_a_type_error(tmp_path, value):
    with pytest.raises(TypeError):
        build(tmp_path / "x.iac", header={"x": value})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("header", [[], "{}", 5])
def test_a_header_is_a_mapping(tmp_path, header):
    with pytest.raises(TypeError, match="header_json"):
        build(tmp_path / "x.iac", header=header)


def test_a_header_that_is_nested_too_deep_is_refused(tmp_path):
    def nested(depth: int):
        return {"x": nested(depth - 1)} if depth else 1

    build(tmp_path / "x.iac", header=nested(120))
    with pytest.raises(ValueError, match="nested deeper"):
        build(tmp_path / "y.iac", header=nested(128))


def test_the_longest_header_that_fits_is_stored(tmp_path):
    # Just below the limit, where the number of data bytes decides.
    room = 65520 - 700
    path = build(tmp_path / "x.iac", header={"x": "y" * room})
    assert len(iac.read_header(path)["x"]) == room
    assert peer.read_header(path) == iac.read_header(path)


def test_a_readers_header_can_be_passed_on(tmp_path):
    first = iac.PackReader(build(tmp_path / "a.iac", header={"payload_type": "t", "mine": [1]}))
    build(
        tmp_path / "b.iac",
        header=first.header,
        index=item_table(2),
        payloads=[b"longer than before " * 10] * 2,
    )
    header = iac.read_header(tmp_path / "b.iac")
    assert header["num_records"] == 2
    assert header["data_length"] == 380
    assert (header["payload_type"], header["mine"]) == ("t", [1])


def test_the_callers_header_is_not_changed(tmp_path):
    header = {"payload_type": "t", "num_records": 77}
    build(tmp_path / "x.iac", header=header)
    assert header == {"payload_type": "t", "num_records": 77}


def test_every_header_value_comes_back_as_it_was(tmp_path):
    header = iac.read_header(build(tmp_path / "x.iac", header=HEADER))
    assert {key: header[key] for key in HEADER} == HEADER
    assert str(header["numbers"]) == str(HEADER["numbers"])


# Payloads


@pytest.mark.parametrize(
    ("payload", "stored"),
    [
        (bytearray(b"abc"), b"abc"),
        (memoryview(b"abcdef")[2:4], b"cd"),
        (np.array([1, 2], np.uint16), b"\1\0\2\0"),
        (np.array(7, np.int8), b"\7"),
        (pa.py_buffer(b"xyz"), b"xyz"),
        (memoryview(np.arange(4, dtype=np.uint8).reshape(2, 2)), b"\0\1\2\3"),
        (b"", b""),
    ],
    ids=lambda value: type(value).__name__,
)
def test_payloads_are_anything_with_contiguous_memory(tmp_path, payload, stored):
    path = build(tmp_path / "x.iac", payloads=[payload, b"", payload])
    assert list(iac.iter_payloads(path)) == [stored, b"", stored]


@pytest.mark.parametrize("payload", ["text", 5, None, [1, 2], np.arange(6)[::2]], ids=repr)
def test_other_payloads_are_type_errors(tmp_path, payload):
    with pytest.raises(TypeError, match="bytes-like"):
        build(tmp_path / "x.iac", payloads=[b"", payload, b""])
    assert os.listdir(tmp_path) == []


def test_offset_length_and_crc32_are_those_of_the_payloads(tmp_path):
    import zlib

    payloads = [b"", b"a", b"", b"bb" * 700_000, os.urandom(3 << 20), b""]
    path = write_pack(tmp_path / "x.iac", payloads)
    table = iac.PackReader(path).index_table
    lengths = [len(payload) for payload in payloads]
    assert table["length"].to_pylist() == lengths
    assert table["offset"].to_pylist() == [sum(lengths[:i]) for i in range(len(lengths))]
    assert table["crc32"].to_pylist() == [zlib.crc32(payload) for payload in payloads]
    assert list(peer.iter_payloads(path)) == payloads


# Data segments


@pytest.mark.parametrize("data", [b"", b"abc", bytearray(b"abc"), np.arange(3)], ids=repr)
def test_a_data_segment_is_stored_as_it_is(tmp_path, data):
    path = tmp_path / "x.iac"
    iac.build_pack_data_segment(path, {}, slide_table(), item_table(3), data)
    reader = iac.PackReader(path)
    assert reader.read_data_span(0, reader.header["data_length"]) == bytes(data)
    assert_same_table(reader.index_table, item_table(3))


@pytest.mark.parametrize("length", [2, 4])
def test_a_data_file_has_the_length_that_was_said(tmp_path, length):
    (tmp_path / "data").write_bytes(b"abc")
    with pytest.raises(ValueError, match=f"data: has 3 bytes, expected {length}"):
        iac.build_pack_data_segment_from_file(
            tmp_path / "x.iac",
            {},
            slide_table(),
            item_table(0),
            tmp_path / "data",
            data_length=length,
        )
    assert os.listdir(tmp_path) == ["data"]


def test_a_missing_data_file_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        iac.build_pack_data_segment_from_file(
            tmp_path / "x.iac", {}, slide_table(), item_table(0), tmp_path / "no", data_length=1
        )


@pytest.mark.parametrize(
    ("matrix", "error"),
    [
        (np.zeros(3), ValueError),
        (np.zeros((3, 1, 1)), ValueError),
        (np.array([["a"]] * 3), TypeError),
        (np.array([[None]] * 3), TypeError),
        (np.zeros((3, 1), "M8[s]"), TypeError),
        (np.zeros((3, 1), np.longdouble), TypeError),
    ],
    ids=["1-D", "3-D", "text", "objects", "dates", "long double"],
)
def test_a_matrix_that_cannot_be_stored_is_refused(tmp_path, matrix, error):
    with pytest.raises(error):
        write_matrix(tmp_path / "x.iac", matrix)
    assert os.listdir(tmp_path) == []


# Encoded packs


@pytest.mark.parametrize(
    ("codec", "params"),
    [("none", {}), ("zstd", {"level": 3}), ("brotli", {"quality": 5, "lgwin": 18})],
)
@pytest.mark.parametrize("streaming", [False, True])
def test_objects_are_encoded_by_each_codec(tmp_path, codec, params, streaming):
    objects = payloads_of(600)
    path = tmp_path / "x.iac"
    iac.VariableRecordPack.build(
        path,
        payload_type="notes",
        slide_table=slide_table(),
        index_table=item_table(600),
        objects=iter(objects) if streaming else objects,
        codec=iac.Codec.create(codec, **params),
        extra_header={"site": "é"},
        streaming=streaming,
    )
    header = iac.read_header(path)
    assert (header["codec"], header.get("codec_params", {}), header["site"]) == (codec, params, "é")
    assert iac.VariableRecordPack(path).read_many(range(600)) == objects
    assert peer.VariableRecordPack(path).read_many(range(600)) == objects


def test_no_codec_stands_for_none_and_a_name_for_its_defaults(tmp_path):
    common = {
        "payload_type": "t",
        "slide_table": slide_table(),
        "index_table": item_table(2),
        "objects": payloads_of(2),
    }
    iac.VariableRecordPack.build(tmp_path / "a.iac", **common)
    assert iac.read_header(tmp_path / "a.iac")["codec"] == "none"
    iac.VariableRecordPack.build(tmp_path / "b.iac", codec="zstd", **common)
    assert iac.read_header(tmp_path / "b.iac")["codec_params"] == {"level": 19}


def test_a_stream_is_encoded_as_it_comes(tmp_path):
    """At no time are many objects held."""
    watched = Watched(5000)
    ahead = []

    class Following(iac.Codec):
        name = "following"

        def encode(self, obj):
            ahead.append(watched.taken - len(ahead))
            return obj

    iac.VariableRecordPack.build(
        tmp_path / "x.iac",
        payload_type="t",
        slide_table=slide_table(),
        index_table=item_table(5000),
        objects=watched,
        codec=Following(),
        streaming=True,
    )
    assert len(ahead) == 5000
    assert max(ahead) <= 1024


def test_payloads_that_are_encoded_already_keep_their_label(tmp_path):
    objects = payloads_of(3)
    codec = iac.Codec.create("zstd", level=1)
    iac.VariableRecordPack.build_from_payloads(
        tmp_path / "x.iac",
        payload_type="t",
        slide_table=slide_table(),
        index_table=item_table(3),
        payloads=(codec.encode(obj) for obj in objects),
        codec_name="zstd",
        codec_params={"level": 1},
        extra_header={"payload_type": "over it"},
    )
    pack = iac.VariableRecordPack(tmp_path / "x.iac")
    assert pack.read_many(range(3)) == objects
    assert pack.header["payload_type"] == "over it"


@pytest.mark.parametrize("workers", [0, -1, True, "2", 1.5])
def test_wrong_workers_are_refused_before_anything_is_written(tmp_path, workers):
    with pytest.raises((ValueError, TypeError), match="workers"):
        iac.VariableRecordPack.build(
            tmp_path / "x.iac",
            payload_type="t",
            slide_table=slide_table(),
            index_table=item_table(1),
            objects=[b""],
            codec="zstd",
            workers=workers,
        )
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_an_iterator_may_use_one_buffer_again(tmp_path, kind):
    def payloads():
        buffer = bytearray(4)
        for number in range(600):
            buffer[:] = number.to_bytes(4, "little")
            yield buffer if kind is bytearray else memoryview(buffer)

    expected = [number.to_bytes(4, "little") for number in range(600)]
    iac.build_pack_streaming(tmp_path / "a.iac", {}, slide_table(), item_table(600), payloads())
    assert list(iac.iter_payloads(tmp_path / "a.iac")) == expected
    iac.VariableRecordPack.build(
        tmp_path / "b.iac",
        payload_type="x",
        slide_table=slide_table(),
        index_table=item_table(600),
        objects=payloads(),
        codec="zstd",
        streaming=True,
    )
    assert iac.VariableRecordPack(tmp_path / "b.iac").read_many(range(600)) == expected


def test_a_record_that_is_no_bytes_is_named(tmp_path):
    payloads = [b"x"] * 299 + [None]
    with pytest.raises(TypeError, match=r"item 299: .*NoneType"):
        iac.build_pack(tmp_path / "x.iac", {}, slide_table(), item_table(300), payloads)
    assert list(tmp_path.iterdir()) == []


def test_a_relative_path_holds_while_the_folder_changes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def payloads():
        os.chdir("/")
        yield b"x"

    iac.build_pack_streaming("x.iac", {}, slide_table(), item_table(1), payloads())
    assert [path.name for path in tmp_path.iterdir()] == ["x.iac"]


def test_what_cannot_be_read_back_is_refused(tmp_path):
    index = pa.table({"empty": pa.array([b""], pa.binary(0))})
    with pytest.raises(ValueError, match="without bytes"):
        iac.build_pack(tmp_path / "x.iac", {}, slide_table(), index, [b"x"])


@pytest.mark.parametrize("depth", [47, 48, 60])
def test_deeply_nested_columns_are_read_back(tmp_path, depth):
    type = pa.int32()
    for _ in range(depth):
        type = pa.list_(type)
    index = pa.table({"nested": pa.nulls(3, type)})
    iac.build_pack(tmp_path / "x.iac", {}, slide_table(), index, [b"x"] * 3)
    assert iac.PackReader(tmp_path / "x.iac").index_table["nested"].null_count == 3


@pytest.mark.parametrize(
    ("blocks", "reason"),
    [
        ([np.zeros((2, 3))], "2 matrix rows for 5 rows of index_table"),
        ([np.zeros((5, 3)), np.zeros((1, 3))], "more than 5 matrix rows for 5 rows"),
        ([np.zeros((2, 3)), np.zeros((3, 4))], r"rows from 2 on are \(3, 4\) of float64"),
        ([np.zeros((2, 3)), np.zeros((3, 3), "f4")], r"rows from 2 on are \(3, 3\) of float32"),
        ([np.zeros(3)], r"rows from 0 on are \(3,\)"),
    ],
)
def test_blocks_that_are_no_matrix(tmp_path: Path, blocks, reason: str):
    with pytest.raises(ValueError, match=reason):
        write_blocks(tmp_path / "x.iac", blocks)
    assert list(tmp_path.iterdir()) == []


def test_a_matrix_in_blocks_is_the_same(tmp_path: Path):
    matrix = np.arange(15.0).reshape(5, 3)
    blocks = [matrix[:0], matrix[:2].astype(">f8"), np.asfortranarray(matrix[2:])]
    with iac.FixedRecordPack(write_blocks(tmp_path / "x.iac", iter(blocks))) as pack:
        np.testing.assert_array_equal(pack.read_matrix(range(5)), matrix)


def write_blocks(path: Path, blocks) -> Path:
    iac.FixedRecordPack.build_streaming(
        path,
        payload_type="embeddings",
        slide_table=slide_table(),
        index_table=item_table(5),
        blocks=blocks,
        dim=3,
        dtype="float64",
    )
    return path
