"""Tiles and iatro-iac-adapters: each reads the other's packs, and it refuses what is beyond it."""

import hashlib
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from iac_query.adapters import tiles
from iac_query.adapters.manifests import TileRecord
from iatro.iac.adapters import manifests as peer_manifests
from iatro.iac.adapters import tiles as peer
from iatro.iac.adapters.validate import validate_package
from packs import DATA, MANIFEST
from tile_data import images_of, records_of, write_images

import iac_query as iac
from iac_query import Codec

GOLDEN = sorted(
    name for name, entry in MANIFEST.items() if entry["header"]["payload_type"] == "image_tiles"
)
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6)


def fields(records) -> list[dict]:
    return [vars(record) for record in records]


def test_the_golden_packs_are_here():
    assert GOLDEN == ["tiles_lossless.iac"]


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_packs_are_those_of_their_manifest(name: str):
    entry = MANIFEST[name]
    theirs = peer.TilePackageReader(DATA / name)
    with tiles.TilePackageReader(DATA / name) as ours:
        batch = ours.read_batch(range(len(ours)))
        for record, image in zip(entry["records"], batch, strict=True):
            row = record["row"]
            assert hashlib.sha256(image.tobytes()).hexdigest() == record["decoded"]["sha256"]
            np.testing.assert_array_equal(theirs.read_array_at(row), image)
            assert ours.tile_id_at(row) == theirs.tile_id_at(row)
            np.testing.assert_array_equal(ours.read_image(ours.tile_id_at(row)), image)
    assert fields(tiles.read_package_manifest(DATA / name)) == fields(
        peer.read_package_manifest(DATA / name)
    )
    assert tiles.read_package_metadata(DATA / name) == peer.read_package_metadata(DATA / name)


@pytest.mark.parametrize("lossless", [True, False])
def test_packs_of_the_same_files_are_alike(tmp_path: Path, lossless: bool):
    images = images_of(6) // 8 + np.linspace(20, 200, 16, dtype=np.uint8)[:, None, None]
    manifest = write_images(tmp_path / "in", records_of(6), images)
    for package, name in ((tiles, "ours.iac"), (peer, "theirs.iac")):
        package.build_tile_package(
            manifest, tmp_path / name, tmp_path / "in", lossless, distance=0.5, effort=3, workers=2
        )
    ours, theirs = (iac.PackReader(tmp_path / name) for name in ("ours.iac", "theirs.iac"))
    headers = [
        {
            key: value
            for key, value in reader.header.items()
            if key not in ("created_by", "data_length")
        }
        for reader in (ours, theirs)
    ]
    assert headers[0] == headers[1]
    assert ours.slide_table.equals(theirs.slide_table)
    layout = ["offset", "length", "crc32"]
    assert ours.index_table.schema == theirs.index_table.schema
    assert ours.index_table.drop_columns(layout).equals(theirs.index_table.drop_columns(layout))
    for read in (tiles, peer):
        a, b = (
            np.array(read.TilePackageReader(tmp_path / name).read_arrays_at(range(6)), int)
            for name in ("ours.iac", "theirs.iac")
        )
        # The two encoders are of different versions of libjxl.
        assert np.abs(a - b).max() <= (0 if lossless else 24)
        if lossless:
            np.testing.assert_array_equal(a, images)
    for name in ("ours.iac", "theirs.iac"):
        assert validate_package(tmp_path / name, max_decode=0)["decoded"] == 6


@st.composite
def packs_of_tiles(draw: st.DrawFn):
    """Tiles on a grid, in any order, of slides of patients."""
    slides = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    patients = [draw(NAMES) for _ in slides]
    ids = draw(st.lists(NAMES, min_size=1, max_size=6, unique=True))
    stride = draw(st.tuples(st.integers(1, 300), st.integers(1, 300)))
    records = []
    for id in ids:
        at = draw(st.integers(0, len(slides) - 1))
        x, y = (draw(st.integers(0, 65535)) * step for step in stride)
        records.append(TileRecord(id, patients[at], slides[at], Path("x"), x, y, draw(NAMES)))
    size = draw(st.tuples(st.integers(1, 20), st.integers(1, 20)))
    return records, stride, images_of(len(ids), size=size)


