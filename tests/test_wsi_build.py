"""Building packs of slides: each kind of source against its own pixels, and what is refused."""

import os

import numpy as np
import pytest
import tifffile
from iac_query.adapters.wsi import (
    SourceError,
    WsiImageReader,
    build_wsi_image_package,
    raster,
    sources,
)
from slides import (
    ICC,
    assert_same_regions,
    build,
    cut_tiles,
    jpeg2000,
    tissue,
    with_tiles_far_behind,
    write_svs,
    write_tiff,
    write_tiles,
    ycbcr,
)

import iac_query as iac

PIXELS = tissue(200, 150)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compression": "zlib", "rowsperstrip": 7},
        {"tile": (64, 48), "compression": "lzw"},
        {"tile": (64, 48), "compression": "zlib", "predictor": True},
        {"tile": (16, 16), "compression": "zstd", "bigtiff": True},
        {"tile": (256, 256)},
        {"compression": "jpeg", "rowsperstrip": 40},
        {"tile": (64, 48), "compression": "jpeg", "compressionargs": {"level": 80}},
        {"tile": (64, 48), "compression": "jpeg2000"},
        {"byteorder": ">", "tile": (32, 32)},
        {"ome": True, "tile": (64, 64), "compression": "zlib", "metadata": {"axes": "YXS"}},
    ],
)
def test_tiff_of_many_kinds(tmp_path, options):
    source = write_tiff(tmp_path / "slide.tif", PIXELS, **options)
    path = build(source, lossless=True, tile_size=(96, 80))
    assert_same_regions(path, tifffile.imread(source), most=1 if "jpeg" in str(options) else 0)


@pytest.mark.parametrize("size", [(1, 1), (64, 64), (65, 1), (63, 129)])
@pytest.mark.parametrize("compression", ["none", "jpeg"])
def test_slides_of_few_pixels(tmp_path, size, compression):
    pixels = tissue(*size)
    source = write_tiff(tmp_path / "s.tif", pixels, tile=(64, 64), compression=compression)
    for options in ({"lossless": True, "tile_size": 64}, {}):
        assert_same_regions(build(source, **options), tifffile.imread(source), most=1)


def test_planes_apart(tmp_path):
    planes = np.moveaxis(PIXELS, 2, 0)
    source = write_tiff(tmp_path / "s.tif", planes, planarconfig="separate", tile=(64, 64))
    assert_same_regions(build(source, lossless=True), PIXELS)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("channels", [1, 3])
def test_gray_and_deep_slides(tmp_path, channels, dtype):
    pixels = tissue(130, 70, channels, dtype)
    path = build(write_tiff(tmp_path / "s.tif", pixels, tile=(64, 64)), lossless=True, tile_size=64)
    assert_same_regions(path, pixels)
    version = 1 if (channels, dtype) == (3, np.uint8) else 2
    assert iac.read_header(path)["wsi_schema_version"] == version


@pytest.mark.parametrize(
    "options",
    [
        {"tile": (64, 64), "compression": "jpeg2000"},
        {"tile": (64, 64), "byteorder": ">"},
        {"rowsperstrip": 40, "compression": "zlib", "byteorder": ">"},
    ],
)
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_gray_and_deep_tiles_of_many_kinds(tmp_path, dtype, options):
    source = write_tiff(tmp_path / "s.tif", tissue(130, 70, 1, dtype), **options)
    assert_same_regions(build(source, lossless=True, tile_size=64), tifffile.imread(source))


@pytest.mark.parametrize("options", [{"tile": (64, 64)}, {"rowsperstrip": 40}])
def test_gray_jpeg(tmp_path, options):
    source = write_tiff(tmp_path / "s.tif", tissue(130, 70, 1), compression="jpeg", **options)
    assert_same_regions(build(source, lossless=True), tifffile.imread(source), most=1)


def test_white_is_zero(tmp_path):
    gray = tissue(90, 40, 1)
    source = write_tiff(tmp_path / "s.tif", 255 - gray, photometric="miniswhite")
    assert_same_regions(build(source, lossless=True), gray)


