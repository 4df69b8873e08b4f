"""Writing packs gives the bytes that the peer writes."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from iatro import iac as peer
from packs import (
    DATA,
    EVERY_HEADER_VALUE,
    build,
    item_table,
    payloads_of,
    slide_table,
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


def build_both(tmp_path: Path, build: str, *args, **options) -> tuple[bytes, bytes]:
    files = []
    for module in (iac, peer):
        path = tmp_path / f"{module.__name__}.iac"
        getattr(module, build)(path, *args, **options)
        files.append(path.read_bytes())
    return files[0], files[1]


@pytest.mark.parametrize("name", tables())
def test_bytes_are_those_of_the_peer(tmp_path, name):
    table = tables()[name]
    ours, theirs = build_both(
        tmp_path, "build_pack", EVERY_HEADER_VALUE, many_types(), table, payloads_of(ROWS)
    )
    assert ours == theirs


def test_bytes_of_empty_packs_are_those_of_the_peer(tmp_path):
    for slides, index in [(slide_table(), item_table(0)), (pa.table({}), pa.table({}))]:
        ours, theirs = build_both(tmp_path, "build_pack", {}, slides, index, [], overwrite=True)
        assert ours == theirs


def test_bytes_of_data_segments_are_those_of_the_peer(tmp_path):
    data = os.urandom(3 << 20)
    ours, theirs = build_both(
        tmp_path, "build_pack_data_segment", EVERY_HEADER_VALUE, slide_table(), item_table(3), data
    )
    assert ours == theirs
    (tmp_path / "data").write_bytes(data)
    ours, theirs = build_both(
        tmp_path,
        "build_pack_data_segment_from_file",
        EVERY_HEADER_VALUE,
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
    a = build(
        tmp_path / "a.iac",
        index=many_types(),
        payloads=payloads_of(ROWS),
        header=EVERY_HEADER_VALUE,
    )
    b = build(
        tmp_path / "b.iac",
        index=many_types(),
        payloads=payloads_of(ROWS),
        header=EVERY_HEADER_VALUE,
    )
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
