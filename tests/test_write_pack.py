"""The rows of a query as a pack."""

import os
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from iatro import iac as peer
from packs import (
    DATA,
    assemble,
    flip_payload,
    layout_index,
    payloads_of,
    slide_table,
    write_encoded,
    write_matrix,
    write_pack,
)
from references import ROWS, mixed, references, stamps_of, table_of
from test_images import image, write_images

import iac_query as iac


def refer(path, rows, **columns) -> pa.Table:
    """Rows of one pack, with stamps."""
    count = len(rows)
    record = references([str(path)] * count, rows, stamps_of(path, rows))
    return table_of(record, **columns)


def read_all(path) -> list:
    pack = iac.VariableRecordPack(path)
    return pack.read_many(range(len(pack)))


def fails(folder: Path, error, reason: str, *args, **options) -> None:
    """With that error, leaving the folder as it was."""
    before = {name: (folder / name).stat().st_mtime_ns for name in os.listdir(folder)}
    with pytest.raises(error, match=reason):
        iac.write_pack(*args, **options)
    assert {name: (folder / name).stat().st_mtime_ns for name in os.listdir(folder)} == before


# Records that are copied


def test_stored_bytes_are_copied(tmp_path):
    source = DATA / "notes.iac"
    out = tmp_path / "out.iac"
    rows = [7, 3, 3, 39]
    iac.write_pack(refer(source, rows, n=rows), out)
    one, other = iac.PackReader(source), iac.PackReader(out)
    assert other.read_payloads(range(4)) == one.read_payloads(rows)
    assert other.index_table["n"].to_pylist() == rows
    assert other.index_table.column_names == ["n", "offset", "length", "crc32"]
    for name in ("payload_type", "codec", "codec_params"):
        assert other.header[name] == one.header[name]
    assert peer.VariableRecordPack(str(out)).read_many([0, 3]) == iac.VariableRecordPack(
        source
    ).read_many([7, 39])


@pytest.mark.parametrize("kind", ["table", "reader", "polars", "pandas"])
def test_whatever_the_references_come_in(kind, packs, tmp_path):
    paths, rows, expected = mixed(packs, 40)
    table = table_of(references(paths, rows), n=range(40))
    convert = {
        "table": lambda: table,
        "reader": lambda: table.to_reader(max_chunksize=7),
        "polars": lambda: pl.from_arrow(table),
        "pandas": lambda: table.to_pandas().sort_values("n", ascending=False),
    }[kind]
    iac.write_pack(convert(), tmp_path / "x.iac")
    pack = iac.VariableRecordPack(tmp_path / "x.iac")
    turn = slice(None, None, -1 if kind == "pandas" else 1)
    assert pack.read_many(range(40)) == expected[turn]
    assert pack.index_table["n"].to_pylist() == list(range(40))[turn]


def test_the_whole_of_a_scan_is_the_pack_again(tmp_path):
    with iac.connect() as con:
        iac.write_pack(con.sql(f"FROM '{DATA / 'notes.iac'}'"), tmp_path / "x.iac")
    assert (tmp_path / "x.iac").read_bytes() == (DATA / "notes.iac").read_bytes()


def test_records_of_several_codecs_keep_them(packs, tmp_path):
    paths, rows, expected = mixed(packs, 60)
    out = tmp_path / "x.iac"
    table = table_of(references(paths, rows))
    mine = table.append_column("codec_id", pa.array(range(60)))
    fails(tmp_path, ValueError, "'codec_id'.*another name", mine, out)
    iac.write_pack(table, out)
    pack = iac.VariableRecordPack(out)
    assert pack.read_many(range(60)) == expected
    listed = {entry["id"]: entry["name"] for entry in pack.header["record_codecs"]}
    assert sorted(listed.values()) == ["brotli", "none", "zstd"]
    with pytest.raises(ValueError, match="unknown codec"):  # never misread
        peer.VariableRecordPack(str(out)).read(0)
    # Out of such a pack, by one codec and by several.
    some = [i for i, path in enumerate(paths) if "zstd" in path]
    iac.write_pack(refer(out, some), tmp_path / "one.iac")
    assert iac.PackReader(tmp_path / "one.iac").header["codec"] == "zstd"
    assert read_all(tmp_path / "one.iac") == [expected[i] for i in some]
    with iac.connect() as con:
        iac.write_pack(con.sql(f"FROM '{out}'"), tmp_path / "again.iac")
    assert (tmp_path / "again.iac").read_bytes() == out.read_bytes()


