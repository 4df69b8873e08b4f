"""Repair of whole slides: damaged tiles become background, for both packages."""

import json

import numpy as np
import pytest
from damaged_packs import changed, errors_of, refused, with_payload
from iac_query.adapters import wsi
from iac_query.adapters.wsi import WsiImageReader
from iatro.iac.adapters import wsi as peer
from iatro.iac.adapters.validate import validate_package as peer_validate
from imaged_packs import METADATA, SLIDES, ZSTD, metadata_of
from packs import DATA, flip_payload, replaced

import iac_query as iac

GOLDEN = [path.name for path in sorted(DATA.glob("wsi_*.iac")) if "all_" not in path.name]


@pytest.fixture
def pack(imaged):
    return lambda name="slide": imaged(name)


def regions(path, package) -> list[np.ndarray]:
    """All pixels of a slide, of its levels and of the images beside it."""
    with package.WsiImageReader(path) as reader:
        pixels = [reader.read_native_region(0, 0, *reader.dimensions)]
        for level in range(1, getattr(reader, "level_count", 1)):
            pixels.append(reader.read_level(level, 0, 0, *reader.level_dimensions[level]))
        return pixels + [reader.read_associated_image(n) for n in reader.associated_image_names]


def repaired(path, dropped: list[int], before: list[np.ndarray]) -> WsiImageReader:
    """The slide without these rows, background where they were tiles."""
    out = path.with_name("out.iac")
    report = iac.repair(path, out, overwrite=True)
    with iac.PackReader(path) as was:
        index, count = was.index_table, len(was)
    assert (report.kept, report.dropped) == (count - len(dropped), len(dropped))
    assert [change.row for change in report.changes] == dropped
    assert iac.validate(out, max_decode=0).findings == ()
    reader = WsiImageReader(out)
    header = reader.header
    cells = header["grid_width"] * header["grid_height"]
    assert header["stored_tile_count"] + header["implicit_background_tile_count"] == cells
    expected = [pixels.copy() for pixels in before]
    for change in report.changes:
        row = index.slice(change.row, 1).to_pylist()[0]
        if row["kind"] == 0:
            of_level = f" of level {row['level']}" if "level" in row else ""
            place = f"{row['tile_x']}, {row['tile_y']}"
            assert change.reason == f"the tile {place}{of_level} is background now"
            width, height = header["tile_width"], header["tile_height"]
            top, left = row["tile_y"] * height, row["tile_x"] * width
            pixels = expected[row.get("level", 0)]
            pixels[top : top + height, left : left + width] = reader.background
        assert f"  note: row {change.row}: {change.reason}" in str(report).splitlines()
    found = regions(out, wsi)
    for one, other in zip(found, expected, strict=False):
        assert (one == other).all()
    if header["wsi_schema_version"] == 1:
        assert peer_validate(out, 0, 0)["records"] == report.kept
        for one, other in zip(regions(out, peer), found, strict=True):
            assert np.abs(one.astype(int) - other).max() <= 2
    return reader


@pytest.mark.parametrize("name", [*SLIDES, *GOLDEN])
def test_damaged_tiles_are_background(pack, name):
    path = pack(name)
    before = regions(path, wsi)
    rows = [1, 4]
    for row in rows:
        flip_payload(path, row)
    with iac.PackReader(path) as reader:
        stored = reader.header["stored_tile_count"]
    now = repaired(path, rows, before)
    assert now.header["stored_tile_count"] == stored - 2
    assert now.header["background_provenance"] == iac.read_header(path)["background_provenance"]


def test_damaged_tiles_of_a_level(pack):
    path = pack("levels")
    before = regions(path, wsi)
    with iac.PackReader(path) as reader:
        rows = [row for row, level in enumerate(reader.index_table["level"].to_pylist()) if level]
        stored = reader.header["stored_tile_count"]
    flip_payload(path, rows[1])
    assert repaired(path, [rows[1]], before).header["stored_tile_count"] == stored


