"""Record references to payloads, from any table that Arrow knows."""

import os
import zlib

import fsspec
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from packs import (
    payloads_of,
    slide_table,
    write_encoded,
    write_matrix,
    write_pack,
)
from references import ROWS, mixed, references, stamps_of, table_of

import iac_query as iac

# Where references come from


def test_packs_may_be_mixed_in_any_order_with_duplicates(packs):
    paths, rows, expected = mixed(packs)
    table = iac.decode(table_of(references(paths, rows), n=range(200)))
    assert table.column_names == ["n", "record", "payload"]
    assert table.schema.field("payload").type == pa.large_binary()
    assert table["payload"].to_pylist() == expected
    assert table["n"].to_pylist() == list(range(200))
    for workers in (1, 2, 7):
        again = iac.decode(table_of(references(paths, rows)), workers=workers)
        assert again["payload"].to_pylist() == expected


def test_references_in_file_order_come_back_in_that_order(packs):
    path, objects = next(iter(packs.items()))
    table = iac.decode(table_of(references([path] * ROWS, range(ROWS))))
    assert table["payload"].num_chunks == 1
    assert table["payload"].to_pylist() == objects


def test_a_null_reference_gives_a_null_payload(packs):
    path, objects = next(iter(packs.items()))
    record = pa.array(
        [
            {"pack": path, "row": 1},
            None,
            {"pack": None, "row": 1},
            {"pack": path, "row": None},
            {"pack": path, "row": 0},
        ],
        pa.struct([("pack", pa.string()), ("row", pa.int64())]),
    )
    for options in ({}, {"on_error": "null"}, {"on_error": "skip"}, {"as_": "text"}):
        payload = iac.decode(table_of(record), **options)["payload"].to_pylist()
        expected = [objects[1], None, None, None, objects[0]]
        if "as_" in options:
            expected = [obj if obj is None else obj.decode() for obj in expected]
        assert payload == expected


def test_only_nulls_and_no_rows_at_all_are_fine():
    type = pa.struct([("pack", pa.string()), ("row", pa.int64())])
    assert iac.decode(table_of(pa.nulls(3, type)))["payload"].to_pylist() == [None] * 3
    empty = iac.decode(table_of(pa.array([], type)))
    assert empty.schema.field("payload").type == pa.large_binary()
    assert empty.num_rows == 0
    empty = iac.decode(pa.table({"record": pa.chunked_array([], type)}), as_="text")
    assert empty.schema.field("payload").type == pa.large_string()


def test_tables_of_several_chunks_and_slices_are_fine(packs):
    paths, rows, expected = mixed(packs, 50)
    table = table_of(references(paths, rows))
    chunked = pa.concat_tables([table[:7], table[7:7], table[7:31], table[31:]])
    assert iac.decode(chunked)["payload"].to_pylist() == expected
    assert iac.decode(chunked[10:40])["payload"].to_pylist() == expected[10:40]
    nulls = pa.StructArray.from_arrays(
        references(paths, rows).flatten(), ["pack", "row"], mask=pa.array([True] * 5 + [False] * 45)
    )
    assert iac.decode(table_of(nulls)[3:9])["payload"].to_pylist() == [None] * 2 + expected[5:9]


@pytest.mark.parametrize("names", [["row", "pack"], ["stamp", "row", "pack"], ["row", "x", "pack"]])
def test_fields_may_come_in_any_order_with_others_between(packs, names):
    path, objects = next(iter(packs.items()))
    fields = {
        "pack": pa.array([path, path]),
        "row": pa.array([3, 1]),
        "stamp": pa.array(stamps_of(path, [3, 1]), pa.uint32()),
        "x": pa.array([None, "y"]),
    }
    record = pa.StructArray.from_arrays([fields[name] for name in names], names)
    assert iac.decode(table_of(record))["payload"].to_pylist() == [objects[3], objects[1]]


