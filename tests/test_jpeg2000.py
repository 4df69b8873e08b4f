"""JPEG 2000 and HTJ2K: exactness, other writers and readers, colour, damage."""

import contextlib
import itertools
import struct
import warnings
from itertools import product
from pathlib import Path

import imagecodecs
import numpy as np
import pydicom
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from iatro import iac as peer
from pydicom.encaps import generate_frames

import iac_query as iac
from iac_query import Codec

PROFILES = ("classic", "ht")
CODECS = {profile: Codec.create("jpeg2000", profile=profile) for profile in PROFILES}
CLASSIC, HT = CODECS["classic"], CODECS["ht"]


def image(height: int, width: int, channels: int, bits: int, kind: str, seed: int = 0):
    random = np.random.default_rng(seed)
    if kind == "noise":
        values = random.integers(0, 1 << bits, (height, width, channels))
    else:
        y, x, c = np.ogrid[:height, :width, :channels]
        values = (37 * y + 11 * x + 5 * c) % (1 << bits)
    array = values.astype(np.uint8 if bits <= 8 else np.uint16)
    return array[..., 0] if channels == 1 else array


def assert_same(actual: np.ndarray, expected: np.ndarray) -> None:
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(actual, expected)


def foreign(array: np.ndarray, **options) -> bytes:
    options = {"level": 0, "codecformat": "j2k", "reversible": True, "mct": False, **options}
    return imagecodecs.jpeg2k_encode(array, **options)


def segments(stream: bytes) -> dict[int, bytes]:
    """The main header's segments, with the offset of the first tile part under 0xFF90."""
    found, at = {}, 2
    while (marker := int.from_bytes(stream[at : at + 2])) != 0xFF90:
        end = at + 2 + int.from_bytes(stream[at + 2 : at + 4])
        found[marker] = stream[at:end]
        at = end
    return found


def body(stream: bytes) -> bytes:
    return stream[stream.index(b"\xff\x93") + 2 : -2]


def siz(size, components, tile=None, offset=(0, 0)) -> bytes:
    """``size`` and ``tile`` as (width, height), a component as (depth, dx, dy)."""
    tile = tile or (size[0] + offset[0], size[1] + offset[1])
    extent = [side + start for side, start in zip(size, offset, strict=True)]
    text = struct.pack(">H8IH", 0, *extent, *offset, *tile, 0, 0, len(components))
    text += b"".join(bytes(component) for component in components)
    return b"\xff\x51" + struct.pack(">H", len(text) + 2) + text


def tile_part(index: int, content: bytes, part: int = 0, parts: int = 1) -> bytes:
    return struct.pack(">HHHIBB", 0xFF90, 10, index, len(content) + 14, part, parts) + (
        b"\xff\x93" + content
    )


def box(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content) + 8) + kind + content


def jp2(stream: bytes, *boxes: bytes, space: int = 16) -> bytes:
    colour = box(b"colr", struct.pack(">BBBI", 1, 0, 0, space))
    width, height = struct.unpack(">2I", stream[8:16])
    image_header = box(b"ihdr", struct.pack(">2IH4B", height, width, stream[41], 7, 7, 0, 0))
    header = box(b"jp2h", image_header + colour + b"".join(boxes))
    start = box(b"jP  ", b"\r\n\x87\n") + box(b"ftyp", b"jp2 \0\0\0\0jp2 ")
    return start + header + box(b"jp2c", stream)


def sampled(planes: list[np.ndarray], steps: list[tuple[int, int]]) -> bytes:
    """One component of each plane, sampled at each (dx, dy)."""
    streams = [foreign(plane, resolutions=1) for plane in planes]
    parts = segments(streams[0])
    height, width = planes[0].shape
    size = (width * steps[0][0], height * steps[0][1])
    header = b"\xff\x4f" + siz(size, [(7, *step) for step in steps])
    header += parts[0xFF52] + parts[0xFF5C]
    return header + tile_part(0, b"".join(map(body, streams))) + b"\xff\xd9"


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


# Other writers


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("bits", range(1, 17))
def test_precisions_and_signs_decode_to_their_own_values(bits: int, signed: bool):
    for channels in (1, 2, 3, 4):
        values = image(21, 17, channels, bits, "noise").astype(np.int32)
        kind = f"{'' if signed else 'u'}int{8 if bits <= 8 else 16}"
        array = (values - (1 << (bits - 1)) if signed else values).astype(kind)
        for options in ({}, {"codecformat": "jp2"}, {"mct": channels == 3}):
            assert_same(CLASSIC.decode(foreign(array, bitspersample=bits, **options)), array)