def test_parameters_that_decoding_does_not_need_may_differ(tmp_path):
    sources = [
        write_encoded(tmp_path / f"{level}.iac", payloads_of(3), "zstd", level=level)
        for level in (1, 3)
    ]
    record = references([str(path) for path in sources], [1, 2])
    iac.write_pack(table_of(record), tmp_path / "x.iac")
    header = iac.PackReader(tmp_path / "x.iac").header
    assert header["codec"] == "zstd" and "record_codecs" not in header
    assert "codec_params" not in header
    assert peer.VariableRecordPack(str(tmp_path / "x.iac")).read(1) == payloads_of(3)[2]


def test_rows_of_matrices_become_a_matrix(tmp_path):
    values = np.arange(40, dtype=np.float16).reshape(10, 4)
    sources = [str(write_matrix(tmp_path / f"{i}.iac", values + i, model="m")) for i in range(2)]
    rows = [3, 9, 0, 3]
    out = tmp_path / "x.iac"
    iac.write_pack(table_of(references([sources[i % 2] for i in range(4)], rows)), out)
    expected = np.stack([values[row] + i % 2 for i, row in enumerate(rows)])
    for package in (iac, peer):
        pack = package.FixedRecordPack(str(out))
        assert np.array_equal(np.stack(pack.read_many(range(4))), expected)
    assert iac.PackReader(out).header["model"] == "m"


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (np.zeros((3, 5), np.float32), "5 float32"),
        (np.zeros((3, 4), np.float64), "4 float64"),
        (None, "has records of any length"),
    ],
)
def test_what_makes_no_one_matrix(tmp_path, other, reason):
    one = write_matrix(tmp_path / "one.iac", np.zeros((3, 4), np.float32))
    two = tmp_path / "two.iac"
    write_pack(two, payloads_of(3)) if other is None else write_matrix(two, other)
    table = table_of(references([str(one), str(two)], [0, 0]))
    fails(tmp_path, ValueError, f"{reason}.*: write them apart", table, tmp_path / "x.iac")


def test_a_matrix_has_no_codec(tmp_path):
    one = write_matrix(tmp_path / "one.iac", np.zeros((3, 4), np.float32))
    table = table_of(references([str(one)], [0]))
    fails(tmp_path, ValueError, "have no codec", table, tmp_path / "x.iac", "zstd")


# Records that are encoded anew


def test_records_are_transcoded(packs, tmp_path):
    paths, rows, expected = mixed(packs, 50)
    out = tmp_path / "x.iac"
    iac.write_pack(table_of(references(paths, rows)), out, iac.Codec.create("zstd", level=2))
    pack = iac.VariableRecordPack(out)
    assert pack.read_many(range(50)) == expected
    assert pack.header["codec_params"] == {"level": 2}
    assert peer.VariableRecordPack(str(out)).read_many(range(50)) == expected


def test_what_is_stored_so_already_is_copied(tmp_path):
    lossy = [image((16, 16, 3), "uint8", i) for i in range(4)]
    jpeg = write_images(tmp_path / "jpeg.iac", lossy, codec="jpeg")
    exact = write_images(tmp_path / "exact.iac", lossy, codec="jpegls")
    record = references([str(jpeg), str(exact)] * 2, [0, 1, 2, 3])
    iac.write_pack(table_of(record), tmp_path / "x.iac", "jpeg")
    out, source = iac.PackReader(tmp_path / "x.iac"), iac.PackReader(jpeg)
    assert [out.read_payload(row) for row in (0, 2)] == source.read_payloads([0, 2])
    assert [out.read_payload(row) for row in (1, 3)] == source.read_payloads([1, 3])


@pytest.mark.parametrize(("codec", "reason"), [("zstd", "are images"), ("jpegls", "are bytes")])
def test_codecs_of_another_kind_are_refused(tmp_path, codec, reason):
    if codec == "zstd":
        source = write_images(tmp_path / "s.iac", [image((4, 4), "uint8", 0)])
    else:
        source = write_encoded(tmp_path / "s.iac", payloads_of(3), "zstd", level=1)
    fails(tmp_path, ValueError, reason, refer(source, [0]), tmp_path / "x.iac", codec)


# Payloads


