"""NumPy values as Arrow columns of lists and tensors, over the same memory."""

from __future__ import annotations

import math
from typing import Any

import numpy.typing as npt
import pyarrow as pa


def fixed_size_lists(
    values: npt.NDArray[Any], size: int, count: int, validity: pa.Buffer | None = None
) -> pa.Array:
    """``count`` lists of ``size`` values each, from a flat array of all of them."""
    child = pa.array(values)
    return pa.Array.from_buffers(pa.list_(child.type, size), count, [validity], children=[child])


def tensors(
    values: npt.NDArray[Any],
    shape: tuple[int, ...],
    count: int,
    validity: pa.Buffer | None = None,
) -> pa.Array:
    """``count`` tensors of one shape, as Arrow's fixed_shape_tensor."""
    storage = fixed_size_lists(values, math.prod(shape), count, validity)
    return pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(storage.type.value_type, shape), storage
    )
