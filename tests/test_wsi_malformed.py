"""Sources that are broken, and packs of slides that contradict themselves."""

import numpy as np
import pyarrow as pa
import pytest
import tifffile
from iac_query.adapters.wsi import SourceError, WsiImageReader, build_wsi_image_package
from packs import flip_payload
from PIL import Image
from slides import build, cut_tiles, jpeg2000, tissue, write_svs, write_tiff, write_tiles

import iac_query as iac

PIXELS = tissue(200, 150)


def refused(source, match: str, error=SourceError, **options) -> None:
    """The slide is not built, whatever way, and nothing is left of the attempt."""
    folder = source.parent / "out"
    folder.mkdir(exist_ok=True)
    options = {"slide_id": "s", "lossless": True, "workers": 2, **options}
    with pytest.raises(error, match=match) as raised:
        build_wsi_image_package(source, folder / "x.iac", **options)
    if error is SourceError:
        assert str(raised.value).startswith(str(source))
    assert list(folder.iterdir()) == []


def tag_place(path, name: str) -> int:
    with tifffile.TiffFile(path) as file:
        return file.pages[0].tags[name].valueoffset


@pytest.mark.parametrize("compression", ["none", "jpeg", "lzw", "jpeg2000"])
def test_files_that_end_early(tmp_path, compression):
    source = write_tiff(tmp_path / "s.tif", PIXELS, tile=(64, 64), compression=compression)
    with tifffile.TiffFile(source) as file:
        page = file.pages[0]
        last = page.dataoffsets[-1]
    data = source.read_bytes()
    source.write_bytes(data[: last + 10])
    refused(source, r"tile 3, 2 ends after \d+ of \d+ bytes")
    for number in (1, 4, 9, 60, 200):
        source.write_bytes(data[:number])
        refused(source, "is no TIFF slide|ends after|has no images")


@pytest.mark.parametrize("pixels", [PIXELS, PIXELS[:, :, 0]], ids=["colour", "gray"])
@pytest.mark.parametrize("compression", ["jpeg", "jpeg2000"])
@pytest.mark.parametrize("options", [{"lossless": True}, {"lossless": False}])
def test_tiles_that_end_early(tmp_path, pixels, compression, options):
    source = write_tiff(tmp_path / "s.tif", pixels, tile=(64, 64), compression=compression)
    with tifffile.TiffFile(source) as file:
        page = file.pages[0]
        at, size = page.dataoffsets[5], page.databytecounts[5]
    data = bytearray(source.read_bytes())
    data[at + size // 2 : at + size] = bytes(size - size // 2)
    source.write_bytes(data)
    refused(source, "tile 1, 1 cannot be decoded", **options)


def test_a_directory_with_too_few_tiles(tmp_path):
    source = write_tiff(tmp_path / "s.tif", PIXELS, tile=(64, 64))
    with tifffile.TiffFile(source) as file:
        place = file.pages[0].tags["ImageLength"].valueoffset
    data = bytearray(source.read_bytes())
    data[place : place + 4] = (1000).to_bytes(4, "little")
    source.write_bytes(data)
    refused(source, "directory lists 12 tiles, the raster has 4 x 16|is no TIFF slide")


@pytest.mark.parametrize("options", [{"lossless": True}, {"lossless": False}])
@pytest.mark.parametrize("tag", ["ImageWidth", "ImageLength"])
@pytest.mark.parametrize("layout", [{"tile": (64, 64)}, {"rowsperstrip": 16}])
@pytest.mark.parametrize("compression", ["none", "lzw", "jpeg"])
def test_rasters_of_no_pixels(tmp_path, compression, layout, tag, options):
    source = write_tiff(tmp_path / "s.tif", PIXELS, compression=compression, **layout)
    place = tag_place(source, tag)
    data = bytearray(source.read_bytes())
    data[place : place + 4] = bytes(4)
    source.write_bytes(data)
    refused(source, "a raster of .* pixels|no TIFF slide|has no images", **options)


@pytest.mark.parametrize("offset", [1 << 40, (1 << 63) - 1, (1 << 64) - 1])
def test_tiles_beyond_the_file(tmp_path, offset):
    source = write_tiff(tmp_path / "s.tif", PIXELS, tile=(64, 64), bigtiff=True)
    place = tag_place(source, "TileOffsets") + 5 * 8
    data = bytearray(source.read_bytes())
    data[place : place + 8] = offset.to_bytes(8, "little")
    source.write_bytes(data)
    refused(source, r"tile 1, 1 ends after 0 of \d+ bytes|is no TIFF slide")


def test_tiles_of_another_size(tmp_path):
    tiles = cut_tiles(PIXELS, 64)
    tiles[3] = np.ascontiguousarray(tiles[3][:32])
    source = write_tiles(tmp_path / "s.tif", PIXELS, jpeg2000(tiles), 33005)
    refused(source, r"tile 3, 0 is \(32, 64, 3\)")
    refused(source, r"tile 3, 0 is \(32, 64, 3\)", lossless=False)


def test_what_cannot_be_stored(tmp_path):
    floats = write_tiff(tmp_path / "f.tif", tissue(50, 40, 1).astype(np.float32))
    refused(floats, "float32")
    stack = write_tiff(tmp_path / "stack.tif", np.stack([PIXELS] * 3))
    refused(stack, "3 planes")
    text = tmp_path / "text.png"
    text.write_text("no image")
    refused(text, "no image that can be read")
    path = tmp_path / "unknown.png"
    Image.fromarray(PIXELS).save(path)
    refused(path, "pass native_mpp=", ValueError)
    refused(path, "pass distance=", ValueError, native_mpp=0.5, lossless=False)
    refused(tmp_path / "missing.svs", "missing.svs", FileNotFoundError)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"slide_id": ""}, ValueError, "slide_id is empty"),
        ({"slide_id": None}, TypeError, "slide_id"),
        ({"patient_id": "\ud800"}, ValueError, "patient_id"),
        ({"native_mpp": 0}, ValueError, "native_mpp"),
        ({"native_mpp": (1, 2, 3)}, ValueError, "native_mpp"),
        ({"native_mpp": float("inf")}, ValueError, "native_mpp"),
        ({"lossless": True, "distance": 1.0}, ValueError, "exclude"),
        ({"lossless": 1}, TypeError, "lossless"),
        ({"lossless": False, "distance": 0}, ValueError, "distance is 0"),
        ({"lossless": False, "distance": "1"}, TypeError, "distance"),
        ({"effort": 11}, ValueError, "effort is 11"),
        ({"tile_size": 0}, ValueError, "tile_size"),
        ({"tile_size": 1.5}, TypeError, "tile_size"),
        ({"tile_size": 70000}, ValueError, "tile_size"),
        ({"workers": 0}, ValueError, "workers"),
    ],
)
def test_bad_arguments(tmp_path, options, error, match):
    refused(write_tiff(tmp_path / "s.tif", tissue(20, 20)), match, error, **options)


