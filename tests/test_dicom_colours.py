"""Compressed colours (PS3.3 C.7.6.3.1.2): through every door what pydicom makes of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
from dicom_doors import DOORS, Case, array_of
from dicom_packs import column, rewritten
from dicoms import BUNDLED, build, encapsulated, file_of, pack_of, read, slice_of
from jpegs import JFIF, adobe, gradient, noise, with_front, with_ids, without
from packs import replaced
from pydicom.dataset import Dataset
from pydicom.encaps import generate_frames
from pydicom.pixels import apply_modality_lut, convert_color_space
from test_jpegls import planar

import iac_query as iac

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:pydicom")

JPEG, JPEG_LOSSLESS = "1.2.840.10008.1.2.4.50", "1.2.840.10008.1.2.4.70"
JPEG_LS, JPEG_LS_NEAR = "1.2.840.10008.1.2.4.80", "1.2.840.10008.1.2.4.81"
JPEG_2000, JPEG_2000_LOSSY = "1.2.840.10008.1.2.4.90", "1.2.840.10008.1.2.4.91"
HTJ2K, HTJ2K_LOSSY = "1.2.840.10008.1.2.4.201", "1.2.840.10008.1.2.4.203"

YBR = noise((11, 14, 3))


def encoded(name: str, array: np.ndarray = YBR, **params: object) -> bytes:
    return iac.Codec.create(name, **params).encode(array)


def lossless_jpeg(array: np.ndarray = YBR) -> bytes:
    """One that does not say that its components are RGB."""
    return with_ids(without(encoded("jpeg", array, lossless=True), 0xE0, 0xEE), b"\1\2\3")


def bundled(name: str) -> bytes:
    return next(generate_frames(read(BUNDLED / "test_files" / name).PixelData, number_of_frames=1))


def coloured(
    syntax: str, frame: bytes, array: np.ndarray = YBR, space: str = "YBR_FULL", **elements: object
) -> Dataset:
    """A slice of a frame, which ``array`` has the shape and dtype of."""
    ds = slice_of(pixels=array, PhotometricInterpretation=space, **elements)
    return encapsulated(ds, syntax, [frame])


def rgb(ybr: np.ndarray) -> np.ndarray:
    return convert_color_space(ybr, "YBR_FULL", "RGB")


BY_LINE = bundled("SC_rgb_jls_lossy_line.dcm")
LINES = imagecodecs.jpegls_decode(BY_LINE)
NEAR = encoded("jpegls", near_lossless=3)
LOSSY_2000 = imagecodecs.jpeg2k_encode(YBR, level=30, codecformat="j2k", mct=False)

#: The dataset of each, and its pixels.
CASES: dict[str, tuple[Callable[[], Dataset], np.ndarray]] = {
    "JPEG-LS by sample": (lambda: coloured(JPEG_LS, encoded("jpegls")), rgb(YBR)),
    "JPEG-LS by line": (lambda: coloured(JPEG_LS_NEAR, BY_LINE, LINES), rgb(LINES)),
    "JPEG-LS in planes": (lambda: coloured(JPEG_LS, planar(YBR)), rgb(YBR)),
    "JPEG-LS near-lossless": (
        lambda: coloured(JPEG_LS_NEAR, NEAR),
        rgb(imagecodecs.jpegls_decode(NEAR)),
    ),
    "JPEG-LS of RGB": (lambda: coloured(JPEG_LS, encoded("jpegls"), space="RGB"), YBR),
    "JPEG 2000": (lambda: coloured(JPEG_2000, encoded("jpeg2000")), rgb(YBR)),
    "JPEG 2000, lossy": (
        lambda: coloured(JPEG_2000_LOSSY, LOSSY_2000),
        rgb(imagecodecs.jpeg2k_decode(LOSSY_2000)),
    ),
    "JPEG 2000 of RGB": (lambda: coloured(JPEG_2000, encoded("jpeg2000"), space="RGB"), YBR),
    "JPEG 2000, YBR_RCT": (lambda: coloured(JPEG_2000, encoded("jpeg2000"), space="YBR_RCT"), YBR),
    "JPEG 2000, YBR_ICT": (
        lambda: coloured(JPEG_2000_LOSSY, LOSSY_2000, space="YBR_ICT"),
        imagecodecs.jpeg2k_decode(LOSSY_2000),
    ),
    "HTJ2K": (lambda: coloured(HTJ2K, encoded("jpeg2000", profile="ht")), rgb(YBR)),
    "HTJ2K, unconstrained": (
        lambda: coloured(HTJ2K_LOSSY, encoded("jpeg2000", profile="ht")),
        rgb(YBR),
    ),
    "HTJ2K, YBR_RCT": (
        lambda: coloured(HTJ2K, encoded("jpeg2000", profile="ht"), space="YBR_RCT"),
        YBR,
    ),
    "JPEG without loss": (lambda: coloured(JPEG_LOSSLESS, lossless_jpeg()), rgb(YBR)),
    "JPEG without loss, named RGB": (
        lambda: coloured(JPEG_LOSSLESS, with_ids(lossless_jpeg(), b"RGB")),
        YBR,
    ),
    "JPEG 2000 of 7 bits": (
        lambda: coloured(JPEG_2000, encoded("jpeg2000"), BitsStored=7),
        rgb(YBR),
    ),
    "JPEG without loss of 7 bits": (
        lambda: coloured(JPEG_LOSSLESS, lossless_jpeg(), BitsStored=7),
        rgb(YBR & 127),
    ),
    "JPEG-LS, YBR_FULL_422": (
        lambda: coloured(JPEG_LS, encoded("jpegls"), space="YBR_FULL_422"),
        rgb(YBR),
    ),
    "JPEG 2000, in planes once": (
        lambda: coloured(JPEG_2000, encoded("jpeg2000"), PlanarConfiguration=1),
        rgb(YBR),
    ),
    "JPEG-LS, one pixel": (
        lambda: coloured(JPEG_LS, encoded("jpegls", YBR[:1, :1]), YBR[:1, :1]),
        rgb(YBR[:1, :1]),
    ),
}


@pytest.fixture(scope="module")
def case(tmp_path_factory) -> Case:
    encodings = {name: make for name, (make, _) in CASES.items()}
    return Case(tmp_path_factory.mktemp("colours") / "x.iac", encodings)


@pytest.fixture(scope="module", params=DOORS)
def arrays(request, case: Case) -> list[np.ndarray]:
    """What a door gives of all rows."""
    return DOORS[request.param](case)


@pytest.mark.parametrize("name", CASES)
def test_pixels(case: Case, arrays: list[np.ndarray], name: str):
    found, expected = arrays[case.row_of[name]], CASES[name][1]
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("JPEG 2000")])
def test_pydicom_alone_has_the_same_pixels(case: Case, name: str):
    """It decodes JPEG 2000 with Pillow, whose samples it takes for planes where those were once."""
    ds = case.slices[name]
    ds.PlanarConfiguration = 0
    np.testing.assert_array_equal(ds.pixel_array, CASES[name][1])


def test_modality_values(case: Case):
    found = column(case.con, case.path, "iac_hu(record)")
    for name, (_, expected) in CASES.items():
        values = apply_modality_lut(expected, case.slices[name]).astype(np.float32)
        assert np.array_equal(found[case.row_of[name]]["data"], values.reshape(-1)), name


def test_files_come_back(case: Case):
    for name, file in case.files.items():
        assert case.reader.read_dicom(case.row_of[name]) == file, name


@pytest.mark.parametrize("storage", ["jxl", "original"])
@pytest.mark.parametrize(
    ("syntax", "name", "params"),
    [
        (JPEG_LS, "jpegls", {}),
        (JPEG_2000, "jpeg2000", {}),
        (HTJ2K, "jpeg2000", {"profile": "ht"}),
    ],
)
def test_more_than_8_bits_are_no_colours_for_pydicom(tmp_path: Path, syntax, name, params, storage):
    """PS3.3 C.7.6.3.1.2 gives the equations of 8 bits only."""
    deep = YBR.astype(np.uint16) * 257
    ds = coloured(syntax, encoded(name, deep, **params), deep)
    result = build(tmp_path / "x.iac", ds, slice_of(1), storage=storage)
    (failure,) = result.failures
    assert "dtype 'uint16' for color space conversion, must be 'uint8'" in str(failure.error)


# JPEG with loss: what its markers and the dataset say


PICTURE = gradient(16, 24, 3)


def lossy_jpeg(space: str) -> bytes:
    """One that does not say in which space its components are."""
    stream = imagecodecs.jpeg8_encode(PICTURE, 95, colorspace="RGB", outcolorspace=space)
    return with_ids(without(stream, 0xE0, 0xEE), b"\1\2\3")


LOSSY = {space: lossy_jpeg(space) for space in ("RGB", "YCBCR")}
MARKERS: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda stream: stream,
    "Adobe, not transformed": lambda stream: with_front(stream, adobe(0)),
    "Adobe, transformed": lambda stream: with_front(stream, adobe(1)),
    "JFIF": lambda stream: with_front(stream, JFIF),
    "rgb": lambda stream: with_ids(stream, b"rgb"),
}


@pytest.mark.parametrize("space", ["RGB", "YBR_FULL", "YBR_FULL_422"])
@pytest.mark.parametrize("markers", MARKERS)
@pytest.mark.parametrize("stored", LOSSY)
def test_lossy_jpeg(tmp_path: Path, stored: str, markers: str, space: str):
    file = file_of(coloured(JPEG, MARKERS[markers](LOSSY[stored]), PICTURE, space))
    expected = read(file).pixel_array
    if markers == "Adobe, transformed" and space != "RGB":
        # Pillow has converted these, and pydicom does it once more.
        expected = read(file_of(coloured(JPEG, LOSSY[stored], PICTURE, space))).pixel_array
    assert_everywhere(tmp_path, file, expected[None])


@pytest.mark.parametrize("space", ["RGB", "YBR_FULL", "YBR_FULL_422"])
@pytest.mark.parametrize("markers", MARKERS)
def test_frames_after_the_first(tmp_path: Path, markers: str, space: str):
    stream = MARKERS[markers](LOSSY["YCBCR"])
    ds = slice_of(pixels=PICTURE, PhotometricInterpretation=space, NumberOfFrames=3)
    one = pack_of(tmp_path / "one.iac", coloured(JPEG, stream, PICTURE, space))
    file = file_of(encapsulated(ds, JPEG, [stream] * 3))
    assert_everywhere(tmp_path, file, np.stack([one.read_pixel_array(0)] * 3), most=0)


def assert_everywhere(folder: Path, file: bytes, expected: np.ndarray, most: int = 1) -> None:
    """Lossy JPEG is converted in integers, where pydicom has floats."""
    for storage in ("jxl", "original"):
        pack = folder / f"{storage}.iac"
        build(pack, file, strict=True, storage=storage)
        with iac.connect() as con:
            found = [array_of(image) for image in column(con, pack, "iac_image(record)")]
        arrays = pack_of(pack, file, storage=storage).read_pixel_arrays(range(len(expected)))
        assert np.array_equal(found, arrays)
        assert np.abs(np.subtract(found, expected, dtype=int)).max() <= most


def test_what_only_pillow_decodes(tmp_path: Path):
    """Trash before a marker is damage to the core. The reader asks pydicom, other doors do not."""
    stream = LOSSY["YCBCR"]
    file = file_of(coloured(JPEG, stream[:-2] + b"\0" * 40 + stream[-2:], PICTURE))
    pack = pack_of(tmp_path / "x.iac", file, storage="original")
    assert pack.instance_table["codec_id"].to_pylist() == [3]
    expected = read(file).pixel_array
    assert np.array_equal(pack.read_pixel_array(0), expected)
    report: list[iac.RecordFailure] = []
    (found,) = pack.read_pixel_arrays([0], on_error="null", report=report)
    assert np.array_equal(found, expected) and report == []
    assert np.array_equal(pack.read_tensor([0, 0])[1], expected)
    reason = r"x\.iac: row 0: jpeg: "
    with iac.VariableRecordPack(tmp_path / "x.iac") as plain:
        pytest.raises(iac.CodecError, plain.read, 0).match(reason)


# Damage


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("rows", 12, "jpegls: record is an image of 11x14x3 uint8, the index table says 12x14x3"),
        ("samples_per_pixel", 1, "pixels of YBR_FULL are 11x14 uint8"),
        ("source_transfer_syntax", JPEG_2000, "jpeg2000: "),
        ("photometric_interpretation", "RGB", r"codec_id 3 \(none\) is a frame as it stood"),
    ],
)
def test_rows_that_contradict_their_frame(con, tmp_path: Path, name: str, value, reason: str):
    build(tmp_path / "good.iac", coloured(JPEG_LS, encoded("jpegls")), storage="original")
    pack = rewritten(tmp_path / "good.iac", tmp_path / "x.iac", index=replaced(name, 0, value))
    with pytest.raises(Exception, match=rf"x\.iac: row 0: {reason}"):
        column(con, pack, "iac_image(record)")
    with iac.VariableRecordPack(pack) as plain, pytest.raises(iac.PackError, match=reason):
        plain.read(0)
