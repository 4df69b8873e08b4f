"""The JPEG codec: parameters, what it writes and what it reads of others."""

import base64

import imagecodecs
import jpegs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from iatro import iac as peer
from jpegs import gradient, noise

from iac_query import Codec

pytestmark = pytest.mark.asan

JPEG = Codec.create("jpeg")
LOSSLESS = Codec.create("jpeg", lossless=True)
DEFAULTS = {"quality": 90, "lossless": False, "progressive": False, "subsampling": "420"}
SHAPES = [
    (1, 1),
    (1, 9),
    (9, 1),
    (33, 47),
    (64, 64),
    (1, 1, 3),
    (2, 3, 3),
    (17, 31, 3),
    (96, 80, 3),
]


def assert_same(image: np.ndarray, expected: np.ndarray) -> None:
    assert (image.dtype, image.shape) == (expected.dtype, expected.shape)
    assert np.array_equal(image, expected)


# Parameters


@pytest.mark.parametrize(
    ("params", "stored"),
    [
        ({}, {}),
        ({"quality": 1, "subsampling": "444"}, {"quality": 1, "subsampling": "444"}),
        ({"quality": 100, "progressive": True}, {"quality": 100, "progressive": True}),
        ({"lossless": True, "subsampling": "422"}, {"lossless": True, "subsampling": "422"}),
        ({"encoded_color_space": "RGB"}, {"tables_base64": None, "encoded_color_space": "RGB"}),
        ({"tables_base64": None}, {"tables_base64": None, "encoded_color_space": "YCbCr"}),
        (
            {"tables_base64": "/9j/2Q==", "encoded_color_space": "RGB"},
            {"tables_base64": "/9j/2Q==", "encoded_color_space": "RGB"},
        ),
    ],
)
def test_parameters_are_what_the_header_keeps(params, stored):
    codec = Codec.create("jpeg", **params)
    assert (
        codec.parameters() == DEFAULTS | stored == peer.Codec.create("jpeg", **params).parameters()
    )
    assert list(codec.parameters()) == list(peer.Codec.create("jpeg", **params).parameters())


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"quality": 0}, "quality is 0, expected an integer from 1 to 100"),
        ({"quality": 101}, "quality is 101"),
        ({"quality": 90.0}, "quality is 90.0"),
        ({"quality": None}, "quality is null"),
        ({"quality": True}, "quality is true"),
        ({"lossless": 1}, "lossless is 1"),
        ({"lossless": None}, "lossless is null"),
        ({"progressive": "yes"}, "progressive is"),
        ({"lossless": True, "progressive": True}, "progressive images are not lossless"),
        ({"subsampling": "411"}, "subsampling is .*, expected one of 420, 422, 444"),
        ({"subsampling": 420}, "subsampling is 420"),
        ({"encoded_color_space": "rgb"}, "encoded_color_space is"),
        ({"encoded_color_space": None}, "encoded_color_space is null"),
        ({"tables_base64": 1}, "tables_base64 is not a text"),
        ({"tables_base64": "/9j/2Q="}, "tables_base64 is not base64"),
        ({"tables_base64": "===="}, "tables_base64 is not base64"),
        ({"tables_base64": "/9j/2Q=a"}, "tables_base64 is not base64"),
        ({"tables_base64": "/9j!"}, "tables_base64 is not base64"),
        ({"tables_base64": "AAAA"}, "tables_base64 has no JPEG tables"),
        ({"tables_base64": jpegs.tables_of(JPEG.encode(noise((8, 8))))[:80]}, "payload is cut"),
        ({"tables_base64": base64.b64encode(JPEG.encode(noise((8, 8)))).decode()}, "more than"),
        ({"Quality": 90}, "unknown parameter 'Quality'"),
        ({"level": 3}, "unknown parameter 'level'"),
    ],
)
def test_impossible_parameters_are_errors_at_once(params, message):
    with pytest.raises(ValueError, match=message):
        Codec.create("jpeg", **params)


