"""From stored values to values with a meaning: PS3.3 C.11.1, C.11.2, C.7.6.3.1.

The core reads modality LUTs, pydicom computes the rest; what is here says in which order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from pydicom.dataset import Dataset
from pydicom.pixels import apply_color_lut, apply_voi_lut
from pydicom.pixels.processing import apply_windowing

from .functional_groups import FUNCTIONAL_GROUPS

Window = tuple[float, float]

#: Slope and intercept, or a table with the value of its first entry and its bits, or None: values
#: stay what they are.
ModalityLut = tuple[float, float] | tuple[npt.NDArray[np.uint16], int, int] | None

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
        if not (self.voi_lut or self.window):
            return set()
        return {_VOI_FUNCTION, *FUNCTIONAL_GROUPS, *(_VOI if self.voi_lut else ())}

    @property
    def modality(self) -> bool:
        """Whether the modality LUT comes first."""
        return self.modality_lut or self.voi_lut or self.window is not None

    @property
    def more(self) -> bool:
        """Whether something comes behind the modality LUT, or in its place."""
        return self.voi_lut or self.window is not None or self.invert or self.palette

    @property
    def any(self) -> bool:
        """Whether stored values are not what is wanted."""
        return self != ValueOptions()

    def apply(
        self, array: npt.NDArray[Any], modality_lut: ModalityLut, ds: Dataset
    ) -> npt.NDArray[Any]:
        """One frame's values behind ``modality_lut``. ``ds`` holds the elements that say how, those
        of the frame.

        As pydicom: float64 after a window, the table's unsigned type after a LUT.
        """
        interpretation = ds.get("PhotometricInterpretation", "")
        if interpretation == "PALETTE COLOR":
            return apply_color_lut(array, ds) if self.palette else array
        if not interpretation.startswith("MONOCHROME"):
            return array
        both_ends = None
        if self.voi_lut and "VOILUTSequence" in ds:
            both_ends = (1 << int(ds.VOILUTSequence[0].LUTDescriptor[2])) - 1
            array = apply_voi_lut(array, ds)
        elif self.voi_lut or self.window:
            if self.window:
                ds.WindowCenter, ds.WindowWidth = self.window
            array = apply_windowing(array, ds)
        if self.invert and interpretation == "MONOCHROME1":
            if both_ends is None:
                both_ends = _ends(ds, modality_lut).sum()
            array = (both_ends - array).astype(array.dtype)
        return array


def modality_values(array: npt.NDArray[Any], lut: ModalityLut) -> npt.NDArray[Any]:
    """Stored values through a modality LUT, as pydicom: float64 after a rescale, the table's
    unsigned type after a table. Raises ValueError for a table over floats.
    """
    if lut is None:
        return array
    if len(lut) == 2:
        slope, intercept = lut
        return array.astype(np.float64) * slope + intercept
    table, first, bits = lut
    if array.dtype.kind == "f":
        raise ValueError(f"pixels of {array.dtype} have no modality LUT")
    # Values before the first and behind the last of the table have its first and its last.
    entries = np.clip(array.astype(np.float64) - first, 0, len(table) - 1).astype(np.intp)
    return table.astype(np.uint8 if bits == 8 else np.uint16)[entries]


def _ends(ds: Dataset, lut: ModalityLut) -> npt.NDArray[Any]:
    """The least and the greatest value that there may be."""
    if lut is not None and len(lut) == 3:
        return np.array([0, (1 << lut[2]) - 1])
    bits = int(ds.BitsStored)
    low = -(1 << bits - 1) if ds.get("PixelRepresentation", 0) else 0
    return modality_values(np.array([low, low + (1 << bits) - 1]), lut)
