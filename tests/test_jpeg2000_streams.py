"""JPEG 2000 and HTJ2K of other writers: tiles, markers, colour, medical devices."""

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
from iatro import iac as peer
from jpeg2000 import (
    CLASSIC,
    CODECS,
    HT,
    PROFILES,
    assert_same,
    body,
    box,
    foreign,
    image,
    jp2,
    sampled,
    segments,
    siz,
    tile_part,
)
from pydicom.encaps import generate_frames

import iac_query as iac

pytestmark = pytest.mark.asan

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
    # Bare and in one size, nothing says that it is not RGB.
    expected = np.stack(spread, -1) if bare and step == (1, 1) else rgb_of(*spread)
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
