"""Coarser rasters stored beside the native one."""

import numpy as np
import pytest
import tifffile
from iac_query.adapters.wsi import WsiImageReader
from iatro.iac.adapters.wsi import WsiImageReader as PeerReader
from slides import build, plain_average, tissue, write_tiff

import iac_query as iac

PIXELS = tissue(210, 150)


def coarser(pixels: np.ndarray, factor: int) -> np.ndarray:
    """Means of squares, at the edges of what there is of them."""
    height, width = (-(-side // factor) for side in pixels.shape[:2])
    out = np.empty((height, width, pixels.shape[2]))
    for y in range(height):
        for x in range(width):
            square = pixels[y * factor : (y + 1) * factor, x * factor : (x + 1) * factor]
            out[y, x] = square.reshape(-1, pixels.shape[2]).mean(axis=0)
    return np.rint(out).astype(pixels.dtype)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("channels", [1, 3])
def test_levels_are_means(tmp_path, channels, dtype):
    pixels = tissue(210, 150, channels, dtype)
    source = write_tiff(tmp_path / "s.tif", pixels)
    path = build(source, lossless=True, tile_size=(40, 32), levels=(2, 4, 16))
    pixels = pixels.reshape(150, 210, channels)
    with WsiImageReader(path) as reader:
        assert reader.level_downsamples == (1, 2, 4, 16)
        assert reader.level_dimensions == ((210, 150), (105, 75), (53, 38), (14, 10))
        np.testing.assert_array_equal(reader.read_native_region(0, 0, 210, 150), pixels)
        for level, factor in enumerate((2, 4, 16), start=1):
            size = reader.level_dimensions[level]
            found = reader.read_level(level, 0, 0, *size)
            np.testing.assert_array_equal(found, coarser(pixels, factor))


def test_coarse_regions_come_from_the_coarsest_level_that_fits(tmp_path):
    source = write_tiff(tmp_path / "s.tif", PIXELS)
    path = build(source, lossless=True, tile_size=32, levels=(2, 8))
    plain = build(write_tiff(tmp_path / "p.tif", PIXELS), lossless=True, tile_size=32)
    level = coarser(PIXELS, 8)
    with WsiImageReader(path) as reader, WsiImageReader(plain) as native:
        found = reader.read_region(8, 4, 9, 7, mpp=8)
        expected = plain_average(level, reader.background, (2, 1), (2, 2), (9, 7))
        np.testing.assert_array_equal(found, expected)
        for mpp in (0.5, 0.7, 1, 3.9, 4, 11):
            one = reader.read_region(8, 4, 9, 7, mpp=mpp).astype(int)
            loss = np.abs(one - native.read_region(8, 4, 9, 7, mpp=mpp))
            # Rounded once more; between pixels of the level nothing is known.
            assert loss.max() <= (1 if mpp in (0.5, 0.7, 1, 4) else 12)
            assert loss.mean() < 2
        assert reader.thumbnail(20).shape == native.thumbnail(20).shape


def test_levels_beside_kept_tiles(tmp_path):
    source = write_tiff(tmp_path / "s.tif", PIXELS, tile=(64, 64), compression="jpeg")
    path = build(source, levels=(4,))
    header = iac.read_header(path)
    assert header["raster_codec"] == "jpeg"
    assert [codec["id"] for codec in header["record_codecs"]] == [5, 0, 1, 2, 3]
    with WsiImageReader(path) as reader:
        pixels = tifffile.imread(source)
        found = reader.read_level(1, 0, 0, *reader.level_dimensions[1]).astype(int)
        assert np.abs(found - coarser(pixels, 4)).mean() < 3
        assert np.abs(reader.read_native_region(0, 0, 210, 150).astype(int) - pixels).max() <= 2


def test_the_peer_refuses_levels(tmp_path):
    path = build(write_tiff(tmp_path / "s.tif", PIXELS), lossless=True, levels=(2,))
    assert iac.read_header(path)["wsi_schema_version"] == 2
    with pytest.raises(ValueError):
        PeerReader(path)


def test_places_of_coarser_tiles_in_sql(tmp_path):
    path = build(write_tiff(tmp_path / "s.tif", PIXELS), lossless=True, tile_size=32, levels=(4,))
    with iac.connect() as con:
        rows = con.sql(
            f"SELECT level, tile_x, tile_y, x, y_um, mpp_x FROM iac_scan('{path}', layout := true)"
            " WHERE kind = 0"
        ).fetchall()
    assert {row[0] for row in rows} == {0, 1}
    for level, tile_x, tile_y, x, y_um, mpp in rows:
        factor = (1, 4)[level]
        assert (x, y_um, mpp) == (32 * factor * tile_x, 16 * factor * tile_y, 0.5 * factor)


@pytest.mark.parametrize(
    ("levels", "error"),
    [
        ((1,), ValueError),
        ((3,), ValueError),
        ((4, 2), ValueError),
        ((2, 2), ValueError),
        ((2.0,), TypeError),
        ((True,), TypeError),
    ],
)
def test_bad_levels(tmp_path, levels, error):
    source = write_tiff(tmp_path / "s.tif", tissue(20, 20))
    with pytest.raises(error, match="levels are"):
        build(source, lossless=True, tile_size=32, levels=levels)
    assert not source.with_suffix(".iac").exists()


@pytest.mark.parametrize(
    "levels",
    [
        [{"downsample": 1}],
        [{"downsample": 4}, {"downsample": 2}],
        [{"downsample": 2}, {"downsample": 2}],
        [{"downsample": number} for number in range(2, 300)],
        [{"downsample": 2.0}],
        [{}],
        [2],
        2,
    ],
    ids=lambda levels: str(levels)[:30],
)
def test_headers_of_wrong_levels(tmp_path, levels):
    path = build(write_tiff(tmp_path / "s.tif", PIXELS), lossless=True, tile_size=32, levels=(2,))
    with iac.PackReader(path) as pack:
        header, tables = {**pack.header, "levels": levels}, (pack.slide_table, pack.index_table)
        payloads = pack.read_payloads(range(len(pack)))
    iac.build_pack(path, header, *tables, payloads, overwrite=True)
    with pytest.raises(iac.PackError, match=r"s\.iac: the header"):
        WsiImageReader(path)
