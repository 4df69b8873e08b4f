"""JPEG streams that others wrote: precisions, colours, tables kept apart, damage."""

import warnings
from pathlib import Path

import imagecodecs
import jpegs
import numpy as np
import pydicom
import pytest
from iatro import iac as peer
from jpegs import JFIF, adobe, gradient, noise
from packs import write_pack
from pydicom.encaps import generate_frames

import iac_query as iac
from iac_query import Codec, CodecError

pytestmark = pytest.mark.asan

JPEG = Codec.create("jpeg")
COLOURS = Codec.create("jpeg", subsampling="444").encode(gradient(16, 16, 3))
PLAIN = jpegs.without(COLOURS, 0xE0)  # neither JFIF nor Adobe
LOSSLESS = Codec.create("jpeg", lossless=True).encode(gradient(16, 16, 3))


def difference(image: np.ndarray, expected: np.ndarray) -> int:
    assert (image.dtype, image.shape) == (expected.dtype, expected.shape)
    return int(np.abs(image.astype(int) - expected).max())


def assert_damaged(payload: bytes, message: str = "", codec: Codec = JPEG) -> None:
    with pytest.raises(CodecError, match=f"jpeg: .*{message}"):
        codec.decode(payload)


# Precisions and processes


@pytest.mark.parametrize("bits", range(2, 17))
@pytest.mark.parametrize("shape", [(19, 23), (19, 23, 3)])
def test_lossless_of_every_precision_is_not_scaled(bits, shape):
    image = noise(shape, bits)
    payload = imagecodecs.jpeg_encode(image, lossless=True, bitspersample=bits)
    assert difference(JPEG.decode(payload), image) == 0


@pytest.mark.parametrize("predictor", range(1, 8))
def test_lossless_with_every_predictor(predictor):
    for image in (noise((19, 23, 3)), noise((19, 23), 15)):
        payload = imagecodecs.jpeg_encode(image, lossless=True, predictor=predictor)
        assert difference(JPEG.decode(payload), image) == 0


@pytest.mark.parametrize("shape", [(1, 1), (19, 23), (64, 80), (1, 5, 3), (37, 43, 3)])
def test_12_bits_with_loss_are_not_scaled(shape):
    for image in (noise(shape, 12), gradient(*shape, dtype=np.uint16) >> 4):
        payload = imagecodecs.jpeg_encode(image, 90, bitspersample=12)
        assert difference(JPEG.decode(payload), imagecodecs.jpeg_decode(payload)) == 0
        assert difference(JPEG.decode(payload), peer.Codec.create("jpeg").decode(payload)) == 0


@pytest.mark.parametrize("subsampling", ["444", "422", "420", "411", "440"])
@pytest.mark.parametrize("size", [(1, 1), (5, 3), (37, 43)])
def test_subsampling(subsampling, size):
    image = noise((*size, 3))
    payload = imagecodecs.jpeg8_encode(image, 90, subsampling=subsampling)
    assert difference(JPEG.decode(payload), imagecodecs.jpeg_decode(payload)) == 0


@pytest.mark.parametrize("path", jpegs.STREAMS, ids=lambda path: path.stem)
def test_restarts_scans_transforms_and_arithmetic_coding(path):
    payload = path.read_bytes()
    assert difference(JPEG.decode(payload), imagecodecs.jpeg_decode(payload)) == 0


# Colours


