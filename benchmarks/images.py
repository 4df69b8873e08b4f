"""Decoding images: batches with one and two workers, the peer's batch, a loop over imagecodecs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
from iatro import iac as peer

import iac_query

from ._measure import interleaved, print_table
from ._packs import write

TILES, TILE_SIZE = 64, 256
SLICES, SLICE_SIZE = 16, 512


@dataclass(frozen=True)
class Case:
    name: str
    images: str  # "tiles": 8-bit RGB, "slices": 12-bit gray
    codec: str
    decode: Callable[[bytes], Any]  # of imagecodecs
    params: dict[str, Any] = field(default_factory=dict)
    target: float = 1.8  # times the peer, with two workers


CASES = [
    Case("JPEG q90", "tiles", "jpeg", imagecodecs.jpeg8_decode, {"quality": 90}, 2.4),
    Case("JPEG XL d1", "tiles", "jxl", imagecodecs.jpegxl_decode, {"distance": 1.0}),
    Case("JPEG XL lossless", "tiles", "jxl", imagecodecs.jpegxl_decode, {"lossless": True}),
    Case("HTJ2K", "tiles", "jpeg2000", imagecodecs.htj2k_decode, {"profile": "ht"}, 3.5),
    Case("JPEG-LS", "slices", "jpegls", imagecodecs.jpegls_decode),
    Case("HTJ2K", "slices", "jpeg2000", imagecodecs.htj2k_decode, {"profile": "ht"}, 3.5),
    Case("JPEG 2000", "slices", "jpeg2000", imagecodecs.jpeg2k_decode),
    Case("JPEG XL lossless", "slices", "jxl", imagecodecs.jpegxl_decode, {"lossless": True}),
]


def smooth(random: np.random.Generator, shape: tuple[int, ...], cells: int) -> np.ndarray:
    """A random field that changes over ``cells`` pixels, 0 to 1."""
    coarse = random.random((shape[0] // cells + 2, shape[1] // cells + 2, *shape[2:]))
    rows, columns = (np.arange(side) / cells for side in shape[:2])
    row, column = rows.astype(int), columns.astype(int)
    down = (rows - row).reshape(-1, 1, *[1] * (len(shape) - 2))
    across = (columns - column).reshape(1, -1, *[1] * (len(shape) - 2))
    top = coarse[row][:, column] * (1 - across) + coarse[row][:, column + 1] * across
    bottom = coarse[row + 1][:, column] * (1 - across) + coarse[row + 1][:, column + 1] * across
    return top * (1 - down) + bottom * down


def make_images(kind: str) -> list[np.ndarray]:
    """Stained tissue, or slices of 12 bits: structure on two scales and a little noise."""
    random = np.random.default_rng(4)
    images = []
    for _ in range(TILES if kind == "tiles" else SLICES):
        if kind == "tiles":
            shape, low, span, noise = (TILE_SIZE, TILE_SIZE, 3), 90, 140, 3.0
        else:
            shape, low, span, noise = (SLICE_SIZE, SLICE_SIZE), 200, 2200, 12.0
        field = 0.6 * smooth(random, shape, 48) + 0.4 * smooth(random, shape, 7)
        values = low + span * field + random.normal(0, noise, shape)
        images.append(
            values.clip(0, 255 if kind == "tiles" else 4095).astype(
                np.uint8 if kind == "tiles" else np.uint16
            )
        )
    return images


def contestants_of(
    case: Case, path: Path, images: list[np.ndarray]
) -> dict[str, Callable[[], Any]]:
    rows = list(range(len(images)))
    ours, theirs = iac_query.VariableRecordPack(path), peer.VariableRecordPack(str(path))
    payloads = [bytes(ours.read_bytes(row)) for row in rows]
    if case.params.get("lossless") or case.codec in ("jpegls", "jpeg2000"):
        for found, image in zip(ours.read_many_contiguous(rows), images, strict=True):
            if not np.array_equal(found, image):
                raise AssertionError(f"{case.name}: other pixels")
    return {
        "one": partial(ours.read_many_contiguous, rows, workers=1),
        "two": partial(ours.read_many_contiguous, rows, workers=2),
        "peer": partial(theirs.read_many, rows),
        "imagecodecs": lambda: [case.decode(payload) for payload in payloads],
    }


def main(rounds: int = 9) -> None:
    print("Megabytes of pixels a second, and how many times as fast as the others we are.\n")
    images = {kind: make_images(kind) for kind in ("tiles", "slices")}
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            path = Path(folder) / f"{len(lines)}.iac"
            write(iac_query, path, case.codec, images[case.images], **case.params)
            times = interleaved(contestants_of(case, path, images[case.images]), rounds)
            megabytes = sum(image.nbytes for image in images[case.images]) / 1e6
            lines.append(
                [
                    f"{case.name}, {case.images}",
                    megabytes / times.median("one"),
                    times.ratio("imagecodecs", to="one"),
                    times.ratio("one", to="two"),
                    times.ratio("peer", to="one"),
                    times.ratio("peer", to="two"),
                    case.target,
                ]
            )
    columns = ["", "MB/s", "imagecodecs", "2 workers / 1", "peer", "peer, 2 workers", "target"]
    print_table(f"{TILES} tiles of {TILE_SIZE}, {SLICES} slices of {SLICE_SIZE}", columns, lines)


if __name__ == "__main__":
    main()
