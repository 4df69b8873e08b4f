"""Validation agrees with the other package's, on what that looks at."""

import shutil

import pytest
from damaged_packs import changed, features, tiles, with_payload
from iac_query.adapters.validate import validate_package
from iatro.iac.adapters.validate import validate_package as peer_validate
from packs import DATA, flip_payload, replaced, segments_of
from tile_data import images_of

import iac_query as iac


@pytest.fixture(params=["tiles_lossless", "features_f32"])
def theirs(request, tmp_path):
    """A pack that the other package wrote and can check."""
    return shutil.copy(DATA / f"{request.param}.iac", tmp_path / "x.iac")


@pytest.mark.parametrize("limits", [(8, 0), (0, 0), (1, 0)])
def test_sound_packs_are_sound_for_both(theirs, limits):
    ours, peers = validate_package(theirs, *limits), peer_validate(theirs, *limits)
    for name in ("type", "records", "decoded", "crc_checked"):
        if name in peers:
            assert ours[name] == peers[name]
    assert ours["decoded"] == peers.get("decoded", peers.get("rows_checked"))


def short_tile(path):
    codec = iac.Codec.create("jxl", lossless=True, effort=1)
    return with_payload(path, 1, codec.encode(images_of(1, size=(16, 8))[0]))


TILE_DAMAGE = {
    "id": lambda path: changed(path, index=replaced("tile_id", 2, "tile-é-0")),
    "slide": lambda path: changed(path, index=replaced("slide_idx", 2, 7)),
    "column": lambda path: changed(path, index=lambda table: table.drop_columns(["flags"])),
    "slide column": lambda path: changed(path, slides=lambda t: t.drop_columns(["patient_id"])),
    "no crc32": lambda path: changed(path, index=lambda table: table.drop_columns(["crc32"])),
    "place": lambda path: changed(path, index=replaced("offset", 1, 1 << 40)),
    "crc32": lambda path: changed(path, index=replaced("crc32", 3, 1)),
    "codec": lambda path: changed(path, codec="none", codec_params={}),
    "size": short_tile,
    "no image": lambda path: with_payload(path, 3, b"no image"),
    "header": lambda path: changed(path, tile_width=8),
}
FEATURE_DAMAGE = {
    **{name: TILE_DAMAGE[name] for name in ("id", "slide", "column", "slide column")},
    "no teacher": lambda path: changed(path, drop=("teacher",)),
    "teacher": lambda path: changed(path, teacher=""),
    "dtype": lambda path: changed(path, dtype="float99"),
    "dim": lambda path: changed(path, feature_dim=0),
    "record bytes": lambda path: changed(path, feature_record_bytes=8),
    "too short": lambda path: changed(path, data=segments_of(path)[3][:-1]),
    "too long": lambda path: changed(path, data=segments_of(path)[3] + b"more"),
}
DAMAGE = [(tiles, name, damage) for name, damage in TILE_DAMAGE.items()]
DAMAGE += [(features, name, damage) for name, damage in FEATURE_DAMAGE.items()]


@pytest.mark.parametrize(
    "build, damage",
    [pytest.param(build, damage, id=f"{build.__name__} {name}") for build, name, damage in DAMAGE],
)
def test_what_it_refuses_is_refused(tmp_path, build, damage):
    path = damage(build(tmp_path / "x.iac"))
    with pytest.raises((ValueError, KeyError, RuntimeError)):
        peer_validate(path, 0, 0)
    with pytest.raises(iac.PackError) as refused:
        validate_package(path, 0, 0)
    assert str(refused.value).startswith(f"{path}: ") and refused.value.pack == str(path)


def test_damage_it_finds_is_of_the_same_row(tmp_path):
    path = tiles(tmp_path / "x.iac")
    flip_payload(path, 4)
    with pytest.raises(ValueError, match="at row 4"):
        peer_validate(path)
    with pytest.raises(iac.PackError, match="row 4: ") as raised:
        validate_package(path)
    assert raised.value.row == 4


def test_what_we_build_is_sound_for_it(tmp_path):
    for build in (tiles, features):
        assert peer_validate(build(tmp_path / "x.iac"), 0, 0)["records"] == 6