@pytest.mark.parametrize(
    ("front", "ids", "params", "is_rgb"),
    [
        (JFIF, b"\1\2\3", {}, False),
        (JFIF, b"RGB", {}, False),
        (JFIF + adobe(0), b"\1\2\3", {}, False),
        (JFIF, b"\1\2\3", {"encoded_color_space": "RGB"}, False),
        (b"", b"\1\2\3", {}, False),
        (b"", b"\0\1\2", {}, False),
        (b"", b"RGB", {}, True),
        (adobe(0), b"\1\2\3", {}, True),
        (adobe(1), b"RGB", {}, False),
        (b"", b"\1\2\3", {"encoded_color_space": "RGB"}, True),
        (adobe(1), b"\1\2\3", {"encoded_color_space": "RGB"}, True),
        (b"", b"RGB", {"encoded_color_space": "YCbCr"}, False),
        (adobe(0), b"RGB", {"encoded_color_space": "YCbCr"}, False),
        (adobe(0), b"\1\2\3", {"tables_base64": None}, False),
    ],
)
def test_the_colour_rule(front, ids, params, is_rgb):
    payload = jpegs.with_front(jpegs.with_ids(PLAIN, ids), front)
    image = Codec.create("jpeg", **params).decode(payload)
    assert difference(image, peer.Codec.create("jpeg", **params).decode(payload)) == 0
    # Samples as they are, which is what they are converted from.
    raw = Codec.create("jpeg", encoded_color_space="RGB").decode(PLAIN)
    assert (difference(image, raw) == 0) == is_rgb


@pytest.mark.parametrize("front", [b"", JFIF, adobe(0), adobe(1)])
@pytest.mark.parametrize("ids", [b"RGB", b"\1\2\3", b"\0\1\2"])
def test_lossless_samples_are_not_converted(front, ids):
    payload = jpegs.with_front(jpegs.with_ids(jpegs.without(LOSSLESS, 0xEE), ids), front)
    assert difference(JPEG.decode(payload), gradient(16, 16, 3)) == 0
    rgb = Codec.create("jpeg", encoded_color_space="RGB")
    assert difference(rgb.decode(payload), gradient(16, 16, 3)) == 0
    ycbcr = Codec.create("jpeg", encoded_color_space="YCbCr")
    assert_damaged(payload, "lossless YCbCr images are not converted", ycbcr)


@pytest.mark.parametrize(("channels", "message"), [(4, "CMYK"), (2, "2 components")])
def test_other_numbers_of_components_are_errors(channels, message):
    assert_damaged(imagecodecs.jpeg_encode(noise((9, 9, channels))), message)


def test_a_packs_header_says_the_colours_whatever_else_it_holds(tmp_path):
    params = {"encoded_color_space": "RGB", "tables_base64": None, "source_compression": "JPEG"}
    path = write_pack(tmp_path / "rgb.iac", [PLAIN], codec="jpeg", codec_params=params)
    with iac.VariableRecordPack(path) as pack:
        image = pack.codec.decode(PLAIN)
    assert difference(image, JPEG.decode(jpegs.with_front(PLAIN, adobe(0)))) == 0


# Tables kept apart


@pytest.mark.parametrize("with_ends", [True, False])
def test_tables_are_spliced_in(with_ends):
    tables = jpegs.tables_of(COLOURS)
    if not with_ends:
        raw = jpegs.base64.b64decode(tables)[2:-2]
        tables = jpegs.base64.b64encode(raw).decode()
    short = jpegs.without(COLOURS, 0xDB, 0xC4, 0xE0)
    codec = Codec.create("jpeg", tables_base64=tables)
    assert difference(codec.decode(short), JPEG.decode(COLOURS)) == 0
    rgb = Codec.create("jpeg", tables_base64=tables, encoded_color_space="RGB")
    assert difference(rgb.decode(short), JPEG.decode(jpegs.with_front(PLAIN, adobe(0)))) == 0
    # A stream's own tables go before those that were kept apart.
    whole = Codec.create("jpeg", quality=30, subsampling="444").encode(gradient(16, 16, 3))
    assert difference(codec.decode(whole), JPEG.decode(whole)) == 0
    assert Codec.create("jpeg", **codec.parameters()).decode(short).shape == (16, 16, 3)


def test_tables_for_lossless_and_12_bits():
    for stream in (LOSSLESS, imagecodecs.jpeg_encode(noise((16, 16), 12), 90, bitspersample=12)):
        codec = Codec.create(
            "jpeg", tables_base64=jpegs.tables_of(stream), encoded_color_space="RGB"
        )
        image = codec.decode(jpegs.without(stream, 0xDB, 0xC4))
        assert difference(image, JPEG.decode(stream)) == 0


