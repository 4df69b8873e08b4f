"""Validation of whole slides: the grid, the codecs, and what lies beside the raster."""

import json

import numpy as np
import pyarrow as pa
import pytest
from damaged_packs import changed, errors_of, with_payload
from iatro.iac.adapters.validate import validate_package as peer_validate
from imaged_packs import METADATA, SLIDES, ZSTD, metadata_of
from packs import DATA, flip_payload, replaced
from slides import build, cut_tiles, jpeg2000, tissue, write_tiff, write_tiles, ycbcr

import iac_query as iac

GOLDEN = sorted(path.stem for path in DATA.glob("wsi_*.iac"))


@pytest.fixture
def pack(imaged):
    return lambda name="slide": imaged(name)


def refused(path, by_peer: bool = True) -> None:
    """By the other package's validation, or not."""
    if by_peer:
        with pytest.raises((KeyError, RecursionError, TypeError, ValueError)):
            peer_validate(path, 0, 0)
    else:
        assert peer_validate(path, 0, 0)["type"] == "wsi_image"


@pytest.mark.parametrize("name", SLIDES)
def test_a_sound_pack_has_no_findings(pack, name):
    report = iac.validate(pack(name), max_decode=0)
    assert report.findings == ()
    assert report.counts["decoded"] == report.counts["records"] > 9
    refused(pack(name), by_peer=name == "levels")


@pytest.mark.parametrize("name", GOLDEN)
def test_packs_of_the_other_package_are_sound_for_both(name):
    assert iac.validate(DATA / f"{name}.iac", max_decode=0).findings == ()
    refused(DATA / f"{name}.iac", by_peer=False)


def test_kinds_of_version_2_are_sound(tmp_path):
    tiles = jpeg2000(cut_tiles(ycbcr(tissue(100, 80)), 64))
    kept = build(write_tiles(tmp_path / "y.tif", tissue(100, 80), tiles, 33003))
    source = write_tiff(tmp_path / "j.tif", tissue(100, 80), tile=(64, 64), compression="jpeg")
    for path in (kept, build(source, levels=(4,))):
        assert iac.read_header(path)["wsi_schema_version"] == 2
        assert iac.validate(path, max_decode=0).findings == ()


WRONG = [
    {"origin": "bottom_left"},
    {"orientation": "mirrored"},
    {"archive_contract": "some"},
    {"completeness": None},
    {"raster_storage": "dense"},
    {"background_provenance": "guess"},
    {"color_space": "GRAY"},
    {"wsi_schema_version": 3},
    {"width": 300},
    {"tile_height": 0},
    {"grid_width": 9},
    {"native_mpp_x": -1},
    {"background_rgb": [1, 2, 256]},
    {"pixel_dtype": "uint16"},
    {"raster_codec": "jpegls"},
    {"raster_codec_params": None},
    {"raster_codec_params": {"mode": "lossy", "lossless": True, "distance": 0.0, "effort": 1}},
    {"raster_codec_params": {"mode": "lossless", "lossless": True, "distance": 0.0, "effort": 11}},
    {"raster_profile_selection": []},
    {"raster_profile_selection": {"strategy": "other"}},
    {"raster_profile_selection": {"strategy": "native_passthrough_v1", "pixel_transcode": False}},
    {
        "raster_profile_selection": {
            "strategy": "source_matched_v1",
            "selected_lossless": True,
            "selected_distance": 0.0,
        }
    },
    {"record_codecs": [{"id": 0, "name": "jxl", "params": {}}]},
]


@pytest.mark.parametrize("fields", WRONG, ids=[str(fields)[:60] for fields in WRONG])
def test_headers_that_are_wrong(pack, fields):
    path = changed(pack(), **fields)
    assert (None, "schema") in [found[:2] for found in errors_of(path)]
    refused(path)


@pytest.mark.parametrize("name", ["kept slide", "slide"])
def test_the_map_of_codecs(pack, name):
    codecs = iac.read_header(pack(name))["record_codecs"]
    reason = "header field record_codecs is not that of the schema and its raster_codec"
    for wrong in (codecs[:-1], [*codecs, {**codecs[0], "id": 9}]):
        path = changed(pack(name), record_codecs=wrong)
        assert (None, "schema", reason) in errors_of(path)
        refused(path)
    assert errors_of(changed(pack(name), record_codecs=codecs[::-1])) == []
    params = {**iac.read_header(pack(name))["raster_codec_params"], "more": 1}
    path = changed(pack(name), raster_codec_params=params)
    reason = "header field raster_codec_params is not what raster_codec needs"
    assert (None, "schema", reason) in errors_of(path)
    refused(path)


