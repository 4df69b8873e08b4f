"""JPEG-LS: what is stored exactly, what is refused, and other writers' streams."""

import struct

import imagecodecs
import numpy as np
import pydicom
import pydicom.data
import pydicom.encaps
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from iatro import iac as peer

from iac_query import Codec, CodecError

pytestmark = pytest.mark.asan

SHAPES = [(1, 1), (1, 9), (9, 1), (17, 23), (33, 5), (64, 64)]


def image(shape, bits, kind="noise", seed=0):
    """Noise, a gradient, or one value, of so many bits a sample."""
    dtype = np.uint8 if bits <= 8 else np.uint16
    if kind == "noise":
        return np.random.default_rng(seed).integers(0, 1 << bits, shape).astype(dtype)
    if kind == "flat":
        return np.full(shape, (1 << bits) - 1, dtype)
    y, x, *c = np.indices(shape)
    return ((x * 3 + y * 5 + (c[0] * 7 if c else 0)) % (1 << bits)).astype(dtype)


def segments(stream: bytes) -> dict[int, bytes]:
    """The marker segments before the scan's data, and that data with the end marker under 0."""
    found, at = {}, 2
    while True:
        marker, length = struct.unpack_from(">HH", stream, at)
        found[marker] = stream[at + 4 : at + 2 + length]
        at += 2 + length
        if marker == 0xFFDA:
            return {**found, 0: stream[at:]}


def segment(marker: int, content: bytes) -> bytes:
    return struct.pack(">HH", marker, len(content) + 2) + content


def with_segment(stream: bytes, marker: int, content: bytes) -> bytes:
    """The stream with one more segment at its start."""
    return stream[:2] + segment(marker, content) + stream[2:]


def with_size(stream: bytes, height: int, width: int) -> bytes:
    """The stream with another size in its header."""
    at = stream.index(b"\xff\xf7") + 5
    return stream[:at] + struct.pack(">HH", height, width) + stream[at + 4 :]


def test_parameters_are_what_the_header_keeps():
    for given_, stored in [
        ({}, (0, None)),
        ({"near_lossless": 255, "bits_per_sample": 16}, (255, 16)),
        ({"near_lossless": 3, "bits_per_sample": None}, (3, None)),
        ({"bits_per_sample": 2}, (0, 2)),
    ]:
        codec = Codec.create("jpegls", **given_)
        assert codec.parameters() == dict(
            zip(("near_lossless", "bits_per_sample"), stored, strict=True)
        )
        assert codec.parameters() == peer.Codec.create("jpegls", **given_).parameters()


@pytest.mark.parametrize(
    ("key", "values"), [("near_lossless", [-1, 256]), ("bits_per_sample", [-1, 0, 1, 17])]
)
def test_impossible_parameters_are_refused_at_once(key, values):
    for value in [*values, 8.0, "8", True, [8], 1 << 70]:
        with pytest.raises(ValueError, match=f"codec jpegls: {key} is "):
            Codec.create("jpegls", **{key: value})


def test_unknown_parameters_are_refused():
    with pytest.raises(ValueError, match="codec jpegls: unknown parameter 'quality'"):
        Codec.create("jpegls", quality=90)
    with pytest.raises(ValueError, match="near_lossless is null"):
        Codec.create("jpegls", near_lossless=None)


@pytest.mark.parametrize("bits", range(2, 17))
@pytest.mark.parametrize("channels", [None, 1, 3, 4])
def test_lossless_is_exact_at_every_precision(bits, channels):
    codec = Codec.create("jpegls", bits_per_sample=bits)
    for i, side in enumerate(SHAPES):
        for kind in ("noise", "gradient", "flat"):
            shape = side if channels is None else (*side, channels)
            array = image(shape, bits, kind, i)
            payload = codec.encode(array)
            decoded = codec.decode(payload)
            assert decoded.dtype == array.dtype
            assert decoded.flags.writeable
            np.testing.assert_array_equal(decoded, array.squeeze(2) if channels == 1 else array)
            assert segments(payload)[0xFFF7][0] == bits
            assert segments(payload)[0xFFDA][-2] == (2 if channels in (3, 4) else 0)


