"""Records that a query refers to as a pack, and its tables."""

import warnings

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from cohorts import fails, read_all, refer
from hypothesis import given, settings
from hypothesis import strategies as st
from iatro import iac as peer
from packs import (
    DATA,
    payloads_of,
    slide_table,
    write_encoded,
    write_matrix,
    write_pack,
)
from references import ROWS, mixed, references, table_of
from test_images import image, write_images

import iac_query as iac

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
    rows = data.draw(st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=30))
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


def test_slide_columns_that_are_dictionaries(pack, tmp_path):
    """With NULLs, and with a value that their dictionary has twice."""
    ids = pa.DictionaryArray.from_arrays([0, 1, None, 2], ["a", "b", "a"])
    table = table_of(references([str(pack)] * 4, range(4)))
    table = table.append_column("slide_id", ids)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        iac.write_pack(table, tmp_path / "x.iac")
        numbers = pa.array([0, 1, 2, 0], pa.uint8())
        iac.write_pack(table.append_column("slide_idx", numbers), tmp_path / "y.iac")
    for name in ("x.iac", "y.iac"):
        written = iac.PackReader(tmp_path / name)
        assert written.slide_table["slide_id"].to_pylist() == ["a", "b", None]
        assert written.index_table["slide_idx"].to_pylist() == [0, 1, 2, 0]
