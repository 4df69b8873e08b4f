"""Codecs: parameters, round trips, limits, and codecs of one's own."""

import contextlib
import os
import pickle
import subprocess
import sys
import zlib

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from iatro import iac as peer
from packs import flip_payload, item_table, payloads_of, slide_table, write_encoded, write_pack

import iac_query as iac
from iac_query import Codec

pytestmark = pytest.mark.asan

OBJECTS = [b"", b"a", b"abc" * 1000, os.urandom(3000), bytes(300_000), "é日本".encode() * 99]
FAST = {"none": {}, "zstd": {"level": 1}, "brotli": {"quality": 1}}


def codec_of(name: str) -> Codec:
    return Codec.create(name, **FAST[name])


def peers(name: str):
    return peer.Codec.create(name, **FAST[name])


# Making codecs


@pytest.mark.parametrize(
    ("name", "params", "stored"),
    [
        ("none", {}, {}),
        ("zstd", {}, {"level": 19}),
        ("zstd", {"level": -7}, {"level": -7}),
        ("zstd", {"level": -131072}, {"level": -131072}),
        ("zstd", {"level": 22}, {"level": 22}),
        ("zstd", {"level": 0}, {"level": 0}),
        ("brotli", {}, {"quality": 11, "lgwin": 24}),
        ("brotli", {"quality": 0, "lgwin": 10}, {"quality": 0, "lgwin": 10}),
    ],
)
def test_parameters_are_what_the_header_keeps(name, params, stored):
    codec = Codec.create(name, **params)
    assert (codec.name, codec.parameters()) == (name, stored)
    assert codec.decode(codec.encode(b"some bytes" * 50)) == b"some bytes" * 50
    assert eval(repr(codec), {"Codec": Codec}).parameters() == stored


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("none", {"level": 3}),
        *[("zstd", {"level": level}) for level in (23, -131073, "3", 3.0, None, True, [3], 2**70)],
        ("zstd", {"quality": 3}),
        ("zstd", {"level": 3, "Level": 3}),
        ("zstd", {"level": float("nan")}),
        ("zstd", {"level": b"3"}),
        *[("brotli", {"quality": q}) for q in (12, -1, 1.5, None, "5", False)],
        *[("brotli", {"lgwin": w}) for w in (9, 25, -1, 18.0, None)],
        ("brotli", {"window": 20}),
    ],
    ids=str,
)
def test_a_wrong_parameter_is_a_value_error(name, params):
    with pytest.raises(ValueError) as raised:
        Codec.create(name, **params)
    assert name in str(raised.value) or "JSON" in str(raised.value)


@pytest.mark.parametrize("name", ["raw", "zstandard", "ZSTD", "Zstd", "", "zst", "zstd "])
def test_an_unknown_codec_is_an_error_that_names_it(name):
    with pytest.raises(iac.CodecError, match=f"unknown codec: '{name}'"):
        Codec.create(name)


@pytest.mark.parametrize("name", [None, 5, b"zstd", ["zstd"]])
def test_a_codec_name_is_a_str(name):
    with pytest.raises(TypeError, match="codec name"):
        Codec.create(name)


def test_the_constants_are_the_names_of_the_format():
    constants = {key: value for key, value in vars(Codec).items() if key.isupper()}
    assert constants == {key: getattr(peer.Codec, key) for key in constants}


def test_a_peers_header_makes_a_codec_even_with_parameters_we_refuse(tmp_path):
    for header in (
        {"codec": "zstd", "codec_params": {"level": "3"}},
        {"codec": "zstd", "codec_params": {"level": 99, "mode": "x"}},
        {"codec": "zstd", "codec_params": None},
        {"codec": "zstd"},
        {"codec": "zstd", "codec_params": {}},
        {"codec": "zstd", "codec_params": [1]},
    ):
        payload = codec_of("zstd").encode(b"text")
        iac.build_pack(
            tmp_path / "x.iac", header, slide_table(), item_table(1), [payload], overwrite=True
        )
        pack = iac.VariableRecordPack(tmp_path / "x.iac")
        assert pack.codec.name == "zstd"
        assert pack.read(0) == b"text"


# Round trips


@pytest.mark.parametrize("name", FAST)
@given(data=st.binary(max_size=5000))
def test_what_is_encoded_decodes_to_the_same(name, data):
    codec = codec_of(name)
    assert codec.decode(codec.encode(data)) == data


@pytest.mark.parametrize("name", FAST)
def test_many_objects_come_back_in_order(name):
    codec = codec_of(name)
    for workers in (None, 1, 2, 5):
        payloads = codec.encode_many(OBJECTS, workers)
        assert codec.decode_many(payloads, workers) == OBJECTS
        assert payloads == [codec.encode(obj) for obj in OBJECTS]


