"""Payloads of a query as a pack."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from cohorts import fails, read_all, refer
from iatro import iac as peer
from packs import (
    write_matrix,
)
from references import references, table_of
from test_images import image, write_images

import iac_query as iac


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
        (pa.array([["a"]], pa.list_(pa.string(), 1)), None, TypeError, "vectors of numbers"),
        (pa.array([[1]], pa.list_(pa.timestamp("us"), 1)), None, TypeError, "vectors of numbers"),
    ],
)
def test_payloads_that_cannot_be_stored(tmp_path, payload, codec, error, reason):
    table = pa.table({"payload": payload})
    fails(tmp_path, error, reason, table, tmp_path / "x.iac", codec)