@pytest.mark.parametrize(
    "column",
    [
        pa.array([b"one", b"", b"three"]),
        pa.array(["é", "", "日本"]),
        pa.array(["é", "", "é"]).dictionary_encode(),
        pa.array([b"one", b"", b"three"], pa.binary_view()),
        pa.array([b"ab", b"cd", b"ef"], pa.binary(2)),
    ],
    ids=lambda column: str(column.type),
)
def test_payloads_are_encoded(tmp_path, column):
    table = pa.table({"n": range(3), "payload": column, "patient_id": ["a", "b", "a"]})
    plain = [value.encode() if isinstance(value, str) else value for value in column.to_pylist()]
    for frame in (table, table[1:], pl.from_arrow(table.drop_columns("payload"))):
        if isinstance(frame, pl.DataFrame):
            frame = frame.with_columns(payload=pl.Series(plain))
        out = tmp_path / "x.iac"
        iac.write_pack(frame, out, overwrite=True, payload_type="note")
        start = 3 - len(frame)
        assert read_all(out) == plain[start:]
        assert peer.VariableRecordPack(str(out)).read_many(range(3 - start)) == plain[start:]
        header = iac.PackReader(out).header
        assert (header["codec"], header["payload_type"]) == ("zstd", "note")


@pytest.mark.parametrize("as_", ["image", "tensor"])
@pytest.mark.parametrize("kind", ["table", "polars", "pandas"])
def test_decoded_images_are_encoded(tmp_path, as_, kind):
    images = [image((8, 6, 3), "uint16", i) for i in range(5)]
    source = write_images(tmp_path / "s.iac", images)
    table = refer(source, range(5))
    frame = {"polars": pl.from_arrow, "pandas": pa.Table.to_pandas}.get(kind, lambda t: t)(table)
    decoded = iac.decode(frame, as_=as_)
    decoded = decoded.drop_columns("record") if kind == "table" else decoded[["payload"]]
    iac.write_pack(decoded, tmp_path / "x.iac", "jpegls")
    assert all(map(np.array_equal, read_all(tmp_path / "x.iac"), images))
    fails(tmp_path, ValueError, "name a codec of images", decoded, tmp_path / "y.iac")
    fails(tmp_path, ValueError, "codec 'zstd' is one of bytes", decoded, tmp_path / "y.iac", "zstd")


@pytest.mark.parametrize("dtype", ["float32", "float16", "bool", "int64", "uint8"])
def test_decoded_vectors_become_a_matrix(tmp_path, dtype):
    values = np.arange(12).reshape(4, 3).astype(dtype)
    source = write_matrix(tmp_path / "s.iac", values)
    for frame in (table_of, lambda record: pl.from_arrow(table_of(record))):
        decoded = iac.decode(frame(references([str(source)] * 3, [3, 0, 1])))
        decoded = pa.table(decoded).drop_columns("record")
        out = tmp_path / "x.iac"
        iac.write_pack(decoded[1:], out, overwrite=True)
        for package in (iac, peer):
            pack = package.FixedRecordPack(str(out))
            assert np.array_equal(np.stack(pack.read_many([0, 1])), values[[0, 1]])
        assert iac.FixedRecordPack(out).dtype == np.dtype(dtype)


IMAGE = {"height": 2, "width": 2, "channels": 1, "dtype": "uint8", "data": b"1234"}


@pytest.mark.parametrize(
    ("payload", "codec", "error", "reason"),
    [
        ([b"x", None], None, ValueError, "row 1: the payload is NULL"),
        ([1, 2], None, TypeError, "payloads are int64"),
        ([[1.0], [2.0]], None, TypeError, r"payloads are list<"),
        ([{**IMAGE, "width": 3}], "jpegls", ValueError, "has 4 bytes of pixels"),
        ([{**IMAGE, "height": -2, "width": -2}], "jpegls", ValueError, "has 4 bytes of pixels"),
        ([{**IMAGE, "height": None}], "jpegls", ValueError, "NULL among its fields"),
        ([{**IMAGE, "dtype": "pixels"}], "jpegls", ValueError, "dtype 'pixels'"),
        ([{**IMAGE, "dtype": "S1"}], "jpegls", ValueError, "cannot be encoded"),
        ([b"x"], "jpegls", ValueError, "payloads are bytes"),
        ([b"x"], "gif", iac.CodecError, "gif"),
        (pa.array([[1.0, None]], pa.list_(pa.float64(), 2)), None, ValueError, "NULL in it"),
    ],
)
def test_payloads_that_cannot_be_stored(tmp_path, payload, codec, error, reason):
    table = pa.table({"payload": payload})
    fails(tmp_path, error, reason, table, tmp_path / "x.iac", codec)