@settings(max_examples=25)
@given(made=packs_of_tiles(), default=st.booleans())
def test_what_we_build_it_reads(made, default):
    records, (stride_x, stride_y), images = made
    if default:
        stride_x = stride_y = None
        records = [TileRecord(**{**vars(r), "x": r.x % 65536, "y": r.y % 65536}) for r in records]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.iac"
        tiles.build_tile_package_from_arrays(
            records, images, path, True, effort=2, stride_x=stride_x, stride_y=stride_y
        )
        assert validate_package(path, max_decode=0, max_crc=0) == {
            "type": "image_tiles",
            "records": len(records),
            "codec": "jxl",
            "decoded": len(records),
            "crc_checked": len(records),
        }
        theirs = peer.TilePackageReader(path)
        np.testing.assert_array_equal(theirs.read_arrays_at(range(len(records))), images)
        with tiles.TilePackageReader(path) as ours:
            np.testing.assert_array_equal(ours.read_batch(range(len(records))), images)
        found = tiles.read_package_manifest(path)
        assert fields(found) == fields(peer.read_package_manifest(path))
        places = [(r.tile_id, r.patient_id, r.slide_id, r.x, r.y, r.split) for r in records]
        assert places == [(r.tile_id, r.patient_id, r.slide_id, r.x, r.y, r.split) for r in found]
        other = Path(folder) / "theirs.iac"
        peer.build_tile_package_from_records(
            [peer_manifests.TileRecord(**vars(r)) for r in records],
            theirs_payloads(path),
            other,
            tile_width=images.shape[2],
            tile_height=images.shape[1],
            lossless=True,
            effort=2,
            stride_x=stride_x,
            stride_y=stride_y,
        )
        assert without_maker(other) == without_maker(path)


def theirs_payloads(path: Path) -> list[bytes]:
    with iac.PackReader(path) as reader:
        return reader.read_payloads(range(len(reader)))


def without_maker(path: Path) -> bytes:
    """A pack's bytes behind its header, and the header without who made it."""
    raw = path.read_bytes()
    header = {k: v for k, v in iac.read_header(path).items() if k != "created_by"}
    return repr(sorted(header.items())).encode() + raw[iac.HEADER_BYTES :]


@pytest.mark.parametrize(
    ("images", "codec"),
    [
        (images_of(3, 0), None),
        (images_of(3, 4), None),
        (images_of(3, 3, np.uint16), None),
        (images_of(3), Codec.create("jpeg")),
        (images_of(3), None),
    ],
)
def test_it_refuses_what_is_beyond_it(tmp_path: Path, images, codec):
    path = tmp_path / "t.iac"
    jxl = {} if codec else {"lossless": True, "effort": 2}
    tiles.build_tile_package_from_arrays(
        records_of(3), images, path, codec=codec, extended=True, **jxl
    )
    reader = peer.TilePackageReader(path)
    for call in (
        lambda: reader.read_array_at(0),
        lambda: reader.read_arrays_at([0, 1]),
        lambda: reader.read_image_at(0),
        lambda: reader.read_images_at([0]),
        lambda: reader.read_image("tile-é-0"),
        lambda: reader.tile_id_at(0),
        lambda: peer.read_package_manifest(path),
        lambda: list(peer.iter_package_tiles(path)),
        lambda: validate_package(path),
    ):
        with pytest.raises((ValueError, KeyError, TypeError)):
            call()


def test_gray_and_alpha_in_its_packs_read_as_it_reads_them(tmp_path: Path):
    for channels in (0, 4):
        images = images_of(2, channels)
        path = tmp_path / f"{channels}.iac"
        peer.build_tile_package_from_records(
            [peer_manifests.TileRecord(**vars(r)) for r in records_of(2)],
            [peer.encode_jxl_array(image, True, None, 2) for image in images],
            path,
            tile_width=16,
            tile_height=16,
        )
        theirs = peer.TilePackageReader(path)
        with tiles.TilePackageReader(path) as ours:
            for row in (0, 1):
                np.testing.assert_array_equal(ours.read_array_at(row), theirs.read_array_at(row))
                np.testing.assert_array_equal(ours.read_image_at(row), theirs.read_image_at(row))
            batch = ours.read_batch([0, 1])
            np.testing.assert_array_equal(batch.reshape(images.shape), images)
