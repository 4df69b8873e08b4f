"""Readers of packs: opening, rows, spans, views, tables, fixed records."""

import os
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from packs import (
    assemble,
    flip_payload,
    item_table,
    payloads_of,
    slide_table,
    write_encoded,
    write_matrix,
    write_pack,
)

import iac_query as iac

DTYPES = [
    *["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"],
    *["float16", "float32", "float64", "complex64", "complex128"],
]

# As it is published, but for the import line.
EXAMPLE = """
import pyarrow as pa
from iac_query import Codec, PackReader, build_pack

slides = pa.table({"slide_idx": pa.array([0], type=pa.uint8()), "slide_id": ["slide-001"], \
"patient_id": ["patient-001"]})
items = pa.table({"item_id": ["a", "b"]})
build_pack("example.iac", {"payload_type": "raw_bytes", "codec": Codec.NONE}, slides, items, \
[b"first", b"second"])
reader = PackReader("example.iac")
one, many, index = reader.read_payload(1), reader.read_payloads([1, 0, 1]), reader.index_table
reader.close()
"""


def test_the_published_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(EXAMPLE, names)
    assert names["one"] == b"second"
    assert names["many"] == [b"second", b"first", b"second"]
    assert names["index"]["length"].to_pylist() == [5, 6]


def test_batches_are_read_with_workers_as_published(tmp_path):
    objects = payloads_of(50)
    pack = iac.VariableRecordPack(write_encoded(tmp_path / "z.iac", objects, "zstd"))
    rows = [3, 1, 4, 1, 5]
    assert pack.read_many(rows, workers=4) == [objects[row] for row in rows]
    batch = pack.read_many_contiguous(rows, workers=4)
    assert [bytes(record) for record in batch] == [objects[row] for row in rows]


# Rows


def test_negative_rows_count_from_the_end(pack):
    reader = iac.PackReader(pack)
    assert reader.read_payload(-1) == reader.read_payload(9)
    assert reader.read_payloads([-10, -1]) == reader.read_payloads([0, 9])
    assert [bytes(view) for view in reader.read_payload_views([-2])] == [reader.read_payload(8)]


@pytest.mark.parametrize("row", [10, -11, 2**62])
def test_a_row_outside_is_an_index_error_that_names_it(pack, row):
    reader = iac.PackReader(pack)
    for read in (
        lambda: reader.read_payload(row),
        lambda: reader.read_payloads([0, row]),
        lambda: reader.read_payload_views([row]),
    ):
        with pytest.raises(IndexError, match=f"payload row out of range: {row}") as raised:
            read()
        assert isinstance(raised.value, iac.PackError)
        assert raised.value.pack == str(pack)


@pytest.mark.parametrize("row", [1.0, "1", None, True, np.float64(1), b"1"])
def test_rows_of_other_types_are_type_errors(pack, row):
    reader = iac.PackReader(pack)
    with pytest.raises(TypeError):
        reader.read_payload(row)
    with pytest.raises(TypeError):
        reader.read_payloads([row])
    with pytest.raises(TypeError):
        reader.read_payload_views([row])


@pytest.mark.parametrize("row", [2**63, -(2**63) - 1, 2**80])
def test_rows_beyond_64_bits_overflow(pack, row):
    reader = iac.PackReader(pack)
    with pytest.raises(OverflowError):
        reader.read_payload(row)
    with pytest.raises(OverflowError):
        reader.read_payloads([row])


@pytest.mark.parametrize(
    "rows",
    [
        [7, 0, 7, 7, -1],
        (7, 0),
        range(9, -1, -2),
        np.array([7, 0, 7], np.uint8),
        np.arange(10)[::-3],
        {7: "x", 0: "y"},
        [np.int32(3), np.uint64(4)],
        [],
    ],
    ids=str,
)
def test_order_and_duplicates_of_any_sequence_of_rows_are_kept(pack, rows):
    reader = iac.PackReader(pack)
    expected = [payloads_of(10)[int(row)] for row in rows]
    assert reader.read_payloads(rows) == expected
    assert reader.read_payloads(iter(rows)) == expected
    assert [bytes(view) for view in reader.read_payload_views(rows)] == expected


def test_rows_in_two_dimensions_are_a_type_error(pack):
    with pytest.raises(TypeError, match="2-D"):
        iac.PackReader(pack).read_payloads(np.zeros((2, 2), np.int64))


def test_numpy_integers_are_rows(pack):
    assert iac.PackReader(pack).read_payload(np.uint16(3)) == payloads_of(10)[3]


# Views and spans


def test_views_are_read_only_and_stay_valid_after_close(pack):
    reader = iac.PackReader(pack)
    views = reader.read_payload_views([2, 1])
    reader.close()
    assert [bytes(view) for view in views] == [payloads_of(10)[2], payloads_of(10)[1]]
    with pytest.raises(TypeError):
        views[0][0] = 0


