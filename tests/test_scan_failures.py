"""What scans say about damaged, replaced and missing packs, and about arguments."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from packs import (
    assemble,
    flip_payload,
    item_table,
    layout_index,
    payloads_of,
    slide_table,
    write_encoded,
    write_matrix,
    write_pack,
)

import iac_query as iac

ENGINES = pytest.mark.parametrize("engine", ["in-memory", "streaming", "arrow"])


def read(engine: str, paths, columns=None, **options) -> pa.Table:
    if engine == "arrow":
        return iac.scan_arrow(paths, columns, **options).read_all()
    frame = iac.scan_iac(paths, **options)
    frame = frame if columns is None else frame.select(columns)
    return frame.collect(engine=engine).to_arrow()


@ENGINES
def test_a_damaged_record_is_named_or_null(pack: Path, engine: str):
    flip_payload(pack, 3)
    with pytest.raises(iac.ChecksumError, match=rf"{pack}: row 3: ") as error:
        read(engine, pack)
    assert (error.value.pack, error.value.row) == (str(pack), 3)
    table = read(engine, pack, on_error="null")
    assert table["payload"].null_count == 1
    assert table["payload"][3].as_py() is None
    reasons = table["payload_error"].to_pylist()
    assert "crc32" in reasons[3] and reasons.count(None) == 9
    assert read(engine, pack, ["payload_error"], on_error="null")["payload_error"][3].is_valid
    assert read(engine, pack, ["item_id"]).num_rows == 10
    assert read(engine, pack, ["payload"], verify=False)["payload"].null_count == 0


@ENGINES
def test_records_that_point_outside(tmp_path: Path, engine: str):
    index = layout_index([0, 2, 1 << 40], [2, 2, 5], x=pa.array([1, 2, 3]))
    path = assemble(tmp_path / "x.iac", index, b"abcd", rows=(1, 3))
    assert read(engine, path, ["x"])["x"].to_pylist() == [1, 2, 3]
    with pytest.raises(iac.PackError, match="row 2"):
        read(engine, path, ["payload"])
    payloads = read(engine, path, ["payload"], on_error="null")["payload"].to_pylist()
    assert payloads == [b"ab", b"cd", None]


def test_a_filter_keeps_away_from_what_is_damaged(pack: Path):
    flip_payload(pack, 3)
    few = iac.scan_iac(pack).filter(pl.col("item_id") < "item-3").collect()
    assert few.height == 3
    assert iac.scan_arrow(pack, filter=pc.field("item_id") < "item-3").read_all().num_rows == 3
    missing = iac.scan_iac(pack, on_error="null").filter(pl.col("payload").is_null())
    assert missing.select("item_id").collect().rows() == [("item-3",)]


@ENGINES
def test_one_damaged_pack_among_many_is_named(tmp_path: Path, engine: str):
    for i in range(30):
        write_pack(tmp_path / f"{i:02}.iac", payloads_of(2))
    bad = tmp_path / "17.iac"
    bad.write_bytes(bad.read_bytes()[:66_000])
    with pytest.raises(iac.PackError, match=r"/17\.iac: "):
        read(engine, f"{tmp_path}/*.iac")


@ENGINES
def test_a_pack_replaced_after_it_was_planned(tmp_path: Path, engine: str):
    path = write_pack(tmp_path / "x.iac", payloads_of(3))

    def plan():
        return iac.scan_arrow(path) if engine == "arrow" else iac.scan_iac(path)

    def run(planned) -> pa.Table:
        return (
            planned.read_all() if engine == "arrow" else planned.collect(engine=engine).to_arrow()
        )

    planned = plan()
    write_pack(path, payloads_of(5))
    assert run(planned).num_rows == 5  # of the same columns
    planned = plan()
    write_pack(path, payloads_of(5), item_table(5).append_column("new", pa.array(range(5))))
    with pytest.raises(iac.StaleReferenceError, match=r"x\.iac: the pack was replaced"):
        run(planned)
    planned = plan()
    write_matrix(path, np.zeros((2, 3), np.float32))
    with pytest.raises(iac.StaleReferenceError, match=r"x\.iac: the pack was replaced"):
        run(planned)
    planned = plan()
    path.unlink()
    with pytest.raises(iac.PackNotFoundError, match=r"x\.iac"):
        run(planned)


@ENGINES
def test_text_that_is_none(tmp_path: Path, engine: str):
    path = write_encoded(tmp_path / "x.iac", [b"good", b"\xff secret"], "zstd")
    with pytest.raises(iac.CodecError, match="row 1: payload is not UTF-8") as error:
        read(engine, path, as_="text")
    assert "secret" not in str(error.value)
    assert read(engine, path, ["payload"], as_="text", on_error="null")["payload"].to_pylist() == [
        "good",
        None,
    ]


@ENGINES
def test_kinds_of_payload(tmp_path: Path, engine: str):
    matrix = np.arange(6, dtype=np.float32).reshape(2, 3)
    vectors = write_matrix(tmp_path / "m.iac", matrix)
    assert read(engine, vectors)["payload"].to_pylist() == matrix.tolist()
    raw = read(engine, vectors, ["payload"], as_="bytes")["payload"].to_pylist()
    assert raw == [row.tobytes() for row in matrix]
    notes = write_encoded(tmp_path / "n.iac", [b"a note"] * 2, "zstd")
    stored = read(engine, notes, ["payload"], as_="stored")["payload"].to_pylist()
    assert stored == iac.PackReader(notes).read_payloads([0, 1])
    with pytest.raises(iac.CodecError, match=r"n\.iac: records have no fixed shape"):
        read(engine, notes, as_="vector")
    both = [vectors, notes]
    assert read(engine, both, ["item_id"]).num_rows == 4
    with pytest.raises(iac.PackError, match=r"payloads of .*m\.iac are .*those of .*n\.iac"):
        read(engine, both, ["payload"])
    assert (
        read(engine, both, ["payload"], as_="bytes")["payload"].to_pylist()[2:] == [b"a note"] * 2
    )


@ENGINES
def test_images(engine: str):
    path = Path(__file__).parent / "data" / "tiles_lossless.iac"
    found = read(engine, path, ["payload", "record"])
    expected = iac.decode(found.select(["record"]))["payload"].to_pylist()
    assert found["payload"].to_pylist() == expected
    assert {*expected[0]} == {"height", "width", "channels", "dtype", "data"}


def test_tensors(tmp_path: Path):
    vectors = write_matrix(tmp_path / "m.iac", np.arange(6, dtype=np.int16).reshape(2, 3))
    table = iac.scan_arrow(vectors, ["payload"], as_="tensor").read_all()
    assert table["payload"].type == pa.fixed_shape_tensor(pa.int16(), [3])
    second = iac.scan_arrow(vectors, ["payload"], pc.field("item_id") == "item-1", "tensor")
    assert second.read_all()["payload"].chunk(0).to_numpy_ndarray().tolist() == [[3, 4, 5]]
    tiles = Path(__file__).parent / "data" / "tiles_lossless.iac"
    with pytest.raises(iac.CodecError, match="images have no tensor type before"):
        iac.scan_arrow(tiles, as_="tensor")
    with pytest.raises(ValueError, match="which Polars does not have"):
        iac.scan_iac(vectors, as_="tensor")


def test_two_slides_of_one_key(tmp_path: Path):
    slides = pa.table({"slide_idx": pa.array([0, 0], pa.uint8()), "slide_id": ["a", "b"]})
    path = tmp_path / "x.iac"
    iac.build_pack(path, {"payload_type": "x"}, slides, item_table(2), payloads_of(2))
    assert iac.scan_arrow(path, ["item_id", "payload"]).read_all().num_rows == 2
    with pytest.raises(iac.PackError, match=r"x\.iac: slide table: two rows have the same"):
        iac.scan_arrow(path, ["slide_id"]).read_all()
    texts = pa.table({"slide_idx": ["0"], "slide_id": ["a"]})
    iac.build_pack(
        path, {"payload_type": "x"}, texts, item_table(2), payloads_of(2), overwrite=True
    )
    with pytest.raises(iac.PackError, match="has type string, slides are joined by integers"):
        iac.scan_arrow(path, ["slide_id"]).read_all()


def test_keys_of_any_integer_type(tmp_path: Path):
    for i, (ours, theirs) in enumerate([(pa.int8(), pa.uint64()), (pa.uint64(), pa.int64())]):
        slides = pa.table({"series_idx": pa.array([7, 3], theirs), "slide_id": ["a", "b"]})
        index = pa.table({"series_idx": pa.array([3, None, 5, 7], ours)})
        path = tmp_path / f"{i}.iac"
        iac.build_pack(path, {"payload_type": "x"}, slides, index, payloads_of(4))
        found = iac.scan_arrow(path, ["slide_id"]).read_all()["slide_id"].to_pylist()
        assert found == ["b", None, None, "a"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"as_": "texts"}, ValueError, "as_ is 'texts', expected one of bytes, text"),
        ({"on_error": "skip"}, ValueError, "on_error is 'skip', expected 'raise' or 'null'"),
        ({"on_error": "no"}, ValueError, "on_error is 'no'"),
        ({"workers": 0}, ValueError, "workers is 0"),
        ({"verify": 1}, TypeError, "verify is 1"),
        ({"layout": "yes"}, TypeError, "layout is 'yes', expected a bool"),
        ({"filename": 3}, TypeError, "filename is 3"),
        ({"filename": "item_id"}, ValueError, "filename adds the column 'item_id'"),
        ({"into": "Item_ID"}, ValueError, "there is a column 'Item_ID' already"),
        ({"into": "record"}, ValueError, "there is a column 'record' already"),
        ({"batch_bytes": 0}, ValueError, "batch_bytes is 0"),
        ({"batch_bytes": 1.5}, TypeError, "batch_bytes is 1.5"),
    ],
    ids=str,
)
def test_arguments(pack: Path, options, error, message):
    for scan in (iac.scan_arrow, iac.scan_iac):
        with pytest.raises(error, match=message):
            scan(pack, **options)


def test_columns_and_filters(pack: Path):
    for columns, error in [(["nope"], KeyError), ([], ValueError), ("item_id", ValueError)]:
        with pytest.raises(error):
            iac.scan_arrow(pack, columns)
    for filter, error in [
        (pc.field("nope") > 1, KeyError),
        (pc.field("item_id") > 1, pa.ArrowNotImplementedError),
        (pc.field("item_id"), TypeError),
        (pc.field(0) == 1, ValueError),
        ("item_id > 1", TypeError),
    ]:
        with pytest.raises(error):
            iac.scan_arrow(pack, filter=filter)
    named = write_pack(
        pack.parent / "p.iac", payloads_of(1), item_table(1).append_column("payload", [["x"]])
    )
    with pytest.raises(ValueError, match="there is a column 'payload' already"):
        iac.scan_iac(named)
    assert iac.scan_iac(named, into="bytes").select("payload").collect().rows() == [("x",)]


def test_an_unknown_codec_shows_its_columns(tmp_path: Path):
    path = write_pack(tmp_path / "x.iac", [b"a"], codec="not-there")
    assert iac.scan_iac(path).select("item_id").collect().height == 1
    with pytest.raises(iac.CodecError, match="not-there"):
        iac.scan_iac(path).collect()
    assert iac.scan_iac(path, as_="stored").select("payload").collect().rows() == [(b"a",)]


def test_frames_pickle(pack: Path):
    frame = iac.scan_iac(pack).filter(pl.col("item_id") == "item-4").select("payload")
    again = pickle.loads(pickle.dumps(frame))
    assert again.collect().equals(frame.collect())
    assert again.collect().rows() == [(payloads_of(10)[4],)]


def test_slide_tables_without_rows(tmp_path: Path):
    path = tmp_path / "x.iac"
    iac.build_pack(path, {"payload_type": "x"}, slide_table(0), item_table(2), payloads_of(2))
    assert iac.scan_arrow(path, ["slide_id"]).read_all()["slide_id"].to_pylist() == [None, None]