@pytest.mark.parametrize("markers", [(0xDB, 0xC4), (0xDB,)])
def test_an_abbreviated_stream_without_tables_is_an_error(markers):
    assert_damaged(jpegs.without(COLOURS, *markers), "[Tt]able .* was not defined")
    assert_damaged(jpegs.without(LOSSLESS, 0xC4), "[Tt]able .* was not defined")


# Markers


def test_what_does_not_belong_to_the_image_is_passed_over():
    front = jpegs.segment(0xE1, b"Exif\0\0" + COLOURS) + jpegs.segment(0xE2, b"ICC_PROFILE\0" * 9)
    front += (
        jpegs.segment(0xFE, b"a comment") + b"\xff\xff\xff" + jpegs.segment(0xE0, b"JFXX\0")[1:]
    )
    expected = JPEG.decode(COLOURS)
    payload = jpegs.with_front(COLOURS, front)
    assert difference(JPEG.decode(payload), expected) == 0
    for behind in (b"junk", COLOURS, b"\0", b"\xff"):
        assert difference(JPEG.decode(payload + behind), expected) == 0
    assert difference(JPEG.decode(payload[:-2] + b"\xff\xff\xff\xd9"), expected) == 0


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"\0" + COLOURS, "not a JPEG stream"),
        (b"\xff", "not a JPEG stream"),
        (COLOURS[:2] + b"\xff\xd9", "no image"),
        (jpegs.with_front(COLOURS, b"\xff\xd8"), "out of place"),
        (jpegs.without(COLOURS, 0xC0), "no frame header"),
        (jpegs.with_front(COLOURS, b"\xff\xfe\0\1"), "wrong length"),
        (jpegs.with_front(COLOURS, b"\xff\xfe\xff\xff"), "cut"),
        (jpegs.with_front(COLOURS, dict(jpegs.split(COLOURS))[0xC0]), "two frames"),
        (COLOURS[:-2] + dict(jpegs.split(COLOURS))[0xC0] + b"\xff\xd9", "two frames"),
        (jpegs.with_frame(COLOURS, height=0), "DNL"),
        (jpegs.with_frame(COLOURS, width=0), "no pixels"),
        (jpegs.with_frame(COLOURS, height=65501), "more than 65500"),
        (jpegs.with_frame(COLOURS, height=65500, width=65500), "more pixels than"),
        (jpegs.with_frame(LOSSLESS, height=4000, width=4000), "more pixels than"),
        (jpegs.with_frame(COLOURS, precision=10), "precision of 10"),
        (jpegs.with_frame(LOSSLESS, precision=17), "precision of 17"),
        (jpegs.with_frame(LOSSLESS, precision=1), "precision of 1"),
        (jpegs.with_frame(COLOURS, 0xC5), "SOF5 is not supported"),
        (jpegs.with_frame(COLOURS, 0xCB), "SOF11 is not supported"),
        (jpegs.with_frame(COLOURS, 0xF7), "JPEG-LS"),
        (jpegs.with_ids(COLOURS, b"\1\1\1"), "two components are the same"),
        (COLOURS[:-2], "cut"),
        (COLOURS[:-2] + jpegs.segment(0xDC, b"\0\x08") + b"\xff\xd9", "changes the height"),
        (jpegs.with_front(PLAIN, adobe(5)), "Adobe"),
        (b"\xff\xd8\xff\xf7\0\x0b\x08\0\1\0\1\1\1\x11\0\xff\xd9", "JPEG-LS"),
    ],
)
def test_damage_is_named(payload, message):
    assert_damaged(payload, message)


def test_a_dnl_that_says_the_same_is_passed_over():
    payload = COLOURS[:-2] + jpegs.segment(0xDC, b"\0\x10") + b"\xff\xd9"
    assert difference(JPEG.decode(payload), JPEG.decode(COLOURS)) == 0


