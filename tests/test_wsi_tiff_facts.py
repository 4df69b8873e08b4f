"""What TIFF files tell beside their raster: size of pixels, profile, images of label and slide."""

import struct

import numpy as np
import pytest
import tifffile
from iac_query.adapters.wsi import SourceError, WsiImageReader
from slides import RESOLUTION, build, tissue, write_svs, write_tiff

import iac_query as iac

PIXELS = tissue(200, 150)


def write_ome(path, *images, **metadata):
    """An OME-TIFF whose first image is the slide."""
    with tifffile.TiffWriter(path, ome=True) as file:
        file.write(PIXELS, photometric="rgb", tile=(64, 64), metadata=metadata)
        for name, pixels in images:
            file.write(pixels, photometric="rgb", metadata={"Name": name})
    return path


def mpp_of(source) -> tuple[float, float]:
    with WsiImageReader(build(source, lossless=True)) as reader:
        return reader.native_mpp


@pytest.mark.parametrize(
    ("unit", "length"), [("µm", 0.25), ("nm", 250), ("mm", 0.00025), ("Å", 2500), (None, 0.25)]
)
def test_ome_says_how_large_pixels_are(tmp_path, unit, length):
    metadata = {"PhysicalSizeX": length, "PhysicalSizeY": 2 * length}
    if unit is not None:
        metadata |= {"PhysicalSizeXUnit": unit, "PhysicalSizeYUnit": unit}
    source = write_ome(tmp_path / "s.ome.tif", **metadata)
    assert mpp_of(source) == pytest.approx((0.25, 0.5))


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"PhysicalSizeX": 0.5},
        {"PhysicalSizeX": 0, "PhysicalSizeY": 0.5},
        {"PhysicalSizeX": 0.5, "PhysicalSizeY": 0.5, "PhysicalSizeYUnit": "pixel"},
    ],
)
def test_ome_that_does_not_say(tmp_path, metadata):
    source = write_ome(tmp_path / "s.ome.tif", **metadata)
    with pytest.raises(ValueError, match="does not say how large a pixel is"):
        build(source, lossless=True)
    assert mpp_of(write_tiff(tmp_path / "s.tif", PIXELS, ome=True, metadata=metadata)) == (0.5, 0.5)


@pytest.mark.parametrize("wrong", [b'SizeX="0,5"', b'SizeX=<0.5"'])
def test_ome_that_is_broken(tmp_path, wrong):
    metadata = {"PhysicalSizeX": 0.5, "PhysicalSizeY": 0.5}
    source = write_ome(tmp_path / "s.ome.tif", **metadata)
    data = source.read_bytes()
    assert data.count(b'PhysicalSizeX="0.5"') == 1
    source.write_bytes(data.replace(b'SizeX="0.5"', wrong))
    with pytest.raises(ValueError, match="does not say how large a pixel is"):
        build(source, lossless=True)
    with WsiImageReader(build(source, lossless=True, native_mpp=2)) as reader:
        np.testing.assert_array_equal(reader.read_native_region(0, 0, 200, 150), PIXELS)


def test_images_of_ome_keep_their_names(tmp_path):
    label, macro = tissue(41, 30), tissue(50, 40)
    images = ("Label", label), ("Macro", macro), ("Macro", macro[::2]), ("Mask", macro * 1.5)
    source = write_ome(tmp_path / "s.ome.tif", *images, PhysicalSizeX=1, PhysicalSizeY=1)
    path = build(source, lossless=True)
    assert iac.validate(path, max_decode=0).findings == ()
    with WsiImageReader(path) as reader:
        assert reader.associated_image_names == ("label", "macro", "macro-2")
        np.testing.assert_array_equal(reader.read_associated_image("label"), label)
        np.testing.assert_array_equal(reader.read_associated_image("macro-2"), macro[::2])
        assert reader.scanner_metadata["associated_images_preserved"] is False  # the mask


