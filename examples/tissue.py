"""Tiles that look a little like tissue under a microscope, made with NumPy, and their features."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

SIZE = 64

Image = npt.NDArray[np.uint8]

_Y, _X = np.mgrid[:SIZE, :SIZE].astype(np.float32)
_PINK, _PURPLE, _BLUE, _WHITE = np.array(
    [[232, 170, 200], [120, 60, 140], [70, 60, 150], [245, 240, 245]], np.float32
)


def _distances(random: np.random.Generator, points: int) -> npt.NDArray[np.float32]:
    """Of each pixel to points dealt by chance: (points, SIZE, SIZE)."""
    places = random.uniform(-4, SIZE + 4, (points, 2, 1, 1)).astype(np.float32)
    return np.sqrt((_Y - places[:, 0]) ** 2 + (_X - places[:, 1]) ** 2)


def _nuclei(random: np.random.Generator, count: int, radius: float) -> npt.NDArray[np.bool_]:
    """The pixels of nuclei, some of which touch."""
    return _distances(random, count).min(0) < radius


def _painted(
    below: npt.NDArray[np.float32], where: npt.NDArray[np.bool_], color: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    return np.where(where[..., None], color, below)


def _tumour(random: np.random.Generator) -> npt.NDArray[np.float32]:
    """Large nuclei in a crowd."""
    return _painted(_PINK - 25, _nuclei(random, 45, random.uniform(4, 5)), _PURPLE)


def _stroma(random: np.random.Generator) -> npt.NDArray[np.float32]:
    """Wavy fibres with few nuclei."""
    angle, phase = random.uniform(0, np.pi), random.uniform(0, 6)
    across = _Y * np.cos(angle) - _X * np.sin(angle)
    along = _Y * np.sin(angle) + _X * np.cos(angle)
    bands = np.sin(across / 2.2 + 1.5 * np.sin(along / 9 + phase))
    return _painted(_PINK + 18 * bands[..., None], _nuclei(random, 6, 2.5), _PURPLE)


def _lymphocytes(random: np.random.Generator) -> npt.NDArray[np.float32]:
    """Small dark nuclei, very many."""
    return _painted(_PINK + 10, _nuclei(random, 130, 2.2), _BLUE)


def _fat(random: np.random.Generator) -> npt.NDArray[np.float32]:
    """Empty cells between thin walls, which are as far from one point as from another."""
    nearest, second = np.partition(_distances(random, 9), 1, axis=0)[:2]
    return _painted(_WHITE, second - nearest < 2, _PINK)


TISSUES: dict[str, Callable[[np.random.Generator], npt.NDArray[np.float32]]] = {
    "tumour": _tumour,
    "stroma": _stroma,
    "lymphocytes": _lymphocytes,
    "fat": _fat,
}


def tile(tissue: str, random: np.random.Generator) -> Image:
    """A tile of one of TISSUES: (SIZE, SIZE, 3)."""
    stained = (
        TISSUES[tissue](random) + random.normal(0, 8, 3) + random.normal(0, 5, (SIZE, SIZE, 1))
    )
    return np.clip(stained, 0, 255).astype(np.uint8)


def features(tiles: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """What stands in for a model: colours, contrast and edges of tiles, (n, 12) of mean 0."""
    pixels = tiles.astype(np.float32)
    measured = [pixels.mean((1, 2)), pixels.std((1, 2))]
    for step in (1, 4):  # fine and coarse
        gray = pixels[:, ::step, ::step].mean(-1)
        for axis in (1, 2):
            measured.append(np.abs(np.diff(gray, axis=axis)).mean((1, 2))[:, None])
    darkest = np.quantile(pixels.mean(-1), (0.1, 0.9), axis=(1, 2)).T
    matrix = np.concatenate([*measured, darkest], axis=1)
    return ((matrix - matrix.mean(0)) / matrix.std(0)).astype(np.float32)