# Failures


@pytest.fixture
def damaged(packs):
    """References to every record of two packs, of which three cannot be had."""
    one, two = list(packs)[:2]
    flip_payload(one, 3)
    table = table_of(
        references([one] * ROWS + [two] * ROWS + [two], [*range(ROWS)] * 2 + [ROWS]),
        n=range(2 * ROWS + 1),
    )
    os.remove(gone := list(packs)[2])
    missing = table_of(references([gone], [0]), n=[-1])
    objects = packs[one][:3] + packs[one][4:] + packs[two]
    return pa.concat_tables([missing, table]), objects


@pytest.mark.parametrize("codec", [None, "zstd"])
def test_records_that_cannot_be_had_are_left_out(damaged, codec, tmp_path):
    table, objects = damaged
    report = []
    out = tmp_path / "x.iac"
    iac.write_pack(table, out, codec, on_error="skip", report=report)
    assert read_all(out) == objects
    assert [failure.position for failure in report] == [0, 4, 25]
    kinds = [iac.PackNotFoundError, iac.ChecksumError, iac.PackIndexError]
    assert [type(failure.error) for failure in report] == kinds
    fails(tmp_path, iac.PackIndexError, "row 12", table, tmp_path / "y.iac", codec)
    fails(tmp_path, iac.PackNotFoundError, "none.iac", table[:-1], tmp_path / "y.iac", codec)
    fails(tmp_path, iac.ChecksumError, "row 3", table[1:-1], tmp_path / "y.iac", codec)


def test_a_pack_that_changed_is_an_error(pack, tmp_path):
    table = refer(pack, range(5))
    write_pack(pack, payloads_of(10, 50))
    fails(tmp_path, iac.StaleReferenceError, "row 0", table, tmp_path / "x.iac")


def test_a_reference_must_be_there(pack, tmp_path):
    record = pa.array([{"pack": str(pack), "row": 1}, None])
    fails(tmp_path, ValueError, "row 1: the record is NULL", table_of(record), tmp_path / "x.iac")
    skip = {"on_error": "skip"}
    fails(tmp_path, ValueError, "row 1: the record", table_of(record), tmp_path / "x.iac", **skip)


@pytest.mark.parametrize(
    ("columns", "options", "error", "reason"),
    [
        ({}, {"on_error": "null"}, ValueError, "on_error is 'null'"),
        ({}, {"slide_columns": "n"}, TypeError, "expected a list of names"),
        ({}, {"slide_columns": ["m"]}, ValueError, "'m', which is no column"),
        ({"slide_idx": ["a", "b"]}, {}, TypeError, "must be of integers"),
        (
            {"slide_idx": [0, 0], "slide_id": ["a", "b"]},
            {},
            ValueError,
            "two slides have the same number",
        ),
        (
            {"slide_idx": [0, None], "slide_id": ["a", "b"]},
            {},
            ValueError,
            "row 1: 'slide_idx' is NULL, but 'slide_id' is not",
        ),
        ({"payload": [b"", b""]}, {}, ValueError, "leave one of them out"),
        ({"length": [1, 2]}, {}, ValueError, "'length'.*another name"),
        ({}, {"column": "reference"}, KeyError, "no column 'reference' and no 'payload'"),
        ({}, {"packs": []}, iac.PackError, "not among the packs"),
        ({}, {"extra_header": {"x": float("nan")}}, ValueError, "JSON"),
        ({}, {"extra_header": {"x": "y" * 70_000}}, ValueError, "header"),
    ],
)
def test_what_does_not_go_together(pack, tmp_path, columns, options, error, reason):
    table = refer(pack, [0, 1], **columns)
    fails(tmp_path, error, reason, table, tmp_path / "x.iac", **options)


def test_a_file_is_replaced_only_when_told(pack, tmp_path):
    table = refer(pack, [3])
    fails(tmp_path, FileExistsError, "overwrite=True", table, pack)
    iac.write_pack(table, pack, overwrite=True)  # its own source
    assert read_all(pack) == [payloads_of(10)[3]]


def test_no_rows(pack, tmp_path):
    out = tmp_path / "x.iac"
    for table in (refer(pack, [], n=[]), pa.table({"n": [], "payload": pa.array([], pa.binary())})):
        iac.write_pack(table, out, overwrite=True)
        assert len(iac.PackReader(out)) == 0
        assert len(peer.PackReader(str(out)).index_table) == 0