@pytest.mark.parametrize("field", ["stored_tile_count", "implicit_background_tile_count"])
@pytest.mark.parametrize("value", [3, -1, None, "8", True])
def test_numbers_of_tiles(pack, field, value):
    path = changed(pack(), **{field: value})
    ((row, check, reason),) = errors_of(path)
    assert (row, check) == (None, "counts")
    assert reason.startswith(f"header field {field} is not ")
    refused(path)


def test_tables_need_their_columns(pack):
    with iac.PackReader(pack()) as reader:
        names = {*reader.index_table.column_names} - {"offset", "length", "crc32"}
    for name in names:
        path = changed(pack(), index=lambda t, name=name: t.drop([name]))
        assert (None, "schema", f"the index table has no column {name!r}") in errors_of(path)
        refused(path)
    for name in ("slide_idx", "slide_id", "patient_id", "specimen_id"):
        path = changed(pack(), slides=lambda t, name=name: t.drop([name]))
        assert errors_of(path) == [(None, "schema", f"the slide table has no column {name!r}")]
        refused(path)


@pytest.mark.parametrize(
    ("slides", "reason"),
    [
        (replaced("slide_id", 0, ""), "slide table: row 0: slide_id is empty"),
        (replaced("slide_idx", 0, 1), "slide table: row 0: slide_idx is not 0"),
        (lambda table: pa.concat_tables([table] * 2), "2 slides, expected 1"),
        (lambda table: table.slice(0, 0), "0 slides, expected 1"),
    ],
)
def test_a_pack_is_of_one_slide(pack, slides, reason):
    path = changed(pack(), slides=slides)
    assert errors_of(path) == [(None, "schema", reason)]
    refused(path)


# Column, row, value, check, reason, and whether the other package refuses it.
CELLS = [
    ("kind", 2, 9, "schema", "kind is none of the schema's", True),
    ("tile_x", 2, 4, "schema", "the tile lies outside the grid", True),
    ("tile_y", 2, None, "schema", "the tile lies outside the grid", True),
    ("tile_x", 2, 0, "ids", "the tile has the place of row 0", True),
    ("valid_width", 2, 63, "schema", "the tile has another valid size than its place", True),
    ("valid_height", 7, 64, "schema", "the tile has another valid size than its place", True),
    ("valid_height", 7, None, "schema", "the tile has another valid size than its place", True),
    ("codec_id", 2, 3, "schema", "the tile is of another codec", True),
    ("name", 2, "x", "schema", "the tile has a name", True),
    ("image_width", 2, 64, "schema", "the tile has the size of an associated image", True),
    ("flags", 2, 1, "schema", "flags are not 0", True),
    ("name", 9, "other", "schema", "the icc profile has not the name that it needs", False),
    ("name", 10, "", "schema", "the associated image has not the name that it needs", True),
    ("name", 11, "label", "ids", "the associated image has the name of row 10", True),
    ("codec_id", 9, 1, "schema", "the icc profile is of another codec", True),
    ("codec_id", 10, 0, "schema", "the associated image is of another codec", True),
    ("tile_x", 9, 0, "schema", "the icc profile has the place of a tile", True),
    ("valid_width", 8, 9, "schema", "the scanner metadata has the place of a tile", True),
    ("image_width", 10, None, "schema", "the associated image has no size", True),
    ("image_height", 9, 3, "schema", "the icc profile has the size of an image", True),
    ("name", 13, "x", "schema", "the profile is of an image that is not there", True),
    ("name", 2, None, "schema", "name is NULL", True),
]


@pytest.mark.parametrize(
    ("column", "row", "value", "check", "reason", "refuses"),
    CELLS,
    ids=[f"{column} {value}" for column, _, value, *_ in CELLS],
)
def test_a_cell_that_is_wrong(pack, column, row, value, check, reason, refuses):
    path = changed(pack(), index=replaced(column, row, value))
    assert (row, check, reason) in errors_of(path)
    refused(path, refuses)


def test_records_need_a_place(pack):
    path = changed(pack(), index=lambda table: table.drop(["offset", "length"]))
    found = errors_of(path)
    assert (None, "schema", "the index does not say where records are stored") in found


def test_images_that_are_none(pack):
    for row in (2, 10):
        path = changed(pack(), index=replaced("codec_id", row, 2))
        assert (row, "payload", "the record is no image") in errors_of(path)


def test_there_is_scanner_metadata(pack):
    path = changed(pack(), index=replaced("kind", METADATA, 2))
    assert (None, "schema", "there is no scanner metadata") in errors_of(path)
    refused(path)


def test_levels(pack):
    with iac.PackReader(pack("levels")) as reader:
        levels = reader.index_table["level"].to_pylist()
    row = levels.index(1)
    for value in (2, None):
        path = changed(pack("levels"), index=replaced("level", row, value))
        assert (row, "schema", "the tile is of no level") in errors_of(path)
    path = changed(pack("levels"), index=replaced("tile_x", row, 1))
    assert [check for _, check, _ in errors_of(path)] == ["schema", "ids"]
    path = changed(pack("levels"), index=lambda table: table.drop(["level"]))
    assert (None, "schema", "the index table has no column 'level'") in errors_of(path)


