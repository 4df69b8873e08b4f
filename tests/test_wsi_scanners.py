"""Files as scanners of several makers write them: the slide that OpenSlide sees, or refused."""

import struct

import numpy as np
import openslide
import pytest
import tifffile
from iac_query.adapters.wsi import SourceError, WsiImageReader
from scanner_files import restarting_jpeg, write_bif, write_ndpi, write_scn
from slides import (
    assert_same_rectangles,
    assert_same_regions,
    build,
    openslide_regions,
    tissue,
    write_tiff,
)

PIXELS = tissue(256, 192)
MACRO = tissue(80, 40)


def refused(source, match: str, **options) -> None:
    with pytest.raises(SourceError, match=match) as raised:
        build(source, lossless=True, **options)
    assert str(raised.value).startswith(str(source))
    assert not source.with_suffix(".iac").exists()


def facts_of(path) -> dict:
    with WsiImageReader(path) as reader:
        assert reader.native_mpp == (0.5, 0.5)
        return reader.scanner_metadata


def test_ndpi(tmp_path):
    source = write_ndpi(tmp_path / "s.ndpi", PIXELS, MACRO)
    with openslide.OpenSlide(source) as slide, tifffile.TiffFile(source) as file:
        assert slide.properties["openslide.vendor"] == "hamamatsu"
        assert file.pages[0].jpegheader is not None
        for options in ({"tile_size": 50}, {"backend": "openslide"}):
            path = build(source, lossless=True, **options)
            assert_same_rectangles(path, slide.dimensions, openslide_regions(slide))
        assert_same_regions(build(source, lossless=True), file.pages[0].asarray())
    facts = facts_of(path)
    assert [image["name"] for image in facts["associated_images"]] == ["macro"]
    header = build(source, distance=1.0)  # one stream is no tiles to keep
    assert facts_of(header)["source_storage"]["native_tile_width"] == 32


def test_ndpi_that_is_broken(tmp_path):
    source = write_ndpi(tmp_path / "s.ndpi", PIXELS, MACRO)
    data = source.read_bytes()
    jpeg, starts = restarting_jpeg(PIXELS)
    place = data.index(jpeg)
    third = struct.pack("<2I", *starts[2:4])
    for wrong in (starts[3] + 999_999, 0, 0xFFFFFFFF):
        source.write_bytes(data.replace(third, struct.pack("<2I", starts[2], wrong)))
        refused(source, "tile |no TIFF slide")
    spoilt = bytearray(data)
    spoilt[place + starts[5] : place + starts[6] - 2] = b"\xff" * (starts[6] - 2 - starts[5])
    source.write_bytes(spoilt)
    refused(source, "tile 5, 0 cannot be decoded")
    for end in (place - 100, place + 10, place + starts[9], len(data) - 100):
        source.write_bytes(data[:end])
        refused(source, "tile |no TIFF slide|no images|strip ")


def test_errors_from_inside_a_file_name_it(tmp_path):
    source = write_ndpi(tmp_path / "s.ndpi", PIXELS, MACRO)
    data = bytearray(source.read_bytes())
    place = data.rindex(struct.pack("<HHI", 65426, 4, len(restarting_jpeg(MACRO, 1)[1]))) + 12
    halves = place + 8  # the upper ones of the values of each tag
    assert data[halves:].count(0) == len(data) - halves
    kinds = set()
    for at in range(halves + 1, len(data), 4):
        source.write_bytes(data[:at] + b"\xff" + data[at + 1 :])
        try:
            build(source, lossless=True)
        except SourceError as error:
            assert str(error).startswith(str(source))
            kinds.add(type(error.__cause__))
    assert OSError in kinds
    source.unlink()
    with pytest.raises(FileNotFoundError, match=r"s\.ndpi"):
        build(source)


@pytest.mark.parametrize("tag", [256, 257], ids=["width", "height"])
@pytest.mark.parametrize("kind", ["ndpi", "scn", "bif"])
def test_macros_of_no_pixels(tmp_path, kind, tag):
    source = tmp_path / f"s.{kind}"
    if kind == "ndpi":
        write_ndpi(source, PIXELS, MACRO)
    elif kind == "scn":
        write_scn(source, PIXELS, macro=MACRO)
    else:
        write_bif(source, PIXELS, MACRO)
    with tifffile.TiffFile(source) as file:
        page = next(p for p in file.pages if p.asarray().shape == MACRO.shape)
        place = page.tags[tag].valueoffset
    data = bytearray(source.read_bytes())
    data[place : place + 2] = bytes(2)
    source.write_bytes(data)
    refused(source, r"(macro|label) is of \d+ x \d+ pixels, expected some")