@pytest.mark.parametrize(
    "type",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.int64(), pa.large_string()),
    ],
    ids=str,
)
def test_paths_are_any_kind_of_string(packs, type):
    paths, rows, expected = mixed(packs, 30)
    dictionary = pa.types.is_dictionary(type)
    packed = pa.array(paths).dictionary_encode().cast(type) if dictionary else pa.array(paths, type)
    record = pa.StructArray.from_arrays([packed, pa.array(rows)], ["pack", "row"])
    assert iac.decode(table_of(record))["payload"].to_pylist() == expected


@pytest.mark.parametrize("type", [pa.int8(), pa.int32(), pa.uint16(), pa.uint64()], ids=str)
def test_rows_are_any_kind_of_integer(packs, type):
    paths, rows, expected = mixed(packs, 30)
    record = references(paths, rows, types=(pa.string(), type))
    assert iac.decode(table_of(record))["payload"].to_pylist() == expected


@pytest.mark.parametrize("type", [pa.uint32(), pa.int64(), pa.uint64()], ids=str)
def test_stamps_are_any_kind_of_integer_or_null(packs, type):
    path, objects = next(iter(packs.items()))
    stamps = [*stamps_of(path, [4, 2]), None]
    record = references([path] * 3, [4, 2, 1], stamps, (pa.string(), pa.int64(), type))
    expected = [objects[4], objects[2], objects[1]]
    assert iac.decode(table_of(record))["payload"].to_pylist() == expected
    record = references([path], [4], [None], (pa.string(), pa.int64(), pa.null()))
    assert iac.decode(table_of(record))["payload"].to_pylist() == [objects[4]]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (pa.array([1, 2]), "expected a struct"),
        (pa.array([{"pack": "x"}]), "expected pack and row"),
        (pa.array([{"row": 1}]), "expected pack and row"),
        (pa.array([{"pack": 1, "row": 1}]), "expected a string"),
        (pa.array([{"pack": b"x", "row": 1}]), "expected a string"),
        (pa.array([{"pack": "x", "row": 1.0}]), "expected an integer"),
        (pa.array([{"pack": "x", "row": "1"}]), "expected an integer"),
        (pa.array([{"pack": "x", "row": 1, "stamp": "1"}]), "expected an integer"),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_what_is_no_reference_is_a_type_error(record, message):
    with pytest.raises(TypeError, match=message):
        iac.decode(table_of(record))


@pytest.mark.parametrize(
    "convert",
    [
        lambda table: table,
        lambda table: table.to_reader(max_chunksize=7),
        lambda table: table.to_batches()[0],
    ],
    ids=["table", "reader", "batch"],
)
def test_results_are_anything_with_an_arrow_stream(packs, convert):
    paths, rows, expected = mixed(packs, 40)
    table = table_of(references(paths, rows), label=[f"l{i}" for i in range(40)])
    decoded = iac.decode(convert(table))
    assert isinstance(decoded, pa.Table)
    assert decoded["payload"].to_pylist() == expected
    assert decoded["label"].to_pylist() == [f"l{i}" for i in range(40)]


def test_polars_filters_sorts_and_joins_keep_references(packs):
    paths, rows, expected = mixed(packs, 60)
    frame = pl.from_arrow(table_of(references(paths, rows), n=range(60)))
    frame = frame.filter(pl.col("n") % 3 == 0).sort("n", descending=True)
    decoded = iac.decode(frame)
    assert decoded["payload"].to_list() == [expected[n] for n in decoded["n"].to_list()]


def test_references_survive_parquet(packs, tmp_path):
    paths, rows, expected = mixed(packs, 40)
    pq.write_table(table_of(references(paths, rows)), tmp_path / "x.parquet")
    table = pq.read_table(tmp_path / "x.parquet")
    assert iac.decode(table)["payload"].to_pylist() == expected


@pytest.mark.parametrize("result", [None, 5, {"record": []}, "x"], ids=repr)
def test_other_results_are_type_errors(result):
    with pytest.raises(TypeError, match="__arrow_c_stream__"):
        iac.decode(result)


# Columns


def test_other_columns_are_untouched_and_not_copied(packs):
    paths, rows, _ = mixed(packs, 100)
    table = table_of(references(paths, rows), text=[f"text {i}" for i in range(100)], n=range(100))
    decoded = iac.decode(table)
    for name in ("text", "n"):
        before, after = table[name].chunk(0).buffers(), decoded[name].chunk(0).buffers()
        assert [b and b.address for b in before] == [b and b.address for b in after]
    assert decoded["record"].equals(table["record"])