def test_reader_and_views_keep_to_the_opened_file_after_its_path_is_replaced(pack):
    reader = iac.PackReader(pack)
    write_pack(pack, [b"quite another file"] * 3)
    assert reader.read_payload(1) == payloads_of(10)[1]
    assert bytes(reader.read_payload_views([9])[0]) == payloads_of(10)[9]
    assert reader.index_table.num_rows == 10
    assert len(iac.PackReader(pack)) == 3


def test_views_need_no_checksum(pack):
    flip_payload(pack, 4)
    assert bytes(iac.PackReader(pack).read_payload_views([4])[0]) != payloads_of(10)[4]


def test_views_can_be_had_of_local_files(pack):
    assert iac.PackReader(pack).mmap_enabled is True


def test_spans_are_bytes_of_the_data_segment(pack):
    reader, data = iac.PackReader(pack), b"".join(payloads_of(10))
    assert reader.read_data_span(0, len(data)) == data
    assert reader.read_data_span(5, 7) == data[5:12]
    assert reader.read_data_span(len(data), 0) == b""
    assert reader.read_data_spans([(5, 2), (0, 3), (5, 2)]) == data[5:7] + data[:3] + data[5:7]
    assert reader.read_data_spans([]) == b""


@pytest.mark.parametrize(
    ("offset", "length"),
    [(0, 10**9), (10**9, 0), (-1, 1), (0, -1), (2**64 - 1, 2), (2**64, 1), (1, 2**64 - 1)],
)
def test_spans_outside_are_errors(pack, offset, length):
    with pytest.raises(ValueError, match="data span outside data segment"):
        iac.PackReader(pack).read_data_span(offset, length)


# The whole pack at once


def test_iter_payloads_is_in_row_order(tmp_path):
    index = assemble(
        tmp_path / "reversed.iac",
        pa.table(
            {"offset": pa.array([6, 3, 0], pa.uint64()), "length": pa.array([3] * 3, pa.uint32())}
        ),
        b"ccc" + b"bbb" + b"aaa",
    )
    assert list(iac.iter_payloads(index)) == [b"aaa", b"bbb", b"ccc"]


def test_read_header_and_read_tables_give_all_three_parts(pack):
    header, slides, index = iac.read_tables(pack)
    assert header == iac.read_header(pack)
    assert header["num_records"] == 10
    assert slides.equals(slide_table())
    assert index.column_names == ["item_id", "slide_idx", "offset", "length", "crc32"]


def test_only_the_columns_asked_for_are_read_in_their_order(pack):
    reader = iac.PackReader(pack)
    assert reader.read_index_table(columns=["crc32", "item_id"]).column_names == [
        "crc32",
        "item_id",
    ]
    assert reader.read_slide_table(columns=["slide_id"])["slide_id"].to_pylist() == ["slide-000"]
    assert reader.read_index_table(columns=[]).num_columns == 0
    with pytest.raises(KeyError, match="nope"):
        reader.read_index_table(columns=["nope"])


def test_record_table_is_the_index_table(pack):
    reader = iac.PackReader(pack)
    assert reader.record_table is reader.index_table


# Life of a reader


def test_a_reader_has_with_len_and_a_helpful_repr(pack):
    with iac.PackReader(pack) as reader:
        assert len(reader) == 10
        assert repr(reader) == (
            f"<PackReader({str(pack)!r}): 10 records of 'raw_bytes', codec 'none', 1 slides>"
        )
    assert repr(reader) == f"<PackReader({str(pack)!r}), closed>"
    with iac.VariableRecordPack(pack) as variable:
        assert len(variable) == variable.record_count == 10
        assert repr(variable).startswith(f"<VariableRecordPack({str(pack)!r}): 10 records")


def test_a_closed_reader_is_a_value_error_that_names_the_file(pack):
    reader = iac.PackReader(pack)
    reader.close()
    reader.close()
    for use in (
        lambda: reader.read_payload(0),
        lambda: reader.read_payloads([0]),
        lambda: reader.read_payload_views([0]),
        lambda: reader.read_data_span(0, 1),
        lambda: reader.index_table,
        lambda: len(reader),
    ):
        with pytest.raises(ValueError, match=f"{pack}: the reader is closed"):
            use()


def test_tables_that_were_read_outlive_the_reader(pack):
    reader = iac.PackReader(pack)
    table, part = reader.index_table, reader.read_index_table(["item_id"])
    del reader
    assert (
        table["item_id"].to_pylist()
        == part["item_id"].to_pylist()
        == item_table(10)["item_id"].to_pylist()
    )


