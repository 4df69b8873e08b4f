"""Regions of slides against tiles that are read one by one and put together by NumPy."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from iac_query.adapters.wsi import WsiImageReader
from packs import assemble, flip_payload, replaced, segments_of
from slides import build, cut_tiles, jpeg2000, tissue, write_tiff, write_tiles

import iac_query as iac
from iac_query._native import read_tiles
from iac_query.codec import codec_of_header

WIDTH, HEIGHT = 330, 250
#: Below a bit a pixel, so that tiles are kept as the source has them.
PLAIN = np.full((HEIGHT, WIDTH, 3), 243, np.uint8)
PLAIN[60:110, 90:160] = tissue(70, 50)


def pixels_of(channels: int = 3, dtype: type = np.uint8) -> np.ndarray:
    """Tissue in the middle and in the lower right corner, background between them."""
    pixels = tissue(WIDTH, HEIGHT, channels, dtype)
    pixels[-50:, -70:] = pixels[100:150, 100:170]
    return pixels


def lossless(path: Path, channels: int = 3, dtype: type = np.uint8, **options) -> Path:
    source = write_tiff(path, pixels_of(channels, dtype))
    return build(source, lossless=True, **{"tile_size": (48, 32), **options})


def kept_jpeg(path: Path) -> Path:
    return build(write_tiff(path, PLAIN, tile=(64, 64), compression="jpeg"))


def kept_jpeg2000(path: Path) -> Path:
    return build(write_tiles(path, PLAIN, jpeg2000(cut_tiles(PLAIN, 64)), 33005))


#: A slide of each codec and kind of pixels; the codec that its tiles are to have.
SLIDES: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "jxl": ("jxl", lossless),
    "jxl lossy": (
        "jxl",
        lambda path: build(write_tiff(path, pixels_of()), distance=1.0, effort=1, tile_size=64),
    ),
    "gray": ("jxl", lambda path: lossless(path, 1)),
    "16 bits": ("jxl", lambda path: lossless(path, 3, np.uint16)),
    "gray of 16 bits": ("jxl", lambda path: lossless(path, 1, np.uint16)),
    "levels": ("jxl", lambda path: lossless(path, levels=(2, 4))),
    "wide tiles": ("jxl", lambda path: lossless(path, tile_size=(WIDTH, 32))),
    "one tile": ("jxl", lambda path: lossless(path, tile_size=512)),
    "jpeg": ("jpeg", kept_jpeg),
    "jpeg2000": ("jpeg2000", kept_jpeg2000),
}


def plain_rasters(path: Path) -> list[np.ndarray]:
    """Each level of a pack, (height, width, channels), a tile at a time."""
    with WsiImageReader(path) as reader:
        header, payloads = reader.header, reader.reader.read_payloads(range(len(reader.reader)))
        codecs = {
            codec["id"]: codec_of_header({"codec": codec["name"], "codec_params": codec["params"]})
            for codec in header["record_codecs"]
        }
        rasters = []
        for width, height in reader.level_dimensions:
            raster = np.empty((height, width, reader.channels), reader.dtype)
            raster[:] = reader.background
            rasters.append(raster)
        for record, payload in zip(reader.reader.index_table.to_pylist(), payloads, strict=True):
            if record["kind"] != 0:
                continue
            tile = codecs[record["codec_id"]].decode(payload)
            raster = rasters[record.get("level") or 0]
            y, x = (
                record["tile_y"] * header["tile_height"],
                record["tile_x"] * header["tile_width"],
            )
            place = raster[y : y + tile.shape[0], x : x + tile.shape[1]]
            place[:] = tile.reshape(*tile.shape[:2], -1)[: place.shape[0], : place.shape[1]]
    return rasters


def padded(raster: np.ndarray, background: tuple[int, ...], margin: int) -> np.ndarray:
    height, width, channels = raster.shape
    out = np.empty((height + 2 * margin, width + 2 * margin, channels), raster.dtype)
    out[:] = background
    out[margin : margin + height, margin : margin + width] = raster
    return out


@pytest.mark.parametrize("kind", SLIDES)
def test_regions_are_the_tiles_put_together(tmp_path, kind):
    codec, make = SLIDES[kind]
    path = make(tmp_path / "s.tif")
    assert iac.read_header(path)["raster_codec"] == codec
    random = np.random.default_rng(4)
    with WsiImageReader(path) as plain, WsiImageReader(path, cache_bytes=60_000) as cached:
        for level, raster in enumerate(plain_rasters(path)):
            height, width = raster.shape[:2]
            expected = padded(raster, plain.background, 60)
            places = [(0, 0, width, height), (-60, -60, width + 120, height + 120)]
            places += [(x, y, 1, 1) for x in (0, width // 2, width - 1) for y in (0, height - 1)]
            places += [(47, 31, 2, 2), (0, 0, width, 1), (width - 1, 0, 1, height)]
            for _ in range(40):
                x, y = int(random.integers(-60, width)), int(random.integers(-60, height))
                most = width + 60 - x, height + 60 - y
                places.append((x, y, *(int(random.integers(1, side + 1)) for side in most)))
            for number, (x, y, w, h) in enumerate(places):
                pixels = expected[y + 60 : y + 60 + h, x + 60 : x + 60 + w]
                for reader in (plain, cached):
                    found = reader.read_level(level, x, y, w, h, workers=1 + number % 2)
                    assert found.dtype == pixels.dtype and found.flags.c_contiguous
                    assert found.flags.writeable and found.flags.owndata
                    np.testing.assert_array_equal(found, pixels)


def test_slides_have_all_that_regions_may_meet(tmp_path):
    """Else the test above does not say what it is to say."""
    path = lossless(tmp_path / "s.tif")
    with iac.PackReader(path) as pack:
        header, index = pack.header, pack.index_table
    assert {WIDTH % 48, 48} <= set(index["valid_width"].to_pylist())
    assert {HEIGHT % 32, 32} <= set(index["valid_height"].to_pylist())
    assert 0 < header["stored_tile_count"] < header["grid_width"] * header["grid_height"]


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Header, tables and payloads of a slide whose tiles are all of 64 x 64, RGB."""
    path = build(
        write_tiff(tmp_path_factory.mktemp("parts") / "s.tif", tissue(192, 128)),
        lossless=True,
        tile_size=64,
    )
    with iac.PackReader(path) as pack:
        tables = pack.slide_table, pack.index_table
        return pack.header, *tables, pack.read_payloads(range(len(pack)))


