"""Bad input of tiles is an error that names tile or file, and leaves nothing."""

import io
from dataclasses import replace
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
import tifffile
from iac_query.adapters.tiles import (
    TilePackageReader,
    build_tile_package,
    build_tile_package_from_arrays,
    build_tile_package_from_records,
    read_package_manifest,
)
from packs import write_pack
from PIL import Image
from tile_data import SIZE, files_in, images_of, records_of, write_images

import iac_query as iac
from iac_query import Codec

FAST = {"lossless": True, "effort": 1}


def refused(folder: Path, records, arrays, reason: str, error=ValueError, **options) -> None:
    """Building fails and leaves nothing, and an old file as it was."""
    out = folder / "out" / "t.iac"
    out.parent.mkdir(exist_ok=True)
    out.write_bytes(b"old")
    with pytest.raises(error, match=reason):
        build_tile_package_from_arrays(records, arrays, out, overwrite=True, **FAST, **options)
    assert files_in(out.parent) == {"t.iac"}
    assert out.read_bytes() == b"old"


def changed(count: int, row: int, **fields) -> list:
    records = records_of(count)
    records[row] = replace(records[row], **fields)
    return records


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"tile_id": "tile-é-0"}, "duplicate tile_id values: 1, the first 'tile-é-0'"),
        ({"tile_id": ""}, "tile '': tile_id is empty"),
        ({"slide_id": ""}, "tile 'tile-é-2': slide_id is empty"),
        ({"patient_id": ""}, "tile 'tile-é-2': patient_id is empty"),
        ({"patient_id": "other"}, "tile-é-2': slide 'slide-0' is of another patient for"),
        ({"split": "\udc80"}, "tile-é-2': split is no text of UTF-8"),
        ({"x": -16}, "tile-é-2': x is -16, expected 0 or more"),
        ({"x": 17}, "tile-é-2': x is 17, which does not divide by the stride 16"),
        ({"y": 1 << 20}, "tile-é-2': y is place 65536 of the grid, the last is 65535; extended"),
    ],
)
def test_records_that_cannot_be(tmp_path: Path, fields: dict, reason: str):
    records = changed(3, 2, **fields)
    refused(tmp_path, records, images_of(3), reason, stride_x=16, stride_y=16)


@pytest.mark.parametrize("fields", [{"x": 1.0}, {"y": True}, {"x": "0"}, {"tile_id": 7}])
def test_records_of_other_types(tmp_path: Path, fields: dict):
    refused(tmp_path, changed(3, 1, **fields), images_of(3), "tile .*expected a", TypeError)


@pytest.mark.parametrize("stride", [0, -1])
def test_strides_that_cannot_be(tmp_path: Path, stride: int):
    refused(tmp_path, records_of(2), images_of(2), f"stride_x is {stride}", stride_x=stride)


def test_too_many_slides(tmp_path: Path):
    records = records_of(256, slides=256)
    refused(tmp_path, records, images_of(256, size=(2, 2)), "256 slides, a pack holds 255; extend")


@pytest.mark.parametrize("extended", [False, True])
def test_no_tiles(tmp_path: Path, extended: bool):
    refused(tmp_path, [], [], "records are empty", extended=extended)
    refused(tmp_path, [], iter([]), "records are empty", extended=extended)


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        (images_of(2), "2 arrays for 3 records"),
        (images_of(4), "4 arrays for 3 records"),
        (iter(images_of(2)), "2 arrays for 3 records"),
        (iter(images_of(4)), "more than 3 arrays for 3 records"),
    ],
)
def test_counts_that_differ(tmp_path: Path, arrays, reason: str):
    refused(tmp_path, records_of(3), arrays, reason)


@pytest.mark.parametrize(
    ("images", "reason"),
    [
        (images_of(3, 0), "tile 'tile-é-0': is 16 x 16 pixels of 1 channels of uint8, image_tiles"),
        (images_of(3, 4), "tile-é-0': is 16 x 16 pixels of 4 channels .*extended=True"),
        (images_of(3, 3, np.uint16), "tile-é-0': .*3 channels of uint16, image_tiles hold"),
        ([*images_of(2), images_of(1, size=(16, 8))[0]], "tile-é-2': is 8 x 16 pixels .*16 x 16"),
        ([*images_of(2), images_of(1, 0)[0]], "tile-é-2': .*1 channels.* the first tile is"),
        ([*images_of(2), np.zeros((0, 4, 3), np.uint8)], r"tile-é-2': an image of shape \(0, 4, 3"),
        ([*images_of(2), np.zeros(4, np.uint8)], "tile-é-2': an image has 2 or 3 dimensions"),
    ],
)
def test_arrays_that_are_no_such_tiles(tmp_path: Path, images, reason: str):
    refused(tmp_path, records_of(3), images, reason)


