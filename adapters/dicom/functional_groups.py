"""What a multi-frame instance says of each frame: PS3.3 C.7.6.16.

All here works on the JSON model of a dataset (model.py).
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

_SHARED, _PER_FRAME = FUNCTIONAL_GROUPS = "52009229", "52009230"
IMAGE_POSITION, IMAGE_ORIENTATION = "00200032", "00200037"
PIXEL_SPACING = "00280030"
SPACING_BETWEEN_SLICES, SLICE_THICKNESS = "00180088", "00180050"
GRID_FRAME_OFFSETS = "3004000C"


def frame_elements(dataset: Json, frame: int) -> Json:
    """The elements that hold for one frame (from 0): the dataset's, and over them those of the
    macros in its shared and per-frame functional groups, as if they stood in the dataset itself.
    """
    shared = items_of(dataset, _SHARED)[:1]
    own = items_of(dataset, _PER_FRAME)[frame : frame + 1]
    if not shared and not own:
        return dataset
    elements = {tag: e for tag, e in dataset.items() if tag not in (_SHARED, _PER_FRAME)}
    for group in shared + own:
        for tag, macro in group.items():
            for item in items_of({tag: macro}, tag)[:1]:
                elements.update(item)
    return elements


def broken_elements(model: Json, frame: int) -> set[str]:
    """The tags of elements that would hold for one frame, had they been what their VR says.

    A functional group, or a macro in one, that is broken as a whole is given by its own tag.
    """
    dataset, broken = model["dataset"], set()
    for error in model.get("errors", ()):
        if error["scope"] != "dataset":
            continue
        first, *rest = error["path"]
        if first not in (_SHARED, _PER_FRAME):
            tag, over = first, (_SHARED, _PER_FRAME)
        else:
            # Group, its item, macro, its item, element.
            item, macro, inner, tag = (*rest, *[None] * 4)[:4]
            if item not in (None, 0 if first == _SHARED else frame) or inner not in (None, 0):
                continue
            tag = tag or macro or first
            over = (_PER_FRAME,) if first == _SHARED else ()
        if not any(tag in item for item in _macro_items(dataset, frame, over)):
            broken.add(tag)
    return broken


def _macro_items(dataset: Json, frame: int, groups: tuple[str, ...]) -> list[Json]:
    items = []
    for tag in groups:
        number = 0 if tag == _SHARED else frame
        for group in items_of(dataset, tag)[number : number + 1]:
            items += [item for macro in group for item in items_of(group, macro)[:1]]
    return items


def items_of(elements: Json, tag: str) -> list[Json]:
    """The items of a sequence, none where it is absent."""
    element = elements.get(tag, {})
    return element.get("Value", []) if element.get("vr") == "SQ" else []


def numbers_of(elements: Json, tag: str, count: int) -> list[float] | None:
    """The numbers of an element, None where there are not so many."""
    values = elements.get(tag, {}).get("Value", [])
    if len(values) != count or not all(isinstance(v, int | float) for v in values):
        return None
    return [float(value) for value in values]


def frame_offset(dataset: Json, frame: int) -> float:
    """How far a frame of a dose grid is from the first along the normal, mm: PS3.3 C.8.8.3.2.

    0 for what is no dose grid. Raises ValueError for a grid without a number for that frame.
    """
    offsets = dataset.get(GRID_FRAME_OFFSETS, {}).get("Value")
    if not offsets:
        return 0.0
    ends = [offsets[0], offsets[frame] if frame < len(offsets) else None]
    if not all(isinstance(value, int | float) for value in ends):
        raise ValueError("its Grid Frame Offset Vector has no number for it")
    # The first is 0, or the position itself of the first frame along the patient's axis.
    return float(ends[1]) - float(ends[0])