@settings(max_examples=25)
@given(st.data())
def test_any_image_round_trips(data):
    dtype = data.draw(st.sampled_from([np.uint8, np.uint16]))
    shape = data.draw(st.tuples(st.integers(1, 40), st.integers(1, 40), st.sampled_from([1, 3, 4])))
    near = data.draw(st.sampled_from([0, 0, 1, 7, 127]))
    values = st.integers(0, np.iinfo(dtype).max)
    choice = data.draw(st.lists(values, min_size=1, max_size=9))
    seed = data.draw(st.integers(0, 2**32 - 1))
    array = np.random.default_rng(seed).choice(np.array(choice, dtype), shape)
    codec = Codec.create("jpegls", near_lossless=near)
    decoded = codec.decode(codec.encode(array)).reshape(shape)
    assert np.abs(decoded.astype(int) - array.astype(int)).max() <= near


@pytest.mark.parametrize("shape", [(1100, 1037), (257, 311, 3), (128, 128, 4)])
@pytest.mark.parametrize("bits", [8, 16])
def test_noise_that_cannot_shrink_is_stored(shape, bits):
    codec = Codec.create("jpegls")
    array = image(shape, bits)
    payload = codec.encode(array)
    assert len(payload) > array.nbytes
    np.testing.assert_array_equal(codec.decode(payload), array)


def test_predictions_that_fail_everywhere_are_stored():
    array = np.zeros((64, 64), np.uint16)
    array[32:, ::2] = 65535
    array[32::2] = 65535 - array[32::2]
    codec = Codec.create("jpegls")
    for part in (array, array[30:36, :7], np.array([[0, 65535]], np.uint16)):
        np.testing.assert_array_equal(codec.decode(codec.encode(part)), part)


@pytest.mark.parametrize("shape", [(1, 70_000), (70_000, 1)])
def test_sides_above_16_bits(shape):
    codec = Codec.create("jpegls")
    array = image(shape, 8)
    np.testing.assert_array_equal(codec.decode(codec.encode(array)), array)


def test_other_byte_orders_and_layouts_are_converted():
    codec = Codec.create("jpegls")
    array = image((31, 17, 3), 16)
    expected = codec.encode(array)
    assert codec.encode(array.astype(">u2")) == expected
    assert codec.encode(np.asfortranarray(array)) == expected
    assert codec.encode(np.repeat(array, 2, axis=1)[:, ::2]) == expected
    odd = np.frombuffer(b"\0" + array.tobytes(), np.uint8)[1:].view(np.uint16)
    assert codec.encode(odd.reshape(array.shape)) == expected


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (np.zeros((4, 4), np.int16), "images are uint8 or uint16, not int16"),
        (np.zeros((4, 4), np.float32), "images are uint8 or uint16, not float32"),
        (np.zeros((4, 4), np.float16), "images are uint8 or uint16, not float16"),
        (np.zeros((4, 4, 2), np.uint8), "1, 3 or 4 channels, not 2"),
        (np.zeros((4, 4, 5), np.uint8), "1, 3 or 4 channels, not 5"),
        (np.zeros((0, 4), np.uint8), "no pixels"),
        (np.zeros(4, np.uint8), "2 or 3 dimensions"),
        (np.zeros((4, 4), bool), "bool"),
    ],
)
def test_images_that_the_codec_does_not_have_are_refused(array, reason):
    with pytest.raises(ValueError, match=reason):
        Codec.create("jpegls").encode(array)


def test_values_above_the_precision_are_refused():
    array = image((40, 40), 12, "flat")
    codec = Codec.create("jpegls", bits_per_sample=12)
    codec.encode(array)
    array[39, 39] += 1
    with pytest.raises(ValueError, match="a value is above 4095, the largest of bits_per_sample"):
        codec.encode(array)
    with pytest.raises(ValueError, match="a value is above 7,"):
        Codec.create("jpegls", bits_per_sample=3).encode(image((4, 4), 4, "flat"))


def test_precisions_of_another_type_are_refused():
    with pytest.raises(ValueError, match="bits_per_sample is 9, the image is uint8"):
        Codec.create("jpegls", bits_per_sample=9).encode(image((4, 4), 8))
    with pytest.raises(ValueError, match="bits_per_sample is 8, which decodes to uint8"):
        Codec.create("jpegls", bits_per_sample=8).encode(np.zeros((4, 4), np.uint16))