def test_readers_pickle_with_an_absolute_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_pack(Path("here.iac"), payloads_of(3))
    write_matrix(Path("matrix.iac"), np.ones((2, 3)))
    readers = [
        iac.PackReader("here.iac"),
        iac.VariableRecordPack("here.iac"),
        iac.FixedRecordPack("matrix.iac"),
    ]
    texts = [pickle.dumps(reader) for reader in readers]
    monkeypatch.chdir("/")
    plain, variable, fixed = map(pickle.loads, texts)
    assert plain.package_path == tmp_path / "here.iac"
    assert plain.read_payload(2) == variable.read(2) == payloads_of(3)[2]
    assert fixed.read(1).tolist() == [1, 1, 1]


# Opening


def test_a_missing_file_is_an_error_at_once(tmp_path):
    missing = tmp_path / "missing.iac"
    for kind in (iac.PackReader, iac.VariableRecordPack, iac.FixedRecordPack, iac.read_header):
        with pytest.raises(iac.PackNotFoundError, match="No such file") as raised:
            kind(missing)
        error = raised.value
        assert isinstance(error, FileNotFoundError)
        assert (error.errno, error.filename, error.pack) == (2, str(missing), str(missing))
        assert str(error).startswith(f"{missing}: ")
        again = pickle.loads(pickle.dumps(error))
        assert (str(again), again.errno, again.filename) == (str(error), 2, str(missing))


def test_a_directory_is_an_error(tmp_path):
    with pytest.raises(IsADirectoryError) as raised:
        iac.PackReader(tmp_path)
    assert raised.value.filename == str(tmp_path)


def test_a_fifo_is_an_error_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", "/dev/null"):
        with pytest.raises(OSError, match=f"a pipe, socket or device: '{path}'"):
            iac.PackReader(path)


def test_an_empty_file_is_an_error(tmp_path):
    (tmp_path / "empty.iac").touch()
    with pytest.raises(iac.PackError, match=r"empty\.iac: file of 0 bytes is too small"):
        iac.PackReader(tmp_path / "empty.iac")


def test_a_path_with_a_nul_does_not_open_the_file_before_it(pack):
    with pytest.raises((ValueError, OSError)):
        iac.PackReader(f"{pack}\0.iac")


def test_a_file_without_permission_is_a_permission_error(pack):
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    pack.chmod(0)
    with pytest.raises(PermissionError, match=str(pack)):
        iac.PackReader(pack)


@pytest.mark.parametrize("as_type", [str, Path, os.fsencode])
@pytest.mark.parametrize("name", ["plain.iac", "スライド é.iac", os.fsdecode(b"not-\xff-utf8.iac")])
def test_paths_are_str_bytes_or_path_and_any_file_name(tmp_path, name, as_type):
    path = tmp_path / name
    iac.build_pack(as_type(path), {}, slide_table(), item_table(1), [b"x"])
    assert os.listdir(tmp_path) == [name]
    reader = iac.PackReader(as_type(path))
    assert reader.package_path == path
    assert reader.read_payload(0) == b"x"
    assert pickle.loads(pickle.dumps(reader)).read_payload(0) == b"x"
    assert "1 records" in repr(reader)
    with pytest.raises(IndexError) as raised:
        reader.read_payload(1)
    assert raised.value.pack == str(path)


def test_a_symlink_keeps_its_name(pack, tmp_path):
    (tmp_path / "link.iac").symlink_to(pack)
    reader = iac.PackReader(tmp_path / "link.iac")
    assert reader.package_path.name == "link.iac"
    assert reader.read_payload(0) == payloads_of(10)[0]


def test_a_header_without_codec_and_payload_type_is_enough(tmp_path):
    iac.build_pack(tmp_path / "bare.iac", {}, slide_table(), item_table(1), [b"x"])
    pack = iac.VariableRecordPack(tmp_path / "bare.iac")
    assert pack.codec.name == "none"
    assert pack.read(0) == b"x"
    assert "'unnamed'" in repr(pack)


# Fixed records


@pytest.mark.parametrize("dtype", DTYPES)
def test_fixed_records_keep_their_dtype_in_every_call(tmp_path, dtype):
    matrix = (np.arange(28).reshape(7, 4) % 3).astype(dtype)
    pack = iac.FixedRecordPack(write_matrix(tmp_path / "m.iac", matrix))
    assert (pack.dim, pack.dtype, len(pack)) == (4, np.dtype(dtype), 7)
    rows = [6, 0, -1, 3]
    for values, expected in [
        (pack.read(2), matrix[2]),
        (pack.read(-7), matrix[0]),
        (pack.read_matrix(rows), matrix[rows]),
        (pack.read_many(rows)[3], matrix[3]),
    ]:
        assert values.dtype == expected.dtype
        np.testing.assert_array_equal(values, expected)


