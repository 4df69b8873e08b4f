"""Arguments of readers, checked."""

from __future__ import annotations

import math
from typing import Any


def integer(name: str, value: Any) -> int:
    """A whole number. Raises TypeError."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} is {value!r}, expected an int")
    return value.__index__()


def side(name: str, value: Any) -> int:
    """A number of pixels, 1 or more. Raises TypeError and ValueError."""
    number = integer(name, value)
    if number < 1:
        raise ValueError(f"{name} is {number}, expected 1 or more")
    return number


def sides(name: str, value: Any) -> tuple[int, int]:
    """One number of pixels for width and height, or two. Raises TypeError and ValueError."""
    numbers = tuple(value) if isinstance(value, tuple | list) else (value, value)
    if len(numbers) != 2:
        raise ValueError(f"{name} is {value!r}, expected an int, or width and height")
    return side(name, numbers[0]), side(name, numbers[1])


def finite(name: str, value: Any) -> float:
    """A number that is one. Raises TypeError and ValueError."""
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{name} is {number}, expected a finite number")
    return number


def pair(name: str, value: Any) -> tuple[float, float]:
    """One number for both axes, or two, all above 0."""
    numbers = tuple(map(float, value)) if isinstance(value, tuple | list) else (float(value),) * 2
    if len(numbers) != 2 or not all(math.isfinite(n) and n > 0 for n in numbers):
        raise ValueError(f"{name} is {value!r}, expected a number above 0, or one for x and y each")
    return numbers
