"""Files that are not what the format says: an error that names what is wrong, or one of the
deviations that every reader accepts."""

import json
import random
import re

import pyarrow as pa
import pytest
from packs import (
    HEADER_BYTES,
    assemble,
    assert_same_table,
    fixed_header,
    ipc_stream,
    item_table,
    layout_header,
    layout_index,
    payloads_of,
    segments_of,
    slide_table,
    write_encoded,
    write_matrix,
    write_pack,
)

import iac_query as iac

pytestmark = pytest.mark.asan

LAYOUT_FIELDS = [
    "header_bytes",
    "slide_table_offset",
    "slide_table_length",
    "index_table_offset",
    "index_table_length",
    "data_offset",
    "data_length",
    "num_slides",
    "num_records",
]


def refuses(path, message: str | None = None) -> None:
    """Opening is a PackError that names the file."""
    with pytest.raises(iac.PackError, match=message) as raised:
        iac.PackReader(path)
    assert str(raised.value).startswith(f"{path}: ")
    assert raised.value.pack == str(path)


def reads(path, payloads=None) -> None:
    """The pack reads as if nothing were wrong."""
    payloads = payloads_of(10) if payloads is None else payloads
    with iac.PackReader(path) as reader:
        assert reader.read_payloads(range(len(reader))) == payloads
        assert reader.index_table.num_rows == len(payloads)
        assert reader.slide_table.num_rows == 1


def with_header(pack, change=None, text=None, **binary):
    """Rewrites the header of a pack: its fields by ``change``, or its whole JSON text."""
    raw = pack.read_bytes()
    fields = segments_of(pack)[0]
    if change is not None:
        change(fields)
    text = json.dumps(fields).encode() if text is None else text
    pack.write_bytes(fixed_header(text, **binary) + raw[HEADER_BYTES:])
    return pack


def set_field(name, value):
    return lambda fields: fields.update({name: value})


# Size of the file


@pytest.mark.parametrize("size", [0, 1, 10, 65535])
def test_a_file_shorter_than_a_header_is_refused(tmp_path, size):
    (tmp_path / "x.iac").write_bytes(b"IATROC\0\2".ljust(size, b"\0")[:size])
    refuses(tmp_path / "x.iac", f"file of {size} bytes is too small")


def test_a_header_alone_is_refused(pack):
    pack.write_bytes(pack.read_bytes()[:HEADER_BYTES])
    refuses(pack, r"slide_table segment, .* outside the file")


def test_a_file_without_its_last_byte_is_refused(pack):
    pack.write_bytes(pack.read_bytes()[:-1])
    refuses(pack, r"data segment, .* outside the file")


@pytest.mark.parametrize("extra", [1, 4096])
def test_bytes_behind_the_data_are_accepted(pack, extra):
    pack.write_bytes(pack.read_bytes() + b"\xff" * extra)
    reads(pack)


# The fixed header


@pytest.mark.parametrize(
    ("magic", "message"),
    [
        (b"IATROC\0\1", "format version 1 of the pack is not supported"),
        (b"IATROC\0\3", "format version 3 of the pack is not supported"),
        (b"IATROC\1\2", "bad magic"),
        (b"PARQUET1", "bad magic"),
        (b"\0" * 8, "bad magic"),
        (b"iatroc\0\2", "bad magic"),
    ],
)
def test_another_magic_is_refused(pack, magic, message):
    refuses(with_header(pack, magic=magic), message)


@pytest.mark.parametrize("version", [0, 1, 3, 0x02000000, 2**32 - 1])
def test_another_binary_version_is_refused(pack, version):
    refuses(with_header(pack, version=version), f"header version is {version}, expected 2")


@pytest.mark.parametrize(
    "change",
    [
        *[set_field("version", value) for value in (1, 3, "2", None, 2.0)],
        lambda fields: fields.pop("version"),
        *[set_field("format", value) for value in ("Other", 5, None)],
        lambda fields: fields.pop("format"),
    ],
)
def test_version_and_format_in_the_json_are_not_looked_at(pack, change):
    reads(with_header(pack, change))


