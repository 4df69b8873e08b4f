"""Tiles made up for tests: records, arrays, and folders of image files with their manifest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from iac_query.adapters.manifests import TileRecord, write_tile_manifest
from PIL import Image

SIZE = 16


def records_of(count: int, slides: int = 2, step: int = SIZE) -> list[TileRecord]:
    """Tiles of a few slides, each of a patient, on a grid of ``step`` pixels."""
    return [
        TileRecord(
            tile_id=f"tile-é-{i}",
            patient_id=f"patient-{i % slides}",
            slide_id=f"slide-{i % slides}",
            tile_path=Path(f"{i}.png"),
            x=step * (i % 5),
            y=step * (i // 5),
            split=("train", "val")[i % 2],
        )
        for i in range(count)
    ]


def images_of(
    count: int, channels: int = 3, dtype: Any = np.uint8, size: tuple[int, int] = (SIZE, SIZE)
) -> np.ndarray:
    """Random images, (n, height, width, channels), or (n, height, width) for no channels."""
    random = np.random.default_rng(7)
    shape = (count, *size, channels) if channels else (count, *size)
    return random.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)


def write_images(folder: Path, records: list[TileRecord], images: Any) -> Path:
    """Image files below ``folder``, and a manifest of them."""
    for record, image in zip(records, images, strict=True):
        path = folder / record.tile_path
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
    write_tile_manifest(folder / "manifest.csv", records)
    return folder / "manifest.csv"


def files_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}
