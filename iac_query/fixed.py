"""Packs whose records are the rows of a matrix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ._matrix_header import dtype_field
from ._options import PathLike, read_options, row_array
from ._record_pack import RecordPack
from .build import build_fixed, build_fixed_streaming
from .errors import PackError
from .remote import RemoteOptions

__all__ = ["FixedRecordPack", "fixed_shape"]


class FixedRecordPack(RecordPack):
    """A pack whose records are the rows of a matrix, all of one dtype and length.

    Opens eagerly, takes the arguments of a :class:`PackReader`, and pickles and may be shared like
    one. Raises PackError when the header's geometry is missing or does not agree with itself.
    """

    kind = "fixed"
    other = "VariableRecordPack"

    def __init__(
        self,
        package_path: PathLike,
        storage_options: Mapping[str, Any] | None = None,
        remote: RemoteOptions | None = None,
    ) -> None:
        super().__init__(package_path, storage_options, remote)
        #: Values per record, and their dtype.
        self.dim, self.dtype = fixed_shape(self.header, str(self._reader.package_path))

    build = staticmethod(build_fixed)
    build_streaming = staticmethod(build_fixed_streaming)

    def read(self, row: int) -> npt.NDArray[Any]:
        """One record: shape (dim,), the pack's dtype, read-only."""
        return np.frombuffer(self._reader.read_payload(row), dtype=self.dtype)

    def read_many(self, rows: Iterable[int], workers: int | None = None) -> list[npt.NDArray[Any]]:
        """Records in the order given: arrays of shape (dim,) and the pack's dtype."""
        return list(self.read_matrix(rows, workers))

    def read_matrix(self, rows: Iterable[int], workers: int | None = None) -> npt.NDArray[Any]:
        """Records as one writable array of shape (len(rows), dim) and the pack's dtype."""
        rows = row_array(rows, len(self._reader))
        batch = self._reader.native.read(rows, *read_options(False, workers))
        values = np.frombuffer(batch.take_data(), dtype=self.dtype)
        return values.reshape(len(rows), self.dim)

    def __repr__(self) -> str:
        shape = f"{self.header['num_records']:,} x {self.dim} {self.dtype.name}"
        return f"<{type(self).__name__}({str(self._reader.package_path)!r}): {shape}>"


def fixed_shape(header: Mapping[str, Any], pack: str) -> tuple[int, np.dtype[Any]]:
    """Values per record and their little-endian dtype, as the header of a fixed pack says.

    Raises PackError when it does not agree with itself or names no NumPy dtype.
    """
    field = dtype_field(header)
    dim, name, record_bytes = (
        header[key] for key in ("feature_dim", field, "feature_record_bytes")
    )
    try:
        dtype = np.dtype(name)
    except TypeError:
        dtype = np.dtype(object)
    if dtype.kind not in "biufc" or dtype.name != name:
        raise PackError(f"{pack}: header field {field} is {name!r}, expected a NumPy dtype's name")
    if dim * dtype.itemsize != record_bytes:
        raise PackError(
            f"{pack}: header field feature_record_bytes is {record_bytes}, expected "
            f"{dim} x {dtype.itemsize}"
        )
    return dim, dtype.newbyteorder("<")
