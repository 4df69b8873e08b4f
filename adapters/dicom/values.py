"""From stored values to values with a meaning: PS3.3 C.11.1, C.11.2, C.7.6.3.1.

pydicom does the arithmetic; what is here says in which order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from pydicom.dataset import Dataset
from pydicom.pixels import apply_color_lut, apply_modality_lut, apply_voi_lut
from pydicom.pixels.processing import apply_windowing

from .functional_groups import FUNCTIONAL_GROUPS

Window = tuple[float, float]

# Intercept, slope, Modality LUT Sequence, Pixel Value Transformation Sequence.
_MODALITY = {"00281052", "00281053", "00283000", "00289145"}
# Center, width, VOI LUT Sequence, Frame VOI LUT Sequence.
_VOI = {"00281050", "00281051", "00283010", "00289132"}
_VOI_FUNCTION = "00281056"
# Descriptors, UID, data and segmented data of palettes.
_PALETTE = {f"0028{number}" for number in (1101, 1102, 1103, 1199, 1201, 1202, 1203)} | {
    f"0028{number}" for number in (1221, 1222, 1223)
}


@dataclass(frozen=True)
class ValueOptions:
    """What is done to stored values.

    * ``modality_lut``: Modality LUT or rescale slope and intercept, C.11.1.
    * ``voi_lut``: the dataset's first VOI LUT or window, after the modality LUT, C.11.2.
    * ``window``: (center, width) in its place.
    * ``invert``: MONOCHROME1 so that bright is high, C.7.6.3.1.2.
    * ``palette``: PALETTE COLOR as colours instead of indices, C.7.6.3.1.5.
    """

    modality_lut: bool = False
    voi_lut: bool = False
    window: Window | None = None
    invert: bool = False
    palette: bool = False

    def __post_init__(self) -> None:
        if self.window is None:
            return
        center, width = self.window
        if not (np.isfinite(center) and np.isfinite(width) and width > 0):
            raise ValueError(f"window is {self.window!r}, expected (center, width above 0)")
        if self.voi_lut:
            raise ValueError("give voi_lut=True for the dataset's window, or a window, not both")

    def needed(self, interpretation: str) -> set[str]:
        """The tags of elements, and of macros that hold them, that say how values come about."""
        if interpretation == "PALETTE COLOR":
            return {*_PALETTE, *FUNCTIONAL_GROUPS} if self.palette else set()
        if not interpretation.startswith("MONOCHROME"):
            return set()
        tags: set[str] = set()
        if self.modality_lut or self.voi_lut or self.window:
            tags |= _MODALITY
        if self.voi_lut or self.window:
            tags.add(_VOI_FUNCTION)
        if self.voi_lut:
            tags |= _VOI
        return {*tags, *FUNCTIONAL_GROUPS} if tags else tags

    @property
    def any(self) -> bool:
        """Whether stored values are not what is wanted."""
        return self != ValueOptions()

    def apply(self, array: npt.NDArray[Any], ds: Dataset) -> npt.NDArray[Any]:
        """One frame's values. ``ds`` holds the elements that say how, those of the frame.

        As pydicom: float64 after a rescale or a window, the table's unsigned type after a LUT.
        """
        interpretation = ds.get("PhotometricInterpretation", "")
        if interpretation == "PALETTE COLOR":
            return apply_color_lut(array, ds) if self.palette else array
        if not interpretation.startswith("MONOCHROME"):
            return array
        low, high = _stored_range(ds)
        ends = np.array([[low, high]])
        if self.modality_lut or self.voi_lut or self.window:
            if "ModalityLUTSequence" in ds:
                ends = np.array([[0, _lut_end(ds.ModalityLUTSequence[0])]])
            else:
                ends = apply_modality_lut(ends, ds)
            array = apply_modality_lut(array, ds)
        if self.voi_lut and "VOILUTSequence" in ds:
            ends = np.array([[0, _lut_end(ds.VOILUTSequence[0])]])
            array = apply_voi_lut(array, ds)
        elif self.voi_lut or self.window:
            if self.window:
                ds.WindowCenter, ds.WindowWidth = self.window
            array = apply_windowing(array, ds)
        if self.invert and interpretation == "MONOCHROME1":
            array = (ends.sum() - array).astype(array.dtype)
        return array


def _stored_range(ds: Dataset) -> Window:
    bits = int(ds.BitsStored)
    if ds.get("PixelRepresentation", 0):
        return -(1 << bits - 1), (1 << bits - 1) - 1
    return 0, (1 << bits) - 1


def _lut_end(lut: Dataset) -> int:
    """The largest value that a table's bits allow."""
    return (1 << int(lut.LUTDescriptor[2])) - 1
