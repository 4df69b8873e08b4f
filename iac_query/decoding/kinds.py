"""The kinds a payload can come as, and how a batch of records becomes an Arrow column of each."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .. import _native
from .._tensors import fixed_size_lists, tensors
from ..batch import ContiguousRecordBatch
from ..codec import is_registered
from ..errors import CodecError, PackError
from ..fixed import fixed_shape
from ..images import IMAGE_TYPE, ImageBatch

Kind = Literal["bytes", "text", "image", "vector", "tensor", "stored"]
KINDS: tuple[Kind, ...] = ("bytes", "text", "image", "vector", "tensor", "stored")

#: Payload types whose text stands behind a manifest.
_WITH_MANIFESTS = ("clinical_text", "clinical_text_pair")


@dataclass(frozen=True)
class PayloadSizes:
    """What is known of payloads before they are read: bytes of each as it is stored, and whether
    decoding leaves it exactly so large.
    """

    stored: npt.NDArray[np.int64]
    exact: bool


class PackKind:
    """How the records of one pack come as ``as_``, or as what its header alone says.

    Raises CodecError when they cannot, PackError when a matrix's shape is contradictory.
    """

    def __init__(self, pack: _native.Pack, as_: Kind | None) -> None:
        self._pack = pack
        self._header = header = json.loads(pack.header_json)
        # Of a whole slide the tiles are; what lies beside them is NULL as an image.
        is_slide = header.get("payload_type") == "wsi_image"
        self._images = pack.decodes_to_images or is_slide
        default: Kind = "image" if self._images else "bytes"
        self.kind: Kind = as_ or ("vector" if pack.kind == "fixed" else default)
        if is_registered(header.get("codec")) and self.kind != "stored":
            raise CodecError(
                f"{pack.path}: codec {header['codec']!r} is a Python one: use "
                "VariableRecordPack.read_many, or as_='stored'"
            )
        if self.kind == "image" and not self._images:
            raise CodecError(f"{pack.path}: its codec does not decode to images, use as_='bytes'")
        if self.kind == "text" and self._images and not is_slide:
            raise CodecError(f"{pack.path}: records are images, not text")
        if self.kind == "vector" or (self.kind == "tensor" and not self._images):
            if pack.kind != "fixed":
                raise CodecError(
                    f"{pack.path}: records have no fixed shape, as_={self.kind!r} needs a pack of "
                    "fixed records" + (" or of images" if self.kind == "tensor" else "")
                )
            self._dim, self._dtype = fixed_shape(header, pack.path)
        #: The Arrow type of the column; None for tensors of images, which only the images tell.
        self.type = self._column_type()

    @property
    def decodes(self) -> bool:
        """Whether stored bytes are decoded."""
        return self.kind != "stored"

    @property
    def as_images(self) -> bool:
        """Whether a record that is no image is an error."""
        return self.kind == "image" or (self.kind == "tensor" and self._images)

    def sizes(self, rows: npt.NDArray[np.int64]) -> PayloadSizes:
        """The sizes of rows' payloads as far as the tables tell them. Where a row's place is
        damaged, which shows when it is read, all count for the mean of the pack's records.
        """
        try:
            return PayloadSizes(self._pack.locate(rows)[1].astype(np.int64), self._stored_as_is)
        except PackError:
            mean = self._header["data_length"] // max(self._pack.num_records, 1)
            return PayloadSizes(np.full(len(rows), mean, np.int64), exact=False)

    @property
    def _stored_as_is(self) -> bool:
        """Whether a payload is what is stored, all of it."""
        if not self.decodes or self._pack.kind == "fixed":
            return True
        is_text = self.kind == "text" and self._header.get("payload_type") in _WITH_MANIFESTS
        is_encoded = self._header.get("codec", "none") != "none" or "record_codecs" in self._header
        return not is_encoded and not is_text

    def _column_type(self) -> pa.DataType | None:
        if self.kind == "text":
            return pa.large_string()
        if self.kind in ("bytes", "stored"):
            return pa.large_binary()
        if self.kind == "image":
            return IMAGE_TYPE
        if self._images:
            return None
        try:
            value = pa.from_numpy_dtype(self._dtype)
        except (NotImplementedError, pa.ArrowNotImplementedError) as error:
            raise CodecError(
                f"{self._pack.path}: Arrow has no type for {self._dtype}, use as_='bytes'"
            ) from error
        if self.kind == "tensor":
            return pa.fixed_shape_tensor(value, [self._dim])
        return pa.list_(value, self._dim)

    def column(self, batch: _native.Batch) -> pa.Array:
        """The records as an Arrow array, over the same memory where the kind allows it.

        Raises CodecError for images that are no tensor because they differ.
        """
        if self.kind == "image":
            return ImageBatch.from_native(batch, "null").to_arrow()
        if self.kind == "tensor":
            shape, dtype = self._tensor_shape(batch)
            values, validity = _values(batch, math.prod(shape), dtype)
            return tensors(values, shape, batch.count, validity)
        if self.kind == "vector":
            values, validity = _values(batch, self._dim, self._dtype)
            return fixed_size_lists(values, self._dim, batch.count, validity)
        buffers = [_validity(batch), pa.py_buffer(batch.offsets), pa.py_buffer(batch.data)]
        return pa.Array.from_buffers(self.type, batch.count, buffers)

    def _tensor_shape(self, batch: _native.Batch) -> tuple[tuple[int, ...], np.dtype[Any]]:
        if not self._images:
            return (self._dim,), self._dtype
        images = ImageBatch.from_native(batch, "null")
        try:
            return images.common_shape()
        except ValueError as error:
            raise CodecError(f"{self._pack.path}: {error}, use as_='image'") from error


def _validity(batch: _native.Batch) -> pa.Buffer | None:
    return None if batch.validity is None else pa.py_buffer(batch.validity)


def _values(
    batch: _native.Batch, size: int, dtype: npt.DTypeLike
) -> tuple[npt.NDArray[Any], pa.Buffer | None]:
    """All records' values, ``size`` each, and which are there; zeros for missing ones."""
    values = np.frombuffer(batch.data, dtype=dtype)
    records = ContiguousRecordBatch.from_native if batch.images is None else ImageBatch.from_native
    there = records(batch, "null", None).validity
    if there.all():
        return values, None
    spread = np.zeros((batch.count, size), dtype=dtype)
    spread[there] = values.reshape(-1, size)
    return spread.reshape(-1), pa.py_buffer(np.packbits(there, bitorder="little"))
