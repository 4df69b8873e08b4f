"""Tiles that are stored as the source has them: how they are read, and how checked."""

import io

import numpy as np
import pytest
import slide_dicoms
import tifffile
from iac_query.adapters.wsi import SourceError, WsiImageReader, raster, tiff_tiles
from iac_query.adapters.wsi.sources import open_source
from PIL import Image
from slides import (
    assert_same_regions,
    build,
    cut_tiles,
    jpeg2000,
    tissue,
    with_tiles_far_behind,
    write_svs,
    write_tiff,
    write_tiles,
)

import iac_query as iac

# Of less than a bit a pixel.
SIDE = 128
PIXELS = np.full((10 * SIDE - 20, 10 * SIDE - 30, 3), 243, np.uint8)
PIXELS[200:350, 300:500] = tissue(200, 150)
TILES = cut_tiles(PIXELS, SIDE)
JPEGS = iac.Codec.create("jpeg", subsampling="422").encode_many(TILES)
BUSY = 10 * 2 + 3  # a tile with tissue


def jpeg_slide(path, payloads=JPEGS, **options):
    return write_tiles(path, PIXELS, payloads, "jpeg", SIDE, photometric="ycbcr", **options)


def dicom_slide(path, payloads=JPEGS):
    space = {"PhotometricInterpretation": "YBR_FULL_422"}
    image = slide_dicoms.image_of(
        PIXELS, side=SIDE, payloads=payloads, syntax=slide_dicoms.JPEG, **space
    )
    return slide_dicoms.write(path.with_suffix(""), image)


SLIDES = {
    "svs": lambda path: write_svs(path.with_suffix(".svs"), PIXELS, tile=(SIDE, SIDE)),
    "jpeg": jpeg_slide,
    "jpeg2000": lambda path: write_tiles(path, PIXELS, jpeg2000(TILES), 33005, SIDE),
    "dicom": dicom_slide,
}


def refused(source, match: str, **options) -> None:
    """The slide is not built, and nothing is left of the attempt."""
    with pytest.raises(SourceError, match=match) as raised:
        build(source, **options)
    assert str(raised.value).startswith(str(source))
    assert not list(source.parent.glob("*.iac")) + list(source.parent.glob(".*"))


@pytest.mark.parametrize("kind", SLIDES)
def test_both_checks_keep_the_same(tmp_path, kind, monkeypatch):
    source = SLIDES[kind](tmp_path / "s.tif")
    packs = [build(source, check=check).read_bytes() for check in ("structure", "decode")]
    packs.append(build(source, workers=1).read_bytes())
    monkeypatch.setattr(raster, "_BATCH_TILES", 7)
    packs += [build(source, workers=workers).read_bytes() for workers in (1, None)]
    assert packs == packs[:1] * 5
    path = build(source)
    assert iac.read_header(path)["raster_profile_selection"]["pixel_transcode"] is False
    assert iac.validate(path, max_decode=0).findings == ()


def with_order(source, order: list[int]):
    """The file with the tiles that its directory lists in another order."""
    with tifffile.TiffFile(source, mode="r+b") as file:
        tags = file.pages[0].tags
        for name in ("TileOffsets", "TileByteCounts"):
            tags[name].overwrite([tags[name].value[number] for number in order])
    return source


@pytest.mark.parametrize("read_bytes", [0, 3000, 4 << 20])
def test_tiles_anywhere_in_the_file_are_read_as_they_lie(tmp_path, read_bytes, monkeypatch):
    monkeypatch.setattr(tiff_tiles, "_READ_BYTES", read_bytes)
    order = list(range(100))
    order[10:40] = reversed(order[10:40])
    order[50:60] = [50, 51, 51, 51, 60, 61, 3, 4, 5, 99]  # some of them twice
    path = build(with_order(jpeg_slide(tmp_path / "s.tif"), order))
    with iac.PackReader(path) as pack:
        for row, number in enumerate(order):
            assert pack.read_payload(row) == JPEGS[number]


def test_tiles_above_four_gibibytes(tmp_path):
    source = with_tiles_far_behind(jpeg_slide(tmp_path / "s.tif", bigtiff=True))
    path = build(source)
    with iac.PackReader(path) as pack:
        assert [pack.read_payload(row) for row in range(100)] == JPEGS
    assert_same_regions(path, tifffile.imread(source), most=2)