def test_column_and_result_names_can_be_chosen(packs):
    path, objects = next(iter(packs.items()))
    table = pa.table({"payload": [1], "note": references([path], [2])})
    decoded = iac.decode(table, column="note", into="text", as_="text")
    assert decoded.column_names == ["payload", "note", "text"]
    assert decoded["text"].to_pylist() == [objects[2].decode()]
    with pytest.raises(KeyError, match="record"):
        iac.decode(table)
    with pytest.raises(ValueError, match="'payload' already"):
        iac.decode(table, column="note")
    taken = pa.table({"payload_error": [1], "record": references([path], [2])})
    assert iac.decode(taken)["payload"].to_pylist() == [objects[2]]
    with pytest.raises(ValueError, match="'payload_error' already"):
        iac.decode(taken, on_error="null")


def test_several_columns_are_decoded_one_by_one(packs):
    (a, first), (b, second), *_ = packs.items()
    table = pa.table({"x": references([a] * 2, [0, 1]), "y": references([b] * 2, [1, 0])})
    table = iac.decode(iac.decode(table, column="x", into="a"), column="y", into="b")
    assert table["a"].to_pylist() == first[:2]
    assert table["b"].to_pylist() == second[1::-1]


# Kinds


def test_text_and_stored_bytes(packs, tmp_path):
    path = str(tmp_path / "zstd.iac")
    table = table_of(references([path] * 3, [2, 0, 2]))
    text = iac.decode(table, as_="text")["payload"]
    assert text.type == pa.large_string()
    assert text.to_pylist() == [packs[path][row].decode() for row in (2, 0, 2)]
    stored = iac.decode(table, as_="stored")["payload"]
    assert stored.to_pylist() == iac.PackReader(path).read_payloads([2, 0, 2])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint64", "bool"])
def test_fixed_packs_come_as_vectors_of_their_dtype(tmp_path, dtype):
    matrix = (np.arange(15).reshape(5, 3) % 2).astype(dtype)
    path = str(write_matrix(tmp_path / "m.iac", matrix))
    table = table_of(references([path] * 3, [4, 0, 4]))
    vectors = iac.decode(table)["payload"]
    assert vectors.type == pa.list_(pa.from_numpy_dtype(dtype), 3)
    assert vectors.to_pylist() == matrix[[4, 0, 4]].tolist()
    tensors = iac.decode(table, as_="tensor")["payload"]
    assert tensors.type == pa.fixed_shape_tensor(pa.from_numpy_dtype(dtype), [3])
    if dtype != "bool":
        np.testing.assert_array_equal(
            tensors.combine_chunks().to_numpy_ndarray(), matrix[[4, 0, 4]]
        )
    raw = iac.decode(table, as_="bytes")["payload"]
    assert raw.to_pylist() == [matrix[row].tobytes() for row in (4, 0, 4)]


def test_missing_vectors_are_null(tmp_path):
    path = str(write_matrix(tmp_path / "m.iac", np.ones((3, 2), np.float32)))
    table = table_of(references([path, None, path, path], [0, 1, 9, 2]))
    for as_ in ("vector", "tensor"):
        decoded = iac.decode(table, as_=as_, on_error="null")["payload"]
        decoded.validate(full=True)
        assert decoded.is_valid().to_pylist() == [True, False, False, True]
    kept = iac.decode(table, on_error="skip")["payload"]
    assert kept.to_pylist() == [[1, 1], None, [1, 1]]


def test_complex_vectors_have_no_arrow_type(tmp_path):
    path = str(write_matrix(tmp_path / "m.iac", np.ones((3, 2), np.complex64)))
    table = table_of(references([path], [0]))
    with pytest.raises(iac.CodecError, match="as_='bytes'"):
        iac.decode(table)
    assert iac.decode(table, as_="bytes")["payload"].to_pylist() == [
        np.ones(2, np.complex64).tobytes()
    ]