@pytest.fixture
def slide(tmp_path):
    return build(write_tiff(tmp_path / "s.tif", PIXELS), lossless=True, tile_size=64)


def rewritten(path, header=None, **columns) -> None:
    """The pack with other header fields, or other columns of the index."""
    with iac.PackReader(path) as pack:
        index, slides, fields = pack.index_table, pack.slide_table, dict(pack.header)
        payloads = pack.read_payloads(range(len(pack)))
    for name, change in columns.items():
        values = index[name].to_pylist()
        place = index.schema.get_field_index(name)
        values = pa.array(change(values), index.schema.field(name).type)
        index = index.set_column(place, name, values)
    fields.update(header or {})
    fields = {key: value for key, value in fields.items() if value != "gone"}
    iac.build_pack(path, fields, slides, index, payloads, overwrite=True)


def replaced(row: int, value):
    return lambda values: [*values[:row], value, *values[row + 1 :]]


@pytest.mark.parametrize(
    ("header", "columns", "match"),
    [
        ({"payload_type": "image_tiles"}, {}, "is a pack of 'image_tiles'"),
        ({"wsi_schema_version": 3}, {}, "wsi_schema_version is 3"),
        ({"wsi_schema_version": True}, {}, "wsi_schema_version is True"),
        ({"samples_per_pixel": 3.0}, {}, "pixels of 3.0 samples"),
        ({"samples_per_pixel": [3]}, {}, "pixels of"),
        ({"width": "gone"}, {}, "has no 'width'"),
        ({"width": 0}, {}, "width is 0"),
        ({"width": True}, {}, "width is True"),
        ({"width": 300}, {}, "grid_width"),
        ({"tile_width": 1 << 20}, {}, "tiles of"),
        ({"width": 1 << 31, "height": 1 << 31, "tile_width": 1, "tile_height": 1}, {}, "raster of"),
        ({"native_mpp_x": float(0)}, {}, "native_mpp_x"),
        ({"native_mpp_x": "0.5"}, {}, "native_mpp_x is '0.5'"),
        ({"native_mpp_x": True}, {}, "native_mpp_x is True"),
        ({"grid_width": None}, {}, "grid_width"),
        ({"raster_codec": []}, {}, "header is wrong"),
        ({"pixel_dtype": "uint16"}, {}, "samples of uint16"),
        ({"background_rgb": [0, 0, 256]}, {}, "background"),
        ({"background_rgb": [0, 0]}, {}, "background"),
        ({"background_rgb": ["0", "0", "0"]}, {}, "background"),
        ({"background_rgb": [0, 0, 0.5]}, {}, "background"),
        ({"background_rgb": {"r": 0, "g": 0, "b": 0}}, {}, "background"),
        ({"background_rgb": 7}, {}, "background"),
        ({"raster_codec": "zstd"}, {}, "raster_codec"),
        ({}, {"kind": replaced(2, 9)}, "row 2: kind is 9"),
        ({}, {"tile_x": replaced(2, 9)}, "row 2: the tile lies outside"),
        ({}, {"tile_x": replaced(2, None)}, "row 2: the tile lies outside"),
        ({}, {"tile_x": replaced(1, 0), "tile_y": replaced(1, 0)}, "the tile has the place of"),
        ({}, {"valid_width": replaced(0, 63)}, "row 0: the tile has another valid size"),
        ({}, {"codec_id": replaced(1, 3)}, "row 1: the tile is of another codec"),
        ({}, {"kind": lambda v: [0 if k == 1 else k for k in v]}, "the tile"),
        ({}, {"name": lambda v: ["x" if n else n for n in v]}, "not the only one"),
        ({}, {"kind": lambda v: [4 if k == 1 else k for k in v]}, "profile|no scanner"),
    ],
)
def test_packs_that_contradict_themselves(slide, header, columns, match):
    rewritten(slide, header, **columns)
    with pytest.raises(iac.PackError, match=match) as raised:
        WsiImageReader(slide)
    assert str(slide) in str(raised.value)


