"""Payloads and packs to measure with. The same call makes the same bytes."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa


def notes(count: int, size: int, seed: int = 1) -> list[bytes]:
    """Payloads of ``size`` bytes that compress like clinical text: common words often, and whole
    phrases again and again; zstd 3 leaves 0.42 of 64 KiB."""
    random = np.random.default_rng(seed)
    letters = np.frombuffer(b"etaoinshrdlucmfwypvbgk0123456789", np.uint8)
    words = [
        bytes(random.choice(letters, random.integers(2, 11), p=_zipf(len(letters), 0.8))) + b" "
        for _ in range(8192)
    ]
    usual = _zipf(len(words), 0.9)
    phrases = [
        b"".join(words[i] for i in random.choice(len(words), random.integers(1, 6), p=usual))
        for _ in range(1 << 15)
    ]
    payloads = []
    for _ in range(count):
        order = random.integers(0, len(phrases), size // 8 + 8)
        text = b"".join(phrases[i] for i in order[: size // 12 + 8])
        start = int(random.integers(0, len(text) - size))
        payloads.append(text[start : start + size])
    return payloads


def _zipf(count: int, power: float) -> np.ndarray:
    weights = 1 / np.arange(1, count + 1) ** power
    return weights / weights.sum()


def write(
    package: ModuleType, path: Path, codec: str, objects: list[bytes], **params: int
) -> None:
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