def test_variable_records_have_no_shape(packs):
    path = next(iter(packs))
    for as_ in ("vector", "tensor"):
        with pytest.raises(iac.CodecError, match="no fixed shape"):
            iac.decode(table_of(references([path], [0])), as_=as_)


def test_kinds_that_do_not_mix_are_an_error_that_names_both_packs(packs, tmp_path):
    text, matrix = next(iter(packs)), str(write_matrix(tmp_path / "m.iac", np.ones((2, 2), "f4")))
    table = table_of(references([text, matrix], [0, 0]))
    with pytest.raises(iac.CodecError) as raised:
        iac.decode(table)
    assert text in str(raised.value)
    assert matrix in str(raised.value)
    assert iac.decode(table, as_="bytes")["payload"][1].as_py() == np.ones(2, "f4").tobytes()
    wider = str(write_matrix(tmp_path / "w.iac", np.ones((2, 3), "f4")))
    with pytest.raises(iac.CodecError, match="decode them apart"):
        iac.decode(table_of(references([matrix, wider], [0, 0])))


@pytest.mark.parametrize("as_", ["raw", "", "Text", 5])
def test_another_kind_is_a_value_error(packs, as_):
    with pytest.raises(ValueError, match="as_ is"):
        iac.decode(table_of(references([next(iter(packs))], [0])), as_=as_)


def test_payloads_that_are_no_text_are_row_errors(tmp_path):
    payloads = [b"fine", b"\xff\xfe", "é".encode(), b"\xed\xa0\x80", b"caf\xc3"]
    path = str(write_pack(tmp_path / "x.iac", payloads))
    table = table_of(references([path] * 5, [4, 2, 1, 0, 3]))
    assert iac.decode(table)["payload"].to_pylist() == [payloads[i] for i in (4, 2, 1, 0, 3)]
    with pytest.raises(iac.CodecError, match=r"x\.iac: row 4: payload is not UTF-8") as raised:
        iac.decode(table, as_="text")
    assert raised.value.row == 4
    decoded = iac.decode(table, as_="text", on_error="null")
    assert decoded["payload"].to_pylist() == [None, "é", None, "fine", None]
    assert [error is None for error in decoded["payload_error"].to_pylist()] == [
        False,
        True,
        False,
        True,
        False,
    ]
    assert iac.decode(table, as_="text", on_error="skip")["payload"].to_pylist() == ["é", "fine"]


# Stale references


def test_a_reference_to_a_pack_that_changed_is_stale(packs):
    path, objects = next(iter(packs.items()))
    rows = [0, 5]
    record = references([path] * 2, rows, stamps_of(path, rows))
    assert iac.decode(table_of(record))["payload"].to_pylist() == [objects[0], objects[5]]
    write_pack(path, [b"another patient's"] * ROWS)
    with pytest.raises(iac.StaleReferenceError, match="row 0: the pack has changed") as raised:
        iac.decode(table_of(record))
    assert (raised.value.pack, raised.value.row) == (path, 0)
    decoded = iac.decode(table_of(record), on_error="null")
    assert decoded["payload"].to_pylist() == [None, None]
    assert "has changed" in decoded["payload_error"][0].as_py()


def test_a_fixed_pack_is_stamped_by_header_and_tables(tmp_path):
    path = tmp_path / "m.iac"

    def write(ids, matrix):
        iac.FixedRecordPack.build(
            path,
            payload_type="features",
            slide_table=slide_table(),
            index_table=pa.table({"tile_id": ids}),
            matrix=matrix,
            overwrite=True,
        )

    write(["a", "b", "c"], np.eye(3))
    raw = path.read_bytes()
    header = iac.read_header(path)
    text = raw[16 : 16 + int.from_bytes(raw[8:12], "little")]
    stamp = zlib.crc32(raw[65536 : header["data_offset"]], zlib.crc32(text))
    record = references([str(path)], [1], [stamp])
    assert iac.decode(table_of(record))["payload"].to_pylist() == [[0, 1, 0]]
    write(["c", "b", "a"], np.eye(3))  # the same header, other rows
    with pytest.raises(iac.StaleReferenceError):
        iac.decode(table_of(record))


