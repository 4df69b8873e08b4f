"""JPEG 2000 and HTJ2K: parameters, exactness, damage."""

import contextlib
import struct
from itertools import product

import imagecodecs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from iatro import iac as peer
from jpeg2000 import CLASSIC, CODECS, HT, PROFILES, assert_same, image, jp2, sampled

import iac_query as iac
from iac_query import Codec

pytestmark = pytest.mark.asan

# Parameters


@pytest.mark.parametrize(
    ("params", "stored"),
    [
        ({}, {"profile": "classic", "container": "j2k", "lossless": True}),
        ({"profile": "ht"}, {"profile": "ht", "container": "j2k", "lossless": True}),
        ({"codestream": "jp2"}, {"profile": "classic", "container": "jp2", "lossless": True}),
        (
            {"container": "j2k", "codestream": "j2k", "lossless": False},
            {"profile": "classic", "container": "j2k", "lossless": False},
        ),
    ],
)
def test_parameters_are_what_the_header_keeps(params, stored):
    assert Codec.create("jpeg2000", **params).parameters() == stored
    assert peer.Codec.create("jpeg2000", **params).parameters() == stored


@pytest.mark.parametrize(
    "params",
    [
        {"profile": "HT"},
        {"profile": None},
        {"profile": 1},
        {"container": "j2c"},
        {"codestream": None},
        {"container": "j2k", "codestream": "jp2"},
        {"container": "jp2", "profile": "ht"},
        {"lossless": 1},
        {"lossless": None},
        {"quality": 90},
    ],
)
def test_impossible_parameters_are_refused(params):
    with pytest.raises(ValueError, match="codec jpeg2000: "):
        Codec.create("jpeg2000", **params)
    with pytest.raises(ValueError):
        peer.Codec.create("jpeg2000", **params)


def test_a_decoder_is_made_of_any_header():
    array = image(20, 30, 3, 8, "noise")
    for params in [{}, {"lossless": "?"}, {"profile": "ht", "quality": 3}]:
        codec = iac.codec.codec_of_header({"codec": "jpeg2000", "codec_params": params})
        assert_same(codec.decode(HT.encode(array)), array)


def test_jp2_is_for_decoding_only():
    codec = Codec.create("jpeg2000", container="jp2")
    array = image(9, 8, 3, 8, "noise")
    assert_same(codec.decode(jp2(CLASSIC.encode(array))), array)
    assert_same(codec.decode(CLASSIC.encode(array)), array)
    with pytest.raises(ValueError, match="container jp2 is for decoding only"):
        codec.encode(array)


# Round trips


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", ["noise", "ramp"])
def test_every_small_size_is_exact(profile: str, kind: str):
    codec = CODECS[profile]
    sizes = [*range(1, 19), 31, 32, 33, 40]
    for i, (height, width) in enumerate(product(sizes, sizes)):
        array = image(height, width, (1, 3, 4)[i % 3], (8, 12, 16)[i // 3 % 3], kind, i)
        assert_same(codec.decode(codec.encode(array)), array)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    ("shape", "bits"),
    [((1100, 700, 1), 12), ((513, 513, 1), 8), ((1, 1100, 3), 16), ((300, 513, 3), 8)],
)
def test_larger_noise_is_exact(profile: str, shape, bits: int):
    array = image(*shape, bits, "noise")
    codec = CODECS[profile]
    payload = codec.encode(array)
    assert_same(codec.decode(payload), array)
    assert_same(CLASSIC.decode(payload), array)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    shape=st.tuples(st.integers(1, 70), st.integers(1, 70), st.sampled_from((1, 3, 4))),
    bits=st.integers(2, 16),
    kind=st.sampled_from(("noise", "ramp")),
    profile=st.sampled_from(PROFILES),
)
def test_any_image_is_exact_here_and_for_other_readers(shape, bits, kind, profile):
    array = image(*shape, bits, kind)
    payload = CODECS[profile].encode(array)
    assert_same(CODECS[profile].decode(payload), array)
    assert_same(imagecodecs.jpeg2k_decode(payload), array)
    assert_same(peer.Codec.create("jpeg2000", profile=profile).decode(payload), array)


