"""Building and reading packs of image tiles and of features, against iatro-iac-adapters."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from iac_query.adapters import features, manifests, tiles
from iatro.iac.adapters import features as peer_features
from iatro.iac.adapters import manifests as peer_manifests
from iatro.iac.adapters import tiles as peer_tiles
from PIL import Image

from ._measure import Timings, interleaved, print_table
from .images import TILES, make_images

BUILT, READ, SIZE = 32, 256, 256
FEATURES, DIM = 20_000, 512

#: How tiles are encoded.
BUILDS = {
    "JPEG XL lossless, effort 1": {"lossless": True, "effort": 1},
    "JPEG XL lossless, effort 3": {"lossless": True, "effort": 3},
    "JPEG XL distance 1, effort 3": {"effort": 3},
    "JPEG XL distance 1, effort 7": {},
}


def records(package: ModuleType, count: int) -> list[Any]:
    return [
        package.TileRecord(
            tile_id=f"tile-{i}",
            patient_id=f"patient-{i % 7}",
            slide_id=f"slide-{i % 7}",
            tile_path=Path(f"{i}.png"),
            x=SIZE * (i % 200),
            y=SIZE * (i // 200),
            split="train",
        )
        for i in range(count)
    ]


def write_files(folder: Path) -> Path:
    """Image files and their manifest."""
    listed = records(manifests, BUILT)
    for record, image in zip(listed, make_images("tiles")[:BUILT], strict=True):
        Image.fromarray(image).save(folder / record.tile_path)
    manifests.write_tile_manifest(folder / "manifest.csv", listed)
    return folder / "manifest.csv"


def builds(folder: Path, manifest: Path, options: dict[str, Any]) -> Timings:
    def build(package: ModuleType, name: str) -> None:
        package.build_tile_package(
            manifest, folder / name, folder, overwrite=True, workers=2, **options
        )

    contestants = {
        "ours": partial(build, tiles, "ours.iac"),
        "peer": partial(build, peer_tiles, "peer.iac"),
    }
    return interleaved(contestants, 3)


def reads(folder: Path, options: dict[str, Any]) -> Timings:
    """256 tiles in random order into one array."""
    images = np.array(make_images("tiles") * (READ // TILES))
    tiles.build_tile_package_from_arrays(
        records(manifests, READ), images, folder / "read.iac", overwrite=True, **options
    )
    rows = np.random.default_rng(3).permutation(READ)
    ours = tiles.TilePackageReader(folder / "read.iac")
    theirs = peer_tiles.TilePackageReader(folder / "read.iac")
    contestants: dict[str, Callable[[], Any]] = {
        "ours": partial(ours.read_batch, rows, workers=2),
        "peer": lambda: np.stack(theirs.read_arrays_at(rows.tolist(), workers=2)),
    }
    found = [read() for read in contestants.values()]
    if np.abs(found[0].astype(int) - found[1]).max() > 2:
        raise AssertionError("other pixels")
    return interleaved(contestants, 7)


def feature_builds(folder: Path, as_rows: Callable[[np.ndarray], Any]) -> Timings:
    matrix = np.random.default_rng(1).random((FEATURES, DIM), np.float32)
    listed = {package: records(package, FEATURES) for package in (manifests, peer_manifests)}

    def build(package: ModuleType, module: ModuleType, name: str) -> None:
        module.build_teacher_feature_package(
            listed[package], as_rows(matrix), folder / name, "teacher", overwrite=True
        )

    contestants = {
        "ours": partial(build, manifests, features, "ours.iac"),
        "peer": partial(build, peer_manifests, peer_features, "peer.iac"),
    }
    return interleaved(contestants, 5)


def main() -> None:
    print("How many times as fast as the peer we are, with two workers.\n")
    lines = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        manifest = write_files(folder)
        for title, options in BUILDS.items():
            times = builds(folder, manifest, options)
            per_tile = 1000 * times.median("ours") / BUILT
            lines.append([f"build, {title}", per_tile, times.ratio("peer", to="ours"), 1.5])
        for title in ("JPEG XL lossless, effort 3", "JPEG XL distance 1, effort 3"):
            times = reads(folder, BUILDS[title])
            per_tile = 1000 * times.median("ours") / READ
            lines.append([f"read, {title}", per_tile, times.ratio("peer", to="ours"), 1.3])
        print_table(f"Tiles of {SIZE} x {SIZE}", ["", "ms a tile", "peer", "target"], lines)
        lines = []
        for title, as_rows in {"a matrix": lambda matrix: matrix, "a list of rows": list}.items():
            times = feature_builds(folder, as_rows)
            lines.append([title, times.median("ours"), times.ratio("peer", to="ours")])
        print_table(f"Build {FEATURES:,} features of {DIM} float32", ["", "s", "peer"], lines)


if __name__ == "__main__":
    main()