def test_a_stamped_row_that_is_gone_is_an_error(packs):
    path = next(iter(packs))
    record = references([path], [ROWS - 1], stamps_of(path, [ROWS - 1]))
    write_pack(path, [b"x"])
    with pytest.raises(iac.PackIndexError, match=f"row {ROWS - 1}"):
        iac.decode(table_of(record))


# Memory


def test_the_result_owns_its_memory(tmp_path):
    payloads = payloads_of(50, 100_000)
    path = str(write_pack(tmp_path / "x.iac", payloads))
    payload = iac.decode(table_of(references([path] * 50, range(50))))["payload"]
    os.unlink(path)
    others = [np.full(5_000_000, i, np.uint8) for i in range(4)]
    assert payload.to_pylist() == payloads
    assert len(others) == 4


def test_many_packs_are_decoded_in_one_call(tmp_path):
    count = 300
    paths = [str(write_pack(tmp_path / f"{i}.iac", [str(i).encode()])) for i in range(count)]
    order = np.random.default_rng(1).permutation(count)
    record = references([paths[i] for i in order], [0] * count)
    expected = [str(i).encode() for i in order]
    assert iac.decode(table_of(record))["payload"].to_pylist() == expected


def test_skip_keeps_columns_of_types_that_pyarrow_cannot_filter(packs):
    path = next(iter(packs))
    record = references([path] * 4, [0, ROWS, 2, ROWS])
    columns = {
        "view": pa.array(["a", "b", "c", "d"], pa.string_view()),
        "runs": pc.run_end_encode(pa.array([1, 1, 2, 2])),
        "views": pa.array([["a"], [], ["c"], None], pa.list_(pa.string_view())),
    }
    decoded = iac.decode(table_of(record, **columns), on_error="skip")
    assert decoded["view"].to_pylist() == ["a", "c"]
    assert decoded["runs"].to_pylist() == [1, 2]
    assert decoded["views"].to_pylist() == [["a"], ["c"]]
    assert decoded["payload"].to_pylist() == [packs[path][0], packs[path][2]]
    assert decoded["payload"].num_chunks == 1


def test_text_that_is_not_utf8_does_not_leak_into_the_error(tmp_path):
    path = write_encoded(tmp_path / "x.iac", [b"SECRET \xff"], "zstd")
    with pytest.raises(iac.CodecError, match="row 0: payload is not UTF-8") as raised:
        iac.decode(table_of(references([str(path)], [0])), as_="text")
    assert raised.value.__context__ is None
    assert "SECRET" not in str(raised.value)


def test_urls_are_opened_by_the_storage_that_is_given(packs):
    storage = fsspec.filesystem("memory")
    path, objects = next(iter(packs.items()))
    with open(path, "rb") as file:
        storage.pipe("/cohort/x.iac", file.read())
        storage.pipe("/secret/x.iac", file.read())
    record = references(["memory://cohort/x.iac"] * 2, [3, 1])
    decoded = iac.decode(table_of(record), storage=storage, packs="memory://cohort")
    assert decoded["payload"].to_pylist() == [objects[3], objects[1]]
    for url, reason in {
        "memory://cohort/../secret/x.iac": r"goes up",
        "memory://secret/x.iac": "not among the packs",
    }.items():
        with pytest.raises(iac.PackError, match=reason):
            iac.decode(table_of(references([url], [0])), storage=storage, packs="memory://cohort")
    with pytest.raises(iac.PackError, match="storage given"):
        iac.decode(table_of(references(["s3://x/y.iac"], [0])), storage=storage)
    with pytest.raises(ValueError, match="empty path"):
        iac.decode(table_of(record), packs=[""])


@pytest.mark.parametrize(
    ("option", "error"),
    [({"verify": "no"}, "verify"), ({"report": True}, "report"), ({"workers": 0}, "workers")],
)
def test_options_of_another_type_are_named(packs, option, error):
    record = references([next(iter(packs))], [0])
    with pytest.raises((TypeError, ValueError), match=error):
        iac.decode(table_of(record), **option)