def test_aperio_jpeg_is_kept_as_it_is(tmp_path):
    pixels = np.full((600, 640, 3), 243, np.uint8)
    pixels[100:200, 100:300] = PIXELS[:100, :200]
    source = write_svs(tmp_path / "s.svs", pixels)
    path = build(source)
    with tifffile.TiffFile(source) as file, iac.PackReader(path) as pack:
        page = file.pages[0]
        tables = file.pages[0].jpegtables
        for row, (at, size) in enumerate(zip(page.dataoffsets, page.databytecounts, strict=True)):
            file.filehandle.seek(at)
            assert pack.read_payload(row) == file.filehandle.read(size)
        header = pack.header
        assert (tables is None) == (header["raster_codec_params"]["tables_base64"] is None)
        assert header["raster_profile_selection"]["strategy"] == "native_passthrough_v1"
        assert header["wsi_schema_version"] == 1
        assert_same_regions(path, page.asarray(), most=2)
    with WsiImageReader(path) as reader:
        assert reader.native_mpp == (0.5, 0.5)
        assert reader.icc_profile == ICC
        assert reader.associated_image_names == ("label", "macro", "thumbnail")
        np.testing.assert_array_equal(reader.read_associated_image("macro"), tissue(49, 30))
        facts = reader.scanner_metadata
        assert facts["source_info"]["aperio.ScanScope ID"] == "SS1"
        assert [entry["name"] for entry in facts["associated_images"]] == [
            "label",
            "macro",
            "thumbnail",
        ]


@pytest.mark.parametrize("space", ["rgb", "ycbcr"])
def test_jpeg_tiles_without_markers_have_the_colours_of_the_directory(tmp_path, space):
    imagecodecs = pytest.importorskip("imagecodecs")
    tiles = cut_tiles(PIXELS, 64)
    payloads = [
        imagecodecs.jpeg8_encode(tile, level=95, colorspace="rgb", outcolorspace=space)
        for tile in tiles
    ]
    bare = [b"\xff\xd8" + p[p.index(b"\xff\xdb") :] for p in payloads]  # no APP segments
    source = write_tiles(
        tmp_path / "s.tif",
        PIXELS,
        bare,
        "jpeg",
        photometric=space,
        compressionargs={"outcolorspace": space},
    )
    path = build(source)
    params = iac.read_header(path)["raster_codec_params"]
    assert params["encoded_color_space"] == {"rgb": "RGB", "ycbcr": "YCbCr"}[space]
    assert_same_regions(path, PIXELS, most=60)
    assert_same_regions(path, tifffile.imread(source), most=2)


def test_jpeg_tiles_with_tables_of_their_own(tmp_path):
    imagecodecs = pytest.importorskip("imagecodecs")
    whole = [imagecodecs.jpeg8_encode(tile, level=90) for tile in cut_tiles(PIXELS, 64)]
    tables, bare = split_tables(whole)
    source = write_tiles(
        tmp_path / "s.tif",
        PIXELS,
        bare,
        "jpeg",
        photometric="ycbcr",
        extratags=[(347, 7, len(tables), tables, True)],
    )
    assert_same_regions(build(source), tifffile.imread(source), most=2)
    missing = write_tiles(tmp_path / "m.tif", PIXELS, bare, "jpeg", photometric="ycbcr")
    with pytest.raises(SourceError, match=r"m\.tif: tile 0, 0 cannot be decoded"):
        build(missing)
    assert not missing.with_suffix(".iac").exists()


def split_tables(payloads: list[bytes]) -> tuple[bytes, list[bytes]]:
    """JPEG streams without their tables, and the tables, as TIFF keeps them."""
    bare, tables = [], b""
    for payload in payloads:
        at, kept, tables = 2, b"\xff\xd8", b""
        while payload[at + 1] != 0xDA:
            end = at + 2 + int.from_bytes(payload[at + 2 : at + 4], "big")
            if payload[at + 1] in (0xDB, 0xC4):
                tables += payload[at:end]
            else:
                kept += payload[at:end]
            at = end
        bare.append(kept + payload[at:])
    return b"\xff\xd8" + tables + b"\xff\xd9", bare


@pytest.mark.parametrize("compression", [33003, 33005])
def test_aperio_jpeg_2000(tmp_path, compression):
    stored = ycbcr(PIXELS) if compression == 33003 else PIXELS
    source = write_tiles(tmp_path / "s.tif", PIXELS, jpeg2000(cut_tiles(stored, 64)), compression)
    for options in ({}, {"lossless": True}):
        path = build(source, **options)
        assert_same_regions(path, PIXELS, most=2 if compression == 33003 else 0)
    path = build(source)
    assert iac.read_header(path)["raster_codec"] == "jpeg2000"
    version = iac.read_header(path)["wsi_schema_version"]
    assert version == (2 if compression == 33003 else 1)