def test_what_is_no_array(tmp_path: Path):
    refused(tmp_path, records_of(1), ["text"], "tile-é-0': an image is a NumPy array", TypeError)


def test_codecs_that_are_not_for_tiles(tmp_path: Path):
    records, images = records_of(2), images_of(2)
    refused(tmp_path, records, images, "codec is for extended", codec=Codec.create("jpegls"))
    zstd = Codec.create("zstd")
    refused(tmp_path, records, images, "codec of images", TypeError, codec=zstd, extended=True)
    jpeg, deep = Codec.create("jpeg"), images_of(2, 0, np.uint16)
    refused(tmp_path, records, deep, "tile-é-0': codec jpeg", codec=jpeg, extended=True)


def test_a_pack_that_is_there_stays(tmp_path: Path):
    (tmp_path / "t.iac").write_bytes(b"old")
    with pytest.raises(FileExistsError, match=r"t\.iac"):
        build_tile_package_from_arrays(records_of(1), images_of(1), tmp_path / "t.iac", **FAST)
    assert (tmp_path / "t.iac").read_bytes() == b"old"


def png(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(array).save(file, "png")
    return file.getvalue()


def tiff(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    tifffile.imwrite(file, array)
    return file.getvalue()


SOUND = png(images_of(1)[0])
BAD_FILES = {
    "empty": (b"", "is no image that can be read"),
    "text": (b"not an image" * 9, "is no image that can be read"),
    "cut": (SOUND[:-300], "is no image that can be read"),
    "damaged": (SOUND[:60] + b"\0\0\0\0" + SOUND[64:], "is no image that can be read"),
    "size": (png(images_of(1, size=(16, 8))[0]), "is 8 x 16 pixels, the tiles are 16 x 16"),
    "huge": (png(np.zeros((2000, 2000), np.uint8)), "is 2000 x 2000 pixels, the tiles are"),
    "deep gray": (png(images_of(1, 0, np.uint16)[0]), "is of mode I;16 with more than 8 bits"),
    "deep rgb": (
        imagecodecs.png_encode(images_of(1, 3, np.uint16)[0]),
        "is of mode RGB with more than 8 bits",
    ),
    "float": (tiff(np.zeros((16, 16), np.float32)), "is of mode F with more than 8 bits"),
}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_among_good_ones_is_named(tmp_path: Path, name: str, workers: int):
    manifest = write_images(tmp_path / "in", records_of(9), images_of(9))
    content, reason = BAD_FILES[name]
    (tmp_path / "in" / "6.png").write_bytes(content)
    (tmp_path / "out").mkdir()
    with pytest.raises(ValueError, match=rf"in/6\.png: {reason}"):
        build_tile_package(
            manifest, tmp_path / "out/t.iac", tmp_path / "in", workers=workers, **FAST
        )
    assert files_in(tmp_path / "out") == set()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("deep rgb", "colour image of 16 bits, which Pillow cuts"),
        ("float", "is of mode F, which is not stored as it is"),
    ],
)
def test_files_that_cannot_be_stored_as_they_are(tmp_path: Path, name: str, reason: str):
    manifest = write_images(tmp_path / "in", records_of(1), images_of(1))
    (tmp_path / "in" / "0.png").write_bytes(BAD_FILES[name][0])
    with pytest.raises(ValueError, match=rf"in/0\.png: is .*{reason}|{reason}"):
        build_tile_package(manifest, tmp_path / "t.iac", tmp_path / "in", extended=True, **FAST)


@pytest.mark.parametrize("row", [0, 3])
def test_a_missing_file_is_named(tmp_path: Path, row: int):
    manifest = write_images(tmp_path / "in", records_of(5), images_of(5))
    (tmp_path / "in" / f"{row}.png").unlink()
    with pytest.raises(FileNotFoundError, match=rf"in/{row}\.png"):
        build_tile_package(manifest, tmp_path / "t.iac", tmp_path / "in", **FAST)
    assert files_in(tmp_path) == {"in"}


