"""Slides through OpenSlide, and OpenSlide's pixels against those of the other ways in."""

import os
import sys

import numpy as np
import openslide
import pytest
from iac_query.adapters.wsi import SourceError, WsiImageReader
from PIL import Image
from scanner_files import write_mirax
from slides import (
    ICC,
    assert_same_rectangles,
    assert_same_regions,
    build,
    cut_tiles,
    jpeg2000,
    openslide_regions,
    tissue,
    write_svs,
    write_tiff,
    write_tiles,
    ycbcr,
)

PIXELS = tissue(1100, 300)

SOURCES = {
    "svs-jpeg": lambda path: write_svs(path, PIXELS),
    "svs-33003": lambda path: write_svs_tiles(path, ycbcr(PIXELS), 33003),
    "svs-33005": lambda path: write_svs_tiles(path, PIXELS, 33005),
    "tif-jpeg": lambda path: write_tiff(path, PIXELS, tile=(64, 48), compression="jpeg"),
    "tif-lzw": lambda path: write_tiff(path, PIXELS, tile=(64, 64), compression="lzw"),
    "tif-plain": lambda path: write_tiff(path, PIXELS, tile=(128, 128), bigtiff=True),
    "tif-gray": lambda path: write_tiff(path, PIXELS[:, :, 0], tile=(64, 64)),
}


def write_svs_tiles(path, pixels, compression):
    height, width = pixels.shape[:2]
    text = f"Aperio Image Library v12.0.0\r\n{width}x{height} (64x64) J2K|MPP = 0.5"
    tiles = jpeg2000(cut_tiles(pixels, 64))
    return write_tiles(path, pixels, tiles, compression, description=text, metadata=None)


@pytest.mark.parametrize("kind", SOURCES)
def test_openslide_has_the_pixels_of_every_way_in(tmp_path, kind):
    source = SOURCES[kind](tmp_path / f"s.{kind[:3]}")
    with openslide.OpenSlide(source) as slide:
        through = build(source, lossless=True, backend="openslide")
        assert_same_rectangles(through, slide.dimensions, openslide_regions(slide))
        if kind != "tif-gray":  # which is one channel otherwise
            most = 2 if "jpeg" in kind or "33003" in kind else 0
            for options in ({}, {"lossless": True}):
                own = build(source, **options)
                assert_same_rectangles(own, slide.dimensions, openslide_regions(slide), most)


def test_what_openslide_knows_is_kept(tmp_path):
    source = write_svs(tmp_path / "s.svs", PIXELS)
    with WsiImageReader(build(source, lossless=True, backend="openslide")) as reader:
        assert reader.native_mpp == (0.5, 0.5)
        assert reader.icc_profile == ICC
        assert reader.associated_image_names == ("label", "macro", "thumbnail")
        np.testing.assert_array_equal(reader.read_associated_image("label"), tissue(41, 30))
        facts = reader.scanner_metadata
    assert facts["backend"] == "OpenSlide"
    assert facts["source_info"]["openslide.vendor"] == "aperio"
    assert facts["source_info"]["openslide.objective-power"] == "20"


def test_mirax_is_laid_on_the_colour_that_it_names(tmp_path):
    pixels, colour = tissue(256, 192), (10, 200, 30)
    source = write_mirax(tmp_path / "s.mrxs", pixels, missing=(2, 5), colour=colour)
    path = build(source, lossless=True, tile_size=100)
    with openslide.OpenSlide(source) as slide:
        assert_same_rectangles(path, (256, 192), openslide_regions(slide, colour))
    expected = pixels.copy()
    expected[:64, 128:192] = expected[64:128, 64:128] = colour
    assert_same_regions(path, expected)
    with WsiImageReader(path) as reader:
        assert reader.native_mpp == (0.5, 0.25)
        assert reader.scanner_metadata["source_info"]["openslide.vendor"] == "mirax"
    with pytest.raises(ValueError, match=r"s\.mrxs: whether mrxs lost anything is not known"):
        build(source)


def test_what_a_slide_lacks_is_white(tmp_path):
    codec_tiles = [Image.fromarray(tile) for tile in cut_tiles(PIXELS, 64)]
    payloads = []
    for tile in codec_tiles:
        tile.save(tmp_path / "t.jpg", quality=95)
        payloads.append((tmp_path / "t.jpg").read_bytes())
    payloads[20] = b""
    source = write_tiles(tmp_path / "s.tif", PIXELS, payloads, "jpeg", photometric="ycbcr")
    with openslide.OpenSlide(source) as slide:
        place = 20 % 18 * 64, 20 // 18 * 64
        assert np.asarray(slide.read_region(place, 0, (64, 64)))[:, :, 3].max() == 0
        for options in ({"backend": "openslide"}, {}):
            path = build(source, lossless=True, **options)
            assert_same_rectangles(path, slide.dimensions, openslide_regions(slide), most=2)
            with WsiImageReader(path) as reader:
                assert (reader.read_native_region(*place, 64, 64) == 255).all()


def test_slides_that_openslide_does_not_read(tmp_path):
    path = tmp_path / "s.mrxs"
    path.write_bytes(b"no slide")
    with pytest.raises(SourceError, match=r"s\.mrxs: is no slide that OpenSlide reads"):
        build(path, lossless=True)
    with pytest.raises(FileNotFoundError):
        build(tmp_path / "missing.mrxs", lossless=True)
    with pytest.raises(ValueError, match="backend is 'nothing'"):
        build(path, lossless=True, backend="nothing")


def test_properties_without_a_value(tmp_path):
    source = write_svs(tmp_path / "s.svs", PIXELS)
    source.write_bytes(source.read_bytes().replace(b"ScanScope ID", b"ScanScope\xffID"))
    with pytest.raises(SourceError, match=r"s\.svs: OpenSlide cannot read it \(KeyError"):
        build(source, lossless=True, backend="openslide")


def test_broken_regions_are_errors_and_nothing_is_left(tmp_path):
    source = write_tiff(tmp_path / "s.tif", PIXELS, tile=(64, 64), compression="jpeg")
    data = source.read_bytes()
    source.write_bytes(data[: len(data) // 2] + bytes(len(data) - len(data) // 2))
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(SourceError, match=r"s\.tif: (region|OpenSlide|is no slide)"):
        build(source, lossless=True, backend="openslide")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.tif"]
    assert len(os.listdir("/proc/self/fd")) == before


def test_without_openslide_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openslide", None)
    monkeypatch.delitem(sys.modules, "iac_query.adapters.wsi.openslide_source", raising=False)
    source = write_mirax(tmp_path / "s.mrxs", PIXELS)
    with pytest.raises(ImportError, match=r"pip install iac-query\[openslide\]"):
        build(source, lossless=True)