@pytest.mark.parametrize("profile", PROFILES)
def test_order_of_bytes_and_layout_do_not_matter(profile: str):
    array = image(40, 30, 3, 16, "noise")
    payload = CODECS[profile].encode(array)
    assert CODECS[profile].encode(array.astype(">u2")) == payload
    assert CODECS[profile].encode(np.asfortranarray(array)) == payload
    assert CODECS[profile].encode(np.repeat(array, 2, 1)[:, ::2]) == payload


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("dtype", ["int8", "int16", "float16", "float32"])
def test_other_types_are_refused(profile: str, dtype: str):
    with pytest.raises(ValueError, match="cannot be stored, uint8 and uint16 can"):
        CODECS[profile].encode(np.zeros((4, 4), dtype))


@pytest.mark.parametrize("channels", [2, 5])
def test_other_channels_are_refused(channels: int):
    with pytest.raises(ValueError, match=r"codec jpeg2000: .*channels"):
        CLASSIC.encode(np.zeros((4, 4, channels), np.uint8))


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_classic_writes_what_the_peer_writes(dtype: str, channels: int):
    array = image(70, 50, channels, 8 * np.dtype(dtype).itemsize, "ramp")
    for lossless in (True, False):
        ours = Codec.create("jpeg2000", lossless=lossless).encode(array)
        theirs = peer.Codec.create("jpeg2000", lossless=lossless).encode(array)
        assert ours.replace(b"version 2.5.0", b"version 2.5.3") == theirs


@pytest.mark.parametrize(("bits", "scale"), [(8, 1), (12, 16), (16, 256)])
def test_lossy_ht_loses_a_like_part_of_the_range_at_any_depth(bits: int, scale: int):
    y, x = np.mgrid[:128, :128]
    smooth = 100 + 60 * np.sin(x / 9) + 40 * np.cos(y / 7)
    array = np.rint(scale * smooth).astype(np.uint8 if bits == 8 else np.uint16)
    codec = Codec.create("jpeg2000", profile="ht", lossless=False)
    payload = codec.encode(array)
    difference = codec.decode(payload).astype(float) - array
    assert np.sqrt(np.mean(difference**2)) < 2 * scale
    assert len(payload) < 0.5 * len(HT.encode(array))
    theirs = peer.Codec.create("jpeg2000", profile="ht").decode(payload)
    assert np.abs(codec.decode(payload).astype(int) - theirs).max() <= 1


# Damage


def small_streams() -> dict[str, bytes]:
    gray, colour = image(14, 19, 1, 12, "ramp"), image(17, 20, 3, 8, "ramp")
    streams = {}
    for profile, lossless in product(PROFILES, (True, False)):
        codec = Codec.create("jpeg2000", profile=profile, lossless=lossless)
        streams[f"{profile}-{lossless}-gray"] = codec.encode(gray)
        streams[f"{profile}-{lossless}-rgb"] = codec.encode(colour)
    streams["sycc"] = jp2(sampled([gray[:9, :9].astype(np.uint8)] * 3, [(1, 1), (1, 1), (1, 1)]))
    streams["ht-tiles"] = imagecodecs.htj2k_encode(colour, reversible=True, tile=(8, 8))
    return streams


STREAMS = small_streams()


@pytest.mark.parametrize("name", STREAMS)
def test_truncations_are_errors(name: str):
    payload = STREAMS[name]
    for size in range(len(payload)):
        with pytest.raises(iac.CodecError, match="jpeg2000: "):
            CLASSIC.decode(payload[:size])


@pytest.mark.parametrize("name", STREAMS)
def test_mutations_are_errors_or_images(name: str):
    random = np.random.default_rng(3)
    payload = STREAMS[name]
    for i in range(400):
        changed = bytearray(payload)
        limit = len(payload) if i % 2 else payload.index(b"\xff\x93")
        for at in random.integers(0, limit, random.integers(1, 4)):
            changed[at] = random.integers(0, 256)
        for codec in CODECS.values():
            with contextlib.suppress(iac.CodecError):
                assert isinstance(codec.decode(bytes(changed), max_samples=1 << 20), np.ndarray)


