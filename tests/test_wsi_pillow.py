"""Slides of the images that Pillow opens: size of pixels, turns, alpha, as large as they are."""

import struct
import zlib

import numpy as np
import pytest
from iac_query.adapters.wsi import SourceError, WsiImageReader
from PIL import Image
from slides import assert_same_regions, build, tissue

PIXELS = tissue(200, 150)
#: Of 0.5 and 1 micrometres, in pixels an inch and a centimetre.
INCH, CENTIMETRE = (50800, 25400), (20000, 10000)


def mpp_of(path) -> tuple[float, float]:
    with WsiImageReader(build(path, lossless=True)) as reader:
        return reader.native_mpp


def does_not_say(path) -> None:
    with pytest.raises(ValueError, match="does not say how large a pixel is"):
        build(path, lossless=True)
    with WsiImageReader(build(path, lossless=True, native_mpp=(2, 3))) as reader:
        assert reader.native_mpp == (2, 3)
        assert reader.scanner_metadata["source_info"].get("dpi", [0, 0]) == [0, 0]


@pytest.mark.parametrize("suffix", ["png", "jpg", "bmp", "tiff"])
def test_pixels_an_inch(tmp_path, suffix):
    path = tmp_path / f"s.{suffix}"
    Image.fromarray(PIXELS).save(path, dpi=INCH)
    assert mpp_of(path) == pytest.approx((0.5, 1), rel=1e-4)


@pytest.mark.parametrize("suffix", ["png", "jpg", "ppm", "webp"])
def test_files_that_do_not_say(tmp_path, suffix):
    path = tmp_path / f"s.{suffix}"
    Image.fromarray(PIXELS).save(path)
    does_not_say(path)


@pytest.mark.parametrize(
    ("unit", "expected"), [(0, None), (1, (1.27, 2.54)), (2, (0.5, 1)), (3, None)]
)
def test_units_of_jfif(tmp_path, unit, expected):
    """ITU-T T.871 10.1: none, inch, centimetre."""
    path = tmp_path / "s.jpg"
    Image.fromarray(PIXELS).save(path, dpi=(72, 72))
    data = bytearray(path.read_bytes())
    at = data.index(b"JFIF\0") + 7
    data[at : at + 5] = struct.pack(">BHH", unit, *CENTIMETRE)
    path.write_bytes(data)
    if expected is None:
        does_not_say(path)
    else:
        assert mpp_of(path) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ({0x011A: 20000.0, 0x011B: 10000.0, 0x0128: 3}, (0.5, 1)),
        ({0x011A: 50800.0, 0x011B: 25400.0, 0x0128: 2}, (0.5, 1)),
        ({0x011A: 50800.0, 0x011B: 25400.0}, (0.5, 1)),
        ({0x011A: 50800.0, 0x011B: 25400.0, 0x0128: 1}, None),
        ({0x011A: 50800.0, 0x0128: 2}, None),
        ({0x011A: 0.0, 0x011B: 0.0, 0x0128: 2}, None),
        ({0x010E: "text"}, None),
    ],
)
def test_units_of_exif(tmp_path, tags, expected):
    """Exif 2.32 4.6.4: inch unless it says centimetre."""
    path = tmp_path / "s.jpg"
    exif = Image.Exif()
    exif.update(tags)
    Image.fromarray(PIXELS).save(path, exif=exif)
    if expected is None:
        does_not_say(path)
    else:
        assert mpp_of(path) == pytest.approx(expected)


def test_images_are_turned_and_laid_on_white(tmp_path):
    path = tmp_path / "s.png"
    alpha = np.dstack([PIXELS, np.full(PIXELS.shape[:2], 255, np.uint8)])
    alpha[:20, :, 3] = 0
    Image.fromarray(alpha).save(path, dpi=(25400, 50800))
    pack = build(path, lossless=True)
    expected = PIXELS.copy()
    expected[:20] = 255
    assert_same_regions(pack, expected)
    assert mpp_of(path) == pytest.approx((1, 0.5), rel=1e-3)
    turned = tmp_path / "t.tiff.png"
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(PIXELS).save(turned, exif=exif, dpi=(25400, 50800))
    assert_same_regions(build(turned, lossless=True), np.rot90(PIXELS, 3))
    assert mpp_of(turned) == pytest.approx((0.5, 1), rel=1e-3)


def test_slides_larger_than_pillow_allows(tmp_path, monkeypatch):
    path = tmp_path / "s.png"
    frames = [Image.fromarray(PIXELS[:50]), Image.fromarray(PIXELS)]
    frames[0].save(tmp_path / "s.gif", save_all=True, append_images=frames[1:])
    frames[1].save(path, dpi=INCH)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    assert_same_regions(build(path, lossless=True), PIXELS)
    build(tmp_path / "s.gif", lossless=True, native_mpp=1)
    path.write_text("no image")
    with pytest.raises(SourceError, match="no image that can be read"):
        build(path, lossless=True)
    assert Image.MAX_IMAGE_PIXELS == 1000


def test_images_that_no_memory_holds(tmp_path):
    path = tmp_path / "s.png"
    Image.fromarray(PIXELS).save(path, dpi=INCH)
    data = bytearray(path.read_bytes())
    data[16:24] = struct.pack(">II", 1 << 30, 1 << 30)  # IHDR: width and height
    data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
    path.write_bytes(data)
    with pytest.raises(SourceError, match=r"s\.png: the image of 1073741824 x 1073741824 pixels"):
        build(path, lossless=True)


def test_the_slide_is_not_replaced_by_its_pack(tmp_path):
    path = tmp_path / "s.png"
    Image.fromarray(PIXELS).save(path, dpi=INCH)
    link = tmp_path / "s.iac"
    link.hardlink_to(path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="is the slide itself"):
        build(path, lossless=True)
    assert path.read_bytes() == link.read_bytes() == before
