"""Images: the arrays that codecs take, and many decoded ones in one piece of memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from . import _native
from ._html import images_html
from ._tensors import tensors
from .batch import ContiguousRecordBatch
from .errors import RecordFailure

__all__ = ["ImageBatch"]

#: The Arrow type of a column of images; ``data`` holds height x width x channels pixels of
#: ``dtype``, row by row, channels interleaved, little-endian.
IMAGE_TYPE = pa.struct(
    {
        "height": pa.int32(),
        "width": pa.int32(),
        "channels": pa.int32(),
        "dtype": pa.string(),
        "data": pa.large_binary(),
    }
)


def as_image(obj: Any) -> npt.NDArray[Any]:
    """An array as image codecs take it: (height, width[, channels]), contiguous, native order.

    Raises TypeError for anything but an array, ValueError for one that is no image.
    """
    if not isinstance(obj, np.ndarray):
        raise TypeError(f"an image is a NumPy array, not {type(obj)}")
    if obj.ndim not in (2, 3):
        raise ValueError(
            f"an image has 2 or 3 dimensions (height, width[, channels]), not {obj.ndim}"
        )
    if 0 in obj.shape:
        raise ValueError(f"an image of shape {obj.shape} has no pixels")
    if max(obj.shape) >= 1 << 32:
        raise ValueError(f"an image of shape {obj.shape} is too large")
    return np.require(obj, obj.dtype.newbyteorder("="), ["C", "A"])


def single_image(batch: _native.Batch) -> npt.NDArray[Any]:
    """The one image of a batch that nothing else holds: a writable array."""
    shapes, types = batch.images
    dtype = _native.PIXEL_TYPES[types[0]]
    return np.frombuffer(batch.take_data(), dtype).reshape(array_shape(shapes[0]))


def stacked_images(batch: _native.Batch) -> npt.NDArray[Any]:
    """The images of a batch that nothing else holds: a writable array (n, height, width, channels).

    None of them is missing. Raises ValueError for images that differ, or for none.
    """
    (height, width, channels), dtype = ImageBatch.from_native(batch, "null").common_type()
    return np.frombuffer(batch.take_data(), dtype).reshape(-1, height, width, channels)


def array_shape(shape: Iterable[int]) -> tuple[int, ...]:
    """The shape of the array of an image's height, width and channels."""
    height, width, channels = map(int, shape)
    return (height, width) if channels == 1 else (height, width, channels)


def image_text(shape: Iterable[int], dtype: Any) -> str:
    """What messages say of an image, such as "16 x 16 x 3 of uint8"."""
    return f"{' x '.join(map(str, shape))} of {dtype}"


