"""JPEG XL made elsewhere, or damaged: its own pixels, or an error."""

import hashlib
import itertools

import imagecodecs
import numpy as np
import pytest
from jxl_images import (
    CHANNELS,
    CODESTREAM,
    CONTAINER,
    DTYPES,
    LOSSLESS,
    LOSSY,
    assert_same,
    difference,
    gradient,
    noise,
    peer_codec,
    shaped,
)
from packs import DATA, MANIFEST

import iac_query as iac
from iac_query import Codec, CodecError


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_others_encode_losslessly_decodes_exactly(dtype: str, channels: int):
    for make in (noise, gradient):
        image = make(dtype, *shaped(23, 34, channels))
        assert_same(LOSSY.decode(imagecodecs.jpegxl_encode(image, lossless=True)), image)
        assert_same(LOSSY.decode(peer_codec(lossless=True).encode(image)), image)


@pytest.mark.parametrize("bits", range(1, 17))
def test_every_value_of_every_bit_depth_is_its_own(bits: int):
    """The peer gives the values scaled to 8 or 16 bits."""
    values = np.arange(1 << bits, dtype=np.uint8 if bits <= 8 else np.uint16)
    image = values.reshape(1 << bits // 2, -1)
    payload = imagecodecs.jpegxl_encode(image, lossless=True, bitspersample=bits)
    assert_same(LOSSY.decode(payload), image)
    assert_same(imagecodecs.jpegxl_decode(payload), image)


def test_lossy_images_of_12_bits_stay_in_their_range():
    image = gradient("uint16", 50, 60) >> 4
    payload = imagecodecs.jpegxl_encode(image, distance=0.5, bitspersample=12)
    decoded = LOSSY.decode(payload)
    assert difference(decoded, imagecodecs.jpegxl_decode(payload)) <= 1
    assert decoded.max() <= 4095
    assert difference(decoded, image) < 60


def test_of_an_animation_the_first_frame_is_decoded():
    frames = np.stack([noise("uint8", 20, 24, 3, seed=i) for i in range(3)])
    payload = imagecodecs.jpegxl_encode(frames, lossless=True)
    assert_same(LOSSY.decode(payload), frames[0])


def test_a_transcoded_jpeg_decodes():
    jpeg = imagecodecs.jpeg_encode(gradient("uint8", 40, 48, 3), 92)
    payload = imagecodecs.jpegxl_encode_jpeg(jpeg)
    decoded = LOSSY.decode(payload)
    assert difference(decoded, imagecodecs.jpegxl_decode(payload)) <= 1
    assert difference(decoded, imagecodecs.jpeg_decode(jpeg)) <= 8


def test_more_channels_than_four_are_an_error_that_says_so():
    planes = np.stack([gradient("uint8", 8, 8)] * 3)
    payload = imagecodecs.jpegxl_encode(planes, lossless=True, planar=True)
    with pytest.raises(CodecError, match="jxl: image has"):
        LOSSY.decode(payload)


def seeds() -> list[bytes]:
    image = np.concatenate([gradient("uint8", 24, 26, 3), noise("uint8", 24, 26, 1)], -1)
    return [
        LOSSY.encode(image[..., :3]),
        LOSSLESS.encode(image),
        LOSSLESS.encode(noise("float16", 6, 7)),
        Codec.create("jxl", usecontainer=True).encode(image[..., 0]),
        peer_codec(lossless=True).encode(gradient("uint16", 24, 26)),
        imagecodecs.jpegxl_encode(np.stack([image, image]), lossless=True),
    ]


def test_payloads_cut_anywhere_are_errors():
    *images, animation = seeds()
    for payload in images:
        cut = [payload[:size] for size in range(len(payload))]
        assert len(LOSSY.decode_many_contiguous(cut, on_error="null").errors) == len(cut)
    # The second frame is not needed for the first.
    for size in range(0, len(animation), 5):
        if size < len(animation) * 0.4:
            with pytest.raises(CodecError):
                LOSSY.decode(animation[:size])
        elif size > len(animation) * 0.6:
            assert_same(LOSSY.decode(animation[:size]), LOSSY.decode(animation))


def test_damaged_payloads_are_errors_or_images_without_a_word(capfd: pytest.CaptureFixture):
    random = np.random.default_rng(5)
    failed = 0
    for i, payload in enumerate(itertools.islice(itertools.cycle(seeds()), 400)):
        damaged = bytearray(payload)
        for _ in range(1 + i % 3):
            damaged[random.integers(0, len(damaged))] = random.integers(0, 256)
        try:
            LOSSY.decode(bytes(damaged), max_samples=1 << 20)
        except CodecError:
            failed += 1
    assert failed > 200
    assert capfd.readouterr() == ("", "")


def test_what_follows_the_image_is_passed_over():
    for payload in seeds()[:5]:
        assert_same(LOSSY.decode(payload + b"anything"), LOSSY.decode(payload))
        assert_same(LOSSY.decode(payload + payload), LOSSY.decode(payload))


@pytest.mark.parametrize(
    "payload", [b"", b"\xff", CODESTREAM, CONTAINER, b"\xff\xd8\xff", bytes(99)]
)
def test_what_is_no_jpeg_xl_is_an_error(payload: bytes):
    with pytest.raises(CodecError, match=r"jxl: |empty"):
        LOSSY.decode(payload)


def header(height: int, width: int) -> bytes:
    """The start of a codestream: sizes, then metadata that are all default."""
    fields = [(0, 1), (3, 2), (height - 1, 30), (0, 3), (3, 2), (width - 1, 30), (1, 1), (1, 1)]
    bits = "".join(format(value, f"0{count}b")[::-1] for value, count in fields)
    data = int(bits[::-1], 2).to_bytes(len(bits) // 8 + 1, "little")
    return CODESTREAM + data


def test_sizes_that_a_header_claims_take_no_memory():
    for height, width in [(1 << 30, 1 << 30), (1 << 30, 1), (100_000, 100_000), (20_000, 20_000)]:
        with pytest.raises(CodecError, match=r"jxl: |larger than the limit"):
            LOSSY.decode(header(height, width) + bytes(50))
    with pytest.raises(CodecError, match="image of 20000x20000x3 uint8 is larger"):
        LOSSY.decode(header(20_000, 20_000) + bytes(50))


@pytest.mark.parametrize("name", ["jxl_lossless.iac", "jxl_lossy.iac"])
def test_packs_of_the_peer_decode(name: str):
    lossy = np.load(DATA / "decoded/jxl_lossy.iac.npz") if "lossy" in name else {}
    with iac.PackReader(DATA / name) as reader:
        codec = Codec.create("jxl", **reader.header["codec_params"])
        assert codec.parameters() == reader.header["codec_params"]
        for record in MANIFEST[name]["records"]:
            stored = reader.read_payload(record["row"])
            assert hashlib.sha256(stored).hexdigest() == record["stored_sha256"]
            decoded, expected = codec.decode(stored), record["decoded"]
            assert decoded.dtype == expected["dtype"]
            assert list(decoded.shape) == expected["shape"]
            if "lossless" in name:
                assert hashlib.sha256(decoded.tobytes()).hexdigest() == expected["sha256"]
            else:
                most = 1 if decoded.dtype.kind == "u" else 1e-3
                assert difference(decoded, lossy[f"r{record['row']}"]) <= most