@pytest.mark.parametrize("resolutions", [0, 1, 3, 6])
@pytest.mark.parametrize("shape", [(5, 9), (12, 14, 3), (16, 300), (64, 40, 4), (100, 97, 3)])
def test_foreign_ht(shape, resolutions: int):
    array = image(*(*shape, 1)[:3], 8, "noise")
    for options in ({}, {"tile": (32, 16)}, {"tlm": True, "tilepart": 3}):
        payload = imagecodecs.htj2k_encode(
            array, reversible=True, resolutions=resolutions, **options
        )
        for codec in CODECS.values():
            assert_same(codec.decode(payload), array)
    payload = imagecodecs.htj2k_encode(array, reversible=False, resolutions=resolutions)
    expected = imagecodecs.jpeg2k_decode(payload)
    assert np.abs(HT.decode(payload).astype(int) - expected).max() <= 1


@pytest.mark.parametrize("shape", [(33, 47), (33, 47, 3), (10, 9, 3), (40, 33, 4)])
@pytest.mark.parametrize("profile", PROFILES)
def test_the_peers_streams(shape, profile: str):
    array = image(*(*shape, 1)[:3], 8, "ramp")
    for lossless in (True, False):
        codec = peer.Codec.create("jpeg2000", profile=profile, lossless=lossless)
        payload = codec.encode(array)
        actual, expected = CODECS[profile].decode(payload), codec.decode(payload)
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        assert np.abs(actual.astype(int) - expected).max() <= (profile == "ht" and not lossless)


def test_a_transform_is_obeyed_but_where_the_peer_claims_it_wrongly():
    array = image(40, 50, 3, 8, "ramp")
    payload = peer.Codec.create("jpeg2000", profile="ht").encode(array)
    assert segments(payload)[0xFF52][8] == 1
    assert_same(HT.decode(payload), array)
    assert_same(CLASSIC.decode(payload), imagecodecs.jpeg2k_decode(payload))
    comment = b"\xff\x64\x00\x06\x00\x01ok"
    at = payload.index(b"\xff\x90")
    marked = payload[:at] + comment + payload[at:]
    assert_same(HT.decode(marked), imagecodecs.jpeg2k_decode(payload))


@pytest.mark.parametrize(("offset", "resolutions"), [((0, 0), 2), ((0, 0), 1), ((5, 3), 1)])
def test_tiles_in_any_order_and_with_an_offset(offset: tuple[int, int], resolutions: int):
    array = image(50, 84, 1, 8, "ramp")
    edges = [
        [0, *(32 - start for start in (shift, shift - 32, shift - 64) if 32 - start < side), side]
        for shift, side in zip(offset, (84, 50), strict=True)
    ]
    spans = [list(itertools.pairwise(edge)) for edge in edges]
    streams = [
        foreign(array[top:bottom, left:right], resolutions=resolutions)
        for (top, bottom), (left, right) in product(spans[1], spans[0])
    ]
    assert len(streams) == 6
    parts = segments(streams[0])
    header = b"\xff\x4f" + siz((84, 50), [(7, 1, 1)], (32, 32), offset)
    header += parts[0xFF52] + parts[0xFF5C]
    tiles = [tile_part(i, body(stream)) for i, stream in enumerate(streams)]
    for order in ((3, 0, 5, 1, 2, 4), range(6)):
        payload = header + b"".join(tiles[i] for i in order) + b"\xff\xd9"
        assert_same(CLASSIC.decode(payload), array)
    with pytest.raises(iac.CodecError, match="a tile is missing"):
        CLASSIC.decode(header + b"".join(tiles[:5]) + b"\xff\xd9")


def test_a_last_tile_part_of_unknown_length():
    array = image(20, 30, 3, 8, "noise")
    for codec in CODECS.values():
        payload = bytearray(codec.encode(array))
        at = payload.index(b"\xff\x90\x00\x0a")
        payload[at + 6 : at + 10] = bytes(4)
        for padding in (b"", b"\0"):
            assert_same(codec.decode(bytes(payload) + padding), array)
        with pytest.raises(iac.CodecError):
            codec.decode(bytes(payload[:-1]))


def test_what_follows_the_end_is_passed_over():
    array = image(20, 30, 3, 8, "noise")
    for codec in CODECS.values():
        assert_same(codec.decode(codec.encode(array) + b"\0"), array)
        assert_same(codec.decode(codec.encode(array) + b"junk"), array)