def everywhere(path: Path, row: int, error: type[Exception], match: str) -> None:
    """All that reads pixels of the whole slide says the same of a row."""
    for cache_bytes in (0, 1 << 20):
        with WsiImageReader(path, cache_bytes=cache_bytes) as reader:
            for read in (
                lambda reader: reader.read_native_region(0, 0, 192, 128, workers=1),
                lambda reader: reader.read_native_region(-3, -3, 300, 300, workers=2),
                lambda reader: reader.thumbnail(50),
                lambda reader: reader.deep_zoom(512, 0).get_tile(7, 0, 0),
                lambda reader: next(reader.iter_grid(reader.grid(tile_size=192, mpp=0.5))),
            ):
                with pytest.raises(error, match=match) as raised:
                    read(reader)
                assert type(raised.value) is error
                assert raised.value.row == row and raised.value.pack == str(path)


@pytest.mark.parametrize(
    ("image", "match"),
    [
        (tissue(32, 64), "jxl: the tile is 64x32x3 uint8, the header says 64x64x3 uint8"),
        (tissue(640, 640), "jxl: the tile is 640x640x3 uint8, the header says"),
        (tissue(64, 64, 1), "jxl: the tile is 64x64 uint8, the header says 64x64x3 uint8"),
        (tissue(64, 64, 3, np.uint16), "jxl: the tile is 64x64x3 uint16, the header says"),
        (np.zeros((64, 64, 4), np.uint8), "jxl: the tile is 64x64x4 uint8, the header says"),
        (np.zeros((64, 64, 3), np.float32), "jxl: the tile is 64x64x3 float32, the header"),
        (b"no image", "row 2: .*jxl"),
        (b"", "row 2: .*jxl"),
    ],
    ids=lambda value: "" if isinstance(value, np.ndarray | bytes) else value[:40],
)
def test_tiles_that_are_not_what_the_header_says(tmp_path, parts, image, match):
    header, slides, index, payloads = parts
    codec = iac.Codec.create("jxl", lossless=True, effort=1)
    payloads = list(payloads)
    payloads[2] = image if isinstance(image, bytes) else codec.encode(image)
    iac.build_pack(tmp_path / "t.iac", header, slides, index, payloads)
    everywhere(tmp_path / "t.iac", 2, iac.CodecError, match)


