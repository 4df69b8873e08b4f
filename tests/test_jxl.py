"""JPEG XL as we encode it: exact where it is lossless, and the same for others."""

import itertools

import imagecodecs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jxl_images import (
    CHANNELS,
    CODESTREAM,
    CONTAINER,
    DTYPES,
    LOSSLESS,
    LOSSY,
    Image,
    assert_same,
    difference,
    gradient,
    noise,
    peer_codec,
    shaped,
)

from iac_query import Codec


def test_parameters_have_defaults_and_are_all_in_the_header():
    expected = {"lossless": False, "distance": 1.0, "effort": 7, "usecontainer": None}
    assert LOSSY.parameters() == expected == peer_codec().parameters()
    given = {"lossless": True, "distance": 0, "effort": 1, "usecontainer": False}
    assert Codec.create("jxl", **given).parameters() == given
    nothing = {"distance": None, "effort": None, "usecontainer": None}
    assert Codec.create("jxl", **nothing).parameters() == expected


@pytest.mark.parametrize(
    "params",
    [
        *({"lossless": value} for value in (1, None, "yes")),
        *({"distance": value} for value in (0, -1, 25.5, "1", True, [1], 1e300, -0.0)),
        *({"lossless": True, "distance": value} for value in (-1, 26)),
        *({"effort": value} for value in (0, 11, -1, 7.0, "7", True)),
        *({"usecontainer": value} for value in (0, "no")),
        *({name: 1} for name in ("quality", "mode", "level", "numthreads")),
    ],
    ids=str,
)
def test_parameters_that_cannot_be_are_errors(params: dict):
    with pytest.raises(ValueError, match="codec jxl: .*" + list(params)[-1]):
        Codec.create("jxl", **params)
    with pytest.raises(ValueError, match="Out of range float"):
        Codec.create("jxl", distance=float("nan"))


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_lossless_is_exact_here_and_elsewhere(dtype: str, channels: int):
    for height, width in [(1, 1), (1, 70), (70, 1), (7, 5), (33, 48)]:
        for make in (noise, gradient):
            image = make(dtype, *shaped(height, width, channels))
            payload = LOSSLESS.encode(image)
            assert_same(LOSSY.decode(payload), image)
            assert_same(imagecodecs.jpegxl_decode(payload).reshape(image.shape), image)
            assert_same(peer_codec().decode(payload), image)


@pytest.mark.parametrize("effort", range(1, 11))
def test_lossless_is_exact_with_every_effort(effort: int):
    codec = Codec.create("jxl", lossless=True, effort=effort)
    for dtype in DTYPES:
        for image in (noise(dtype, 21, 30, 3), gradient(dtype, 40, 31), noise(dtype, 9, 9, 2)):
            assert_same(codec.decode(codec.encode(image)), image)


def test_the_least_effort_is_exact_where_libjxl_is_not():
    codec = Codec.create("jxl", lossless=True, effort=1)
    random = np.random.default_rng(7).integers(0, 255, (16, 16, 4), np.uint8, endpoint=True)
    image = np.ascontiguousarray(random[:, :, :3])
    assert_same(codec.decode(codec.encode(image)), image)
    for seed in range(300):
        image = np.random.default_rng(seed).integers(0, 256, (16, 16, 4), np.uint8)
        assert_same(codec.decode(codec.encode(image)), image)


@pytest.mark.parametrize("effort", range(1, 11))
def test_lossy_images_come_near_with_every_effort(effort: int):
    codec = Codec.create("jxl", effort=effort)
    for dtype in DTYPES:
        image = gradient(dtype, 21, 30, 4)
        scale = 1 if dtype.startswith("float") else np.iinfo(dtype).max
        assert difference(codec.decode(codec.encode(image)), image) < 0.1 * scale


@pytest.mark.parametrize(("dtype", "channels"), [("uint8", 3), ("uint16", 1)])
def test_large_images_are_exact(dtype: str, channels: int):
    codec = Codec.create("jxl", lossless=True, effort=1)
    shape = shaped(1100, 1031, channels)
    image = gradient(dtype, *shape) ^ (noise(dtype, *shape) & 7)
    assert_same(codec.decode(codec.encode(image)), image)


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_lossy_images_decode_as_elsewhere(dtype: str, channels: int):
    image = gradient(dtype, *shaped(45, 52, channels))
    most = 1e-3 if dtype.startswith("float") else 1
    for encode in (LOSSY.encode, peer_codec().encode, imagecodecs.jpegxl_encode):
        payload = encode(image)
        decoded = LOSSY.decode(payload)
        assert difference(decoded, peer_codec().decode(payload)) <= most
        assert difference(decoded, imagecodecs.jpegxl_decode(payload)) <= most
    scale = 1 if dtype.startswith("float") else np.iinfo(dtype).max
    assert difference(LOSSY.decode(LOSSY.encode(image)), image) < 0.1 * scale


def test_distance_is_how_much_may_be_lost():
    image = noise("uint8", 64, 64, 3)
    sizes = [len(Codec.create("jxl", distance=d).encode(image)) for d in (0.001, 1, 5, 25)]
    assert sizes == sorted(sizes, reverse=True)


def test_every_half_float_survives():
    halves = np.arange(65536, dtype=np.uint16).view(np.float16).reshape(256, 256)
    for image in (halves, np.stack([halves, halves.T, halves[::-1], halves[:, ::-1]], -1)):
        payload = LOSSLESS.encode(image)
        assert_same(LOSSY.decode(payload), image)
        quiet = np.where(np.isfinite(image), image, 0)
        elsewhere = imagecodecs.jpegxl_decode(payload)
        assert_same(np.where(np.isfinite(image), elsewhere, 0).astype(np.float16), quiet)
    assert_same(LOSSY.decode(peer_codec(lossless=True).encode(halves)), halves)