# Writing


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"quality": 1},
        {"quality": 100, "subsampling": "444"},
        {"subsampling": "422"},
        {"progressive": True},
        {"lossless": True},
    ],
)
def test_the_peers_bytes_are_written_and_everyone_reads_the_same(shape, params):
    ours, theirs = Codec.create("jpeg", **params), peer.Codec.create("jpeg", **params)
    for image in (noise(shape), gradient(*shape)):
        payload = ours.encode(image)
        assert payload == theirs.encode(image)
        decoded = ours.decode(payload)
        assert decoded.flags.writeable and decoded.flags.c_contiguous
        assert_same(decoded, imagecodecs.jpeg_decode(payload))
        assert_same(decoded, theirs.decode(payload))
        if params.get("lossless"):
            assert_same(decoded, image)


@pytest.mark.parametrize("shape", [*SHAPES, (300, 1100), (7, 1100, 3)])
def test_16_bit_lossless_is_exact(shape):
    for image in (
        noise(shape, 16),
        gradient(*shape, dtype=np.uint16),
        noise(shape, 1) * np.uint16(65535),
    ):
        image = image.astype(np.uint16)
        payload = LOSSLESS.encode(image)
        assert payload == peer.Codec.create("jpeg", lossless=True).encode(image)
        for read in (LOSSLESS.decode, JPEG.decode, imagecodecs.jpeg_decode):
            assert_same(read(payload), image)


@given(
    st.integers(1, 40),
    st.integers(1, 40),
    st.sampled_from([1, 3]),
    st.integers(1, 16),
    st.integers(),
)
@settings(max_examples=40, deadline=None)
def test_lossless_round_trips(height, width, channels, bits, seed):
    image = noise((height, width, channels), bits, abs(seed))
    assert_same(LOSSLESS.decode(LOSSLESS.encode(image)), image[..., 0] if channels == 1 else image)


def test_every_difference_of_16_bits_is_exact():
    steps = np.arange(65536, dtype=np.uint16)
    pairs = np.stack([np.full(65536, 40000, np.uint16), steps], -1).reshape(256, 512)
    assert_same(LOSSLESS.decode(LOSSLESS.encode(pairs)), pairs)


def test_memory_layout_and_byte_order_do_not_matter():
    image = noise((20, 30, 3), 16)
    payload = LOSSLESS.encode(image)
    assert LOSSLESS.encode(image.astype(">u2")) == payload
    assert LOSSLESS.encode(np.asfortranarray(image)) == payload
    assert LOSSLESS.encode(np.repeat(image, 2, axis=1)[:, ::2]) == payload
    assert LOSSLESS.encode(image[..., :1]) == LOSSLESS.encode(image[..., 0])
    odd = np.frombuffer(b"\0" + image.tobytes(), np.uint8)[1:].view(np.uint16).reshape(image.shape)
    assert LOSSLESS.encode(odd) == payload


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((4, 4), np.uint16),
        np.zeros((4, 4, 2), np.uint8),
        np.zeros((4, 4, 4), np.uint8),
        np.zeros((0, 4), np.uint8),
        np.zeros((4, 4), np.int8),
        np.zeros((4, 4), np.int16),
        np.zeros((4, 4), np.float32),
        np.zeros((4, 4), np.float16),
        np.zeros((4, 4), bool),
        np.zeros(4, np.uint8),
        np.zeros((1, 2, 2, 3), np.uint8),
        np.zeros((65501, 1), np.uint8),
    ],
)
def test_images_that_cannot_be_stored_are_refused(image):
    with pytest.raises((ValueError, TypeError)):
        JPEG.encode(image)
    if image.dtype != np.uint16:
        with pytest.raises((ValueError, TypeError)):
            LOSSLESS.encode(image)


# Batches


def test_a_batch_is_what_each_is_alone_whatever_the_threads():
    payloads = [path.read_bytes() for path in jpegs.STREAMS] * 4
    payloads += [JPEG.encode(noise((60, 70, 3), seed=i)) for i in range(20)]
    payloads += [LOSSLESS.encode(noise((9, 7), 16 if i % 2 else 8, seed=i)) for i in range(20)]
    alone = [JPEG.decode(payload) for payload in payloads]
    for workers in (1, 2, 5):
        for image, expected in zip(JPEG.decode_many(payloads, workers), alone, strict=True):
            assert_same(image, expected)


def test_images_of_16_bits_at_odd_addresses():
    small, large = noise((1, 1)), noise((13, 11, 3), 16)
    payloads = [LOSSLESS.encode(small), LOSSLESS.encode(large)] * 3
    batch = JPEG.decode_many_contiguous(payloads, 1)
    for at, image in enumerate(batch):
        assert_same(np.array(image), large if at % 2 else small)
