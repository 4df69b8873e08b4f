"""Features and iatro-iac-adapters: each reads the other's packs, and it refuses what is beyond."""

import hashlib
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from iac_query.adapters import features
from iatro.iac.adapters import features as peer
from iatro.iac.adapters import manifests as peer_manifests
from iatro.iac.adapters.validate import validate_package
from packs import DATA, MANIFEST
from test_features import NARROW, WIDE, matrix_of
from test_tiles_peer import fields, packs_of_tiles, without_maker
from tile_data import records_of

GOLDEN = sorted(
    name
    for name, entry in MANIFEST.items()
    if entry["header"]["payload_type"] == "teacher_features"
)


def test_the_golden_packs_are_here():
    assert GOLDEN == ["features_f32.iac"]


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_packs_are_those_of_their_manifest(name: str):
    entry = MANIFEST[name]
    theirs = peer.FeatureCacheReader(DATA / name)
    with features.FeatureCacheReader(DATA / name) as ours:
        rows = range(len(ours))
        matrix = ours.read_matrix(rows)
        assert hashlib.sha256(matrix.tobytes()).hexdigest() == entry["read_matrix"]["sha256"]
        np.testing.assert_array_equal(ours.read_features_at(rows), theirs.read_features_at(rows))
        for record in entry["records"]:
            row = record["row"]
            id = ours.tile_id_at(row)
            assert id == theirs.tile_id_at(row)
            found = ours.read_feature(id)
            assert hashlib.sha256(found.tobytes()).hexdigest() == record["decoded"]["sha256"]
    assert fields(features.read_feature_package_records(DATA / name)) == fields(
        peer.read_feature_package_records(DATA / name)
    )


@settings(max_examples=40)
@given(
    made=packs_of_tiles(),
    dtype=st.sampled_from(NARROW),
    dim=st.integers(1, 5),
    geometry=st.fixed_dictionaries(
        {}, optional={"tile_width": st.integers(1, 99), "tile_height": st.integers(1, 99)}
    ),
    strides=st.booleans(),
)
def test_packs_of_the_same_features_are_the_same(made, dtype, dim, geometry, strides):
    records, (stride_x, stride_y), _ = made
    matrix = matrix_of(dtype, len(records), dim)
    if strides:
        geometry = {**geometry, "stride_x": stride_x, "stride_y": stride_y}
    else:
        records = [type(r)(**{**vars(r), "x": r.x % 65536, "y": r.y % 65536}) for r in records]
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder) / "ours.iac", Path(folder) / "theirs.iac"
        features.build_teacher_feature_package(records, matrix, ours, "t", dtype, **geometry)
        peer.build_teacher_feature_package(
            [peer_manifests.TileRecord(**vars(r)) for r in records],
            matrix,
            theirs,
            "t",
            dtype,
            **geometry,
        )
        assert without_maker(ours) == without_maker(theirs)
        assert validate_package(ours) == validate_package(theirs)
        reader = peer.FeatureCacheReader(ours)
        for record, values in zip(records, matrix, strict=True):
            found = reader.read_feature(record.tile_id)
            np.testing.assert_array_equal(found, values.astype(np.float32))


@pytest.mark.parametrize("dtype", [*WIDE, "float32"])
def test_it_refuses_the_extended_schema(tmp_path: Path, dtype: str):
    path = tmp_path / "f.iac"
    features.build_teacher_feature_package(
        records_of(3), matrix_of(dtype, 3), path, "t", dtype, extended=True
    )
    reader = peer.FeatureCacheReader(path)
    for call in (
        lambda: reader.read_feature("tile-é-0"),
        lambda: reader.tile_id_at(0),
        lambda: peer.read_feature_package_records(path),
        lambda: validate_package(path),
    ):
        with pytest.raises(ValueError, match="teacher_features_extended"):
            call()
    for call in (lambda: reader.read_feature_at(0), lambda: reader.read_features_at([0, 1])):
        with pytest.raises(KeyError, match="'dtype'"):
            call()


@pytest.mark.parametrize("dtype", WIDE)
def test_wide_features_of_its_own_are_read(tmp_path: Path, dtype: str):
    matrix = matrix_of(dtype, 3)
    path = tmp_path / "f.iac"
    records = [peer_manifests.TileRecord(**vars(r)) for r in records_of(3)]
    peer.build_teacher_feature_package(records, matrix, path, "t", dtype)
    with features.FeatureCacheReader(path) as reader:
        assert reader.read_matrix([0]).dtype == dtype
        np.testing.assert_array_equal(reader.read_matrix(range(3)), matrix)
        theirs = peer.FeatureCacheReader(path).read_features_at(range(3))
        np.testing.assert_array_equal(reader.read_features_at(range(3)), theirs)