@pytest.mark.parametrize("length", [65521, 65536, 2**31, 2**32 - 1])
def test_an_impossible_json_length_is_refused(pack, length):
    refuses(with_header(pack, length=length), f"header JSON length is {length}")


def test_a_json_length_that_is_off_is_refused(pack):
    raw, text = pack.read_bytes(), json.dumps(segments_of(pack)[0]).encode()
    for length in (0, len(text) - 1, len(text) + 1, 65520):
        pack.write_bytes(fixed_header(text, length=length) + raw[HEADER_BYTES:])
        refuses(pack, "header JSON")


def test_padding_is_not_looked_at(pack):
    reads(with_header(pack, padding=b"\xff"))


def test_white_space_and_escapes_in_the_json_are_accepted(pack):
    fields = segments_of(pack)[0]
    for text in (
        b" \n\t\r" + json.dumps(fields).encode() + b"  \r\n",
        json.dumps(fields, separators=(",", ":")).encode(),
        json.dumps(fields, indent=7).encode(),
        json.dumps(fields).replace("raw_bytes", "raw\\u005fbytes").encode(),
    ):
        reads(with_header(pack, text=text))


def test_a_json_that_fills_the_header_is_accepted(pack):
    text = json.dumps(segments_of(pack)[0]).encode().ljust(65520)
    reads(with_header(pack, text=text))


@pytest.mark.parametrize(
    ("mangle", "message"),
    [
        (lambda text: text[:-1], "invalid"),
        (lambda text: text + b"x", "invalid"),
        (lambda text: b"[" + text + b"]", "not an object"),
        (lambda text: b"5", "not an object"),
        (lambda text: b"null", "not an object"),
        (lambda text: b"   ", "invalid"),
        (lambda text: text.replace(b"raw_bytes", b"raw\xffbytes"), "not UTF-8"),
        (lambda text: text.replace(b"raw_bytes", b"raw\xed\xa0\x80"), "not UTF-8"),
        (lambda text: b"\xef\xbb\xbf" + text, "byte order mark"),
        (lambda text: text.replace(b'"raw_bytes"', b"NaN"), "invalid"),
        (lambda text: text.replace(b'"raw_bytes"', b"Infinity"), "invalid"),
        (lambda text: text.replace(b'"raw_bytes"', b"1e999"), "invalid"),
        (lambda text: text.replace(b"raw_bytes", b"\\ud800"), "invalid"),
        (lambda text: text.replace(b"raw_bytes", b"raw\nbytes"), "invalid"),
        (lambda text: text.replace(b'"raw_bytes"', b"'raw_bytes'"), "invalid"),
        (lambda text: text.replace(b'"raw_bytes"', b"[" * 200 + b"]" * 200), "nested deeper"),
        (lambda text: text.replace(b'"raw_bytes"', b"[" * 30000), "nested deeper"),
        (lambda text: text.replace(b'"raw_bytes"', b"01"), "invalid"),
        (lambda text: text[:-1] + b",}", "invalid"),
        (lambda text: text + b"\0", "NUL"),
        (lambda text: text[:-1] + b"/* note */}", "invalid"),
    ],
)
def test_what_is_not_a_json_object_is_refused(pack, mangle, message):
    text = json.dumps(segments_of(pack)[0]).encode()
    refuses(with_header(pack, text=mangle(text)), f"header JSON.*{message}")


@pytest.mark.parametrize("name", LAYOUT_FIELDS)
def test_a_missing_layout_field_is_refused(pack, name):
    refuses(with_header(pack, lambda fields: fields.pop(name)), f"header field {name} is missing")


@pytest.mark.parametrize("value", ["3", 3.0, True, None, -1, [3], {"a": 1}, -(2**63)], ids=repr)
@pytest.mark.parametrize("name", LAYOUT_FIELDS)
def test_a_layout_field_that_is_no_unsigned_integer_is_refused(pack, name, value):
    # Also the counts, which some readers take as text, float or bool.
    expected = f"header field {name} is {re.escape(json.dumps(value))[:5]}"
    refuses(with_header(pack, set_field(name, value)), expected)


