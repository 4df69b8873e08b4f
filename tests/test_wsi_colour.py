"""Colours of a slide as its ICC profile means them."""

import numpy as np
import pytest
from iac_query.adapters.wsi import WsiImageReader
from PIL import Image
from slides import ICC, build, tissue, write_tiff

PIXELS = tissue(200, 150)


def swapped_profile() -> bytes:
    """sRGB whose red stands for blue, and blue for red: the tags of their primaries exchanged
    (ICC.1:2022 7.3)."""
    profile = bytearray(ICC)
    red, blue = (profile.index(name, 128) for name in (b"rXYZ", b"bXYZ"))
    profile[red : red + 4], profile[blue : blue + 4] = b"bXYZ", b"rXYZ"
    return bytes(profile)


def slide(tmp_path, profile, **options):
    source = write_tiff(tmp_path / "s.tif", PIXELS, iccprofile=profile)
    return WsiImageReader(build(source, lossless=True, tile_size=64, **options))


def assert_alike(found, expected) -> None:
    assert np.abs(found.astype(int) - expected).max() <= 1


def test_colours_are_those_of_the_profile(tmp_path):
    profile = swapped_profile()
    with slide(tmp_path, profile) as reader:
        assert reader.icc_profile == profile
        place = (-5, 3, 90, 80)
        plain = reader.read_native_region(*place)
        assert_alike(reader.read_native_region(*place, srgb=True), plain[:, :, ::-1])
        assert np.abs(plain.astype(int) - plain[:, :, ::-1]).max() > 50
        plain = reader.read_region(1, 2, 30, 20, mpp=2)
        assert_alike(reader.read_region(1, 2, 30, 20, mpp=2, srgb=True), plain[:, :, ::-1])
        assert_alike(reader.thumbnail(50, srgb=True), reader.thumbnail(50)[:, :, ::-1])
        zoom = reader.deep_zoom()
        assert_alike(zoom.get_tile(6, 0, 0, srgb=True), zoom.get_tile(6, 0, 0)[:, :, ::-1])
        grid = reader.grid(tile_size=20, mpp=2)
        (tiles,), (converted,) = reader.iter_grid(grid), reader.iter_grid(grid, srgb=True)
        assert_alike(converted, tiles[..., ::-1])


def test_colours_of_srgb_stay(tmp_path):
    with slide(tmp_path, ICC) as reader:
        assert_alike(reader.read_native_region(0, 0, 200, 150, srgb=True), PIXELS)


def test_slides_without_a_profile_stay(tmp_path):
    with slide(tmp_path, None) as reader:
        assert reader.icc_profile is None
        np.testing.assert_array_equal(reader.read_native_region(0, 0, 200, 150, srgb=True), PIXELS)


def test_profiles_that_are_none(tmp_path):
    with (
        slide(tmp_path, b"no profile at all" * 9) as reader,
        pytest.raises(ValueError, match="profile cannot be applied"),
    ):
        reader.read_native_region(0, 0, 9, 9, srgb=True)


@pytest.mark.parametrize(("channels", "dtype"), [(1, np.uint8), (3, np.uint16)])
def test_pixels_of_other_kinds_are_not_converted(tmp_path, channels, dtype):
    pixels = tissue(70, 50, channels, dtype)
    source = write_tiff(tmp_path / "s.tif", pixels, iccprofile=ICC)
    with (
        WsiImageReader(build(source, lossless=True)) as reader,
        pytest.raises(ValueError, match="only RGB of 8 bits"),
    ):
        reader.read_native_region(0, 0, 9, 9, srgb=True)


def test_profiles_of_png_are_kept(tmp_path):
    path = tmp_path / "s.png"
    Image.fromarray(PIXELS).save(path, dpi=(50800, 50800), icc_profile=swapped_profile())
    with WsiImageReader(build(path, lossless=True)) as reader:
        assert reader.icc_profile == swapped_profile()
        found = reader.read_native_region(0, 0, 200, 150, srgb=True)
        assert_alike(found, PIXELS[:, :, ::-1])
