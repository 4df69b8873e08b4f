"""Records that are not where or what the index says: an error of their row."""

import random

import pyarrow as pa
import pytest
from packs import (
    HEADER_BYTES,
    assemble,
    ipc_stream,
    item_table,
    layout_header,
    layout_index,
    reads,
    refuses,
    slide_table,
    ten_bytes,
    write_encoded,
    write_matrix,
    write_pack,
)

import iac_query as iac

pytestmark = pytest.mark.asan

# Layout columns


def test_a_missing_length_column_is_refused(tmp_path):
    refuses(ten_bytes(tmp_path, layout_index([0], [1]).drop_columns("length")), "'length'")


def test_a_missing_offset_column_is_a_pack_without_records(tmp_path):
    path = ten_bytes(tmp_path, layout_index([0], [1]).drop_columns("offset"))
    with iac.PackReader(path) as reader:
        assert reader.read_data_span(0, 3) == b"abc"
        for read in (reader.read_payload, lambda row: reader.read_payload_views([row])):
            with pytest.raises(iac.PackError, match="no records"):
                read(0)
    with pytest.raises(iac.PackError, match="not a pack of variable records"):
        iac.VariableRecordPack(path)


@pytest.mark.parametrize("name", ["offset", "length", "crc32"])
def test_two_columns_of_a_layout_name_are_refused(tmp_path, name):
    index = layout_index([0], [1], [0])
    refuses(ten_bytes(tmp_path, index.append_column(name, index[name])), f"two columns .*'{name}'")


@pytest.mark.parametrize("name", ["offset", "length", "crc32"])
def test_nulls_in_a_layout_column_are_refused(tmp_path, name):
    index = layout_index([0, 1], [1, 1], [0, 0])
    at = index.schema.get_field_index(name)
    column = pa.array([0, None], index.schema.field(name).type)
    refuses(ten_bytes(tmp_path, index.set_column(at, name, column)), f"column '{name}' has nulls")


@pytest.mark.parametrize(
    ("name", "type"),
    [
        *[("offset", t) for t in (pa.uint32(), pa.float64(), pa.string(), pa.int32(), pa.null())],
        ("offset", pa.timestamp("s")),
        ("offset", pa.dictionary(pa.int8(), pa.uint64())),
        ("offset", pa.list_(pa.uint64())),
        *[("length", t) for t in (pa.uint16(), pa.uint64(), pa.int64(), pa.string(), pa.float32())],
        *[("crc32", t) for t in (pa.uint64(), pa.string(), pa.int64(), pa.binary(4))],
    ],
    ids=str,
)
def test_another_type_of_a_layout_column_is_refused(tmp_path, name, type):
    index = layout_index([], [], [])
    at = index.schema.get_field_index(name)
    index = index.set_column(at, name, pa.array([], type))
    refuses(ten_bytes(tmp_path, index), f"column '{name}' has type .*expected uint")


def test_signed_layout_columns_are_accepted(tmp_path):
    index = layout_index(
        pa.array([5, 0], pa.int64()), pa.array([5, 5], pa.int32()), pa.array([0, 0], pa.int32())
    )
    path = ten_bytes(tmp_path, index)
    assert iac.PackReader(path).read_payloads([0, 1], verify=False) == [b"fghij", b"abcde"]


@pytest.mark.parametrize(
    ("offsets", "lengths"),
    [
        (pa.array([0, -1], pa.int64()), [1, 1]),
        (pa.array([0, -(2**63)], pa.int64()), [1, 1]),
        ([0, 0], pa.array([1, -1], pa.int32())),
        ([0, 11], [1, 0]),
        ([0, 10], [1, 1]),
        ([0, 5], [1, 6]),
        ([0, 2**63], [1, 1]),
        ([0, 2**64 - 1], [1, 1]),
        ([0, 2**64 - 1], [1, 2**32 - 1]),
        ([0, 0], [1, 2**32 - 1]),
    ],
    ids=str,
)
def test_a_bad_offset_or_length_spoils_only_its_own_row(tmp_path, offsets, lengths):
    path = ten_bytes(tmp_path, layout_index(offsets, lengths))
    with iac.PackReader(path) as reader:
        assert reader.read_payload(0) == b"a"
        for read in (
            lambda: reader.read_payload(1),
            lambda: reader.read_payloads([0, 1]),
            lambda: reader.read_payload_views([1]),
        ):
            with pytest.raises(iac.PackError, match="row 1: payload span outside") as raised:
                read()
            assert (raised.value.pack, raised.value.row) == (str(path), 1)
        report = []
        batch = reader.read_payloads_contiguous([1, 0], on_error="null", report=report)
        assert batch.to_arrow().to_pylist() == [None, b"a"]
        assert [failure.row for failure in report] == [1]


