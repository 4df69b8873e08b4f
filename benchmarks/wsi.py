"""Regions and builds of a whole slide, against iatro-iac-adapters, and TiffSlide and OpenSlide on
the source file.

OpenSlide takes part where openslide-python and its library are installed.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import tifffile
import tiffslide
from iac_query.adapters import wsi
from iatro.iac.adapters import wsi as peer

from iac_query import read_header

from ._measure import Timings, interleaved, print_table
from .images import make_images

SIDE, TILE, REGION, REGIONS = 20_000, 256, 512, 500
#: Micrometres a pixel: of the slide, and of the regions.
NATIVE, COARSE = 0.25, 1.0
#: Of the slide that is built.
BUILT = 4096

Region = tuple[int, int]


def tiles() -> Iterable[np.ndarray]:
    """The tiles of the slide: a few images again and again."""
    images = make_images("tiles")
    across = -(-SIDE // TILE)
    for y in range(across):
        for x in range(across):
            yield images[(7 * y + x) % len(images)]


def write_slide(path: Path, side: int, data: Any, **options: Any) -> Path:
    dots = 1e4 / NATIVE
    tifffile.imwrite(
        path,
        data,
        shape=(side, side, 3),
        dtype=np.uint8,
        tile=(TILE, TILE),
        photometric="rgb",
        resolution=(dots, dots),
        resolutionunit="CENTIMETER",
        bigtiff=True,
        **options,
    )
    return path


def regions(factor: int) -> list[Region]:
    random = np.random.default_rng(9)
    return [tuple(place) for place in random.integers(0, SIDE - REGION * factor, (REGIONS, 2))]


def read_pack(reader: Any, factor: int, workers: int, some: Iterable[Region]) -> None:
    """Regions of a pack, by our reader or the peer's."""
    for x, y in some:
        if factor == 1:
            reader.read_native_region(int(x), int(y), REGION, REGION, workers=workers)
        else:
            reader.read_region(
                x * NATIVE, y * NATIVE, REGION, REGION, mpp=NATIVE * factor, workers=workers
            )


def read_file(slide: Any, factor: int, some: Iterable[Region]) -> None:
    """Regions of the source file, which has no coarser raster: averaged as packs are."""
    side = REGION * factor
    for x, y in some:
        pixels = np.asarray(slide.read_region((int(x), int(y)), 0, (side, side)))[:, :, :3]
        if factor > 1:
            blocks = pixels.reshape(REGION, factor, REGION, factor, 3)
            np.rint(blocks.mean(axis=(1, 3)))


def in_threads(read: Callable[[Iterable[Region]], None], workers: int, all: list[Region]) -> None:
    """The regions parted among as many threads."""
    if workers == 1:
        return read(all)
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(read, [all[start::workers] for start in range(workers)]))


def reads(packs: dict[str, Path], source: Path, factor: int, workers: int, count: int) -> Timings:
    chosen = regions(factor)[:count]
    contestants: dict[str, Callable[[], Any]] = {}
    for name, package in (("ours", wsi), ("peer", peer)):
        reader = package.WsiImageReader(packs["jpeg"])
        contestants[name] = partial(read_pack, reader, factor, workers, chosen)
    files = {"TiffSlide": tiffslide.TiffSlide(source)}
    if openslide := optional("openslide"):
        files["OpenSlide"] = openslide.OpenSlide(source)
    for name, slide in files.items():
        read = partial(read_file, slide, factor)
        contestants[name] = partial(in_threads, read, workers, chosen)
    return interleaved(contestants, 3)


def optional(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def builds(folder: Path, source: Path, options: dict[str, Any], rounds: int = 3) -> Timings:
    def build(package: ModuleType, name: str) -> None:
        package.build_wsi_image_package(
            source, folder / name, slide_id="s", workers=2, overwrite=True, **options
        )

    contestants = {
        "ours": partial(build, wsi, "ours.iac"),
        "peer": partial(build, peer, "peer.iac"),
    }
    return interleaved(contestants, rounds)


def main() -> None:
    print(f"A slide of {SIDE:,} x {SIDE:,} pixels; how many times as fast as others we are.\n")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        codec = wsi_codec()
        data = (codec(tile) for tile in tiles())
        source = write_slide(folder / "slide.tif", SIDE, data, compression="jpeg")
        packs = {"jpeg": folder / "slide.iac"}
        wsi.build_wsi_image_package(source, packs["jpeg"], slide_id="s", effort=1, workers=None)
        # Else readers of packs decode another codec than those of the source file.
        assert read_header(packs["jpeg"])["raster_codec"] == "jpeg"
        lines = []
        for factor, count in ((1, REGIONS), (4, REGIONS // 10)):
            for workers in (1, 2):
                times = reads(packs, source, factor, workers, count)
                others = ["peer", "TiffSlide"]
                others += ["OpenSlide"] * ("OpenSlide" in times.names)
                lines.append(
                    [f"{factor} x native, {workers} workers", 1000 * times.median("ours") / count]
                    + [times.ratio(other, to="ours") for other in others]
                )
        columns = ["", "ms", "peer", "TiffSlide", "OpenSlide"]
        print_table(f"Regions of {REGION} x {REGION}", columns[: len(lines[0])], lines)
        small = np.concatenate([np.concatenate(make_images("tiles")[:4] * 4, 1)] * 16)
        # Of less than a bit a pixel, as the large one is, so that tiles are kept unless another
        # codec is named: copied by the peer, by us once their structure was checked.
        jpeg = {"compression": "jpeg", "compressionargs": {"level": 60}}
        built = write_slide(folder / "small.tif", BUILT, small[:BUILT, :BUILT], **jpeg)
        lines = []
        for side, title, options, rounds in (
            (SIDE, "tiles as they are", {}, 9),
            (BUILT, "tiles as they are", {}, 25),
            (BUILT, "JPEG XL lossless, effort 1", {"lossless": True, "effort": 1}, 3),
            (BUILT, "JPEG XL distance 1, effort 3", {"distance": 1.0, "effort": 3}, 3),
        ):
            times = builds(folder, source if side == SIDE else built, options, rounds)
            line = [f"{side:,} x {side:,}, {title}", 1000 * times.median("ours")]
            lines.append([*line, times.ratio("peer", to="ours")])
        print_table("Builds", ["", "ms", "peer"], lines)


def wsi_codec() -> Callable[[np.ndarray], bytes]:
    """JPEG as scanners write it, one payload an image."""
    from iac_query import Codec

    codec = Codec.create("jpeg", quality=70)
    known: dict[int, bytes] = {}

    def encode(tile: np.ndarray) -> bytes:
        if id(tile) not in known:
            known[id(tile)] = codec.encode(tile)
        return known[id(tile)]

    return encode


if __name__ == "__main__":
    main()
