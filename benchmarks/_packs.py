"""Payloads and packs to measure with. The same call makes the same bytes."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa


def tiles(count: int, size: int) -> list[bytes]:
    """Raw RGB pixels of slide tiles: noisy tissue beside even glass. zstd 3 leaves 0.42 of them."""
    random = np.random.default_rng(1)
    width = 148
    height = -(-size // (3 * width))
    payloads = []
    for _ in range(count):
        pixels = random.normal((180, 120, 170), 18, (height, width, 3)).clip(0, 255)
        border = random.uniform(0, 0.94 * width) + random.integers(-2, 3, height).cumsum()
        pixels[np.arange(width) >= border[:, None]] = (243, 241, 244)
        payloads.append(pixels.astype(np.uint8).tobytes()[:size])
    return payloads


def lines(count: int, size: int) -> list[bytes]:
    """Short texts: readings of an instrument, cut to ``size`` bytes."""
    random = np.random.default_rng(1)
    readings = random.integers(0, 1000, (count, size // 40 + 2)).tolist()
    return [
        "".join(f"lab {value % 7} value {value} unit mmol/l; " for value in row).encode()[:size]
        for row in readings
    ]


def write(package: ModuleType, path: Path, codec: str, objects: list[bytes], **params: Any) -> None:
    """Writes a pack with ``package``, the peer or iac_query."""
    slides = pa.table({"slide_idx": pa.array([0], pa.uint8()), "slide_id": ["s0"]})
    index = pa.table({"item": pa.array(range(len(objects)), pa.uint32())})
    package.VariableRecordPack.build(
        str(path),
        payload_type="benchmark",
        slide_table=slides,
        index_table=index,
        objects=objects,
        codec=package.Codec.create(codec, **params),
    )