def test_images_of_another_size_or_type(pack):
    encode = iac.Codec.create("jxl", lossless=True, effort=1).encode
    for row, image, check, reason in (
        (2, tissue(64, 32), "codec", "jxl: the tile is 32x64x3 uint8, the header says 64x64"),
        (2, tissue(64, 64, 1), "payload", "the image is 64 x 64 of uint8, expected 64 x 64 x 3"),
        (2, tissue(64, 64, 3, np.uint16), "payload", "the image is 64 x 64 x 3 of uint16, exp"),
        (10, tissue(9, 7), "payload", "the image is 7 x 9 x 3 of uint8, expected 30 x 41 x 3"),
    ):
        path = with_payload(pack(), row, encode(image))
        ((found, of, text),) = errors_of(path)
        assert (found, of) == (row, check)
        assert text.startswith(reason)
        refused(path, by_peer="64 x 64 of uint8" not in text)  # it takes gray for RGB


def test_profiles_that_are_none_are_noted(pack):
    for row in (9, 13):
        report = iac.validate(with_payload(pack(), row, b"no profile"), max_decode=0)
        assert report.ok
        assert [(f.row, f.reason) for f in report.findings] == [(row, "is no ICC profile")]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (b"no json", "the scanner metadata are no JSON object"),
        (b"[1]", "the scanner metadata are no JSON object"),
        (b"[" * 100_000, "the scanner metadata are no JSON object"),
        (b"\xff", "the scanner metadata are no JSON object"),
        (b'{"source_info":{}}', "associated_images of the scanner metadata do not name"),
        (b'{"source_info":{},"associated_images":[1]}', "associated_images of the scanner "),
        (b'{"source_info":{},"associated_images":[{"name":""}]}', "associated_images of the sc"),
    ],
)
def test_metadata_that_are_none(pack, record, reason):
    path = with_payload(pack(), METADATA, ZSTD.encode(record))
    ((row, check, text),) = errors_of(path)
    assert (row, check) == (METADATA, "payload")
    assert text.startswith(reason)
    refused(path)


IMAGE = [
    ({"width": 1}, "the scanner metadata list another image"),
    ({"stored_mode": "L"}, "the scanner metadata list another image"),
    ({"alpha_handling": "kept"}, "the scanner metadata list another image"),
    ({"source_mode": None}, "the scanner metadata list another image"),
    ({"source_info": 1}, "the scanner metadata list another image"),
    ({"icc_profile_present": False}, "the scanner metadata list another image"),
    ({"name": "other"}, "the scanner metadata do not list the image"),
]


@pytest.mark.parametrize(("change", "reason"), IMAGE, ids=[str(change) for change, _ in IMAGE])
def test_metadata_of_images(pack, change, reason):
    metadata = metadata_of(pack())
    metadata["associated_images"][1].update(change)
    path = with_payload(pack(), METADATA, ZSTD.encode(json.dumps(metadata).encode()))
    found = errors_of(path)
    assert found[0] == (11, "payload", reason)
    if "name" in change:
        reason = "the scanner metadata list 1 images that are not there"
        assert found[1:] == [(METADATA, "counts", reason)]
    else:
        assert len(found) == 1
    refused(path)


@pytest.mark.parametrize("key", ["source_info", "source_storage"])
def test_metadata_of_the_source(pack, key):
    metadata = {**metadata_of(pack()), key: [1]}
    path = with_payload(pack(), METADATA, ZSTD.encode(json.dumps(metadata).encode()))
    ((row, check, reason),) = errors_of(path)
    assert (row, check) == (METADATA, "payload") and key in reason
    refused(path)


@pytest.mark.parametrize("name", SLIDES)
def test_flipped_bytes(pack, name):
    for row in range(len(iac.PackReader(pack(name)))):
        path = pack(name)
        flip_payload(path, row)
        assert (row, "checksum") in [one[:2] for one in errors_of(path)]
        assert {found for found, *_ in errors_of(path)} == {row}


def test_nothing_of_a_slide_is_in_a_report(pack):
    metadata = metadata_of(pack())
    metadata["associated_images"][1]["name"] = "secret-name"
    path = with_payload(pack(), METADATA, ZSTD.encode(json.dumps(metadata).encode()))
    changed(path, index=replaced("name", 2, "secret-name"), slides=replaced("slide_idx", 0, 3))
    text = str(iac.validate(path, max_decode=0))
    assert "secret" not in text and "slide-1" not in text and "SS1" not in text