# Tables


def test_only_the_slides_used(tmp_path):
    source = tmp_path / "s.iac"
    index = pa.table({"slide_idx": pa.array([0, 1, 2, 3, 4, None], pa.uint8())})
    slides = slide_table(5).append_column("stain", pa.array(list("abcde")))
    iac.build_pack(source, {}, slides, index, payloads_of(6))
    with iac.connect() as con:
        out = tmp_path / "x.iac"
        iac.write_pack(con.sql(f"FROM '{source}' WHERE slide_idx IN (3, 1) ORDER BY 1 DESC"), out)
        assert con.sql(f"SELECT slide_idx, stain FROM '{out}'").fetchall() == [(3, "d"), (1, "b")]
        iac.write_pack(con.sql(f"FROM '{source}' WHERE slide_idx IS NULL"), out, overwrite=True)
        assert iac.PackReader(out).slide_table.num_rows == 0
        query = f"SELECT * EXCLUDE slide_idx FROM '{source}' WHERE slide_id IS NOT NULL"
        iac.write_pack(con.sql(query), out, overwrite=True, slide_columns=["patient_id"])
    pack = iac.PackReader(out)
    assert pack.slide_table.column_names == ["slide_idx", "patient_id"]
    assert pack.index_table["slide_idx"].to_pylist() == [0, 1, 2, 3, 4]
    assert pack.index_table["stain"].to_pylist() == list("abcde")


def test_slides_of_several_packs_are_numbered_anew(tmp_path):
    index = pa.table({"slide_idx": pa.array([0, 1, 0], pa.uint8())})
    for name in "ab":
        slides = pa.table(
            {
                "slide_idx": pa.array([0, 1], pa.uint8()),
                "slide_id": [f"{name}0", "shared"],
                "patient_id": ["p", "q"],
            }
        )
        iac.build_pack(tmp_path / f"{name}.iac", {}, slides, index, payloads_of(3))
    out = tmp_path / "x.iac"
    with iac.connect() as con:
        rows = con.sql(f"FROM '{tmp_path}/*.iac' ORDER BY record.pack DESC, record.row").pl()
    iac.write_pack(rows, out)
    pack = iac.PackReader(out)
    assert pack.slide_table.to_pydict() == {
        "slide_idx": [0, 1, 2],
        "slide_id": ["b0", "shared", "a0"],
        "patient_id": ["p", "q", "p"],
    }
    assert pack.index_table["slide_idx"].to_pylist() == [0, 1, 0, 2, 1, 2]
    # Without what names them, slides of two packs are two.
    iac.write_pack(rows.drop("slide_id", "patient_id"), out, overwrite=True)
    assert iac.PackReader(out).index_table["slide_idx"].to_pylist() == [0, 1, 0, 2, 3, 2]


def test_layout_columns_of_an_index_are_made_anew(pack, tmp_path):
    table = iac.PackReader(pack).index_table
    table = table.append_column("record", references([str(pack)] * 10, range(10)))
    iac.write_pack(table[5:], tmp_path / "x.iac")
    assert read_all(tmp_path / "x.iac") == payloads_of(10)[5:]


def test_headers_keep_what_packs_agree_on(tmp_path):
    one, two = (
        str(write_pack(tmp_path / f"{i}.iac", payloads_of(3), site="s", number=i)) for i in range(2)
    )
    out = tmp_path / "x.iac"
    iac.write_pack(table_of(references([one, two], [0, 0])), out, extra_header={"more": [1]})
    header = iac.PackReader(out).header
    assert (header["site"], header["payload_type"], header["more"]) == ("s", "raw_bytes", [1])
    assert "number" not in header
    other = str(write_pack(tmp_path / "o.iac", payloads_of(3), site="s", payload_type="other"))
    iac.write_pack(table_of(references([one, other], [0, 0])), out, overwrite=True)
    header = iac.PackReader(out).header
    assert header["payload_type"] == "records" and "site" not in header