@pytest.mark.parametrize("name", LAYOUT_FIELDS)
@pytest.mark.parametrize("change", [-1, 1, 8, 2**32, 2**63])
def test_a_layout_field_that_is_off_is_refused(pack, name, change):
    value = (segments_of(pack)[0][name] + change) % 2**64
    if (name, change) != ("data_length", -1):
        refuses(with_header(pack, set_field(name, value)))


def test_a_data_segment_that_is_too_short_spoils_the_rows_behind_its_end(pack):
    length = segments_of(pack)[0]["data_length"]
    with iac.PackReader(with_header(pack, set_field("data_length", length - 1))) as reader:
        assert reader.read_payloads(range(9)) == payloads_of(10)[:9]
        with pytest.raises(iac.PackError, match="row 9: payload span outside"):
            reader.read_payload(9)


def test_a_layout_field_beyond_64_bits_is_refused(pack):
    refuses(with_header(pack, set_field("data_length", 2**64)), "data_length")


def test_lengths_whose_sum_overflows_are_refused(pack):
    def change(fields):
        fields["slide_table_length"] = 2**64 - HEADER_BYTES
        fields["index_table_offset"] = 0

    refuses(with_header(pack, change), "slide_table segment")


def test_of_a_key_that_is_there_twice_the_last_counts(pack):
    text = json.dumps(segments_of(pack)[0]).encode()
    reads(with_header(pack, text=b'{"num_records": 77, ' + text[1:]))
    refuses(with_header(pack, text=text[:-1] + b', "num_records": 77}'), "the header says 77")


@pytest.mark.parametrize("name", ["num_records", "num_slides"])
@pytest.mark.parametrize("change", [-1, 1, 2**40])
def test_counts_that_differ_from_the_tables_are_refused(pack, name, change):
    count = segments_of(pack)[0][name] + change
    table = {"num_records": "index", "num_slides": "slide"}[name]
    expected = f"{table} table: has .* rows, the header says {count}"
    refuses(with_header(pack, set_field(name, count)), expected)


# Layout columns


def raw(path, index, data=b"abcdefghij", **fields):
    return assemble(path / "x.iac", index, data, **fields)


def test_a_missing_length_column_is_refused(tmp_path):
    refuses(raw(tmp_path, layout_index([0], [1]).drop_columns("length")), "'length'")


def test_a_missing_offset_column_is_a_pack_without_records(tmp_path):
    path = raw(tmp_path, layout_index([0], [1]).drop_columns("offset"))
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
    refuses(raw(tmp_path, index.append_column(name, index[name])), f"two columns .*'{name}'")


@pytest.mark.parametrize("name", ["offset", "length", "crc32"])
def test_nulls_in_a_layout_column_are_refused(tmp_path, name):
    index = layout_index([0, 1], [1, 1], [0, 0])
    at = index.schema.get_field_index(name)
    column = pa.array([0, None], index.schema.field(name).type)
    refuses(raw(tmp_path, index.set_column(at, name, column)), f"column '{name}' has nulls")


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
    refuses(raw(tmp_path, index), f"column '{name}' has type .*expected uint")


def test_signed_layout_columns_are_accepted(tmp_path):
    index = layout_index(
        pa.array([5, 0], pa.int64()), pa.array([5, 5], pa.int32()), pa.array([0, 0], pa.int32())
    )
    path = raw(tmp_path, index)
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
    path = raw(tmp_path, layout_index(offsets, lengths))
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
    path = raw(tmp_path, layout_index(offsets, lengths))
    reads(path, payloads)
    with iac.PackReader(path) as reader:
        assert [bytes(view) for view in reader.read_payload_views([2, 1, 0])] == payloads[::-1]


def test_without_a_crc32_column_records_are_unchecked_and_counted(tmp_path):
    with iac.PackReader(raw(tmp_path, layout_index([0, 1], [1, 1]))) as reader:
        batch = reader.read_payloads_contiguous([0, 1])
        assert batch.to_arrow().to_pylist() == [b"a", b"b"]
        assert batch.unchecked == 2