TILES = [
    ("tile_x", 9),
    ("tile_y", None),
    ("valid_width", 1),
    ("codec_id", 3),
    ("flags", 1),
    ("name", "x"),
    ("offset", 1 << 40),
]


@pytest.mark.parametrize("cell", TILES, ids=[f"{column} {value}" for column, value in TILES])
def test_tiles_that_are_wrong(pack, cell):
    column, value = cell
    before = regions(pack(), wsi)
    out = pack().with_name("out.iac")
    path = changed(pack(), index=replaced(column, 2, value))
    report = iac.repair(path, out)
    (change,) = report.changes
    assert change.row == 2
    assert iac.validate(out, max_decode=0).findings == ()
    now = regions(out, wsi)
    before[0][:64, 128:192] = WsiImageReader(out).background
    assert all((one == other).all() for one, other in zip(now, before, strict=True))
    assert peer_validate(out, 0, 0)["records"] == report.kept


def test_images_beside_the_raster_go(pack):
    path = pack()
    before = regions(path, wsi)
    flip_payload(path, 10)  # label
    now = repaired(path, [10], before[:1])
    assert now.associated_image_names == ("macro", "thumbnail")
    old, new = metadata_of(path), now.scanner_metadata
    assert [image["name"] for image in new["associated_images"]] == ["macro", "thumbnail"]
    assert {**old, "associated_images": old["associated_images"][1:]} == new
    assert now.associated_image_icc_profile("macro")


def test_an_image_goes_with_its_profile(pack):
    path = pack()
    before = regions(path, wsi)
    flip_payload(path, 11)  # macro
    now = repaired(path, [11, 13], before[:1])
    assert now.associated_image_names == ("label", "thumbnail")


def test_a_profile_goes_alone(pack):
    path = pack()
    before = regions(path, wsi)
    flip_payload(path, 13)
    now = repaired(path, [13], before)
    assert now.associated_image_icc_profile("macro") is None
    assert [i["icc_profile_present"] for i in now.scanner_metadata["associated_images"]] == [
        False,
        False,
        False,
    ]
    flip_payload(path, 9)
    assert repaired(path, [9, 13], before).icc_profile is None


def test_images_that_are_listed_only(pack):
    metadata = metadata_of(pack())
    metadata["associated_images"].append({**metadata["associated_images"][0], "name": "gone"})
    path = with_payload(pack(), METADATA, ZSTD.encode(json.dumps(metadata).encode()))
    now = repaired(path, [], regions(pack(), wsi))
    assert len(now.scanner_metadata["associated_images"]) == 3


def test_numbers_of_tiles_are_made_anew(pack):
    before = regions(pack(), wsi)
    for counts in ({"stored_tile_count": 3}, {"implicit_background_tile_count": "4"}):
        header = repaired(changed(pack(), **counts), [], before).header
        assert (header["stored_tile_count"], header["implicit_background_tile_count"]) == (8, 4)


def test_what_is_refused(pack):
    path = pack()
    flip_payload(path, METADATA)
    refused(path, "cannot be repaired: its scanner metadata are damaged")
    path = pack()
    for row in range(8):
        flip_payload(path, row)
    refused(path, "cannot be repaired: no tile of its raster is whole")
    path = changed(pack(), index=replaced("tile_x", 1, 0))
    refused(path, "cannot be repaired: row 1: the tile has the place of row 0")
    refused(changed(pack(), width=999), "cannot be repaired: the header is wrong: grid_width")
    refused(changed(pack(), origin=None), "cannot be repaired: header field origin is not")
    refused(changed(pack(), index=lambda t: t.drop(["flags"])), "has no column 'flags'")


def test_an_empty_slide_stays(pack):
    path = pack("slide")
    path.write_bytes((DATA / "wsi_all_background.iac").read_bytes())
    out = path.with_name("out.iac")
    assert iac.repair(path, out).dropped == 0
    assert errors_of(out) == []