def dicom_frames():
    syntaxes = {f"1.2.840.10008.1.2.4.{i}" for i in (90, 91, 92, 93, 201, 202, 203)}
    broken = {"JPEG2000-embedded-sequence-delimiter.dcm"}  # no whole codestream
    for path in sorted(Path(pydicom.__file__).parent.joinpath("data").rglob("*.dcm")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with contextlib.suppress(pydicom.errors.InvalidDicomError, AttributeError):
                data = pydicom.dcmread(path)
                if data.file_meta.TransferSyntaxUID in syntaxes and path.name not in broken:
                    count = int(data.get("NumberOfFrames", 1))
                    for frame in generate_frames(data.PixelData, number_of_frames=count):
                        yield pytest.param(frame, id=path.stem)


@pytest.mark.parametrize("frame", list(dicom_frames()))
def test_dicom_frames(frame: bytes):
    assert_same(CLASSIC.decode(frame), imagecodecs.jpeg2k_decode(frame))


# Colour


def rgb_of(y: np.ndarray, cb: np.ndarray, cr: np.ndarray) -> np.ndarray:
    y, cb, cr = (plane.astype(float) for plane in (y, cb - 128.0, cr - 128.0))
    rgb = [y + 1.402 * cr, y - 0.344136 * cb - 0.714136 * cr, y + 1.772 * cb]
    return np.clip(np.rint(np.stack(rgb, -1)), 0, 255)


@pytest.mark.parametrize("step", [(1, 1), (2, 1), (2, 2), (1, 2)])
@pytest.mark.parametrize("bare", [True, False])
def test_sycc_becomes_rgb(step: tuple[int, int], bare: bool):
    random = np.random.default_rng(1)
    shape = (-(-21 // step[1]), -(-18 // step[0]))
    planes = [random.integers(0, 256, s, dtype=np.uint8) for s in ((21, 18), shape, shape)]
    stream = sampled(planes, [(1, 1), step, step])
    spread = [planes[0]] + [
        np.repeat(np.repeat(plane, step[1], 0), step[0], 1)[:21, :18] for plane in planes[1:]
    ]
    if bare and step == (1, 1):
        expected = np.stack(spread, -1)  # nothing says that it is not RGB
    else:
        expected = rgb_of(*spread)
    decoded = CLASSIC.decode(stream if bare else jp2(stream, space=18))
    assert (decoded.dtype, decoded.shape) == (np.uint8, (21, 18, 3))
    assert np.abs(decoded - expected).max() <= 1
    if step != (1, 2):  # which the oracle does not know
        oracle = imagecodecs.jpeg2k_decode(stream if bare else jp2(stream, space=18))
        assert np.abs(decoded.astype(int) - oracle).max() <= 2
    if not bare:  # said to be RGB
        assert_same(CLASSIC.decode(jp2(stream)), np.stack(spread, -1))


def test_sycc_in_ht():
    planes = image(20, 30, 3, 8, "ramp")
    decoded = HT.decode(jp2(HT.encode(planes), space=18))
    assert np.abs(decoded - rgb_of(*np.moveaxis(planes, -1, 0))).max() <= 1


def test_palettes_are_applied():
    index = image(9, 14, 1, 8, "ramp") % 5
    colours = np.random.default_rng(2).integers(0, 256, (5, 3), dtype=np.uint8)
    palette = box(b"pclr", struct.pack(">HB3B", 5, 3, 7, 7, 7) + colours.tobytes())
    mapping = box(b"cmap", b"".join(struct.pack(">HBB", 0, 1, i) for i in range(3)))
    for codec in CODECS.values():
        payload = jp2(codec.encode(index), palette, mapping)
        assert_same(codec.decode(payload), colours[index])
    with pytest.raises(iac.CodecError, match="a palette and its mapping come together"):
        CLASSIC.decode(jp2(CLASSIC.encode(index), palette))
    with pytest.raises(iac.CodecError, match="a palette needs one unsigned component"):
        CLASSIC.decode(jp2(CLASSIC.encode(image(9, 14, 3, 8, "ramp")), palette, mapping))


def test_channels_are_put_in_order():
    array = image(9, 14, 4, 8, "noise")
    places = [(0, 1, 0), (1, 0, 3), (2, 0, 2), (3, 0, 1)]  # alpha, blue, green, red
    definition = box(b"cdef", struct.pack(">H12H", 4, *sum(places, ())))
    assert_same(CLASSIC.decode(jp2(CLASSIC.encode(array), definition)), array[..., ::-1])
    with pytest.raises(iac.CodecError, match="channel definition"):
        CLASSIC.decode(jp2(CLASSIC.encode(array[..., :3].copy()), definition))


def test_other_colour_spaces_are_errors():
    with pytest.raises(iac.CodecError, match="colour space 12 is not supported"):
        CLASSIC.decode(jp2(CLASSIC.encode(image(9, 14, 4, 8, "noise")), space=12))


def test_unlike_components_are_errors():
    payload = CLASSIC.encode(image(9, 14, 3, 8, "noise"))
    for depth in (6, 0x87):
        changed = bytearray(payload)
        changed[42] = depth
        with pytest.raises(iac.CodecError, match="different precision or sign"):
            CLASSIC.decode(bytes(changed))


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