def test_scn(tmp_path):
    source = write_scn(tmp_path / "s.scn", PIXELS, macro=MACRO)
    for options in ({}, {"lossless": True}):
        path = build(source, **options)
        with openslide.OpenSlide(source) as slide:
            # OpenSlide's raster is the whole slide, of which the area is a part.
            corner = [int(slide.properties[f"openslide.bounds-{axis}"]) for axis in "xy"]
            expected = openslide_regions(slide, corner=corner)
            assert_same_rectangles(path, (256, 192), expected, most=2)
    facts = facts_of(path)
    assert facts["source_info"]["tiffslide.objective-power"] == 20
    with WsiImageReader(path) as reader, tifffile.TiffFile(source) as file:
        np.testing.assert_array_equal(reader.read_associated_image("macro"), file.asarray(key=0))


def test_scn_of_several_areas_is_for_openslide(tmp_path):
    source = write_scn(tmp_path / "s.scn", PIXELS, PIXELS[:128, :128], macro=MACRO)
    refused(source, r's\.scn: its raster is of 2 areas, pass backend="openslide"')
    path = build(source, lossless=True, backend="openslide")
    with openslide.OpenSlide(source) as slide:
        assert slide.dimensions == (1600, 800)
        assert_same_rectangles(path, slide.dimensions, openslide_regions(slide))


def test_scn_of_fluorescence_or_without_its_text(tmp_path):
    refused(write_scn(tmp_path / "f.scn", PIXELS, macro=MACRO, channels=3), "planes|no TIFF")
    source = write_scn(tmp_path / "s.scn", PIXELS, macro=MACRO)
    data = source.read_bytes()
    source.write_bytes(data.replace(b"<collection ", b"<collectio< "))
    refused(source, r"no TIFF slide that can be read \(ParseError")


def test_bif(tmp_path):
    source = write_bif(tmp_path / "s.bif", PIXELS, MACRO)
    with openslide.OpenSlide(source) as slide:
        assert slide.properties["openslide.vendor"] == "ventana"
        for options in ({}, {"lossless": True}, {"lossless": True, "backend": "openslide"}):
            path = build(source, **options)
            assert_same_rectangles(path, (256, 192), openslide_regions(slide), most=2)
            facts_of(path)


@pytest.mark.parametrize("suffix", ["bif", "tif"])
@pytest.mark.parametrize("names", [(), (b"ScanOutputManager", b"Label Image")])
def test_bif_of_tiles_that_overlap_is_for_openslide(tmp_path, suffix, names):
    source = write_bif(tmp_path / f"s.{suffix}", PIXELS, MACRO, overlap=5)
    data = source.read_bytes()
    for name in names:  # without which tifffile takes it for any TIFF file
        data = data.replace(name, name[::-1])
    source.write_bytes(data)
    refused(source, r'its raster is of tiles that overlap, pass backend="openslide"')
    path = build(source, lossless=True, backend="openslide")
    with openslide.OpenSlide(source) as slide:
        assert slide.dimensions == (241, 182)
        assert_same_rectangles(path, slide.dimensions, openslide_regions(slide))


def test_bif_that_does_not_say_how_its_tiles_join(tmp_path):
    source = write_bif(tmp_path / "s.bif", PIXELS, MACRO)
    data = source.read_bytes()
    for text, wrong in ((b"<EncodeInfo", b"<EncodeInf<"), (b"OverlapX", b"Overlap?")):
        source.write_bytes(data.replace(text, wrong))
        refused(source, "no TIFF slide that can be read")
    source.write_bytes(data.replace(b"OverlapX", b"OverlapZ"))
    refused(source, "no TIFF slide that can be read")


@pytest.mark.parametrize(("overlaps", "is_read"), [("0 0", True), ("4 2", False)])
def test_trestle(tmp_path, overlaps, is_read):
    source = write_trestle(tmp_path / "s.tif", overlaps)
    with openslide.OpenSlide(source) as slide:
        assert slide.properties["openslide.vendor"] == "trestle"
        path = build(source, lossless=True, backend="openslide")
        assert_same_rectangles(path, slide.dimensions, openslide_regions(slide))
        path.unlink()
        if is_read:
            path = build(source, lossless=True)
            assert_same_rectangles(path, slide.dimensions, openslide_regions(slide), most=2)
        else:
            refused(source, "its raster is of tiles that overlap")


def write_trestle(path, overlaps: str):
    text = f"Background Color=E6E6E6;White Balance=CCC;Objective Power=20;OverlapsXY={overlaps}"
    return write_tiff(
        path,
        PIXELS,
        tile=(64, 64),
        compression="jpeg",
        software="MedScan 1.0",
        description=text,
        metadata=None,
    )