@settings(max_examples=40)
@given(data=st.data())
def test_any_cohort_of_any_packs_comes_back(packs, tmp_path, data):
    rows = data.draw(st.lists(st.integers(0, ROWS - 1), max_size=30))
    paths = data.draw(
        st.lists(st.sampled_from(list(packs)), min_size=len(rows), max_size=len(rows))
    )
    slide = st.none() | st.sampled_from("abc")
    columns = {
        "slide_id": pa.array(
            data.draw(st.lists(slide, min_size=len(rows), max_size=len(rows))), pa.string()
        ),
        "n": pa.array(range(len(rows)), pa.int32()),
    }
    codec = data.draw(st.sampled_from([None, "zstd", "none"]))
    codec = codec and iac.Codec.create(codec, **({"level": 1} if codec == "zstd" else {}))
    out = tmp_path / "x.iac"
    iac.write_pack(table_of(references(paths, rows), **columns), out, codec, overwrite=True)
    assert read_all(out) == [packs[path][row] for path, row in zip(paths, rows, strict=True)]
    pack = iac.PackReader(out)
    ids = dict(zip(*pack.slide_table.to_pydict().values(), strict=True))
    assert [ids[i] for i in pack.index_table["slide_idx"].to_pylist()] == columns[
        "slide_id"
    ].to_pylist()
    assert pack.index_table["n"].to_pylist() == list(range(len(rows)))


# Cost


def sparse(path: Path, size: int, length: int) -> Path:
    """A pack of ``size`` bytes that takes none on the disk, records of ``length`` zeros in it."""
    count = 1000
    offsets = [i * ((size - length) // count) for i in range(count)]
    crc = zlib.crc32(bytes(length))
    index = layout_index(offsets, [length] * count, [crc] * count, n=range(count))
    assemble(path, index, rows=(1, count), data_length=size)
    with open(path, "r+b") as file:
        file.truncate(file.seek(0, os.SEEK_END) + size)
    return path


def test_no_more_is_read_than_needed(tmp_path):
    source = sparse(tmp_path / "s.iac", 10 << 30, 100_000)
    table = table_of(references([str(source)] * 8, [900, 3, 500, 4, 5, 6, 999, 0]))

    def read_so_far() -> int:
        return int(Path("/proc/self/io").read_text().split()[1])

    before = read_so_far()
    iac.write_pack(table, tmp_path / "x.iac")
    assert 800_000 <= read_so_far() - before < 1_600_000
    assert read_all(tmp_path / "x.iac") == [bytes(100_000)] * 8


def test_memory_is_bounded(tmp_path):
    """Half a gibibyte of references in a process that may have little more than it starts with."""
    source = sparse(tmp_path / "s.iac", 10 << 30, 4 << 20)
    code = (
        "import resource, sys, iac_query as iac, pyarrow as pa\n"
        "rows = [{'pack': sys.argv[1], 'row': i} for i in range(128)]\n"
        "table = pa.table({'record': rows})\n"
        "iac.write_pack(table[:1], sys.argv[2])\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "iac.write_pack(table, sys.argv[2], overwrite=True)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    command = [sys.executable, "-c", code, str(source), str(tmp_path / "x.iac")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 150_000  # KiB
    assert len(iac.PackReader(tmp_path / "x.iac")) == 128


def test_progress_is_shown_where_it_is_wanted(pack, tmp_path, capfd):
    for progress, shown in ((None, False), (False, False), (True, True)):
        iac.write_pack(
            refer(pack, range(10)), tmp_path / "x.iac", overwrite=True, progress=progress
        )
        assert ("10/10" in capfd.readouterr().err) == shown


def test_an_interrupt_leaves_nothing_behind(pack, tmp_path):
    class Interrupting(iac.Codec):
        name = "interrupting"

        def encode(self, obj):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as raised:
        iac.write_pack(refer(pack, range(10)), tmp_path / "x.iac", Interrupting())
    assert os.listdir(tmp_path) == [pack.name]
    assert [t.name for t in threading.enumerate() if t.name.startswith("iac_query")] == []
    assert raised.tb is not None  # which holds all that was at work


def test_a_full_disk_leaves_nothing_behind(pack, tmp_path):
    """In a process that may write files of a mebibyte only."""
    path = write_pack(tmp_path / "large.iac", [bytes(1000)] * 5000)
    code = (
        "import resource, signal, sys, threading, iac_query as iac, pyarrow as pa\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
        "rows = [{'pack': sys.argv[1], 'row': i} for i in range(5000)]\n"
        "try:\n"
        "    iac.write_pack(pa.table({'record': rows}), sys.argv[2])\n"
        "except OSError as error:\n"
        "    print(error.strerror, threading.active_count())\n"
    )
    command = [sys.executable, "-c", code, str(path), str(tmp_path / "x.iac")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "cannot write: File too large 1\n"
    assert sorted(os.listdir(tmp_path)) == ["large.iac", pack.name]