def test_scans_are_counted_and_complete():
    alone = next(path for path in jpegs.STREAMS if path.stem == "alone").read_bytes()
    starts = [at for at in range(len(alone)) if alone[at : at + 2] == b"\xff\xda"]
    last = alone[starts[2] : -2]
    assert len(starts) == 3
    assert_damaged(alone[: starts[2]] + b"\xff\xd9", "a component has no scan")
    assert_damaged(alone[:-2] + last + b"\xff\xd9", "in a scan twice")
    # Scans that are nearly free to write, and of which each costs a pass over the image.
    progressive = Codec.create("jpeg", progressive=True).encode(np.zeros((64, 64), np.uint8))
    start = progressive.index(b"\xff\xc4\0\x14")  # of what follows the scan of DC coefficients
    front = progressive[: start + 22]
    scans = [
        jpegs.segment(0xDA, bytes([1, 1, 0, band, band, bits])) + b"\1"
        for bits in (0x01, 0x10)
        for band in range(1, 64)
    ]
    assert_damaged(front + b"".join(scans) + b"\xff\xd9", "more than 100 scans")
    assert_damaged(front + scans[0] * 2 + b"\xff\xd9", "not in order")
    assert_damaged(front + scans[-1] + b"\xff\xd9", "not in order")


# Damage


SMALL = [
    Codec.create("jpeg").encode(gradient(9, 10, 3)),
    Codec.create("jpeg", progressive=True).encode(gradient(9, 10)),
    LOSSLESS,
    Codec.create("jpeg", lossless=True).encode(gradient(9, 10, dtype=np.uint16)),
    imagecodecs.jpeg_encode(gradient(9, 10, dtype=np.uint16) >> 4, 90, bitspersample=12),
]


@pytest.mark.parametrize("payload", SMALL, ids=["baseline", "progressive", "l8", "l16", "12"])
def test_truncations_are_errors(payload):
    for size in range(len(payload)):
        with pytest.raises(CodecError):
            JPEG.decode(payload[:size])


@pytest.mark.parametrize("payload", SMALL, ids=["baseline", "progressive", "l8", "l16", "12"])
def test_mutations_are_errors_or_images(payload, capfd):
    random = np.random.default_rng(len(payload))
    for _ in range(400):
        damaged = bytearray(payload)
        for _ in range(random.integers(1, 4)):
            damaged[random.integers(len(damaged))] = random.integers(256)
        try:
            JPEG.decode(bytes(damaged), max_samples=1 << 22)
        except CodecError as error:
            assert "jpeg: " in str(error) or "samples" in str(error)
    assert capfd.readouterr() == ("", "")


# Images of medical devices


def frames_of_dicom() -> list:
    """Every JPEG frame among pydicom's own test files."""
    found = []
    for path in sorted((Path(pydicom.__file__).parent / "data").rglob("*.dcm")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                dataset = pydicom.dcmread(path)
            except Exception:  # some are broken on purpose
                continue
            syntax = getattr(getattr(dataset, "file_meta", None), "TransferSyntaxUID", None)
            if syntax not in JPEG_SYNTAXES or "PixelData" not in dataset:
                continue
            count = int(dataset.get("NumberOfFrames", 1) or 1)
            for at, frame in enumerate(generate_frames(dataset.PixelData, number_of_frames=count)):
                found.append(pytest.param(dataset, at, frame, id=f"{path.stem}-{at}"))
    return found


JPEG_SYNTAXES = {f"1.2.840.10008.1.2.4.{number}" for number in (50, 51, 53, 55, 57, 70)}
FRAMES = frames_of_dicom()


def test_there_are_dicom_files_of_each_kind():
    syntaxes = {frame.values[0].file_meta.TransferSyntaxUID[-2:] for frame in FRAMES}
    assert syntaxes >= {"50", "51", "70"}
    assert len(FRAMES) >= 46


@pytest.mark.parametrize(("dataset", "at", "frame"), FRAMES)
def test_dicom_frames(dataset, at, frame):
    image = JPEG.decode(frame)
    assert image.shape[:2] == (dataset.Rows, dataset.Columns)
    assert difference(image, imagecodecs.jpeg_decode(frame)) == 0