def test_the_first_of_several_errors_is_the_one(tmp_path, parts):
    header, slides, index, payloads = parts
    path = tmp_path / "t.iac"
    payloads = list(payloads)
    payloads[3] = b"no image"
    iac.build_pack(path, header, slides, index, payloads)
    flip_payload(path, 1)
    everywhere(path, 1, iac.ChecksumError, "row 1: stored bytes are damaged")


def test_a_raster_codec_of_bytes(tmp_path, parts):
    header, slides, index, payloads = parts
    codecs = [
        {"id": 0, "name": "none", "params": {}} if codec["id"] == 0 else codec
        for codec in header["record_codecs"]
    ]
    path = tmp_path / "t.iac"
    iac.build_pack(path, {**header, "record_codecs": codecs}, slides, index, payloads)
    everywhere(path, 0, iac.PackError, "row 0: raster_codec decodes to no images")


def test_tiles_whose_records_lie_outside(tmp_path, parts):
    header, slides, index, payloads = parts
    path = tmp_path / "t.iac"
    iac.build_pack(path, header, slides, index, payloads)
    with iac.PackReader(path) as pack:
        table = replaced("length", 0, 1 << 30)(pack.index_table)
    fields, _, _, data = segments_of(path)
    fields = {k: v for k, v in fields.items() if not k.endswith(("_offset", "_length"))}
    assemble(path, table, data, slides, **fields)
    everywhere(path, 0, iac.PackError, "row 0: payload span outside the data segment")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"out": np.zeros((64, 128, 3), np.uint8)[:, ::2]}, TypeError),
        ({"out": np.zeros((64, 64, 3), np.int16)}, TypeError),
        ({"out": np.zeros((64, 64, 3), ">u2")}, TypeError),
        ({"out": np.frombuffer(bytes(64 * 64 * 3), np.uint8).reshape(64, 64, 3)}, ValueError),
        ({"out": np.zeros((64, 64), np.uint8)}, ValueError),
        ({"places": np.zeros(2, np.int64)}, ValueError),
        ({"places": np.zeros((2, 2), np.int64)}, ValueError),
        ({"sizes": np.zeros((1, 3), np.int64)}, ValueError),
        ({"sizes": np.array([[65, 64]])}, ValueError),
        ({"sizes": np.array([[64, -1]])}, ValueError),
        ({"rows": np.array([[0]])}, ValueError),
        ({"rows": np.array([1000])}, iac.PackIndexError),
        ({"rows": np.array([-1])}, iac.PackIndexError),
    ],
)
def test_the_core_refuses_arrays_that_do_not_fit(tmp_path, parts, change, error):
    header, slides, index, payloads = parts
    iac.build_pack(tmp_path / "t.iac", header, slides, index, payloads)
    arguments = {
        "out": np.zeros((64, 64, 3), np.uint8),
        "rows": np.array([0]),
        "places": np.array([[0, 0]]),
        "sizes": np.array([[64, 64]]),
        "tile_size": (64, 64),
        "workers": 1,
    }
    with iac.PackReader(tmp_path / "t.iac") as pack:
        read_tiles(pack.native, **arguments)
        assert arguments["out"].any()
        changed = {**arguments, **change}
        before = changed["out"].copy()
        with pytest.raises(error):
            read_tiles(pack.native, **changed)
        np.testing.assert_array_equal(changed["out"], before)
