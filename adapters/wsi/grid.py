"""Grids of tiles over a slide, and how much tissue there is in each."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

#: Of a grid, which is a table in memory: some gigabytes.
MAX_PLACES = 1 << 26
#: Columns that say what to read.
_WANTED = ("x_um", "y_um", "size", "mpp")


def positions(
    size: tuple[float, float], tile_size: int, mpp: float, overlap: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Column and row of the places, row by row, whose tiles cover ``size`` micrometres.

    The first tile begins at the upper left corner, the last ones may reach beyond the slide.
    Raises ValueError for more than ``MAX_PLACES``.
    """
    if tile_size > np.iinfo(np.int32).max:
        raise ValueError(f"tile_size is {tile_size}, expected at most {np.iinfo(np.int32).max}")
    step = (tile_size - overlap) * mpp
    counts = []
    for side in size:
        rest = side / mpp - tile_size
        counts.append(1 + max(0, int(np.ceil(rest * mpp / step - 1e-9))))
    if math.prod(counts) > MAX_PLACES:
        raise ValueError(
            f"tiles of {tile_size} pixels are {counts[0]} x {counts[1]} places, at most "
            f"{MAX_PLACES} can be listed"
        )
    rows, columns = np.mgrid[: counts[1], : counts[0]]
    return columns.ravel(), rows.ravel()


def tissue_mask(thumbnail: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Which pixels of an RGB image are stained: those of more saturation than Otsu's threshold.

    Of a gray image (one channel) the darker ones. Where all pixels are alike there is no tissue.
    """
    pixels = thumbnail.astype(np.float64)
    if pixels.shape[2] == 1:
        values = np.iinfo(thumbnail.dtype).max - pixels[:, :, 0]
        values *= 255 / np.iinfo(thumbnail.dtype).max
    else:
        most = pixels.max(axis=2)
        values = 255 * (most - pixels.min(axis=2)) / np.maximum(most, 1)
    levels = np.rint(values).astype(np.uint8)
    return levels > otsu(np.bincount(levels.ravel(), minlength=256))


def otsu(counts: npt.NDArray[np.integer]) -> int:
    """The threshold of a histogram that parts it with the most variance between its two sides.

    Values above it are one side. The last value where there is one value only.
    """
    values = np.arange(len(counts))
    below = np.cumsum(counts)
    total, weighted = below[-1], np.cumsum(counts * values)
    above = total - below
    both = (below > 0) & (above > 0)
    if not both.any():
        return len(counts) - 1
    means = weighted[both] / below[both], (weighted[-1] - weighted[both]) / above[both]
    between = below[both] * above[both] * (means[0] - means[1]) ** 2
    return int(values[both][np.argmax(between)])


def fractions(
    mask: npt.NDArray[np.bool_],
    left: npt.NDArray[np.float64],
    top: npt.NDArray[np.float64],
    width: float,
    height: float,
) -> npt.NDArray[np.float32]:
    """How much of each rectangle, in pixels of ``mask``, is tissue; what lies outside is not."""
    sums = np.zeros((mask.shape[0] + 1, mask.shape[1] + 1))
    sums[1:, 1:] = mask.cumsum(0, dtype=np.float64).cumsum(1)

    def up_to(y: npt.NDArray[np.float64], x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Tissue above and left of points between pixels: linear in both within a pixel."""
        y, x = np.clip(y, 0, mask.shape[0]), np.clip(x, 0, mask.shape[1])
        y0 = np.minimum(y.astype(np.int64), mask.shape[0] - 1)
        x0 = np.minimum(x.astype(np.int64), mask.shape[1] - 1)
        fy, fx = y - y0, x - x0
        upper = sums[y0, x0] * (1 - fx) + sums[y0, x0 + 1] * fx
        lower = sums[y0 + 1, x0] * (1 - fx) + sums[y0 + 1, x0 + 1] * fx
        return upper * (1 - fy) + lower * fy

    right, bottom = left + width, top + height
    inside = up_to(bottom, right) - up_to(top, right) - up_to(bottom, left) + up_to(top, left)
    return np.clip(inside / (width * height), 0, 1).astype(np.float32)


def table(
    columns: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    step: float,
    tile_size: int,
    mpp: float,
    tissue: npt.NDArray[np.float32],
) -> pa.Table:
    """A row a place: what to read there, and how much of it is tissue."""
    count = len(columns)
    return pa.table(
        {
            "column": columns,
            "row": rows,
            "x_um": columns * step,
            "y_um": rows * step,
            "size": pa.array(np.full(count, tile_size, np.int32)),
            "mpp": np.full(count, mpp),
            "tissue": tissue,
        }
    )


def batches(places: Any, batch_size: int) -> Iterator[list[dict[str, Any]]]:
    """What to read of each place of a table, some at a time.

    Raises KeyError for a column that is missing, ValueError for NULLs and for several sizes.
    """
    table = pa.table(places).select(_WANTED)
    for name in _WANTED:
        if table[name].null_count:
            raise ValueError(f"the places have NULLs in column {name!r}")
    if len(pc.unique(table["size"])) > 1:
        raise ValueError("the places are of several sizes, read those of each by themselves")
    for batch in table.combine_chunks().to_batches(max_chunksize=batch_size):
        yield batch.to_pylist()
