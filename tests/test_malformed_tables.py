"""Tables that are not what the format says, or not as usual."""

import random

import pyarrow as pa
import pytest
from packs import (
    assemble,
    assert_same_table,
    ipc_stream,
    item_table,
    layout_index,
    reads,
    refuses,
    slide_table,
    ten_bytes,
)

import iac_query as iac

pytestmark = pytest.mark.asan


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
@pytest.mark.parametrize("rows", [0, 1, 5000])
def test_compressed_tables_are_read(tmp_path, compression, rows):
    index = layout_index(
        [i % 10 for i in range(rows)],
        [i % 2 for i in range(rows)],
        text=pa.array([f"text {i % 7}" if i % 3 else None for i in range(rows)]),
        flag=pa.array([i % 2 == 0 for i in range(rows)]),
    )
    stream = ipc_stream(index, compression=compression)
    with iac.PackReader(ten_bytes(tmp_path, stream, rows=(1, rows))) as reader:
        assert_same_table(reader.index_table, index)
        expected = [b"abcdefghij"[i % 10 :][: i % 2] for i in range(rows)]
        assert reader.read_payloads(range(rows)) == expected


def dictionary_batches(*values, **options) -> bytes:
    schema = pa.schema([("d", pa.dictionary(pa.int32(), pa.string()))])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(**options)) as stream:
        for part in values:
            codes = pa.array(range(len(part)), pa.int32())
            array = pa.DictionaryArray.from_arrays(codes, pa.array(part))
            stream.write_batch(pa.record_batch([array], schema=schema))
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("deltas", [False, True], ids=["whole", "deltas"])
def test_dictionaries_may_change_from_batch_to_batch(tmp_path, deltas):
    stream = dictionary_batches(
        ["a", "b"], ["a", "b", "c"], ["a", "b", "c", "d"], emit_dictionary_deltas=deltas
    )
    with iac.PackReader(ten_bytes(tmp_path, stream, rows=(1, 9))) as reader:
        assert reader.index_table["d"].to_pylist() == list("ab" + "abc" + "abcd")
        assert reader.read_index_table(["d"])["d"].to_pylist() == list("ab" + "abc" + "abcd")


def test_replaced_dictionaries_belong_to_their_batches(tmp_path):
    stream = dictionary_batches(["a", "b"], ["x", "y", "z"])
    with iac.PackReader(ten_bytes(tmp_path, stream, rows=(1, 5))) as reader:
        assert reader.index_table["d"].to_pylist() == ["a", "b", "x", "y", "z"]


def test_records_of_many_batches_are_found(tmp_path):
    index = layout_index(range(10), [1] * 10)
    cut = pa.concat_tables([index[:3], index[3:3], index[3:4], index[4:]])
    reads(ten_bytes(tmp_path, cut), [bytes([c]) for c in b"abcdefghij"])


@pytest.mark.parametrize(
    "tail",
    [
        lambda stream: stream[:-8],
        lambda stream: stream + b"garbage!",
        lambda stream: stream + b"\xff" * 1000,
        lambda stream: stream + b"x",
        lambda stream: stream + stream,
    ],
    ids=["no end", "garbage", "much garbage", "odd length", "two streams"],
)
def test_what_follows_the_batches_is_accepted(tmp_path, tail):
    stream = tail(ipc_stream(layout_index([0, 5], [5, 5])))
    slides = tail(ipc_stream(slide_table()))
    reads(ten_bytes(tmp_path, stream, slides=slides, rows=(1, 2)), [b"abcde", b"fghij"])


def test_streams_of_the_older_arrow_framing_are_read(tmp_path):
    index = layout_index([0, 5], [5, 5], text=["x", None])
    for options in (
        {"use_legacy_format": True},
        {"use_legacy_format": True, "metadata_version": pa.ipc.MetadataVersion.V4},
    ):
        with iac.PackReader(
            ten_bytes(tmp_path, ipc_stream(index, **options), rows=(1, 2))
        ) as reader:
            assert_same_table(reader.index_table, index)
            assert reader.read_payloads([1, 0]) == [b"fghij", b"abcde"]


def arrow_file() -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, item_table(2).schema) as file:
        file.write_table(item_table(2))
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(
    "stream",
    [
        b"",
        b"\0" * 8,
        b"\xff\xff\xff\xff\0\0\0\0",
        arrow_file(),
        random.Random(0).randbytes(500),
        b"\xff\xff\xff\xff\x10\0\0\0" + bytes(16),
        b"\xff\xff\xff\xff\xff\xff\xff\x7f" + bytes(64),
        b"PAR1" * 20,
    ],
    ids=["empty", "end", "end marker", "file", "random", "zeros", "long", "text"],
)
def test_what_is_no_arrow_stream_is_refused(tmp_path, stream):
    for parts in ({"index": stream, "rows": (1, 2)}, {"index": item_table(2), "slides": stream}):
        path = assemble(tmp_path / "x.iac", **parts)
        refuses(path, "(index|slide) table: ")


def test_a_stream_cut_anywhere_is_refused(tmp_path):
    index = layout_index([0, 5], [5, 5], text=["abc", "def"])
    stream = ipc_stream(index)
    for length in range(0, len(stream) - 8, 4):
        refuses(ten_bytes(tmp_path, stream[:length], rows=(1, 2)), "index table: ")


def test_a_column_name_with_a_nul_is_not_taken_for_what_stands_before_it(tmp_path):
    index = layout_index([0], [1]).rename_columns(["offset\0x", "length"])
    refuses(ten_bytes(tmp_path, index), "NUL")


@pytest.mark.parametrize(
    "entries", [[{"k": "a", "v": 1}, None], [{"k": "a", "v": 1}, {"k": None, "v": 2}]], ids=str
)
def test_maps_with_null_entries_or_keys_are_refused(tmp_path, entries):
    def parts(type: pa.DataType, values) -> tuple[bytes, bytes]:
        """The schema message of a stream, and what follows it."""
        stream = ipc_stream(pa.table({"m": pa.array([values], type)}))
        end = 8 + int.from_bytes(stream[4:8], "little")
        return stream[:end], stream[end:]

    # The same memory as a list's, for pyarrow does not make such maps: it aborts the process.
    pair = pa.struct([("k", pa.string()), ("v", pa.int32())])
    schema, _ = parts(pa.map_(pa.string(), pa.int32()), [])
    _, batch = parts(pa.list_(pair), entries)
    with iac.PackReader(ten_bytes(tmp_path, schema + batch, rows=(1, 1))) as reader:
        with pytest.raises(iac.PackError, match=r"x\.iac: index table: column 'm': .*map"):
            reader.read_index_table()
        with pytest.raises(ValueError):
            iac.read_tables(reader.package_path)


def test_short_views_with_something_in_their_padding_are_refused(tmp_path):
    stream = ipc_stream(pa.table({"view": pa.array(["abc"], pa.string_view())}))
    damaged = stream.replace(b"\3\0\0\0abc\0", b"\3\0\0\0abcd")
    assert damaged != stream
    with pytest.raises(iac.PackError, match="not padded"):
        iac.read_tables(ten_bytes(tmp_path, damaged, rows=(1, 1)))


def test_tables_without_columns_are_read(tmp_path):
    path = ten_bytes(tmp_path, pa.table({}), b"abc", slides=pa.table({}))
    with iac.PackReader(path) as reader:
        assert (reader.index_table.num_columns, reader.slide_table.num_columns) == (0, 0)
        assert reader.read_data_span(1, 2) == b"bc"