def test_a_matrix_of_records_is_writable_and_its_own(tmp_path):
    pack = iac.FixedRecordPack(write_matrix(tmp_path / "m.iac", np.zeros((3, 2), np.float32)))
    matrix = pack.read_matrix([0, 0])
    matrix[0] = 5
    assert matrix.tolist() == [[5, 5], [0, 0]]
    assert pack.read(0).tolist() == [0, 0]
    with pytest.raises(ValueError, match="read-only"):
        pack.read(0)[0] = 1


@pytest.mark.parametrize("order", [">f4", ">i8", ">u2", ">c8"])
def test_big_endian_matrices_are_stored_as_values_not_as_bytes(tmp_path, order):
    matrix = np.array([[1, 2, 3], [4, 5, 6]], order)
    pack = iac.FixedRecordPack(write_matrix(tmp_path / "m.iac", matrix))
    assert pack.header["dtype"] == matrix.dtype.name
    np.testing.assert_array_equal(pack.read_matrix([0, 1]), matrix)


def test_matrices_need_not_be_contiguous(tmp_path):
    matrix = np.arange(24).reshape(4, 6)[::-1, ::2]
    pack = iac.FixedRecordPack(write_matrix(tmp_path / "m.iac", matrix))
    np.testing.assert_array_equal(pack.read_matrix(range(4)), matrix)


@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (0, 0)])
def test_empty_matrices_read_as_empty(tmp_path, shape):
    pack = iac.FixedRecordPack(write_matrix(tmp_path / "m.iac", np.zeros(shape, np.float32)))
    matrix = pack.read_matrix(range(shape[0]))
    assert (matrix.shape, matrix.dtype) == (shape, np.float32)
    assert pack.read_matrix([]).shape == (0, shape[1])
    if shape[0]:
        assert pack.read(0).shape == (0,)
    with pytest.raises(IndexError):
        pack.read(shape[0])


def test_a_users_column_called_offset_does_not_hide_a_matrix(tmp_path):
    index = item_table(2).append_column("offset", pa.array([7.5, None]))
    iac.FixedRecordPack.build(
        tmp_path / "m.iac",
        payload_type="embeddings",
        slide_table=slide_table(),
        index_table=index,
        matrix=np.eye(2),
    )
    pack = iac.FixedRecordPack(tmp_path / "m.iac")
    assert pack.read(1).tolist() == [0, 1]
    assert pack.index_table["offset"].to_pylist() == [7.5, None]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"feature_record_bytes": 15}, "feature_record_bytes is 15"),
        ({"feature_dim": 5}, "feature_record_bytes is 16, expected 5 x 4"),
        ({"dtype": "float7"}, "dtype is 'float7'"),
        ({"dtype": "object"}, "dtype is 'object'"),
        ({"dtype": ">f4"}, "dtype is '>f4'"),
        ({"dtype": "str"}, "dtype is 'str'"),
        ({"feature_dim": -4}, "feature_dim is -4"),
        ({"feature_dim": "4"}, 'feature_dim is "4"'),
        ({"feature_record_bytes": 16.0}, "feature_record_bytes is 16.0"),
        ({"dtype": 4}, "is not a pack of fixed records"),
    ],
    ids=str,
)
def test_wrong_geometry_is_an_error_that_names_file_field_and_value(tmp_path, fields, message):
    geometry = {"feature_dim": 4, "dtype": "float32", "feature_record_bytes": 16}
    path = assemble(tmp_path / "m.iac", item_table(2), bytes(32), **{**geometry, **fields})
    with pytest.raises(iac.PackError, match=message) as raised:
        iac.FixedRecordPack(path)
    assert str(path) in str(raised.value)


def test_a_matrix_with_too_few_bytes_has_only_the_rows_that_are_there(tmp_path):
    geometry = {"feature_dim": 4, "dtype": "float32", "feature_record_bytes": 16}
    path = assemble(tmp_path / "m.iac", item_table(3), bytes(40), **geometry)
    pack = iac.FixedRecordPack(path)
    assert pack.read_matrix([0, 1]).shape == (2, 4)
    with pytest.raises(iac.PackError, match="row 2: payload span outside"):
        pack.read(2)


def test_fixed_and_variable_packs_are_not_taken_for_each_other(tmp_path, pack):
    with pytest.raises(iac.PackError, match="fixed records: open it with VariableRecordPack"):
        iac.FixedRecordPack(pack)
    matrix = write_matrix(tmp_path / "m.iac", np.zeros((2, 4)))
    with pytest.raises(iac.PackError, match="variable records: open it with FixedRecordPack"):
        iac.VariableRecordPack(matrix)
    assert iac.PackReader(matrix).read_payload(1) == bytes(32)