@pytest.mark.parametrize(
    ("offsets", "lengths", "payloads"),
    [
        ([0, 2, 4], [5, 5, 5], [b"abcde", b"cdefg", b"efghi"]),
        ([7, 3, 0], [3, 4, 3], [b"hij", b"defg", b"abc"]),
        ([0, 5, 9], [1, 1, 1], [b"a", b"f", b"j"]),
        ([10, 0, 10], [0, 10, 0], [b"", b"abcdefghij", b""]),
        ([3, 3, 3], [2, 2, 2], [b"de", b"de", b"de"]),
    ],
    ids=["overlapping", "descending", "gaps", "empty at the end", "shared"],
)
def test_records_may_lie_anywhere(tmp_path, offsets, lengths, payloads):
    path = ten_bytes(tmp_path, layout_index(offsets, lengths))
    reads(path, payloads)
    with iac.PackReader(path) as reader:
        assert [bytes(view) for view in reader.read_payload_views([2, 1, 0])] == payloads[::-1]


def test_without_a_crc32_column_records_are_unchecked_and_counted(tmp_path):
    with iac.PackReader(ten_bytes(tmp_path, layout_index([0, 1], [1, 1]))) as reader:
        batch = reader.read_payloads_contiguous([0, 1])
        assert batch.to_arrow().to_pylist() == [b"a", b"b"]
        assert batch.unchecked == 2


def test_crc32s_that_are_all_zero_are_no_checksums_of_the_records(tmp_path):
    with iac.PackReader(ten_bytes(tmp_path, layout_index([0, 1], [1, 0], [0, 0]))) as reader:
        with pytest.raises(iac.ChecksumError, match="row 0"):
            reader.read_payload(0)
        assert reader.read_payload(0, verify=False) == b"a"
        assert reader.read_payload(1) == b""


@pytest.mark.parametrize("data", [b"", b"some data"])
def test_a_pack_without_rows_has_no_row_0(tmp_path, data):
    path = ten_bytes(tmp_path, layout_index([], []), data)
    reads(path, [])
    with pytest.raises(IndexError):
        iac.PackReader(path).read_payload(0)


# Payloads


@pytest.mark.parametrize("codec", ["zstd", "brotli"])
def test_damaged_payloads_are_codec_errors_of_their_rows(tmp_path, codec):
    good = iac.Codec.create(codec).encode(b"some text " * 300)
    damaged = {
        "empty": b"",
        "half": good[: len(good) // 2],
        "without the last byte": good[:-1],
        "random": random.Random(1).randbytes(60),
        "zeros": bytes(60),
    }
    header = {"payload_type": "t", "codec": codec}
    payloads = [good, *damaged.values()]
    index = item_table(len(payloads))
    iac.build_pack(tmp_path / "x.iac", header, slide_table(), index, payloads)
    pack, report = iac.VariableRecordPack(tmp_path / "x.iac"), []
    objects = pack.read_many(range(len(payloads)), on_error="null", report=report)
    assert objects == [b"some text " * 300, *[None] * len(damaged)]
    assert [failure.row for failure in report] == list(range(1, len(payloads)))
    for failure in report:
        assert isinstance(failure.error, iac.CodecError)
        assert f"row {failure.row}: {codec}: " in str(failure.error)


def test_the_error_of_a_payload_tells_nothing_of_its_content(tmp_path):
    secret = b"Jane Doe, born 1970 " * 20
    path = write_encoded(tmp_path / "x.iac", [secret], "zstd")
    pack = iac.VariableRecordPack(write_pack(path, [secret], codec="zstd"))
    with pytest.raises(iac.CodecError) as raised:
        pack.read(0)
    assert "Jane" not in str(raised.value)


def test_a_fixed_pack_is_no_variable_one_and_the_other_way_round(tmp_path, pack):
    with pytest.raises(iac.PackError, match="variable"):
        iac.VariableRecordPack(write_matrix(tmp_path / "m.iac", [[1.0]]))
    with pytest.raises(iac.PackError, match="fixed"):
        iac.FixedRecordPack(pack)


def test_huge_record_sizes_of_a_fixed_pack_overflow_nothing(tmp_path):
    for dim, width in [(2**61, 2**64 - 8), (2**61 - 1, 2**64 - 8), (2**60, 2**63)]:
        geometry = {"feature_dim": dim, "dtype": "float64", "feature_record_bytes": width}
        path = assemble(tmp_path / "m.iac", item_table(5), bytes(80), **geometry)
        reader = iac.PackReader(path)
        for row in range(5):
            with pytest.raises(iac.PackError, match=f"row {row}: payload span outside"):
                reader.read_payload(row)
        with pytest.raises((iac.PackError, ValueError)):
            reader.read_payloads(range(5))


def test_the_helpers_of_these_tests_make_good_packs(tmp_path):
    slides, index = ipc_stream(slide_table()), ipc_stream(item_table(2))
    assert layout_header(slides, index, b"")["data_offset"] == HEADER_BYTES + len(slides + index)
    with iac.PackReader(ten_bytes(tmp_path, layout_index([0], [3]))) as reader:
        assert reader.read_payload(0) == b"abc"
