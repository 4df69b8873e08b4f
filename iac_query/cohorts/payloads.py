"""Payload columns as what codecs encode and matrices hold. The counterpart of _kinds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .._tables import value_buffers
from ..images import IMAGE_TYPE


def is_bytes(type: pa.DataType) -> bool:
    """Whether values are bytes or text."""
    types = pa.types
    if types.is_dictionary(type):
        return is_bytes(type.value_type)
    return (
        types.is_binary(type)
        or types.is_large_binary(type)
        or types.is_binary_view(type)
        or types.is_fixed_size_binary(type)
        or types.is_string(type)
        or types.is_large_string(type)
        or types.is_string_view(type)
    )


def is_images(type: pa.DataType) -> bool:
    """Whether values are images: structs as ``as_="image"`` gives them, or tensors that may be."""
    if pa.types.is_struct(type):
        return {field.name for field in IMAGE_TYPE} <= {field.name for field in type}
    return len(shape_of(type)) in (2, 3)


def shape_of(type: pa.DataType) -> tuple[int, ...]:
    """The shape of vectors and tensors, which Polars has as lists of lists; () for others."""
    if isinstance(type, pa.FixedShapeTensorType):
        return tuple(type.shape)
    if pa.types.is_fixed_size_list(type):
        return (type.list_size, *shape_of(type.value_type))
    return ()


def value_type(type: pa.DataType) -> pa.DataType:
    """The type of the numbers in vectors and tensors."""
    nested = isinstance(type, pa.FixedShapeTensorType) or pa.types.is_fixed_size_list(type)
    return value_type(type.value_type) if nested else type


def records(column: pa.ChunkedArray) -> list[memoryview]:
    """The bytes of each value, over the column's own memory where it is large_binary."""
    found = []
    for chunk in column.chunks:
        if pa.types.is_dictionary(chunk.type):
            chunk = chunk.dictionary_decode()
        memory, offsets = value_buffers(chunk.cast(pa.large_binary()))
        ends = offsets.tolist()
        found += [memory[ends[i] : ends[i + 1]] for i in range(len(chunk))]
    return found


def joined_bytes(chunk: pa.Array) -> memoryview:
    """The bytes of all values of a large_binary array without nulls, which lie in one piece."""
    memory, offsets = value_buffers(chunk)
    return memory[offsets[0] : offsets[-1]]


def images(column: pa.ChunkedArray) -> list[npt.NDArray[Any]]:
    """Each value as an array (height, width[, channels]).

    Raises ValueError for one whose bytes are not as many as its shape says.
    """
    if not pa.types.is_struct(column.type):
        return [image for chunk in column.chunks for image in arrays(chunk)]
    found = []
    for chunk in column.chunks:
        fields = dict(zip((field.name for field in chunk.type), chunk.flatten(), strict=True))
        pixels = records(pa.chunked_array([fields.pop("data")]))
        facts = [fields[name].to_pylist() for name in ("height", "width", "channels", "dtype")]
        for data, height, width, channels, dtype in zip(pixels, *facts, strict=True):
            found.append(_image(data, height, width, channels, dtype))
    return found


def _image(data: memoryview, height: Any, width: Any, channels: Any, name: Any) -> Any:
    if None in (height, width, channels, name):
        raise ValueError("an image has a NULL among its fields")
    try:
        dtype = np.dtype(name)
    except TypeError:
        raise ValueError(f"an image has the dtype {name!r}, expected that of an array") from None
    shape = (height, width) if channels == 1 else (height, width, channels)
    if min(shape) < 1 or math.prod(shape) * dtype.itemsize != len(data):
        raise ValueError(f"an image of shape {shape} and {name} has {len(data)} bytes of pixels")
    return np.frombuffer(data, dtype.newbyteorder("<")).reshape(shape)


def arrays(chunk: pa.Array) -> npt.NDArray[Any]:
    """Vectors or tensors as one array (n, ...).

    Raises ValueError for a NULL among the numbers.
    """
    shape = shape_of(chunk.type)
    values = chunk
    while shape_of(values.type):
        storage = values.storage if isinstance(values, pa.ExtensionArray) else values
        size = storage.type.list_size
        values = storage.values.slice(storage.offset * size, len(storage) * size)
    if values.null_count:
        raise ValueError("a vector has a NULL in it")
    return values.to_numpy(zero_copy_only=False).reshape(len(chunk), *shape)


def matrix_bytes(chunk: pa.Array) -> npt.NDArray[np.uint8]:
    """Vectors as the little-endian bytes of a matrix, row by row. Errors as :func:`arrays`."""
    values = arrays(chunk)
    values = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    return values.reshape(-1).view(np.uint8)
