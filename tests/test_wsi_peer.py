"""Slides and iatro-iac-adapters: each reads the other's packs, and it refuses what is beyond it."""

import numpy as np
import pytest
import slide_dicoms
import tifffile
from iac_query.adapters import wsi
from iatro.iac.adapters import wsi as peer
from iatro.iac.adapters.validate import validate_package
from PIL import Image
from scanner_files import write_mirax
from slide_dicoms import JPEG, image_of
from slides import build, cut_tiles, jpeg2000, tissue, write_svs, write_tiff, write_tiles, ycbcr

import iac_query as iac

PIXELS = tissue(200, 150)
MODES = [
    {"lossless": True, "tile_size": (96, 80)},
    {"distance": 1.0, "effort": 3, "tile_size": 64},
    {},
]


def sources(folder):
    sparse = jpeg2000(cut_tiles(PIXELS, 64))
    sparse[5] = b""
    Image.fromarray(PIXELS).save(folder / "s.png", dpi=(50800, 50800))
    return [
        write_tiff(folder / "plain.tif", PIXELS),
        write_tiff(folder / "jpeg.tif", PIXELS, tile=(64, 48), compression="jpeg"),
        write_svs(folder / "a.svs", PIXELS),
        write_tiles(folder / "j2k.tif", PIXELS, jpeg2000(cut_tiles(PIXELS, 64)), 33005),
        write_tiles(folder / "sparse.tif", PIXELS, sparse, 33005),
        folder / "s.png",
    ]


def regions(path, package, **options):
    """Some regions of a pack as a package reads them."""
    with package.WsiImageReader(path) as reader:
        yield reader.read_native_region(0, 0, *reader.dimensions)
        yield reader.read_region(-3.2, 5, 40, 30, mpp=1.7)
        for name in sorted(reader.associated_image_names):
            yield reader.read_associated_image(name)


@pytest.mark.parametrize("options", MODES)
def test_it_reads_and_validates_our_packs(tmp_path, options):
    for source in sources(tmp_path):
        if source.suffix == ".png" and not options:
            continue  # says nothing of what it lost
        path = build(source, **options)
        result = validate_package(path, max_decode=0, max_crc=0)
        assert result["crc_checked"] == len(iac.PackReader(path))
        pairs = zip(regions(path, wsi), regions(path, peer), strict=True)
        for ours, theirs in pairs:
            assert np.abs(ours.astype(int) - theirs).max() <= 2


def test_it_reads_packs_of_slides_that_it_does_not_open(tmp_path):
    payloads = iac.Codec.create("jpeg", quality=75).encode_many(cut_tiles(PIXELS, 64))
    jpeg = {"payloads": payloads, "syntax": JPEG, "PhotometricInterpretation": "YBR_FULL_422"}
    label = image_of(tissue(41, 30), 1, kind="LABEL")
    for source in (
        slide_dicoms.write(tmp_path / "dicom", image_of(PIXELS, **jpeg), label),
        write_mirax(tmp_path / "slide.mrxs", PIXELS[:128, :192], missing=(1,)),
    ):
        path = build(source, lossless=True)
        result = validate_package(path, max_decode=0, max_crc=0)
        assert result["crc_checked"] == len(iac.PackReader(path))
        for ours, theirs in zip(regions(path, wsi), regions(path, peer), strict=True):
            assert np.abs(ours.astype(int) - theirs).max() <= 1  # means that end in one half


@pytest.mark.parametrize("options", MODES)
def test_we_read_its_packs_and_build_the_same(tmp_path, options):
    for source in sources(tmp_path):
        if (source.suffix == ".png" and not options) or source.name == "sparse.tif":
            continue
        path = tmp_path / "theirs.iac"
        peer.build_wsi_image_package(
            source, path, slide_id="slide-1", overwrite=True, **{"effort": 1, **options}
        )
        ours = build(source, **options)
        for one, other in zip(regions(path, wsi), regions(ours, wsi), strict=True):
            assert np.abs(one.astype(int) - other).max() <= 2
        mine, its = iac.PackReader(ours), iac.PackReader(path)
        layout = ["offset", "length", "crc32"]
        assert mine.slide_table.equals(its.slide_table)
        assert mine.index_table.schema.equals(its.index_table.schema)
        if options:
            one, other = (t.index_table.drop_columns(layout) for t in (mine, its))
            assert one.equals(other)
        varying = {"created_by", "data_length", "raster_profile_selection"}
        assert {k: v for k, v in mine.header.items() if k not in varying} == {
            k: v for k, v in its.header.items() if k not in varying
        }
        with wsi.WsiImageReader(ours) as one, wsi.WsiImageReader(path) as other:
            facts = [reader.scanner_metadata for reader in (one, other)]
            for fact in facts:  # depends on what else was asked of the file
                for name in [n for n in fact["source_info"] if n.startswith("tiffslide.level")]:
                    del fact["source_info"][name]
            assert facts[0] == facts[1]


def test_it_refuses_what_is_beyond_it(tmp_path):
    gray = write_tiff(tmp_path / "gray.tif", tissue(90, 70, 1))
    deep = write_tiff(tmp_path / "deep.tif", tissue(90, 70, 3, np.uint16))
    tiles = jpeg2000(cut_tiles(ycbcr(PIXELS), 64))
    for path in (
        build(gray, lossless=True),
        build(deep, lossless=True),
        build(write_tiles(tmp_path / "y.tif", PIXELS, tiles, 33003)),
    ):
        with pytest.raises(ValueError):
            peer.WsiImageReader(path)
        with pytest.raises(ValueError):
            validate_package(path)
        with wsi.WsiImageReader(path) as reader:
            assert reader.header["wsi_schema_version"] == 2


def test_the_pixels_are_tifffiles(tmp_path):
    for source in sources(tmp_path)[:4]:
        path = build(source, lossless=True)
        with tifffile.TiffFile(source) as file:
            expected = file.pages[0].asarray()
        for found in (next(regions(path, package)) for package in (wsi, peer)):
            assert np.abs(found.astype(int) - expected).max() <= 1