def test_one_colour_is_left_out_and_is_the_background(tmp_path):
    pixels = np.full((200, 300, 3), (240, 241, 242), np.uint8)
    pixels[:64, :64] = 7
    pixels[70:90, 150:170] = PIXELS[60:80, 60:80]
    source = write_tiff(tmp_path / "s.tif", pixels)
    path = build(source, lossless=True, tile_size=64)
    header = iac.read_header(path)
    assert header["background_rgb"] == [240, 241, 242]
    assert (header["stored_tile_count"], header["implicit_background_tile_count"]) == (2, 18)
    assert_same_regions(path, pixels)


def test_missing_tiles_are_white(tmp_path):
    tiles = jpeg2000(cut_tiles(PIXELS, 64))
    tiles[5] = b""
    source = write_tiles(tmp_path / "s.tif", PIXELS, tiles, 33005)
    expected = PIXELS.copy()
    expected[64:128, 64:128] = 255
    for options in ({}, {"lossless": True, "tile_size": 64}):
        assert_same_regions(build(source, **options), expected)


def test_slides_above_four_gibibytes(tmp_path):
    source = write_tiff(tmp_path / "s.tif", PIXELS, bigtiff=True, tile=(64, 64))
    assert_same_regions(build(with_tiles_far_behind(source), lossless=True), PIXELS)


def test_the_distance_that_matches_the_source(tmp_path):
    pixels = np.tile(tissue(256, 256), (8, 8, 1))
    payloads = iac.Codec.create("jpeg", quality=99, subsampling="444").encode_many(
        cut_tiles(pixels, 256)
    )
    source = write_tiles(tmp_path / "s.tif", pixels, payloads, "jpeg", 256, photometric="ycbcr")
    data = source.read_bytes()
    source.write_bytes(data + bytes(4 << 20))  # larger than what a pack has beside its tiles
    header = iac.read_header(build(source))
    selection = header["raster_profile_selection"]
    assert selection["strategy"] == "source_matched_v1"
    last = selection["candidate_metrics"][-1]
    assert last["psnr_db"] >= 40
    assert last["distance"] == header["raster_codec_params"]["distance"]


@pytest.mark.parametrize("workers", [1, 2, None])
def test_the_same_slide_gives_the_same_pack(tmp_path, workers):
    source = write_tiff(tmp_path / "s.tif", PIXELS)
    one = build(source, lossless=True, workers=1).read_bytes()
    assert build(source, lossless=True, workers=workers).read_bytes() == one


def test_progress_is_shown_when_asked_for(tmp_path, capsys):
    source = write_tiff(tmp_path / "s.tif", PIXELS)
    build(source, lossless=True)
    assert capsys.readouterr().err == ""
    build(source, lossless=True, show_progress=True)
    assert "tiles" in capsys.readouterr().err


def test_existing_packs_stay(tmp_path):
    source = write_tiff(tmp_path / "s.tif", PIXELS)
    path = build(source, lossless=True)
    before = path.read_bytes()
    with pytest.raises(FileExistsError):
        build_wsi_image_package(source, path, slide_id="s", lossless=True)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "step"),
    [
        ({}, (sources.NativeTiles, "payloads")),
        ({"check": "decode"}, (sources.NativeTiles, "_decoded")),
        ({"levels": (4,)}, (raster._Coarser, "add")),
        ({"lossless": True, "tile_size": 64}, (raster._Encoding, "first")),
        ({"lossless": True, "tile_size": 64}, (raster._Encoding, "second")),
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_interrupted_builds_leave_nothing(tmp_path, monkeypatch, options, step, workers):
    pixels = np.full((300, 300, 3), 243, np.uint8)
    pixels[100:150, 100:150] = PIXELS[50:100, 50:100]
    source = write_tiff(tmp_path / "s.tif", pixels, tile=(64, 64), compression="jpeg")
    old = build(source, **options).read_bytes()
    open_files = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(raster, "_BATCH_TILES", 3)
    calls, whole = [], getattr(*step)

    def interrupted(*args, **more):
        calls.append(step)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return whole(*args, **more)

    monkeypatch.setattr(*step, interrupted)
    with pytest.raises(KeyboardInterrupt):
        build(source, workers=workers, **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.iac", "s.tif"]
    assert source.with_suffix(".iac").read_bytes() == old
    assert len(os.listdir("/proc/self/fd")) == open_files
