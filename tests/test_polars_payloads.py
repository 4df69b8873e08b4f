"""Payloads of record references in Polars expressions."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from packs import flip_payload, payloads_of, write_encoded, write_matrix, write_pack

import iac_query as iac

ENGINES = pytest.mark.parametrize("engine", ["in-memory", "streaming"])
DATA = Path(__file__).parent / "data"
RECORD = "record"


@pytest.fixture
def notes(tmp_path: Path) -> pl.LazyFrame:
    return iac.scan_iac(write_encoded(tmp_path / "n.iac", [b"one", b"two", b"three"], "zstd"))


@ENGINES
def test_kinds(notes: pl.LazyFrame, engine: str):
    record = pl.col(RECORD).iac
    frame = notes.select(record.payload().alias("a"), record.text().alias("b"), "item_id")
    assert frame.collect_schema() == {"a": pl.Binary, "b": pl.String, "item_id": pl.String}
    assert frame.select("a", "b").collect(engine=engine).rows() == [
        (b"one", "one"),
        (b"two", "two"),
        (b"three", "three"),
    ]
    stored = notes.select(record.stored()).collect(engine=engine)
    assert stored.to_series().bin.starts_with(b"\x28\xb5\x2f\xfd").all()


@ENGINES
def test_images(engine: str):
    frame = iac.scan_iac(DATA / "tiles_lossless.iac")
    images = frame.select("payload", image=pl.col(RECORD).iac.image())
    assert images.collect_schema()["image"] == images.collect_schema()["payload"]
    table = images.collect(engine=engine)
    assert table["image"].equals(table["payload"])


@ENGINES
def test_vectors(tmp_path: Path, engine: str):
    matrix = np.arange(12, dtype=np.float64).reshape(4, 3) / 3
    frame = iac.scan_iac(write_matrix(tmp_path / "m.iac", matrix))
    vector = pl.col(RECORD).iac.vector
    for expr, dtype, values in [
        (vector(), pl.List(pl.Float32), matrix.astype(np.float32)),
        (vector(3), pl.Array(pl.Float32, 3), matrix.astype(np.float32)),
        (vector(3, pl.Float64), pl.Array(pl.Float64, 3), matrix),
        (vector(dtype=pl.Float64), pl.List(pl.Float64), matrix),
    ]:
        lazy = frame.select(expr)
        assert lazy.collect_schema()[RECORD] == dtype
        found = lazy.collect(engine=engine).to_series()
        assert (found.dtype, found.to_list()) == (dtype, values.tolist())
    with pytest.raises(iac.CodecError, match="vectors have 3 values, vector\\(\\) says 4"):
        frame.select(vector(4)).collect(engine=engine)


def test_numbers_that_do_not_fit(tmp_path: Path):
    vector = pl.col(RECORD).iac.vector
    integers = np.array([[1, 2], [3, 2**24 + 1]])
    frame = iac.scan_iac(write_matrix(tmp_path / "i.iac", integers))
    with pytest.raises(iac.CodecError, match=r"i\.iac: row 1: a number does not fit Float32"):
        frame.select(vector()).collect()
    for dtype in (pl.Float64, pl.Int64):
        found = frame.select(vector(dtype=dtype)).collect().to_series()
        assert found.to_list() == integers.tolist()
    with pytest.raises(iac.CodecError, match="vectors are of Int64"):
        frame.select(vector(dtype=pl.Int8)).collect()
    large = np.array([[0, 1e300], [np.inf, np.nan]])
    frame = iac.scan_iac(write_matrix(tmp_path / "f.iac", large))
    with pytest.raises(iac.CodecError, match=r"f\.iac: row 0: a number does not fit Float32"):
        frame.select(vector()).collect()
    assert frame.tail(1).select(vector()).collect().item()[0] == np.inf
    flags = np.array([[True, False]])
    frame = iac.scan_iac(write_matrix(tmp_path / "b.iac", flags))
    assert frame.select(vector()).collect().item().to_list() == [1.0, 0.0]


@ENGINES
def test_nulls_and_nothing(notes: pl.LazyFrame, tmp_path: Path, engine: str):
    keys = pl.LazyFrame({"item_id": ["item-2", "none", "item-0"]})
    joined = keys.join(notes, on="item_id", how="left", maintain_order="left")
    texts = joined.select(pl.col(RECORD).iac.text()).collect(engine=engine)
    assert texts.to_series().to_list() == ["three", None, "one"]
    nobody = keys.filter(pl.col("item_id") == "none").join(notes, on="item_id", how="left")
    matrix = iac.scan_iac(write_matrix(tmp_path / "m.iac", np.zeros((1, 2), np.float32)))
    for rows in (nobody, notes.filter(pl.col("item_id") == ""), matrix.head(0)):
        for expr in (
            *(pl.col(RECORD).iac.text(), pl.col(RECORD).iac.payload()),
            *(pl.col(RECORD).iac.image(), pl.col(RECORD).iac.vector(2)),
        ):
            lazy = rows.select(expr)
            found = lazy.collect(engine=engine)
            assert found.schema == lazy.collect_schema()
            assert found[RECORD].null_count() == found.height


def test_after_sorts_and_groups(notes: pl.LazyFrame):
    text = pl.col(RECORD).iac.text()
    frame = notes.select("item_id", RECORD).sort("item_id", descending=True)
    assert frame.select(text).collect().to_series().to_list() == ["three", "two", "one"]
    counts = frame.with_columns(size=text.str.len_chars()).group_by("size").len().sort("size")
    assert counts.collect().rows() == [(3, 2), (5, 1)]
    frame = notes.select(RECORD).collect()  # eager frames as well
    assert frame.select(text.str.len_chars()).to_series().to_list() == [3, 3, 5]


def test_options(tmp_path: Path):
    path = write_pack(tmp_path / "x.iac", payloads_of(4))
    frame = iac.scan_iac(path).select(RECORD).collect()
    record = pl.col(RECORD).iac
    flip_payload(path, 2)
    with pytest.raises(iac.ChecksumError, match="row 2"):
        frame.select(record.payload())
    assert frame.select(record.payload(on_error="null")).to_series().null_count() == 1
    assert frame.select(record.payload(verify=False)).to_series().null_count() == 0
    with pytest.raises(iac.PackError, match="not among the packs that were allowed"):
        frame.select(record.payload(packs=[tmp_path / "other.iac"]))
    write_pack(path, payloads_of(4)[::-1])
    with pytest.raises(iac.StaleReferenceError, match="run the query again"):
        frame.select(record.payload())
    with pytest.raises(TypeError, match="report is no option"):
        record.payload(report=[])
    with pytest.raises(ValueError, match="on_error is 'skip'"):
        record.text(on_error="skip")
    with pytest.raises(TypeError, match="expected a struct"):
        pl.DataFrame({RECORD: [1]}).select(record.text())


def test_functions_of_the_user_in_filters(notes: pl.LazyFrame):
    def has_w(text: str) -> bool:
        return "w" in text

    condition = pl.col("payload").map_elements(
        lambda payload: has_w(payload.decode()), return_dtype=pl.Boolean
    )
    for engine in ("in-memory", "streaming"):
        found = notes.filter(condition).select("item_id").collect(engine=engine)
        assert found.rows() == [("item-1",)]
    lazy = notes.filter(pl.col(RECORD).iac.text().str.contains("w")).select("item_id")
    assert pickle.loads(pickle.dumps(lazy)).collect().rows() == [("item-1",)]


@ENGINES
@pytest.mark.parametrize("count", [0, 2, 4])
def test_functions_that_are_not_elementwise(notes: pl.LazyFrame, engine: str, count: int):
    """Although they say so. Three rows of which one value is true are those of all."""

    def condition(count: int) -> pl.Expr:
        return pl.col("item_id").map_batches(
            lambda _: pl.Series([True] * count), return_dtype=pl.Boolean, is_elementwise=True
        )

    with pytest.raises(ValueError, match=f"'item_id'.* has {count} values for 3 rows"):
        notes.filter(condition(count)).collect(engine=engine)
    assert notes.filter(condition(1)).collect(engine=engine).height == 3


WITHOUT = """
import sys
sys.modules["cloudpickle"] = None
import polars as pl, iac_query
frame = iac_query.scan_iac(sys.argv[1])
text = pl.col("record").iac.text()
print(frame.filter(text.str.contains("w") & (pl.col("item_id") > "item-0")).select(text).collect())
try:
    frame.filter(pl.col("item_id").map_elements(bool, return_dtype=pl.Boolean)).collect()
except Exception as error:
    print(error)
"""


def test_without_cloudpickle(tmp_path: Path):
    path = write_encoded(tmp_path / "n.iac", [b"one", b"two", b"three"], "zstd")
    run = subprocess.run([sys.executable, "-c", WITHOUT, path], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "two" in run.stdout and "three" not in run.stdout
    assert "cloudpickle" in run.stdout


def test_without_polars(pack: Path):
    code = "import sys; sys.modules['polars'] = None; import iac_query; iac_query.scan_iac('x')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install iac-query[polars]" in run.stderr
