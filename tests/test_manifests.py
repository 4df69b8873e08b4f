"""CSV manifests of tiles, and tiles found by the names of their files."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from iac_query.adapters import manifests
from iac_query.adapters.manifests import (
    TILE_COLUMNS,
    TileRecord,
    find_tiles,
    read_tile_manifest,
    write_tile_manifest,
)
from iatro.iac.adapters import manifests as peer
from tile_data import records_of

HEAD = ",".join(TILE_COLUMNS) + "\n"
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=9)
RECORDS = st.builds(
    TileRecord,
    tile_id=TEXT,
    patient_id=TEXT,
    slide_id=TEXT,
    tile_path=TEXT.map(Path),
    x=st.integers(-(10**6), 10**6),
    y=st.integers(0, 10**6),
    split=TEXT,
)


def fields(records) -> list[dict]:
    return [vars(record) for record in records]


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_columns_are_those_of_the_peer():
    assert peer.TILE_COLUMNS == TILE_COLUMNS
    assert peer.REQUIRED_TILE_COLUMNS == manifests.REQUIRED_TILE_COLUMNS


@given(records=st.lists(RECORDS, max_size=6))
def test_manifests_are_equal_in_both(records):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "new" / "ours.csv"
        write_tile_manifest(path, records)
        assert read_tile_manifest(path) == records
        assert fields(peer.read_tile_manifest(path)) == fields(records)
        other = Path(folder) / "theirs.csv"
        peer.write_tile_manifest(other, fields(records))
        assert other.read_bytes() == path.read_bytes()


def test_columns_come_in_any_order_with_others_between_them(tmp_path: Path):
    path = write(
        tmp_path / "m.csv",
        "\ufeffstain,y,x,split,tile_path,slide_id,patient_id,tile_id\nHE,1,2,,a b/x.png,s,p,t\n\n",
    )
    assert read_tile_manifest(path) == [TileRecord("t", "p", "s", Path("a b/x.png"), 2, 1, "")]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", r"line 0: tile manifest missing columns: \['patient_id', .*'y'\]"),
        (HEAD.replace(",split", ""), r"line 1: tile manifest missing columns: \['split'\]"),
        (HEAD + "t,p,s,x.png,1\n", "line 2: has more or fewer cells"),
        (HEAD + "t,p,s,x.png,1,2,,9\n", "line 2: has more or fewer cells"),
        (HEAD + "t,p,s,x.png,0,0,\nt,p,s,x.png,1.0,2,\n", "line 3: x is '1.0', expected an int"),
        (HEAD + "t,p,s,x.png,1,,\n", "line 2: y is '', expected an int"),
        (HEAD + 't,p,s,"x.png,1,2,\n', "line 1: unexpected end of data"),
    ],
)
def test_a_bad_manifest_is_named_with_its_line(tmp_path: Path, text: str, reason: str):
    path = write(tmp_path / "m.csv", text)
    with pytest.raises(ValueError, match=rf"m\.csv: {reason}"):
        read_tile_manifest(path)


def test_a_manifest_that_is_not_utf8_is_named(tmp_path: Path):
    path = tmp_path / "m.csv"
    path.write_bytes((HEAD + "é,p,s,x.png,1,2,\n").encode("latin-1"))
    with pytest.raises(ValueError, match=r"m\.csv: .*utf-8"):
        read_tile_manifest(path)
    with pytest.raises(FileNotFoundError, match=r"missing\.csv"):
        read_tile_manifest(tmp_path / "missing.csv")


def test_writing_refuses_unknown_keys(tmp_path: Path):
    with pytest.raises(ValueError, match="stain"):
        write_tile_manifest(tmp_path / "m.csv", [{"tile_id": "t", "stain": "HE"}])


def touch(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def test_tiles_are_found_by_the_names_of_their_files(tmp_path: Path):
    touch(tmp_path, "p2/a_b/0_16.png", "p1/s-1/32_0.png", "p1/s-1/4_0.png", "p1/notes.txt")
    assert find_tiles(tmp_path, "{patient_id}/{slide_id}/{x}_{y}.png") == [
        TileRecord("p1/s-1/32_0", "p1", "s-1", tmp_path / "p1/s-1/32_0.png", 32, 0, ""),
        TileRecord("p1/s-1/4_0", "p1", "s-1", tmp_path / "p1/s-1/4_0.png", 4, 0, ""),
        TileRecord("p2/a_b/0_16", "p2", "a_b", tmp_path / "p2/a_b/0_16.png", 0, 16, ""),
    ]


def test_a_pattern_may_tell_all(tmp_path: Path):
    name = "val/p-1.s(2) t 3 x8,y9.jpeg"
    touch(tmp_path, name)
    pattern = "{split}/{patient_id}.{slide_id} t {tile_id} x{x},y{y}.jpeg"
    assert find_tiles(tmp_path, pattern) == [
        TileRecord("3", "p-1", "s(2)", tmp_path / name, 8, 9, "val")
    ]


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("{patient_id}/{x}_{y}.png", "expected the fields"),
        ("{patient_id}/{slide_id}/{x}_{y}_{stain}.png", "expected the fields"),
        ("{patient_id}/{slide_id}/{x}_{x}_{y}.png", "expected the fields"),
        ("{patient_id}/{slide_id}/{x}_{y}", "expected a suffix"),
        ("{patient_id}/{slide_id}/{x}_{y}.{split}", "expected a suffix"),
        ("{patient_id}{slide_id}/{x}_{y}.png", "nothing says where patient_id ends"),
    ],
)
def test_a_pattern_that_does_not_say_enough_is_refused(tmp_path: Path, pattern, reason):
    with pytest.raises(ValueError, match=reason):
        find_tiles(tmp_path, pattern)


@pytest.mark.parametrize("name", ["p/s/1_x.png", "p/1_2.png", "p/s/q/1_2.png", "p/s/1_2.PNG"])
def test_a_file_that_does_not_fit_is_named(tmp_path: Path, name: str):
    touch(tmp_path, "p/s/0_0.png", name)
    with pytest.raises(ValueError, match=rf"{name}: its name does not fit"):
        find_tiles(tmp_path, "{patient_id}/{slide_id}/{x}_{y}.png")


def test_a_folder_without_tiles_is_an_error(tmp_path: Path):
    touch(tmp_path, "x.txt")
    with pytest.raises(ValueError, match=r"no file with the suffix \.png"):
        find_tiles(tmp_path, "{patient_id}/{slide_id}/{x}_{y}.png")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        find_tiles(tmp_path / "nowhere", "{patient_id}/{slide_id}/{x}_{y}.png")


def test_records_are_rows(tmp_path: Path):
    write_tile_manifest(tmp_path / "m.csv", records_of(3))
    assert read_tile_manifest(tmp_path / "m.csv") == records_of(3)
