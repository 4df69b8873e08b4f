"""Packs in which each record names its own codec."""

import pyarrow as pa
import pytest
from packs import item_table, payloads_of, slide_table

import iac_query as iac
from iac_query import Codec

pytestmark = pytest.mark.asan

CODECS = [
    {"id": 7, "name": "none"},
    {"id": 0, "name": "zstd", "params": {"level": 1}},
    {"id": 200, "name": "brotli", "params": {"quality": 2, "lgwin": 20}},
    {"id": 9, "name": "from-the-future", "params": {"x": [1]}},
]
IDS = [7, 0, 200, 0, 7, 200, 0, 200, 7]
OBJECTS = payloads_of(len(IDS), 500)
BY_ID = {entry["id"]: entry for entry in CODECS}


def encoded(ids: list[int]) -> list[bytes]:
    return [
        Codec.create(BY_ID[id]["name"], **BY_ID[id].get("params", {})).encode(obj)
        for id, obj in zip(ids, OBJECTS, strict=True)
    ]


def write(path, codec_id: pa.Array, payloads=None, record_codecs=CODECS, **header):
    index = item_table(len(OBJECTS)).append_column("codec_id", codec_id)
    fields = {"payload_type": "mixed", "codec": "mixed", "record_codecs": record_codecs, **header}
    iac.build_pack(
        path, fields, slide_table(), index, encoded(IDS) if payloads is None else payloads
    )
    return iac.VariableRecordPack(path)


@pytest.mark.parametrize(
    "type", [pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32()], ids=str
)
@pytest.mark.parametrize("workers", [1, 3])
def test_each_row_is_decoded_by_its_own_codec(tmp_path, type, workers):
    pack = write(tmp_path / "x.iac", pa.array(IDS, type))
    rows = [8, 0, 1, 2, 3, 3, 4, 5, 6, 7]
    expected = [OBJECTS[row] for row in rows]
    assert pack.read_many(rows, workers) == expected
    assert [bytes(r) for r in pack.read_many_contiguous(rows, workers=workers)] == expected
    assert [pack.read(row) for row in rows] == expected
    assert pack.reader.read_payloads(rows) == [encoded(IDS)[row] for row in rows]


def test_decode_follows_the_row_codecs_too(tmp_path):
    write(tmp_path / "x.iac", pa.array(IDS, pa.uint8()))
    record = pa.array(
        [{"pack": str(tmp_path / "x.iac"), "row": row} for row in reversed(range(len(IDS)))]
    )
    table = pa.table({"record": record})
    assert iac.decode(table)["payload"].to_pylist() == OBJECTS[::-1]
    assert iac.decode(table, as_="stored")["payload"].to_pylist() == encoded(IDS)[::-1]


def test_an_id_that_is_not_listed_is_an_error_of_its_row(tmp_path):
    pack = write(tmp_path / "x.iac", pa.array([7, 1, *IDS[2:]], pa.uint8()))
    with pytest.raises(iac.CodecError, match=r"x\.iac: row 1: .*codec_id") as raised:
        pack.read_many(range(9))
    assert raised.value.row == 1
    report = []
    objects = pack.read_many(range(9), on_error="null", report=report)
    assert objects == [None if row == 1 else obj for row, obj in enumerate(OBJECTS)]
    assert [failure.row for failure in report] == [1]
    assert pack.read_bytes(1) == encoded(IDS)[1]


def test_a_codec_that_this_build_does_not_have_is_an_error_of_its_rows(tmp_path):
    pack = write(tmp_path / "x.iac", pa.array([*IDS[:8], 9], pa.uint8()))
    with pytest.raises(iac.CodecError, match="row 8: unknown codec: 'from-the-future'"):
        pack.read(8)
    assert pack.read_many([8, 0], on_error="null") == [None, OBJECTS[0]]
    assert pack.read_many([8, 0], on_error="skip") == [OBJECTS[0]]


@pytest.mark.parametrize("type", [pa.int8(), pa.int16(), pa.int32()], ids=str)
def test_a_negative_id_is_not_taken_for_a_large_one(tmp_path, type):
    large = {pa.int8(): 255, pa.int16(): 65535, pa.int32(): 2**32 - 1}[type]
    codecs = [{"id": -2, "name": "zstd"}, {"id": large, "name": "none"}]
    payloads = [Codec.create("zstd", level=1).encode(obj) for obj in OBJECTS]
    pack = write(
        tmp_path / "x.iac", pa.array([-1, *[-2] * 8], type), payloads, record_codecs=codecs
    )
    with pytest.raises(iac.CodecError, match=r"row 0: .*codec_id"):
        pack.read(0)
    assert pack.read_many(range(1, 9)) == OBJECTS[1:]


def test_a_damaged_record_is_an_error_of_its_row(tmp_path):
    payloads = encoded(IDS)
    payloads[1], payloads[2] = payloads[1][:-3], payloads[2][:-3]
    pack = write(tmp_path / "x.iac", pa.array(IDS, pa.uint8()), payloads)
    report = []
    pack.read_many(range(9), on_error="skip", report=report)
    assert [(f.row, type(f.error)) for f in report] == [(1, iac.CodecError), (2, iac.CodecError)]
    assert "zstd" in str(report[0].error)
    assert "brotli" in str(report[1].error)


def test_without_record_codecs_the_column_means_nothing(tmp_path):
    index = item_table(2).append_column("codec_id", pa.array(["x", None]))
    iac.build_pack(tmp_path / "x.iac", {"codec": "none"}, slide_table(), index, [b"a", b"b"])
    assert iac.VariableRecordPack(tmp_path / "x.iac").read_many([1, 0]) == [b"b", b"a"]


def test_without_the_column_the_header_codec_holds(tmp_path):
    fields = {"codec": "zstd", "record_codecs": CODECS}
    payloads = [Codec.create("zstd").encode(b"a")]
    iac.build_pack(tmp_path / "x.iac", fields, slide_table(), item_table(1), payloads)
    assert iac.VariableRecordPack(tmp_path / "x.iac").read(0) == b"a"


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([7, None, *IDS[2:]], pa.uint8()), "'codec_id' has nulls"),
        (pa.array(list(map(str, IDS))), "'codec_id' has type string"),
        (pa.array(IDS, pa.float64()), "'codec_id' has type double"),
    ],
    ids=["nulls", "string", "float"],
)
def test_nulls_and_other_types_in_the_column_are_errors(tmp_path, column, message):
    with pytest.raises(iac.PackError, match=message):
        write(tmp_path / "x.iac", column)


@pytest.mark.parametrize(
    "codecs",
    [{}, "zstd", [1], [{"id": 1}], [{"name": "zstd"}], [{"id": "1", "name": "zstd"}]],
    ids=str,
)
def test_a_wrong_list_of_codecs_is_an_error_that_names_the_field(tmp_path, codecs):
    with pytest.raises(iac.PackError, match="record_codecs"):
        write(tmp_path / "x.iac", pa.array(IDS, pa.uint8()), record_codecs=codecs)
