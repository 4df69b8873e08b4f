"""What we write the peer reads, and what it writes we read, whatever the tables hold."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from iatro import iac as peer
from packs import DATA, MANIFEST, assert_same_table, slide_table
from test_pack import DTYPES

import iac_query as iac

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
VALUES = {
    pa.null(): st.none(),
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-128, 127),
    pa.uint16(): st.integers(0, 2**16 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float16(): st.floats(width=16).map(np.float16),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.string(): st.text(max_size=20),
    pa.large_string(): st.text(max_size=20),
    pa.binary(): st.binary(max_size=20),
    pa.large_binary(): st.binary(max_size=20),
    pa.binary(3): st.binary(min_size=3, max_size=3),
    pa.decimal128(20, 3): st.decimals(-(10**9), 10**9, places=3),
    pa.date32(): st.dates(),
    pa.timestamp("us"): st.datetimes(),
    pa.time64("us"): st.times(),
    pa.duration("ms"): st.integers(-(10**12), 10**12),
    pa.dictionary(pa.int16(), pa.string()): st.sampled_from(["u", "v", "", "日本"]),
    pa.list_(pa.int32()): st.lists(st.none() | st.integers(-5, 5), max_size=4),
    pa.large_list(pa.string()): st.lists(st.text(max_size=3), max_size=3),
    pa.list_(pa.float32(), 2): st.lists(st.floats(width=32), min_size=2, max_size=2),
    pa.struct([("a", pa.int8()), ("b", pa.list_(pa.string()))]): st.fixed_dictionaries(
        {"a": st.none() | st.integers(-9, 9), "b": st.none() | st.lists(st.text(max_size=2))}
    ),
    pa.map_(pa.string(), pa.int32()): st.dictionaries(st.text(max_size=3), st.integers(0, 9)).map(
        lambda pairs: list(pairs.items())
    ),
    pa.list_(pa.list_(pa.bool_())): st.lists(st.lists(st.booleans(), max_size=9), max_size=3),
}


@st.composite
def tables(draw: st.DrawFn, min_rows: int = 0, max_rows: int = 12) -> pa.Table:
    """A table of any types, with nulls, in several chunks, perhaps sliced."""
    rows = draw(st.integers(min_rows, max_rows))
    types = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=5))
    names = draw(st.lists(NAMES, min_size=len(types), max_size=len(types)))
    extra = draw(st.integers(0, 3))
    columns = []
    for type in types:
        nullable = st.none() | VALUES[type]
        size = rows + extra
        columns.append(pa.array(draw(st.lists(nullable, min_size=size, max_size=size)), type))
    metadata = draw(st.none() | st.dictionaries(st.text(max_size=4), st.text(max_size=4)))
    fields = [
        pa.field(f"{i} {n}", c.type) for i, (n, c) in enumerate(zip(names, columns, strict=True))
    ]
    table = pa.table(columns, schema=pa.schema(fields, metadata=metadata or None)).slice(extra)
    cut = draw(st.integers(0, rows))
    return pa.concat_tables([table.slice(0, cut), table.slice(cut)]) if cut else table


def peer_tables(path: Path) -> tuple[pa.Table, pa.Table]:
    return peer.read_tables(path)[1:]


@pytest.mark.parametrize("writer", [iac, peer], ids=["ours", "theirs"])
@settings(max_examples=40)
@given(slides=tables(), index=tables(), data=st.data())
def test_tables_and_payloads_are_equal_in_both(writer, slides, index, data):
    rows = index.num_rows
    payloads = data.draw(st.lists(st.binary(max_size=60), min_size=rows, max_size=rows))
    header = {"payload_type": "raw_bytes", "codec": "none", "note": data.draw(st.text(max_size=9))}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.iac"
        writer.build_pack(path, header, slides, index, payloads)
        theirs = peer.PackReader(path)
        with iac.PackReader(path) as ours:
            assert ours.header == theirs.header
            assert_same_table(ours.slide_table, theirs.slide_table)
            assert_same_table(ours.index_table, theirs.index_table)
            assert_same_table(ours.slide_table, slides)
            names = index.column_names
            assert_same_table(ours.read_index_table(names), index)
            assert ours.read_payloads(range(rows)) == payloads
            assert theirs.read_payloads(list(range(rows))) == payloads
            assert [bytes(v) for v in ours.read_payload_views(range(rows))] == payloads
        theirs.close()


@pytest.mark.parametrize(
    ("codec", "params"),
    [("none", {}), ("zstd", {"level": 3}), ("brotli", {"quality": 4, "lgwin": 20})],
)
@pytest.mark.parametrize("writer", [iac, peer], ids=["ours", "theirs"])
@settings(max_examples=30)
@given(objects=st.lists(st.binary(max_size=200) | st.just(bytes(150_000)), max_size=8))
def test_encoded_records_are_equal_in_both(writer, codec, params, objects):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.iac"
        writer.VariableRecordPack.build(
            path,
            payload_type="bytes",
            slide_table=slide_table(),
            index_table=pa.table({"i": range(len(objects))}),
            objects=objects,
            codec=writer.Codec.create(codec, **params),
        )
        rows = list(range(len(objects)))[::-1]
        expected = objects[::-1]
        theirs = peer.VariableRecordPack(path)
        assert theirs.read_many(rows) == expected
        assert theirs.header == iac.read_header(path)
        assert theirs.header.get("codec_params", {}) == params
        with iac.VariableRecordPack(path) as ours:
            assert ours.read_many(rows) == expected
            batch, other = ours.read_many_contiguous(rows), theirs.read_many_contiguous(rows)
            assert bytes(batch.buffer) == bytes(other.buffer)
            assert batch.offsets == other.offsets
            assert bytes(batch.offsets_buffer) == bytes(other.offsets_buffer)
        theirs.close()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("writer", [iac, peer], ids=["ours", "theirs"])
@pytest.mark.parametrize("shape", [(5, 3), (1, 1), (0, 4), (3, 0)])
def test_matrices_are_equal_in_both(tmp_path, writer, dtype, shape):
    width = np.dtype(dtype).itemsize
    values = np.random.default_rng(0).integers(0, 256, (*shape, width), np.uint8)
    matrix = values[..., 0] > 99 if dtype == "bool" else values.view(dtype)[..., 0]
    writer.FixedRecordPack.build(
        tmp_path / "m.iac",
        payload_type="embeddings",
        slide_table=slide_table(),
        index_table=pa.table({"i": range(shape[0])}),
        matrix=matrix,
    )
    ours, theirs = iac.FixedRecordPack(tmp_path / "m.iac"), peer.FixedRecordPack(tmp_path / "m.iac")
    assert ours.header == theirs.header
    rows = list(range(shape[0]))[::-1]
    assert ours.read_matrix(rows).tobytes() == matrix[rows].tobytes()
    if 0 not in shape:
        assert theirs.read_matrix(rows).tobytes() == matrix[rows].tobytes()
        assert theirs.read_matrix(rows).dtype == ours.read_matrix(rows).dtype
        assert theirs.read(0).tobytes() == ours.read(0).tobytes()


@pytest.mark.parametrize("name", sorted(MANIFEST))
def test_every_golden_pack_reads_the_same_in_both(name):
    theirs = peer.PackReader(DATA / name)
    with iac.PackReader(DATA / name) as ours:
        assert_same_table(ours.slide_table, theirs.slide_table)
        assert_same_table(ours.index_table, theirs.index_table)
        if "offset" in ours.index_table.column_names:
            rows = list(range(len(ours)))
            assert ours.read_payloads(rows) == theirs.read_payloads(rows)


def test_constants_are_the_same():
    for name in ("MAGIC", "FORMAT_VERSION", "HEADER_BYTES"):
        assert getattr(iac, name) == getattr(peer, name)
