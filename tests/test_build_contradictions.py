"""Headers may say more than the builders, but nothing else of how records are stored."""

import os

import numpy as np
import pyarrow as pa
import pytest
from packs import item_table, payloads_of, slide_table, write_encoded, write_matrix
from references import references, table_of

import iac_query as iac

WRONG = [
    {"codec": "none"},
    {"codec_params": {"level": 2}},
    {"record_codecs": []},
    {"record_codecs": [{"id": 0, "name": "none"}]},
    {"feature_dim": 5},
    {"dtype": "int32"},
    {"feature_record_bytes": 4},
    {"payload_type": None},
    {"payload_type": ""},
    {"payload_type": 5},
]
WRONG_OF_MATRICES = [{"codec": "zstd"}, {"codec_params": {"level": 1}}, *WRONG[2:]]


def named(extra: dict) -> str:
    return next(iter(extra))


def build(path, **options):
    iac.VariableRecordPack.build(
        path,
        payload_type="t",
        slide_table=slide_table(),
        index_table=item_table(3),
        objects=payloads_of(3),
        codec=iac.Codec.create("zstd", level=1),
        **options,
    )


def build_from_payloads(path, **options):
    iac.VariableRecordPack.build_from_payloads(
        path,
        payload_type="t",
        slide_table=slide_table(),
        index_table=item_table(3),
        payloads=payloads_of(3),
        codec_name="zstd",
        **options,
    )


@pytest.mark.parametrize("extra", WRONG, ids=str)
def test_encoded_records(tmp_path, extra):
    with pytest.raises(ValueError, match=named(extra)):
        build(tmp_path / "x.iac", extra_header=extra)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("extra", [WRONG[0], *WRONG[4:]], ids=str)
def test_payloads_that_are_encoded_already(tmp_path, extra):
    with pytest.raises(ValueError, match=named(extra)):
        build_from_payloads(tmp_path / "x.iac", extra_header=extra)
    assert os.listdir(tmp_path) == []


def test_of_payloads_that_are_encoded_already_a_header_may_say_how(tmp_path):
    codecs = [{"id": 0, "name": "none", "params": {}}, {"id": 1, "name": "zstd", "params": {}}]
    extra = {"record_codecs": codecs, "codec_params": {"level": 3}}
    build_from_payloads(tmp_path / "x.iac", extra_header=extra)
    header = iac.read_header(tmp_path / "x.iac")
    assert {name: header[name] for name in extra} == extra
    with pytest.raises(ValueError, match="codec_params"):
        build_from_payloads(tmp_path / "y.iac", codec_params={"level": 2}, extra_header=extra)


@pytest.mark.parametrize("extra", WRONG_OF_MATRICES, ids=str)
def test_matrices(tmp_path, extra):
    with pytest.raises(ValueError, match=named(extra)):
        iac.FixedRecordPack.build(
            tmp_path / "x.iac",
            payload_type="t",
            slide_table=slide_table(),
            index_table=item_table(2),
            matrix=np.zeros((2, 4), "f4"),
            extra_header=extra,
        )
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("extra", WRONG, ids=str)
def test_copied_and_encoded_records(tmp_path, extra):
    pack = str(write_encoded(tmp_path / "p.iac", payloads_of(3), "zstd", level=1))
    copied = table_of(references([pack] * 3, range(3)))
    encoded = pa.table({"payload": payloads_of(3)})
    codec = iac.Codec.create("zstd", level=1)
    for table in (copied, encoded):
        with pytest.raises(ValueError, match=named(extra)):
            iac.write_pack(table, tmp_path / "x.iac", codec, extra_header=extra)
    assert os.listdir(tmp_path) == ["p.iac"]


@pytest.mark.parametrize("extra", WRONG_OF_MATRICES, ids=str)
def test_copied_and_given_vectors(tmp_path, extra):
    pack = str(write_matrix(tmp_path / "p.iac", np.zeros((3, 4), "f4")))
    copied = table_of(references([pack] * 3, range(3)))
    given = pa.table({"payload": pa.array([[0.0] * 4] * 3, pa.list_(pa.float32(), 4))})
    for table in (copied, given):
        with pytest.raises(ValueError, match=named(extra)):
            iac.write_pack(table, tmp_path / "x.iac", extra_header=extra)
    assert os.listdir(tmp_path) == ["p.iac"]


def test_what_is_so_may_be_said(tmp_path):
    extra = {"codec": "zstd", "codec_params": {"level": 1}, "site": "s"}
    build(tmp_path / "x.iac", extra_header=extra)
    pack = str(tmp_path / "x.iac")
    iac.write_pack(
        table_of(references([pack] * 3, range(3))), tmp_path / "y.iac", extra_header=extra
    )
    assert iac.VariableRecordPack(tmp_path / "y.iac").read_many(range(3)) == payloads_of(3)
    matrix = np.arange(8, dtype="f4").reshape(2, 4)
    geometry = {"codec": "none", "feature_dim": 4, "dtype": "float32", "feature_record_bytes": 16}
    written = write_matrix(tmp_path / "m.iac", matrix, **geometry)
    assert np.array_equal(iac.FixedRecordPack(written).read_matrix([0, 1]), matrix)


@pytest.mark.parametrize("path", ["memory://x.iac", "file:///tmp/x.iac", "s3://user:key@b/x.iac"])
def test_urls_are_not_written_to(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    pack = write_encoded(tmp_path / "p.iac", payloads_of(3), "zstd")
    table = table_of(references([str(pack)], [0]))
    for write in (build, build_from_payloads, lambda path: iac.write_pack(table, path)):
        with pytest.raises(ValueError, match="local paths, not to URLs") as raised:
            write(path)
        assert "key" not in str(raised.value)
    assert os.listdir(tmp_path) == ["p.iac"]