def test_crc32s_that_are_all_zero_are_no_checksums_of_the_records(tmp_path):
    with iac.PackReader(raw(tmp_path, layout_index([0, 1], [1, 0], [0, 0]))) as reader:
        with pytest.raises(iac.ChecksumError, match="row 0"):
            reader.read_payload(0)
        assert reader.read_payload(0, verify=False) == b"a"
        assert reader.read_payload(1) == b""


@pytest.mark.parametrize("data", [b"", b"some data"])
def test_a_pack_without_rows_has_no_row_0(tmp_path, data):
    path = raw(tmp_path, layout_index([], []), data)
    reads(path, [])
    with pytest.raises(IndexError):
        iac.PackReader(path).read_payload(0)


# Tables


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
    with iac.PackReader(raw(tmp_path, stream, rows=(1, rows))) as reader:
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
    with iac.PackReader(raw(tmp_path, stream, rows=(1, 9))) as reader:
        assert reader.index_table["d"].to_pylist() == list("ab" + "abc" + "abcd")
        assert reader.read_index_table(["d"])["d"].to_pylist() == list("ab" + "abc" + "abcd")


def test_replaced_dictionaries_belong_to_their_batches(tmp_path):
    stream = dictionary_batches(["a", "b"], ["x", "y", "z"])
    with iac.PackReader(raw(tmp_path, stream, rows=(1, 5))) as reader:
        assert reader.index_table["d"].to_pylist() == ["a", "b", "x", "y", "z"]


def test_records_of_many_batches_are_found(tmp_path):
    index = layout_index(range(10), [1] * 10)
    cut = pa.concat_tables([index[:3], index[3:3], index[3:4], index[4:]])
    reads(raw(tmp_path, cut), [bytes([c]) for c in b"abcdefghij"])


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
    reads(raw(tmp_path, stream, slides=slides, rows=(1, 2)), [b"abcde", b"fghij"])


def test_streams_of_the_older_arrow_framing_are_read(tmp_path):
    index = layout_index([0, 5], [5, 5], text=["x", None])
    for options in (
        {"use_legacy_format": True},
        {"use_legacy_format": True, "metadata_version": pa.ipc.MetadataVersion.V4},
    ):
        with iac.PackReader(raw(tmp_path, ipc_stream(index, **options), rows=(1, 2))) as reader:
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
        refuses(raw(tmp_path, stream[:length], rows=(1, 2)), "index table: ")


def test_a_column_name_with_a_nul_is_not_taken_for_what_stands_before_it(tmp_path):
    index = layout_index([0], [1]).rename_columns(["offset\0x", "length"])
    refuses(raw(tmp_path, index), "NUL")


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
    with iac.PackReader(raw(tmp_path, schema + batch, rows=(1, 1))) as reader:
        with pytest.raises(iac.PackError, match=r"x\.iac: index table: column 'm': .*map"):
            reader.read_index_table()
        with pytest.raises(ValueError):
            iac.read_tables(reader.package_path)


def test_short_views_with_something_in_their_padding_are_refused(tmp_path):
    stream = ipc_stream(pa.table({"view": pa.array(["abc"], pa.string_view())}))
    damaged = stream.replace(b"\3\0\0\0abc\0", b"\3\0\0\0abcd")
    assert damaged != stream
    with pytest.raises(iac.PackError, match="not padded"):
        iac.read_tables(raw(tmp_path, damaged, rows=(1, 1)))


def test_tables_without_columns_are_read(tmp_path):
    path = raw(tmp_path, pa.table({}), b"abc", slides=pa.table({}))
    with iac.PackReader(path) as reader:
        assert (reader.index_table.num_columns, reader.slide_table.num_columns) == (0, 0)
        assert reader.read_data_span(1, 2) == b"bc"


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
    with iac.PackReader(raw(tmp_path, layout_index([0], [3]))) as reader:
        assert reader.read_payload(0) == b"abc"
