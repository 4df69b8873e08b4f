"""Frames of a series in space: PS3.3 C.7.6.2.1.1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .functional_groups import (
    FUNCTIONAL_GROUPS,
    GRID_FRAME_OFFSETS,
    IMAGE_ORIENTATION,
    IMAGE_POSITION,
    PIXEL_SPACING,
    SLICE_THICKNESS,
    SPACING_BETWEEN_SLICES,
    frame_elements,
    frame_offset,
    numbers_of,
)

Json = dict[str, Any]

_FRAME_OF_REFERENCE = "00200052"

#: What says where a frame lies.
PLANE_ELEMENTS = {
    *FUNCTIONAL_GROUPS,
    _FRAME_OF_REFERENCE,
    "00209113",
    "00209116",
    "00289110",
    IMAGE_POSITION,
    IMAGE_ORIENTATION,
    PIXEL_SPACING,
    GRID_FRAME_OFFSETS,
}

#: Frames nearer to each other along the normal are at one position, mm.
_SAME_POSITION = 1e-3
#: Cosines that differ by no more are one orientation.
_SAME_ORIENTATION = 1e-4
#: A step longer than the usual one by this factor leaves out slices.
_GAP = 1.5


@dataclass(frozen=True)
class Gap:
    """Slices that are missing behind slice ``after``: about so many, over ``length`` mm."""

    after: int
    missing: int
    length: float


@dataclass(frozen=True)
class Volume:
    """Frames ordered along the normal of their plane."""

    #: (slices, rows, columns), or (slices, rows, columns, samples).
    array: npt.NDArray[Any]
    #: Distances of slices (along the normal), rows and columns, mm.
    spacing: tuple[float, float, float]
    #: (4, 4) float64: (slice, row, column, 1) to patient coordinates (x, y, z, 1), mm, LPS: x to
    #: the left, y to the back, z to the head. Holds behind a gap only as far as that is reported.
    affine: npt.NDArray[np.float64]
    #: The pack's row of each slice.
    rows: tuple[int, ...]
    #: Where slices are missing.
    gaps: tuple[Gap, ...]
    #: Rows left out because a slice at their position came before.
    duplicates: tuple[int, ...]
    #: The largest distance of a slice's position from where the affine has it, mm; behind gaps, as
    #: many slices further as are missing.
    deviation: float
    #: Angle between the stack's direction and the normal, degrees: a tilted gantry's.
    tilt: float


@dataclass(frozen=True)
class Plane:
    """Where one frame lies."""

    row: int
    position: npt.NDArray[np.float64]  # of the first pixel's centre, mm
    along_columns: npt.NDArray[np.float64]  # unit vector from one column to the next
    along_rows: npt.NDArray[np.float64]
    spacing: tuple[float, float]  # of rows, of columns, mm
    thickness: float | None
    frame_of_reference: str | None

    @property
    def normal(self) -> npt.NDArray[np.float64]:
        """Unit vector across the plane."""
        return np.cross(self.along_columns, self.along_rows)


def plane_of(dataset: Json, frame: int, row: int) -> Plane:
    """The plane of a frame of an instance with that JSON model.

    Raises ValueError where the header does not say.
    """
    elements = frame_elements(dataset, frame)
    position = numbers_of(elements, IMAGE_POSITION, 3)
    cosines = numbers_of(elements, IMAGE_ORIENTATION, 6)
    spacing = numbers_of(elements, PIXEL_SPACING, 2)
    for name, value in (
        ("Image Position (Patient)", position),
        ("Image Orientation (Patient)", cosines),
        ("Pixel Spacing", spacing),
    ):
        if value is None:
            raise ValueError(f"has no {name}, a volume needs it")
    axes = np.array(cosines).reshape(2, 3)
    lengths = np.linalg.norm(axes, axis=1)
    if (abs(lengths - 1) > 1e-2).any() or abs(axes[0] @ axes[1]) > 1e-2:
        raise ValueError("its Image Orientation (Patient) is not two unit vectors at right angles")
    axes /= lengths[:, None]
    if min(spacing) <= 0:
        raise ValueError("its Pixel Spacing is not above 0")
    thickness = numbers_of(elements, SPACING_BETWEEN_SLICES, 1)
    thickness = thickness or numbers_of(elements, SLICE_THICKNESS, 1)
    return Plane(
        row=row,
        position=np.array(position) + frame_offset(dataset, frame) * np.cross(*axes),
        along_columns=axes[0],
        along_rows=axes[1],
        spacing=(spacing[0], spacing[1]),
        thickness=abs(thickness[0]) if thickness else None,
        frame_of_reference=next(iter(dataset.get(_FRAME_OF_REFERENCE, {}).get("Value", ())), None),
    )


def stacked(
    planes: Sequence[Plane],
    read: Callable[[list[int]], npt.NDArray[Any]],
    max_deviation: float,
) -> Volume:
    """The volume of parallel planes. ``read`` gives the pixels of rows as one array.

    Raises ValueError where they are not of one orientation, pixel spacing and frame of reference,
    or one lies further than ``max_deviation`` mm from where the affine has it.
    """
    first = planes[0]
    _require_one_frame_of_reference(planes)
    _require_parallel(planes)
    normal = first.normal
    depths = np.array([plane.position @ normal for plane in planes])
    order = np.argsort(depths, kind="stable")
    kept, duplicates = [int(order[0])], []
    slices = [0]  # of planes in that order
    for i in order[1:].tolist():
        if depths[i] - depths[kept[-1]] < _SAME_POSITION:
            duplicates.append(planes[i].row)
        else:
            kept.append(i)
        slices.append(len(kept) - 1)
    step, gaps, tilt = _steps([planes[i] for i in kept], depths[kept], normal)
    affine = np.eye(4)
    affine[:3, 0] = step
    affine[:3, 1] = first.along_rows * first.spacing[0]
    affine[:3, 2] = first.along_columns * first.spacing[1]
    affine[:3, 3] = planes[kept[0]].position
    rows = [planes[i].row for i in kept]
    ordered = [planes[i] for i in order.tolist()]
    deviation = _deviation(ordered, slices, affine, gaps, max_deviation)
    return Volume(
        array=read(rows),
        spacing=(float(step @ normal), *first.spacing),
        affine=affine,
        rows=tuple(rows),
        gaps=gaps,
        duplicates=tuple(duplicates),
        deviation=deviation,
        tilt=tilt,
    )


def _deviation(
    planes: Sequence[Plane],
    slices: Sequence[int],
    affine: npt.NDArray[np.float64],
    gaps: Sequence[Gap],
    most: float,
) -> float:
    """The largest distance of a plane, duplicates included, from its slice in the affine, mm.

    Raises ValueError where it is above ``most``.
    """
    places = np.arange(slices[-1] + 1)
    for gap in gaps:
        places[gap.after + 1 :] += gap.missing
    positions = np.array([plane.position for plane in planes])
    expected = affine[:3, 3] + places[np.array(slices), None] * affine[:3, 0]
    distances = np.linalg.norm(positions - expected, axis=1)
    worst = int(distances.argmax())
    if not distances[worst] <= most:
        raise ValueError(
            f"row {planes[worst].row} lies {distances[worst]:.4g} mm from where even "
            f"steps would have it, max_deviation is {most:g}: pass rows= of even steps, or a "
            "larger max_deviation"
        )
    return float(distances[worst])


def _require_one_frame_of_reference(planes: Sequence[Plane]) -> None:
    known = [plane for plane in planes if plane.frame_of_reference is not None]
    for plane in known:
        if plane.frame_of_reference != known[0].frame_of_reference:
            raise ValueError(
                f"rows {known[0].row} and {plane.row} are of different frames of reference, pass "
                "rows= of one"
            )


def _require_parallel(planes: Sequence[Plane]) -> None:
    first = planes[0]
    for plane in planes:
        turned = max(
            abs(plane.along_columns - first.along_columns).max(),
            abs(plane.along_rows - first.along_rows).max(),
        )
        if turned > _SAME_ORIENTATION:
            raise ValueError(
                f"rows {first.row} and {plane.row} are of different orientations, pass rows= of one"
            )
        if not np.allclose(plane.spacing, first.spacing, rtol=1e-3):
            raise ValueError(
                f"rows {first.row} and {plane.row} are of different pixel spacing, pass rows= of "
                "one"
            )


def _steps(
    planes: Sequence[Plane], depths: npt.NDArray[np.float64], normal: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], tuple[Gap, ...], float]:
    """The vector from a slice to the next, where slices are missing, and the tilt in degrees."""
    if len(planes) == 1:
        return normal * (planes[0].thickness or 1.0), (), 0.0
    steps = np.diff(depths)
    usual = float(np.median(steps))
    # Positions may move along the plane from slice to slice, in proportion to the depth.
    way = (planes[-1].position - planes[0].position) / (depths[-1] - depths[0])
    gaps = tuple(
        Gap(i, round(step / usual) - 1, float(step))
        for i, step in enumerate(steps.tolist())
        if step > _GAP * usual
    )
    cosine = min(1.0, 1.0 / float(np.linalg.norm(way)))
    # Positions are often rounded: their mean step is nearer to the truth than any of them.
    even = steps[steps <= _GAP * usual]
    return way * float(even.mean()), gaps, float(np.degrees(np.arccos(cosine)))