def test_tiles_that_are_missing_among_others(tmp_path):
    source = jpeg_slide(tmp_path / "s.tif")
    gone = [0, 1, 5, 30, 31, 32, 99]
    with tifffile.TiffFile(source, mode="r+b") as file:
        tag = file.pages[0].tags["TileByteCounts"]
        tag.overwrite([0 if n in gone else size for n, size in enumerate(tag.value)])
    path = build(source)
    kept = [payload for number, payload in enumerate(JPEGS) if number not in gone]
    with iac.PackReader(path) as pack:
        assert [pack.read_payload(row) for row in range(len(kept))] == kept
        assert pack.header["stored_tile_count"] == len(kept)
        assert pack.header["implicit_background_tile_count"] == len(gone)


def spoilt(payload: bytes) -> bytes:
    """A stream of damaged samples: one of its bits is another, and no decoder takes it."""
    codec = iac.Codec.create("jpeg")
    for at in range(payload.index(b"\xff\xda") + 14, len(payload) - 2):
        damaged = payload[:at] + bytes([payload[at] ^ 0x40]) + payload[at + 1 :]
        try:
            codec.check_whole([damaged])
        except iac.CodecError:
            continue  # became a marker
        try:
            codec.decode(damaged)
        except iac.CodecError:
            return damaged
    raise AssertionError


@pytest.mark.parametrize("kind", ["jpeg", "dicom"])
def test_damaged_samples_are_kept_unless_tiles_are_decoded(tmp_path, kind):
    payloads = JPEGS.copy()
    payloads[BUSY] = spoilt(payloads[BUSY])
    source = SLIDES[kind](tmp_path / "s.tif", payloads)
    refused(source, "tile 3, 2 cannot be decoded: jpeg: ", check="decode")
    path = build(source)
    with iac.PackReader(path) as pack:
        assert pack.read_payload(BUSY).rstrip(b"\0") == payloads[BUSY].rstrip(b"\0")
    findings = iac.validate(path, max_decode=0).findings
    assert [(finding.row, finding.check) for finding in findings] == [(BUSY, "codec")]


def of_12_bits() -> bytes:
    imagecodecs = pytest.importorskip("imagecodecs")
    return imagecodecs.jpeg_encode(TILES[BUSY].astype(np.uint16) * 16, bitspersample=12)


def pillow_jpeg(mode: str = "RGB", **options) -> bytes:
    file = io.BytesIO()
    Image.fromarray(TILES[BUSY]).convert(mode).save(file, "JPEG", **options)
    return file.getvalue()


def without_tables(payload: bytes) -> bytes:
    at = payload.index(b"\xff\xdb")
    return payload[:at] + payload[at + 2 + int.from_bytes(payload[at + 2 : at + 4]) :]


@pytest.mark.parametrize("check", ["structure", "decode"])
@pytest.mark.parametrize("kind", ["jpeg", "dicom"])
@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda payload: payload[:300], "cannot be decoded: jpeg: payload is cut"),
        (lambda payload: payload[:-2], "cannot be decoded: jpeg: payload is cut"),
        (without_tables, "cannot be decoded: jpeg: quantization table . was not defined"),
        (lambda _: b"\0" * 100, "cannot be decoded: jpeg: payload is not a JPEG"),
        (lambda _: iac.Codec.create("jpeg").encode(TILES[0][:32]), r"is \(32, 128, 3\) of uint8"),
        (lambda _: iac.Codec.create("jpeg").encode(TILES[0][:, :, 0]), r"is \(128, 128\) of uint8"),
        (lambda payload: payload + b"junk", "cannot be decoded: jpeg: .* bytes behind its end"),
        (lambda payload: payload * 2, "cannot be decoded: jpeg: .* bytes behind its end"),
        (lambda _: of_12_bits(), r"is \(128, 128, 3\) of uint16, expected .* of uint8"),
        (lambda _: pillow_jpeg(mode="CMYK"), "cannot be decoded: jpeg: CMYK images"),
    ],
)
def test_broken_tiles_are_refused_by_name(tmp_path, kind, check, change, match):
    payloads = JPEGS.copy()
    payloads[BUSY] = change(payloads[BUSY])
    refused(SLIDES[kind](tmp_path / "s.tif", payloads), "tile 3, 2 " + match, check=check)


@pytest.mark.parametrize(
    "options", [{"progressive": True}, {"restart_marker_blocks": 3}, {"optimize": True}]
)
def test_jpeg_of_other_forms_among_the_tiles(tmp_path, options):
    payloads = JPEGS.copy()
    payloads[BUSY] = pillow_jpeg(quality=90, **options) + bytes(7)
    source = jpeg_slide(tmp_path / "s.tif", payloads)
    assert_same_regions(build(source), tifffile.imread(source), most=2)