@pytest.mark.parametrize("name", FAST)
def test_encoded_objects_are_what_the_libraries_read(name):
    decode = {
        "none": bytes,
        "zstd": zstandard.ZstdDecompressor().decompress,
        "brotli": brotli.decompress,
    }[name]
    for obj in OBJECTS:
        payload = codec_of(name).encode(obj)
        assert decode(payload) == obj
        assert peers(name).decode(payload) == obj


@pytest.mark.parametrize("name", FAST)
def test_the_peers_payloads_decode(name):
    # Its zstd frames are those of a stream: they do not tell their content size.
    payloads = peers(name).encode_many(OBJECTS)
    codec = codec_of(name)
    assert codec.decode_many(payloads, 2) == OBJECTS
    assert [codec.decode(payload) for payload in payloads] == OBJECTS


def test_zstd_frames_one_behind_the_other_decode_to_all_of_them():
    ours, stream = codec_of("zstd"), peers("zstd")
    one, two = b"one" * 100, bytes(200_000)
    for payload in (
        ours.encode(one) + ours.encode(two),
        stream.encode(one) + stream.encode(two),
        ours.encode(one) + stream.encode(two),
    ):
        assert ours.decode(payload) == one + two
    skippable = b"\x50\x2a\x4d\x18\x03\0\0\0xyz"
    assert ours.decode(skippable + ours.encode(one)) == one


def test_bytes_behind_a_brotli_stream_are_passed_over():
    assert codec_of("brotli").decode(codec_of("brotli").encode(b"text") + b"more") == b"text"


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize("obj", ["text", 5, None, [1, 2], object()], ids=repr)
def test_only_bytes_like_objects_are_encoded_and_decoded(name, obj):
    codec = codec_of(name)
    for use in (codec.encode, codec.decode, lambda x: codec.encode_many([b"", x])):
        with pytest.raises(TypeError, match="bytes-like"):
            use(obj)