def test_packs_without_a_slide(slide, tmp_path):
    with iac.PackReader(slide) as pack:
        table = pack.slide_table.slice(0, 0)
        header, index = pack.header, pack.index_table
        payloads = pack.read_payloads(range(len(pack)))
    iac.build_pack(tmp_path / "n.iac", header, table, index, payloads)
    with pytest.raises(iac.PackError, match="not of one slide"):
        WsiImageReader(tmp_path / "n.iac")


def test_damaged_tiles_are_errors_of_their_regions(slide):
    flip_payload(slide, 1)
    with WsiImageReader(slide) as reader:
        with pytest.raises(iac.ChecksumError) as raised:
            reader.read_native_region(0, 0, 200, 150)
        assert raised.value.row == 1
        with pytest.raises(iac.ChecksumError):
            reader.thumbnail(20)
        reader.read_native_region(0, 70, 60, 60)


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"encoded_color_space": "CMYK"}, "encoded_color_space"),
        ({"encoded_color_space": None}, "encoded_color_space"),
        ({"tables_base64": "?"}, "tables_base64 is not base64"),
        ({"tables_base64": 5}, "tables_base64 is not a text"),
        ({"tables_base64": "AAAA"}, "tables_base64 has no JPEG tables"),
    ],
)
def test_codecs_of_impossible_parameters(tmp_path, params, match):
    pixels = np.full((300, 300, 3), 243, np.uint8)
    path = build(write_tiff(tmp_path / "s.tif", pixels, tile=(64, 64), compression="jpeg"))
    params = {**iac.read_header(path)["raster_codec_params"], **params}
    codecs = [
        {**codec, "params": params} if codec["name"] == "jpeg" else codec
        for codec in iac.read_header(path)["record_codecs"]
    ]
    rewritten(path, {"raster_codec_params": params, "record_codecs": codecs})
    with (
        WsiImageReader(path) as reader,
        pytest.raises(iac.CodecError, match=f"row 0: codec jpeg: {match}") as raised,
    ):
        reader.read_native_region(0, 0, 9, 9)
    assert raised.value.row == 0 and str(path) in str(raised.value)
    assert not iac.validate(path).ok


@pytest.mark.parametrize(
    "pixels", [tissue(41, 30, 1), tissue(41, 30, 3, np.uint16), np.zeros((30, 41, 4), np.uint8)]
)
def test_images_beside_the_raster_that_are_of_another_kind(tmp_path, pixels):
    path = build(write_svs(tmp_path / "s.svs", PIXELS))
    with iac.PackReader(path) as pack:
        payloads = pack.read_payloads(range(len(pack)))
        header, slides, index = pack.header, pack.slide_table, pack.index_table
    row = index["name"].to_pylist().index("label")
    payloads[row] = iac.Codec.create("jxl", lossless=True, effort=1).encode(pixels)
    iac.build_pack(path, header, slides, index, payloads, overwrite=True)
    with (
        WsiImageReader(path) as reader,
        pytest.raises(iac.PackError, match=f"row {row}: the associated image is no RGB") as raised,
    ):
        reader.read_associated_image("label")
    assert str(path) in str(raised.value)


def test_metadata_that_is_none(slide, tmp_path):
    with iac.PackReader(slide) as pack:
        payloads = pack.read_payloads(range(len(pack)))
        header, slides, index = pack.header, pack.slide_table, pack.index_table
    for text in (b"no json", b"[1]", b"\xff", b"[" * 100_000):
        payloads[-1] = iac.Codec.create("zstd").encode(text)
        iac.build_pack(tmp_path / "t.iac", header, slides, index, payloads, overwrite=True)
        with (
            WsiImageReader(tmp_path / "t.iac") as reader,
            pytest.raises(iac.PackError, match="scanner metadata is no JSON"),
        ):
            _ = reader.scanner_metadata