def test_a_manifest_without_tiles(tmp_path: Path):
    manifest = write_images(tmp_path / "in", [], [])
    with pytest.raises(ValueError, match="records are empty"):
        build_tile_package(manifest, tmp_path / "t.iac", tmp_path / "in")


def jxl(array: np.ndarray) -> bytes:
    return Codec.create("jxl", lossless=True, effort=2).encode(array)


GOOD = jxl(images_of(1)[0])
BAD_PAYLOADS = {
    "empty": (b"", "jxl: empty payload"),
    "other": (SOUND, "jxl"),
    "size": (jxl(images_of(1, size=(16, 8))[0]), "is 8 x 16 pixels"),
    "gray": (jxl(images_of(1, 0)[0]), "is 16 x 16 pixels of 1 channels"),
    "deep": (jxl(images_of(1, 3, np.uint16)[0]), "3 channels of uint16"),
}


@pytest.mark.parametrize("row", [0, 2])
@pytest.mark.parametrize("name", BAD_PAYLOADS)
def test_payloads_are_checked_before_they_are_stored(tmp_path: Path, name: str, row: int):
    payload, reason = BAD_PAYLOADS[name]
    payloads = [GOOD] * 4
    payloads[row] = payload
    with pytest.raises(ValueError, match=rf"tile 'tile-é-{row}': .*{reason}"):
        build_tile_package_from_records(
            records_of(4), payloads, tmp_path / "t.iac", tile_width=SIZE, tile_height=SIZE
        )
    assert files_in(tmp_path) == set()


def test_a_payload_that_is_cut_short_is_found_by_decoding(tmp_path: Path):
    options = {"tile_width": SIZE, "tile_height": SIZE}
    payloads = [GOOD, GOOD[:-20]]
    with pytest.raises(iac.CodecError, match=r"tile .tile-é-1.: .*jxl"):
        build_tile_package_from_records(
            records_of(2), payloads, tmp_path / "t.iac", check="decode", **options
        )
    with pytest.raises(ValueError, match="check is 'full'"):
        build_tile_package_from_records(
            records_of(2), payloads, tmp_path / "t.iac", check="full", **options
        )
    with pytest.raises(ValueError, match=r"extra_header has \['stride_x'\]"):
        build_tile_package_from_records(
            records_of(1), [GOOD], tmp_path / "t.iac", extra_header={"stride_x": 1}, **options
        )
    assert files_in(tmp_path) == set()


def test_packs_that_are_none_of_tiles(tmp_path: Path):
    write_pack(tmp_path / "x.iac", [b"x"])
    with pytest.raises(iac.PackError, match=r"x\.iac: is a pack of 'raw_bytes', expected"):
        TilePackageReader(tmp_path / "x.iac")
    write_pack(tmp_path / "y.iac", [b"x"], payload_type="image_tiles", tile_width=4)
    with pytest.raises(iac.PackError, match=r"y\.iac: the header does not tell .*tile_height"):
        TilePackageReader(tmp_path / "y.iac")
    write_pack(tmp_path / "z.iac", [b"x"], payload_type="image_tiles", tile_width=4, tile_height=4)
    with TilePackageReader(tmp_path / "z.iac") as reader:
        with pytest.raises(iac.CodecError, match=r"z\.iac: its codec does not decode to images"):
            reader.read_batch([0])
        with pytest.raises(iac.PackError, match=r"z\.iac: its index has no column tile_id"):
            reader.read_image("x")
    with pytest.raises(iac.PackError, match=r"z\.iac: its tables lack"):
        read_package_manifest(tmp_path / "z.iac")


def test_tiles_that_are_not_of_the_size_in_the_header(tmp_path: Path):
    build_tile_package_from_arrays(records_of(2), images_of(2), tmp_path / "t.iac", **FAST)
    with iac.PackReader(tmp_path / "t.iac") as reader:
        header = {**reader.header, "tile_width": 99}
        slides, index = reader.slide_table, reader.index_table
        payloads = reader.read_payloads([0, 1])
    iac.build_pack(tmp_path / "wrong.iac", header, slides, index, payloads)
    with TilePackageReader(tmp_path / "wrong.iac") as reader:
        for read in (lambda: reader.read_batch([1]), lambda: reader.read_array_at(1)):
            with pytest.raises(iac.PackError, match="row 1: the tile is 16 x 16 pixels, the head"):
                read()