@pytest.mark.parametrize(("bits", "most"), [(2, 1), (4, 7), (8, 127), (9, 255), (16, 255)])
def test_near_lossless_keeps_its_promise_or_is_refused(bits, most):
    array = image((37, 41, 3), bits)
    for near in {1, most // 2, most} - {0}:
        codec = Codec.create("jpegls", near_lossless=near, bits_per_sample=bits)
        decoded = codec.decode(codec.encode(array))
        assert np.abs(decoded.astype(int) - array.astype(int)).max() <= near
        assert decoded.max() < 1 << bits
    if most < 255:
        codec = Codec.create("jpegls", near_lossless=most + 1, bits_per_sample=bits)
        with pytest.raises(ValueError, match=f"near_lossless is {most + 1}, at most {most} with"):
            codec.encode(array)


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("near", [0, 2])
def test_imagecodecs_and_the_peer_agree(channels, bits, near):
    array = image((45, 38, channels), bits, "gradient").squeeze()
    ours, theirs = (make("jpegls", near_lossless=near) for make in (Codec.create, peer_codec))
    mine, peers = ours.encode(array), theirs.encode(array)
    other = imagecodecs.jpegls_encode(array, level=near)
    for payload in (mine, peers, other):
        decoded = ours.decode(payload)
        assert np.abs(decoded.astype(int) - array.astype(int)).max() <= near
        np.testing.assert_array_equal(imagecodecs.jpegls_decode(payload), decoded)
        np.testing.assert_array_equal(theirs.decode(payload), decoded)


def peer_codec(name, **params):
    return peer.Codec.create(name, **params)


def test_precisions_agree_with_the_peer():
    for bits in range(2, 17):
        array = image((19, 21), bits)
        ours, theirs = (make("jpegls", bits_per_sample=bits) for make in (Codec.create, peer_codec))
        np.testing.assert_array_equal(theirs.decode(ours.encode(array)), array)
        np.testing.assert_array_equal(ours.decode(theirs.encode(array)), array)


# Streams of other writers


@pytest.mark.parametrize(
    "name",
    [
        "MR_small_jpeg_ls_lossless.dcm",
        "JPEGLSNearLossless_08.dcm",
        "JPEGLSNearLossless_16.dcm",
        "SC_rgb_jls_lossy_sample.dcm",
        "SC_rgb_jls_lossy_line.dcm",
    ],
)
def test_dicom_frames(name):
    dataset = pydicom.dcmread(pydicom.data.get_testdata_file(name))
    for frame in pydicom.encaps.generate_frames(dataset.PixelData, number_of_frames=1):
        expected = imagecodecs.jpegls_decode(frame)
        decoded = Codec.create("jpegls").decode(frame)
        assert decoded.dtype == expected.dtype
        np.testing.assert_array_equal(decoded, expected)


def planar(array: np.ndarray, modes: bytes = bytes(5)) -> bytes:
    """A stream of one scan a component, built of the scans of single images."""
    components = array.shape[2]
    streams = [
        imagecodecs.jpegls_encode(np.ascontiguousarray(plane)) for plane in array.T.swapaxes(1, 2)
    ]
    head = segments(streams[0])[0xFFF7][:5] + bytes([components])
    frame = head + b"".join(bytes([i + 1, 0x11, 0]) for i in range(components))
    out = b"\xff\xd8" + segment(0xFFF7, frame)
    for i, stream in enumerate(streams):
        out += segment(0xFFDA, bytes([1, i + 1, 0, 0, modes[i], 0])) + segments(stream)[0][:-2]
    return out + b"\xff\xd9"


@pytest.mark.parametrize("components", [2, 3, 4])
@pytest.mark.parametrize("bits", [8, 16])
def test_planes_come_out_interleaved(components, bits):
    array = image((21, 34, components), bits)
    stream = planar(array)
    codec = Codec.create("jpegls")
    np.testing.assert_array_equal(codec.decode(stream), array)
    for size in range(len(stream) - len(stream) // components, len(stream), 7):
        with pytest.raises(CodecError):
            codec.decode(stream[:size])


def test_more_components_than_an_image_has_are_an_error():
    with pytest.raises(CodecError, match="jpegls: payload has 5 components"):
        Codec.create("jpegls").decode(planar(image((4, 4, 5), 8)))


def test_restart_intervals():
    array = image((22, 30), 8, "gradient")
    strips = [imagecodecs.jpegls_encode(array[i : i + 4]) for i in range(0, 22, 4)]
    frame = b"\x08" + struct.pack(">HH", *array.shape) + b"\x01\x01\x11\x00"
    stream = b"\xff\xd8" + segment(0xFFF7, frame) + segment(0xFFDD, struct.pack(">H", 4))
    stream += segment(0xFFDA, b"\x01\x01\x00\x00\x00\x00")
    for i, strip in enumerate(strips):
        stream += segments(strip)[0][:-2] + bytes([0xFF, 0xD0 + i])
    stream = stream[:-2] + b"\xff\xd9"
    np.testing.assert_array_equal(Codec.create("jpegls").decode(stream), array)
    with pytest.raises(CodecError):
        Codec.create("jpegls").decode(stream.replace(b"\xff\xd1", b"\xff\xd2"))


def test_segments_that_do_not_matter_are_passed_over():
    array = image((11, 12, 3), 8)
    codec = Codec.create("jpegls")
    stream = codec.encode(array)
    spiff = b"SPIFF\0\x02\0\0\x03" + struct.pack(">II", 11, 12) + b"\x0a\x08\x06\x01" + bytes(8)
    directory_end = segment(0xFFE8, struct.pack(">I", 1) + b"\xff\xd8")
    for extra in (
        with_segment(stream, 0xFFFE, b"comment"),
        with_segment(stream, 0xFFE0, b"JFIF\0" + bytes(9)),
        stream[:2] + segment(0xFFE8, spiff) + directory_end + stream[2:],
        stream[:2] + b"\xff\xff" + stream[2:],  # fill bytes before a marker
        stream + b"\0",  # the padding of an odd length
        stream + b"more" * 20,
    ):
        np.testing.assert_array_equal(codec.decode(extra), array)


def test_colour_transforms_are_undone():
    array = image((13, 14, 3), 8, "gradient")
    red, green, blue = np.moveaxis(array, 2, 0).astype(int)
    codec = Codec.create("jpegls")
    transformed = np.stack([red - green + 128, green, blue - green + 128], 2) % 256
    stream = with_segment(codec.encode(transformed.astype(np.uint8)), 0xFFE8, b"mrfx\x01")
    np.testing.assert_array_equal(codec.decode(stream), array)
    for other in (planar(array), codec.encode(array[..., 0]), codec.encode(image((4, 4, 4), 8))):
        with pytest.raises(CodecError, match="colour transform"):
            codec.decode(with_segment(other, 0xFFE8, b"mrfx\x01"))
    with pytest.raises(CodecError):
        codec.decode(with_segment(stream, 0xFFE8, b"mrfx\x05"))


def test_what_charls_does_not_decode_is_told():
    stream = Codec.create("jpegls").encode(image((8, 8), 8))
    table = b"\x02\x01\x01" + bytes(range(256))
    mapped = with_segment(stream, 0xFFF8, table)
    mapped = mapped.replace(b"\xff\xda\x00\x08\x01\x01\x00", b"\xff\xda\x00\x08\x01\x01\x01")
    subsampled = stream.replace(b"\x01\x11\x00\xff\xda", b"\x01\x21\x00\xff\xda")
    for bad in (mapped, subsampled):
        assert bad != stream
        with pytest.raises(CodecError, match="needs what CharLS does not decode: mapping tables"):
            Codec.create("jpegls").decode(bad)


def test_what_charls_would_decode_wrongly_is_an_error():
    codec = Codec.create("jpegls")
    array = image((16, 12, 3), 8)
    # Scans that are interleaved after one that was not would be written behind the image.
    for modes in (b"\0\0\2", b"\0\1\0", b"\0\2\2"):
        with pytest.raises(CodecError, match="its scans are of different kinds"):
            codec.decode(planar(array, modes))
    colour, gray = codec.encode(array), codec.encode(array[..., 0])
    for most, reset in [(0, 0), (255, 64), (0, 64), (255, 0)]:
        usual = b"\1" + struct.pack(">5H", most, 0, 0, 0, reset)
        np.testing.assert_array_equal(codec.decode(with_segment(colour, 0xFFF8, usual)), array)
    other_reset = b"\1" + struct.pack(">5H", 0, 0, 0, 0, 63)
    with pytest.raises(CodecError, match="have a reset value of their own"):
        codec.decode(with_segment(colour, 0xFFF8, other_reset))
    other_range = b"\1" + struct.pack(">5H", 254, 0, 0, 0, 0)
    for stream in (colour, gray):
        with pytest.raises(CodecError, match="largest value is not that of its bits"):
            codec.decode(with_segment(stream, 0xFFF8, other_range))


# Damage

# Sparse bits, behind which the statistics of run mode grow beyond 30 bits.
GROWING = """
    ffd8fff7000b100028002801011100ffda00080101000100000080000820080208000020400000000004000100800010
    108020100200000000000000080004800004200000014000000000220000000001000108800000204008000010800010
    0002040401002000000020000020000000800008008020400002000000d000201004000001"""


def test_statistics_that_grow_end_in_an_error():
    with pytest.raises(CodecError, match="jpegls: payload does not decode"):
        Codec.create("jpegls").decode(bytes.fromhex(GROWING))


@pytest.mark.parametrize("bits", [8, 12, 16])
@pytest.mark.parametrize("shape", [(13, 9), (7, 11, 3), (48, 64)])
@pytest.mark.parametrize("near", [0, 3])
@pytest.mark.parametrize("kind", ["noise", "gradient", "flat"])
def test_payloads_cut_anywhere_are_errors(bits, shape, near, kind):
    codec = Codec.create("jpegls", near_lossless=near, bits_per_sample=bits)
    payload = codec.encode(image(shape, bits, kind))
    for size in range(min(len(payload), 250)):
        with pytest.raises(CodecError, match="jpegls: "):
            codec.decode(payload[:size])
    for size in range(max(0, len(payload) - 100), len(payload)):
        with pytest.raises(CodecError, match="jpegls: "):
            codec.decode(payload[:size])


def test_damage_is_an_error_or_another_image():
    random = np.random.default_rng(5)
    for i in range(400):
        codec = Codec.create("jpegls", near_lossless=i % 3)
        array = image((9 + i % 20, 12, 3) if i % 2 else (25, 6 + i % 31), 8 if i % 5 else 16)
        payload = bytearray(codec.encode(array))
        for _ in range(1 + i % 3):
            payload[random.integers(len(payload))] = random.integers(256)
        try:
            decoded = codec.decode(bytes(payload), max_samples=1 << 20)
        except CodecError as error:
            assert "jpegls: " in str(error) or "samples" in str(error)
        else:
            assert decoded.dtype in (np.uint8, np.uint16)


@pytest.mark.parametrize(
    "junk", [b"", b"\xff", b"\xff\xd8", b"\xff\xd8\xff\xd9", bytes(40), b"x" * 99]
)
def test_junk_is_an_error(junk):
    with pytest.raises(CodecError, match="jpegls: "):
        Codec.create("jpegls").decode(junk)


def test_a_size_that_the_payload_cannot_hold_is_an_error():
    codec = Codec.create("jpegls")
    stream = codec.encode(image((20, 20), 16))
    for height, width in [(65535, 65535), (16383, 16383), (60000, 1)]:
        with pytest.raises(CodecError, match="too short for its image"):
            codec.decode(with_size(stream, height, width))
    for height, width in [(21, 20), (20, 21), (400, 400), (19, 20), (0, 20), (20, 0)]:
        with pytest.raises(CodecError):
            codec.decode(with_size(stream, height, width))


def test_images_above_the_limit_are_refused_before_decoding():
    codec = Codec.create("jpegls")
    payload = codec.encode(np.zeros((100, 100, 3), np.uint8))
    assert codec.decode(payload, max_samples=30_000).shape == (100, 100, 3)
    with pytest.raises(CodecError, match="100x100x3 uint8 is larger than the limit of 29999"):
        codec.decode(payload, max_samples=29_999)


def test_batches_are_decoded_in_parallel_into_one_memory():
    codec = Codec.create("jpegls")
    # Odd sizes of bytes before 16-bit images: those lie at odd addresses.
    arrays = [
        image((5 + i, 7, 3) if i % 4 == 1 else (5 + i, 7), 8 if i % 3 else 16) for i in range(60)
    ]
    payloads = codec.encode_many(arrays, workers=2)
    assert payloads == [codec.encode(array) for array in arrays]
    payloads[7] = payloads[7][:-9]
    batch = codec.decode_many_contiguous(payloads, workers=2, on_error="null")
    assert [failure.position for failure in batch.errors] == [7]
    for i, array in enumerate(arrays):
        if i != 7:
            np.testing.assert_array_equal(batch[i], array)