SPECIAL = [0.0, -0.0, 1e-45, -1e-45, 1.2e-38, np.inf, -np.inf, np.nan, 3.4e38, -3.4e38, -1024, 1]


def test_hounsfield_units_padded_with_nan_are_stored():
    image = np.random.default_rng(0).integers(-1024, 3000, (64, 80)).astype(np.float32)
    image[:, :20] = np.nan
    image[0] = np.inf
    for effort in (1, 3, 7):
        codec = Codec.create("jxl", lossless=True, effort=effort)
        payload = codec.encode(image)
        assert_same(codec.decode(payload), image)
        assert_same(imagecodecs.jpegxl_decode(payload), image)


def test_floats_of_any_bits_are_stored_exactly():
    random = np.random.default_rng(4)
    for i in range(120):
        shape = shaped(*random.integers(1, 12, 2), channels=1 + i % 4)
        image = random.choice(np.array(SPECIAL, np.float32), shape)
        if i % 3 == 0:
            image = random.random(shape, np.float32)
        elif i % 3 == 1:
            image = random.integers(0, 2**32, shape, dtype=np.uint32).view(np.float32)
        codec = Codec.create("jxl", lossless=True, effort=1 + i % 9)
        payload = codec.encode(image)
        assert_same(codec.decode(payload), image)
        assert_same(imagecodecs.jpegxl_decode(payload).reshape(image.shape), image)


@st.composite
def images(draw: st.DrawFn) -> Image:
    dtype = draw(st.sampled_from(DTYPES))
    shape = shaped(draw(st.integers(1, 40)), draw(st.integers(1, 40)), draw(st.integers(1, 4)))
    kind, seed = draw(st.sampled_from(["noise", "gradient", "steps"])), draw(st.integers(0, 99))
    if kind == "gradient":
        return gradient(dtype, *shape)
    image = noise(dtype, *shape, seed=seed)
    return image if kind == "noise" else (image > np.array(0.5, dtype)).astype(dtype)


@given(images(), st.integers(1, 6))
@settings(max_examples=60)
def test_lossless_is_exact_for_any_image(image: Image, effort: int):
    codec = Codec.create("jxl", lossless=True, effort=effort)
    assert_same(codec.decode(codec.encode(image)), image)


def test_byte_order_and_layout_do_not_matter():
    for dtype in DTYPES[1:]:
        image = noise(dtype, 20, 30, 3)
        for other in (image.astype(image.dtype.newbyteorder(">")), np.asfortranarray(image)):
            assert_same(LOSSLESS.decode(LOSSLESS.encode(other)), image)
        parts = image[::2, 5::-1, ::2]
        assert_same(LOSSLESS.decode(LOSSLESS.encode(parts)), np.ascontiguousarray(parts))
    assert LOSSY.decode(LOSSY.encode(noise("uint8", 5, 6, 1))).shape == (5, 6)


@pytest.mark.parametrize(
    "dtype", ["int8", "int16", "bool", "int32", "uint32", "float64", "complex64"]
)
def test_other_dtypes_are_refused(dtype: str):
    for codec in (LOSSY, LOSSLESS):
        with pytest.raises(ValueError, match=dtype):
            codec.encode(np.zeros((4, 4), dtype))


def test_other_shapes_are_refused():
    for shape in [(4,), (1, 2, 3, 4), (0, 4), (4, 0, 3), (4, 4, 0), (4, 4, 5)]:
        with pytest.raises(ValueError):
            LOSSY.encode(np.zeros(shape, np.uint8))


def test_lossy_floats_that_make_no_colour_are_refused():
    for dtype, value in itertools.product(["float16", "float32"], [np.nan, np.inf, -np.inf, 1e5]):
        image = np.full((9, 9), 0.5, dtype)
        with np.errstate(over="ignore"):
            image[8, 8] = value
        with pytest.raises(ValueError, match="lossy encoding takes floats from"):
            LOSSY.encode(image)


def test_the_container_is_used_where_it_is_asked_for_or_needed():
    image, deep = gradient("uint8", 8, 8), gradient("uint16", 8, 8)
    forced = Codec.create("jxl", usecontainer=True)
    assert forced.encode(image).startswith(CONTAINER)
    for setting in (None, False):
        assert Codec.create("jxl", usecontainer=setting).encode(image).startswith(CODESTREAM)
        for lossless in (
            Codec.create("jxl", lossless=True, usecontainer=setting),
            peer_codec(lossless=True, usecontainer=setting),
        ):
            assert lossless.encode(image).startswith(CODESTREAM)
            assert lossless.encode(deep).startswith(CONTAINER)


def test_threads_give_what_one_gives():
    images = [
        make(dtype, *shaped(10 + 7 * i, 50 - 5 * i, channels))
        for i, (make, dtype, channels) in enumerate(
            itertools.islice(
                itertools.cycle(itertools.product((noise, gradient), DTYPES, CHANNELS)), 9
            )
        )
    ] * 5
    payloads = LOSSLESS.encode_many(images, 4)
    assert payloads == LOSSLESS.encode_many(images, 1)
    damaged = [p if i % 4 else p[:-9] for i, p in enumerate(payloads)]
    batch = LOSSLESS.decode_many_contiguous(damaged, 4, on_error="null")
    for i, image in enumerate(images):
        if i % 4:
            assert_same(np.array(batch[i]), image)
        else:
            assert batch[i] is None