@pytest.mark.parametrize("check", ["structure", "decode"])
@pytest.mark.parametrize(
    ("tile", "match"),
    [
        (TILES[BUSY].astype(np.uint16) * 257, r"is \(128, 128, 3\) of uint16"),
        (TILES[BUSY][:, :, 0], r"is \(128, 128\) of uint8"),
        (np.dstack([TILES[BUSY], TILES[BUSY][:, :, 0]]), r"is \(128, 128, 4\) of uint8"),
        (TILES[BUSY][:, :64], r"is \(128, 64, 3\) of uint8"),
    ],
    ids=["deep", "gray", "alpha", "narrow"],
)
def test_jpeg_2000_that_is_not_what_the_directory_says(tmp_path, check, tile, match):
    payloads = jpeg2000(TILES)
    payloads[BUSY] = iac.Codec.create("jpeg2000").encode(tile)
    source = write_tiles(tmp_path / "s.tif", PIXELS, payloads, 33005, SIDE)
    refused(source, f"tile 3, 2 {match}", check=check)


@pytest.mark.parametrize("check", ["structure", "decode"])
@pytest.mark.parametrize("kind", ["jpeg", "dicom"])
def test_tiles_that_are_all_of_another_size(tmp_path, kind, check):
    payloads = iac.Codec.create("jpeg").encode_many([tile[:64] for tile in TILES])
    source = SLIDES[kind](tmp_path / "s.tif", payloads)
    refused(source, r"tile 0, 0 is \(64, 128, 3\) of uint8", check=check)


@pytest.mark.parametrize(
    ("by", "match"), [(-1, "payload is cut"), (40, "bytes behind its end"), (1 << 20, "ends after")]
)
def test_a_directory_of_wrong_lengths(tmp_path, by, match):
    source = jpeg_slide(tmp_path / "s.tif")
    with tifffile.TiffFile(source, mode="r+b") as file:
        tag = file.pages[0].tags["TileByteCounts"]
        tag.overwrite([size + by * (n == BUSY) for n, size in enumerate(tag.value)])
    refused(source, f"tile 3, 2 .*{match}")


@pytest.mark.parametrize("options", [{}, {"lossless": True}])
@pytest.mark.parametrize(
    ("tag", "place", "value", "match"),
    [
        ("TileOffsets", 4, 99, "lists 99 tiles, the raster has 10 x 10"),
        ("TileByteCounts", 4, 99, "lists 99 tiles, the raster has 10 x 10"),
        ("TileByteCounts", 4, 1, "lists 1 tiles, the raster has 10 x 10"),
        ("TileByteCounts", 2, 11, "lists tiles by other than integers"),
        ("TileWidth", 8, 0, "no TIFF slide that can be read"),
        ("TileLength", 8, 0, "no TIFF slide that can be read"),
        ("TileWidth", 8, 1 << 31, "a tile of 2147483648 x 128 pixels needs"),
    ],
)
def test_a_directory_that_does_not_fit_the_raster(tmp_path, tag, place, value, match, options):
    source = jpeg_slide(tmp_path / "s.tif")
    with tifffile.TiffFile(source) as file:
        entry = file.pages[0].tags[tag].offset
    data = bytearray(source.read_bytes())
    if tag in ("TileWidth", "TileLength"):
        data[entry + 2] = 4  # of 32 bits
    size = 2 if place == 2 else 4  # the entry's type; number of values, or its one value
    data[entry + place : entry + place + size] = value.to_bytes(size, "little")
    source.write_bytes(data)
    refused(source, match, **options)


def test_tiles_too_wide_to_be_kept(tmp_path):
    pixels = np.tile(PIXELS[200:216], (1, 60, 1))[:, :70_000]
    source = tmp_path / "s.tif"
    write_tiff(source, pixels, tile=(16, 70_000), compression="jpeg2000")
    assert open_source(source).native is None
    with WsiImageReader(build(source, lossless=True)) as reader:
        found = reader.read_native_region(0, 0, *reader.dimensions)
    np.testing.assert_array_equal(found, pixels)


def test_other_words_for_check(tmp_path):
    with pytest.raises(ValueError, match="check is 'header', expected 'structure' or 'decode'"):
        build(jpeg_slide(tmp_path / "s.tif"), check="header")