@pytest.mark.parametrize("name", ["zstd", "brotli"])
def test_damaged_payloads_are_codec_errors(name):
    codec = codec_of(name)
    payload = codec.encode(b"some text " * 400)
    for damaged in (b"", payload[:-1], payload[: len(payload) // 2], b"\0" * 20, b"\xff" * 20):
        with pytest.raises(iac.CodecError, match=name):
            codec.decode(damaged)


@pytest.mark.parametrize("name", ["zstd", "brotli"])
@given(data=st.data())
def test_a_mutated_payload_decodes_or_is_a_codec_error(name, data):
    codec = codec_of(name)
    payload = bytearray(codec.encode(bytes(range(256)) * 8 + bytes(5000)))
    for _ in range(data.draw(st.integers(1, 3))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(iac.CodecError):
        codec.decode(payload, max_record_bytes=1 << 20)


# Limits


@pytest.mark.parametrize("make", [codec_of, peers], ids=["ours", "peer"])
@pytest.mark.parametrize("name", FAST)
def test_a_record_above_the_limit_is_refused(name, make):
    payload, codec = make(name).encode(bytes(4 << 20)), codec_of(name)
    limit = 4 << 20
    assert len(codec.decode(payload, max_record_bytes=limit)) == limit
    with pytest.raises(iac.CodecError, match=f"limit of {limit - 1} bytes"):
        codec.decode(payload, max_record_bytes=limit - 1)
    with pytest.raises(iac.CodecError, match="raise max_record_bytes"):
        codec.decode_many([payload] * 3, max_record_bytes=1000)
    batch = codec.decode_many_contiguous(
        [payload, make(name).encode(b"small")], on_error="null", max_record_bytes=1000
    )
    assert batch.validity.tolist() == [False, True]
    assert bytes(batch[1]) == b"small"


@pytest.mark.parametrize("name", FAST)
def test_a_batch_above_the_limit_is_refused(name):
    payloads = [codec_of(name).encode(bytes(100_000))] * 20
    codec = codec_of(name)
    assert len(codec.decode_many_contiguous(payloads, max_batch_bytes=2_000_000)) == 20
    for workers in (1, 4):
        with pytest.raises(ValueError, match="max_batch_bytes"):
            codec.decode_many_contiguous(payloads, workers, max_batch_bytes=1_999_999)


def test_a_bomb_in_a_pack_is_a_row_error(tmp_path):
    objects = [b"small", bytes(50 << 20), b"also small"]
    pack = iac.VariableRecordPack(write_encoded(tmp_path / "x.iac", objects, "zstd", level=1))
    with pytest.raises(iac.CodecError, match=r"x\.iac: row 1: .*limit of 1000000") as raised:
        pack.read_many([2, 1, 0], max_record_bytes=1_000_000)
    assert (raised.value.pack, raised.value.row) == (str(tmp_path / "x.iac"), 1)
    with pytest.raises(iac.CodecError, match="row 1"):
        pack.read(1, max_record_bytes=1_000_000)
    assert pack.read_many([0, 2], max_record_bytes=1_000_000) == [b"small", b"also small"]
    assert pack.read_many([0, 1], on_error="null", max_record_bytes=1_000_000) == [b"small", None]


def test_a_frame_that_lies_about_its_size_costs_no_memory():
    frame = bytearray(zstandard.ZstdCompressor().compress(bytes(300)))
    frame[4] = 0xE0  # a content size of eight bytes, in one segment
    for size in (2**40, 2**63, 2**64 - 3):
        lying = bytes(frame[:5]) + size.to_bytes(8, "little") + bytes(frame[7:])
        with pytest.raises(iac.CodecError):
            codec_of("zstd").decode(lying)


# Workers


@pytest.mark.parametrize("workers", [0, -1, True, False, "2", 1.5, [2]], ids=repr)
def test_workers_are_a_positive_int_or_none(tmp_path, workers):
    objects = payloads_of(3)
    pack = iac.VariableRecordPack(write_encoded(tmp_path / "x.iac", objects, "zstd"))
    codec = codec_of("zstd")
    for use in (
        lambda: pack.read_many([0], workers),
        lambda: pack.read_many_contiguous([0], workers=workers),
        lambda: pack.reader.read_payloads_contiguous([0], workers=workers),
        lambda: codec.encode_many([b""], workers),
        lambda: codec.decode_many([b""], workers),
    ):
        with pytest.raises((ValueError, TypeError), match="workers"):
            use()


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize("make", [codec_of, peers], ids=["ours", "peer"])
def test_any_number_of_workers_decodes_what_a_plain_loop_does(name, make):
    objects = [bytes([i % 256]) * (i * 37 % 5000) + os.urandom(i % 90) for i in range(1500)]
    objects[700] = bytes(3_000_000)
    payloads = make(name).encode_many(objects)
    codec = codec_of(name)
    loop = [codec.decode(payload) for payload in payloads]
    assert loop == objects
    for workers in (None, 1, 2, 3, 8, 1000):
        batch = codec.decode_many_contiguous(payloads, workers)
        assert bytes(batch.buffer) == b"".join(loop)
        assert batch.lengths == tuple(map(len, loop))
    assert codec.decode_many([], 2) == []


# Codecs as objects


@pytest.mark.parametrize("name", FAST)
def test_codecs_pickle(name):
    codec = pickle.loads(pickle.dumps(codec_of(name)))
    assert (codec.name, codec.parameters()) == (name, codec_of(name).parameters())
    assert codec.decode(codec.encode(b"abc")) == b"abc"


class Structural:
    name = "structural"

    def encode(self, obj):
        return obj

    def decode(self, payload):
        return payload

    def parameters(self):
        return {}


def test_isinstance_asks_what_an_object_can_do():
    assert isinstance(codec_of("zstd"), Codec)
    assert isinstance(Structural(), Codec)
    assert not isinstance(Structural, Codec)
    assert not isinstance(object(), Codec)
    assert not isinstance("zstd", Codec)
    nameless = Structural()
    nameless.name = 5
    assert not isinstance(nameless, Codec)


class Deflate(Codec):
    """A codec of text, in Python."""

    name = "deflate-text"

    def __init__(self, level: int = 6) -> None:
        self.level = level

    def encode(self, obj: str) -> bytes:
        return zlib.compress(obj.encode(), self.level)

    def decode(self, payload: bytes) -> str:
        return zlib.decompress(payload).decode()

    def parameters(self):
        return {"level": self.level}


class DeflateBytes(Deflate):
    name = "deflate-bytes"

    def encode(self, obj: bytes) -> bytes:
        return zlib.compress(obj)

    def decode(self, payload: bytes) -> bytes:
        return zlib.decompress(payload)


@pytest.fixture
def registered():
    for kind in (Deflate, DeflateBytes):
        Codec.register(kind.name, kind)
    yield
    for kind in (Deflate, DeflateBytes):
        del Codec._registered[kind.name]


def build(path, objects, codec):
    iac.VariableRecordPack.build(
        path,
        payload_type="t",
        slide_table=slide_table(),
        index_table=item_table(len(objects)),
        objects=objects,
        codec=codec,
    )
    return iac.VariableRecordPack(path)


def test_a_registered_codec_writes_and_reads_packs(tmp_path, registered):
    texts = ["one", "zwei", "三", ""]
    pack = build(tmp_path / "x.iac", texts, Codec.create("deflate-text", level=9))
    assert (pack.header["codec"], pack.header["codec_params"]) == ("deflate-text", {"level": 9})
    assert (pack.codec.level, pack.read(2), pack.read(-1)) == (9, "三", "")
    assert pack.read_many([3, 1, 1], workers=2) == ["", "zwei", "zwei"]
    with pytest.raises(IndexError):
        pack.read(4)


def test_a_codec_that_makes_no_bytes_cannot_fill_contiguous_memory(tmp_path, registered):
    pack = build(tmp_path / "x.iac", ["one", "two"], Deflate())
    with pytest.raises(TypeError, match="deflate-text decodes to <class 'str'>"):
        pack.read_many_contiguous([0])


def test_a_codec_that_makes_bytes_can(tmp_path, registered):
    objects = payloads_of(20)
    pack = build(tmp_path / "x.iac", objects, DeflateBytes())
    batch = pack.read_many_contiguous([7, 7, 0])
    assert [bytes(record) for record in batch] == [objects[7], objects[7], objects[0]]
    assert len(pack.read_many_contiguous([])) == 0


def test_failures_of_a_registered_codec_follow_the_same_rules(tmp_path, registered):
    objects = payloads_of(4)
    pack = build(tmp_path / "x.iac", objects, DeflateBytes())
    flip_payload(tmp_path / "x.iac", 1)

    with pytest.raises(iac.ChecksumError, match="row 1"):
        pack.read(1)
    with pytest.raises(iac.CodecError, match=r"x\.iac: row 1: codec deflate-bytes") as raised:
        pack.read_many_contiguous([0, 1], verify=False)
    assert raised.value.row == 1
    assert isinstance(raised.value.__cause__, zlib.error)

    for verify, kind in [(True, iac.ChecksumError), (False, iac.CodecError)]:
        report = []
        batch = pack.read_many_contiguous([1, 3], verify=verify, on_error="null", report=report)
        assert batch.validity.tolist() == [False, True]
        assert batch[0] is None
        assert bytes(batch[1]) == objects[3]
        assert [(f.position, f.row, type(f.error)) for f in report] == [(0, 1, kind)]
        batch = pack.read_many_contiguous([1, 3], verify=verify, on_error="skip")
        assert (batch.positions.tolist(), len(batch)) == ([1], 1)
        assert pack.read_many([1, 3], verify=verify, on_error="null") == [None, objects[3]]
        assert pack.read_many([1, 3], verify=verify, on_error="skip") == [objects[3]]
    with pytest.raises(ValueError, match="on_error"):
        pack.read_many([0], on_error="ignore")


def test_names_are_registered_once_and_built_in_ones_never(registered):
    with pytest.raises(ValueError, match="registered already"):
        Codec.register("deflate-text", Deflate)
    Codec.register("deflate-text", Deflate, replace=True)
    for name in ("none", "zstd", "jxl"):
        with pytest.raises(ValueError, match="built in"):
            Codec.register(name, Deflate, replace=True)


@pytest.mark.parametrize("name", ["deflate-text", "avif", None, 5, ["zstd"], {"a": 1}], ids=repr)
def test_a_pack_of_an_unknown_codec_still_gives_its_stored_bytes(tmp_path, name):
    header = {"payload_type": "t", "codec": name}
    iac.build_pack(tmp_path / "x.iac", header, slide_table(), item_table(1), [b"stored"])
    pack = iac.VariableRecordPack(tmp_path / "x.iac")
    assert pack.read_bytes(0) == b"stored"
    for use in (
        lambda: pack.read(0),
        lambda: pack.read_many([0]),
        lambda: pack.read_many_contiguous([0]),
        lambda: pack.codec,
    ):
        with pytest.raises(iac.CodecError, match="unknown codec"):
            use()


@pytest.mark.parametrize("codec", ["zstd", "brotli"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_batch_of_bombs_takes_no_more_memory_than_the_batch_may(tmp_path, codec, workers):
    if codec == "brotli":
        bomb = Codec.create("brotli", quality=5).encode(bytes(64 << 20))
    else:  # a frame that does not tell its size
        writer = zstandard.ZstdCompressor(level=1, write_content_size=False).compressobj()
        bomb = writer.compress(bytes(64 << 20)) + writer.flush()
    path = write_pack(tmp_path / "x.iac", [bomb] * 24, codec=codec)
    script = f"""
import resource, iac_query
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    iac_query.VariableRecordPack({str(path)!r}).read_many_contiguous(
        range(24), workers={workers}, max_batch_bytes=1 << 20
    )
except ValueError as error:
    assert "max_batch_bytes" in str(error), error
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(ran.stdout) < 64 << 10  # KiB: less than one of the bombs