class ImageBatch:
    """Many decoded images, one behind the other in one piece of memory.

    Indexing and iterating give read-only NumPy views, (height, width) for one channel, else
    (height, width, channels); None for an image that could not be had, and for a DICOM instance
    without pixels.
    """

    def __init__(
        self,
        records: ContiguousRecordBatch,
        shapes: npt.NDArray[np.uint32],
        types: npt.NDArray[np.uint8],
    ) -> None:
        #: The images' bytes.
        self.records = records
        self._shapes = shapes
        self._types = types

    @classmethod
    def from_native(
        cls, batch: _native.Batch, on_error: str, report: list[RecordFailure] | None = None
    ) -> ImageBatch:
        """The batch that the core made, without a copy. Its failures are added to ``report``."""
        if batch.images is None:
            images = np.zeros((batch.count, 3), np.uint32), np.zeros(batch.count, np.uint8)
        else:
            images = batch.images
        return cls(ContiguousRecordBatch.from_native(batch, on_error, report), *images)

    @property
    def shapes(self) -> list[tuple[int, ...] | None]:
        """Each image's shape; None where it is missing."""
        valid = self.validity
        return [
            array_shape(shape) if here else None
            for shape, here in zip(self._shapes, valid, strict=True)
        ]

    @property
    def dtypes(self) -> list[np.dtype[Any] | None]:
        """Each image's dtype; None where it is missing."""
        names = _native.PIXEL_TYPES
        valid = self.validity
        return [
            np.dtype(names[type]) if here else None
            for type, here in zip(self._types.tolist(), valid, strict=True)
        ]

    @property
    def errors(self) -> tuple[RecordFailure, ...]:
        """Images that could not be had, by position."""
        return self.records.errors

    @property
    def positions(self) -> npt.NDArray[np.int64] | None:
        """int64 array of the request's positions that are here, or None when all are."""
        return self.records.positions

    @property
    def validity(self) -> npt.NDArray[np.bool_]:
        """A bool for each image: whether it is there."""
        return self.records.validity & (self._shapes[:, 2] > 0)

    @property
    def unchecked(self) -> int:
        """Number of images whose stored crc32 was not compared."""
        return self.records.unchecked

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, index: int) -> npt.NDArray[Any] | None:
        data = self.records[index]
        if data is None or self._shapes[index, 2] == 0:
            return None
        dtype = np.dtype(_native.PIXEL_TYPES[self._types[index]])
        # Behind one of another dtype an image may start at an odd address.
        return np.frombuffer(data, dtype).reshape(array_shape(self._shapes[index]))

    def __iter__(self) -> Iterator[npt.NDArray[Any] | None]:
        return (self[index] for index in range(len(self)))

    def to_numpy(self) -> npt.NDArray[Any]:
        """All images as one read-only array (n, height, width[, channels]), without a copy.

        Raises ValueError where one is missing or they differ in shape or dtype.
        """
        missing = len(self) - np.count_nonzero(self.validity)
        if missing:
            raise ValueError(f"{missing} of {len(self)} images are missing")
        shape, dtype = self.common_shape()
        return np.frombuffer(self.records.buffer, dtype).reshape(len(self), *shape)

    def to_arrow(self) -> pa.Array:
        """The images as an Arrow struct array of height, width, channels, dtype and data."""
        data = self.records.to_arrow()
        columns = [pa.array(self._shapes[:, i].astype(np.int32)) for i in range(3)]
        names = pa.array(_native.PIXEL_TYPES)
        columns += [names.take(pa.array(self._types)), data]
        there = self.validity
        mask = None if there.all() else pa.array(~there)
        return pa.StructArray.from_arrays(columns, fields=list(IMAGE_TYPE), mask=mask)

    def to_tensor(self) -> pa.Array:
        """The images as an Arrow fixed_shape_tensor array over the same memory.

        Raises ValueError as :meth:`to_numpy`.
        """
        images = self.to_numpy()
        return tensors(images.reshape(-1), images.shape[1:], len(self))

    def common_shape(self) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """The one shape and dtype of all images that are there. Raises ValueError for several."""
        shape, dtype = self.common_type()
        return array_shape(shape), dtype

    def common_type(self) -> tuple[tuple[int, int, int], np.dtype[Any]]:
        """Height, width, channels and dtype, as :meth:`common_shape`."""
        there = self.validity
        shapes, types = self._shapes[there], self._types[there]
        if len(shapes) == 0:
            raise ValueError("there are no images")
        different = (shapes != shapes[0]).any(axis=1) | (types != types[0])
        if different.any():
            other = int(np.flatnonzero(different)[0])
            names = _native.PIXEL_TYPES
            raise ValueError(
                f"images differ: {array_shape(shapes[0])} {names[types[0]]} and "
                f"{array_shape(shapes[other])} {names[types[other]]}"
            )
        return tuple(shapes[0].tolist()), np.dtype(_native.PIXEL_TYPES[types[0]])

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return self.to_arrow().__arrow_c_array__(requested_schema)

    def __reduce__(self) -> tuple[Any, ...]:
        return ImageBatch, (self.records, np.array(self._shapes), np.array(self._types))

    def _repr_html_(self) -> str:
        return images_html(self)

    def __repr__(self) -> str:
        missing = f", {len(self.errors)} failed" if self.errors else ""
        size = len(self.records.buffer)
        return f"<ImageBatch of {len(self)} images, {size:,} bytes{missing}>"