def test_impossible_claims_are_errors_before_anything_is_made():
    payload = CLASSIC.encode(image(16, 16, 1, 8, "ramp"))
    huge = struct.pack(">8I", 1 << 15, 1 << 14, 0, 0, 1 << 15, 1 << 14, 0, 0)
    with pytest.raises(iac.CodecError, match="larger than the limit of"):
        CLASSIC.decode(payload[:8] + huge + payload[40:])
    for fields, reason in [
        ((0, 16, 0, 0, 16, 16, 0, 0), "no pixels"),
        ((16, 16, 16, 0, 16, 16, 0, 0), "no pixels"),
        ((1 << 31, 16, 0, 0, 16, 16, 0, 0), "too large"),
        ((16, 16, 0, 0, 0, 16, 0, 0), "tiles do not cover"),
        ((16, 16, 0, 0, 16, 16, 1, 0), "tiles do not cover"),
        ((16, 16, 0, 0, 1, 1, 0, 0), "more tiles than"),
        ((1 << 30, 16, 0, 0, 1, 1, 0, 0), "more tiles than"),
    ]:
        with pytest.raises(iac.CodecError, match=reason):
            CLASSIC.decode(payload[:8] + struct.pack(">8I", *fields) + payload[40:])
    at = payload.index(b"\xff\x52")
    layers = payload[: at + 6] + b"\xff\xff" + payload[at + 8 :]
    with pytest.raises(iac.CodecError, match="more packets than"):
        CLASSIC.decode(layers)
    large = struct.pack(">8I", 1 << 13, 1 << 13, 0, 0, 1 << 13, 1 << 13, 0, 0)
    blocks = payload[:8] + large + payload[40 : at + 10] + b"\0\0" + payload[at + 12 :]
    with pytest.raises(iac.CodecError, match="far more code-blocks than"):
        CLASSIC.decode(blocks)


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]):
    damaged = bytearray(HT.encode(image(64, 64, 3, 12, "noise")))
    for at in range(200, len(damaged) - 20, 97):
        changed = bytearray(damaged)
        changed[at] ^= 0x15
        with contextlib.suppress(iac.CodecError):
            HT.decode(bytes(changed))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "name", [name for name in STREAMS if name.startswith("ht-") and name != "ht-tiles"]
)
def test_bytes_that_a_tile_part_never_has_are_errors(name: str):
    """The libraries' decoders end the process over some of them."""
    payload = STREAMS[name]
    for at in range(payload.index(b"\xff\x93") + 2, len(payload) - 3):
        changed = bytearray(payload)
        changed[at : at + 2] = b"\xff\x90"
        with pytest.raises(iac.CodecError, match="jpeg2000: "):
            HT.decode(bytes(changed))


def test_threads_do_not_disturb_each_other():
    payloads = []
    for i, payload in enumerate(list(STREAMS.values()) * 8):
        changed = bytearray(payload)
        if i % 3 == 0:
            changed[payload.index(b"\xff\x93") + 5] ^= 0x3C
        payloads.append(bytes(changed))
    serial = HT.decode_many_contiguous(payloads, 1, on_error="null")
    parallel = HT.decode_many_contiguous(payloads, 4, on_error="null")
    assert 0 < len(serial.errors) < len(payloads)
    assert [str(error) for error in serial.errors] == [str(error) for error in parallel.errors]
    for one, other in zip(serial, parallel, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert_same(one, other)


def test_codestreams_of_luminance_and_colour_differences():
    random = np.random.default_rng(2)
    rgb = random.integers(60, 190, (40, 50, 3)).astype(np.uint8)
    red, green, blue = np.moveaxis(rgb.astype(float), 2, 0)
    y = 0.299 * red + 0.587 * green + 0.114 * blue
    planes = np.stack([y, 128 + (blue - y) / 1.772, 128 + (red - y) / 1.402], axis=2)
    payload = Codec.create("jpeg2000").encode(planes.round().astype(np.uint8))
    codec = Codec.create("jpeg2000", encoded_color_space="YCbCr")
    assert np.abs(codec.decode(payload).astype(int) - rgb).max() <= 2
    assert codec.parameters()["encoded_color_space"] == "YCbCr"
    assert "encoded_color_space" not in Codec.create("jpeg2000").parameters()
    np.testing.assert_array_equal(
        Codec.create("jpeg2000", encoded_color_space="RGB").decode(payload),
        Codec.create("jpeg2000").decode(payload),
    )
    gray = Codec.create("jpeg2000").encode(rgb[:, :, 0])
    np.testing.assert_array_equal(codec.decode(gray), rgb[:, :, 0])
    with pytest.raises(ValueError, match="for decoding only"):
        codec.encode(rgb)
    with pytest.raises(ValueError, match="encoded_color_space"):
        Codec.create("jpeg2000", encoded_color_space="HSV")
