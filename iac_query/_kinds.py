"""The kinds a payload can come as, and how a batch of records becomes an Arrow column of each."""

from __future__ import annotations

import json
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from . import _native
from .codec import is_registered
from .errors import CodecError
from .fixed import fixed_shape

Kind = Literal["bytes", "text", "vector", "tensor", "stored"]
KINDS: tuple[Kind, ...] = ("bytes", "text", "vector", "tensor", "stored")


class PackKind:
    """How the records of one pack come as ``as_``, or as what its header alone says.

    Raises CodecError when they cannot, PackError when a matrix's shape is contradictory.
    """

    def __init__(self, pack: _native.Pack, as_: Kind | None) -> None:
        self._pack = pack
        header = json.loads(pack.header_json)
        self.kind: Kind = as_ or ("vector" if pack.kind == "fixed" else "bytes")
        if is_registered(header.get("codec")) and self.kind != "stored":
            raise CodecError(
                f"{pack.path}: codec {header['codec']!r} is a Python one: use "
                "VariableRecordPack.read_many, or as_='stored'"
            )
        if self.kind in ("vector", "tensor"):
            if pack.kind != "fixed":
                raise CodecError(
                    f"{pack.path}: records have no fixed shape, as_={self.kind!r} needs a pack of "
                    "fixed records"
                )
            self._dim, self._dtype = fixed_shape(header, pack.path)
        #: The Arrow type of the column.
        self.type = self._column_type()

    @property
    def decodes(self) -> bool:
        """Whether stored bytes are decoded."""
        return self.kind != "stored"

    def _column_type(self) -> pa.DataType:
        if self.kind == "text":
            return pa.large_string()
        if self.kind in ("bytes", "stored"):
            return pa.large_binary()
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
        """The records as an Arrow array, over the same memory where the kind allows it."""
        count = batch.count
        validity = None if batch.validity is None else pa.py_buffer(batch.validity)
        if self.kind in ("bytes", "stored", "text"):
            buffers = [validity, pa.py_buffer(batch.offsets), pa.py_buffer(batch.data)]
            return pa.Array.from_buffers(self.type, count, buffers)

        values: Any = np.frombuffer(batch.data, dtype=self._dtype)
        if batch.validity is not None:  # missing records have no bytes, Arrow wants them all
            present = np.unpackbits(
                np.frombuffer(batch.validity, np.uint8), count=count, bitorder="little"
            ).astype(bool)
            spread = np.zeros((count, self._dim), dtype=self._dtype)
            spread[present] = values.reshape(-1, self._dim)
            values = spread.reshape(-1)
        child = pa.array(values)
        storage = pa.Array.from_buffers(
            pa.list_(child.type, self._dim), count, [validity], children=[child]
        )
        if self.kind == "tensor":
            return pa.ExtensionArray.from_storage(self.type, storage)
        return storage