@pytest.mark.parametrize("order", [1, -1])
def test_pages_without_a_name_are_left_out(tmp_path, order):
    source = tmp_path / "s.tif"
    with tifffile.TiffWriter(source) as file:
        for pixels in (PIXELS, tissue(41, 30), tissue(50, 40, 1))[::order]:
            photometric = "rgb" if pixels.ndim == 3 else "minisblack"
            file.write(pixels, photometric=photometric, metadata=None, **RESOLUTION)
    path = build(source, lossless=True)
    assert iac.validate(path, max_decode=0).findings == ()
    with WsiImageReader(path) as reader:
        assert reader.dimensions == (200, 150)
        assert reader.associated_image_names == ()
        assert reader.header["associated_images_preserved"] is False


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "lzw", "predictor": True},
        {"compression": "jpeg", "rowsperstrip": 16},
        {"compression": "jpeg", "tile": (32, 32)},
        {"compression": "zlib", "rowsperstrip": 7},
        {"planarconfig": "separate"},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["RGB", "L", "RGBA"])
def test_images_of_many_kinds(tmp_path, kind, options):
    if kind == "RGBA" and options.get("compression") == "jpeg":
        options = {**options, "compression": "zstd"}  # JPEG has no alpha
    label = tissue(90, 70)
    more = {"photometric": "rgb", "metadata": {"Name": "label"}, **options}
    if kind == "L":
        label, more["photometric"] = label[:, :, 0], "minisblack"
    elif kind == "RGBA":
        label = np.dstack([label, np.full((70, 90), 51, np.uint8)])
        more["extrasamples"] = ["unassalpha"]
    planar = "planarconfig" in options and kind != "L"
    source = tmp_path / "s.ome.tif"
    with tifffile.TiffWriter(source, ome=True) as file:
        size = {"PhysicalSizeX": 1, "PhysicalSizeY": 1}
        file.write(PIXELS, photometric="rgb", tile=(64, 64), metadata=size)
        file.write(np.moveaxis(label, 2, 0) if planar else label, **more)
    expected = tifffile.imread(source, series=1)
    expected = np.moveaxis(expected, 0, 2) if planar else expected.reshape(70, 90, -1)
    if kind == "RGBA":
        expected = expected[:, :, :3] * 0.2 + 255 * 0.8
    with WsiImageReader(build(source, lossless=True)) as reader:
        found = reader.read_associated_image("label")
        (entry,) = reader.scanner_metadata["associated_images"]
    assert (found.shape, entry["source_mode"]) == ((70, 90, 3), kind)
    assert entry["alpha_handling"] == ("composited_on_white" if kind == "RGBA" else "none")
    assert np.abs(found - expected.astype(float)).max() <= (2 if "jpeg" in str(options) else 0.5)


def write_damaged(path, page: int, tag: str, value: int) -> None:
    """Another value of the tag in a page's directory."""
    with tifffile.TiffFile(path) as file:
        place = file.pages[page].tags[tag].offset
    data = bytearray(path.read_bytes())
    data[place + 2 : place + 12] = struct.pack("<HII", 4, 1, value)  # one number of 32 bits
    path.write_bytes(data)


@pytest.mark.parametrize(("page", "name"), [(1, "thumbnail"), (3, "label"), (4, "macro")])
@pytest.mark.parametrize(
    ("tag", "value", "match"),
    [
        ("StripOffsets", 1 << 31, "{} cannot be read: "),
        ("StripByteCounts", 99, "{} cannot be read: "),
        ("Compression", 34712, "{} cannot be read: "),
        ("ImageLength", 99, "{} cannot be read: "),
        ("ImageLength", 1 << 31, "its directory lists 1 tiles"),  # larger than the slide
        ("ImageWidth", 0, "{} is of 0 x"),
    ],
)
def test_broken_images_are_errors_that_name_them(tmp_path, page, name, tag, value, match):
    source = write_svs(tmp_path / "s.svs", PIXELS)
    write_damaged(source, page, tag, value)
    with pytest.raises(SourceError, match=match.format(name)) as raised:
        build(source)
    assert str(raised.value).startswith(f"{source}: ")
    assert [path.name for path in tmp_path.iterdir()] == ["s.svs"]


def test_profiles_of_no_bytes(tmp_path):
    source = write_tiff(tmp_path / "s.tif", PIXELS, extratags=[(34675, 4, 1, 4_000_000_000, True)])
    with pytest.raises(SourceError, match="its ICC profile is not of bytes"):
        build(source, lossless=True)
