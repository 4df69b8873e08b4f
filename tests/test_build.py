"""Writing packs: counts, payloads, data segments, and encoding."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from iatro import iac as peer
from packs import (
    assert_same_table,
    build,
    item_table,
    payloads_of,
    slide_table,
    write_matrix,
    write_pack,
)

import iac_query as iac

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
        extra_header={"payload_type": "over it", "codec": "zstd"},
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
