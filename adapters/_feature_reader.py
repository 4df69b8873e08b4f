"""Reading packs of features."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .._matrix_header import EXTENDED_FEATURES
from .._options import PathLike
from ..errors import PackError
from ..fixed import FixedRecordPack
from ._row_ids import RowIds
from ._tile_tables import row_of_tile, tile_records
from .manifests import TileRecord

PAYLOAD_TYPE = "teacher_features"
EXTENDED_PAYLOAD_TYPE = EXTENDED_FEATURES


class FeatureCacheReader:
    """Reads features, by tile id or by row, in their own dtype or as float32.

    Opens eagerly, pickles as its absolute path, and may be shared by threads and forked children.
    Rows count from the end when negative.

    Raises PackError for a pack of another payload type. Readers raise TileNotFoundError (a
    FileNotFoundError and KeyError) for an id that is not there, and PackIndexError for such a row.
    """

    def __init__(self, package_path: PathLike) -> None:
        self._pack = FixedRecordPack(package_path)
        found = self._pack.header.get("payload_type")
        if found not in (PAYLOAD_TYPE, EXTENDED_PAYLOAD_TYPE):
            path = self._pack.reader.package_path
            raise PackError(f"{path}: is a pack of {found!r}, expected {PAYLOAD_TYPE!r}")
        self._ids = RowIds(self._pack.reader, "tile_id")

    @property
    def pack(self) -> FixedRecordPack:
        """The pack below."""
        return self._pack

    @property
    def header(self) -> dict[str, Any]:
        """The JSON header."""
        return self._pack.header

    @property
    def slide_table(self) -> pa.Table:
        """The slide table: slide_idx, slide_id, patient_id."""
        return self._pack.slide_table

    @property
    def record_table(self) -> pa.Table:
        """The index table, a row a tile."""
        return self._pack.index_table

    @property
    def record_count(self) -> int:
        """Number of features."""
        return self._pack.record_count

    @property
    def dim(self) -> int:
        """Values of each feature."""
        return self._pack.dim

    @property
    def dtype(self) -> np.dtype[Any]:
        """The stored dtype."""
        return self._pack.dtype

    def tile_id_at(self, row: int) -> str:
        """The tile id of a row."""
        return self._ids.at(row)

    def rows_of(self, tile_ids: Iterable[str]) -> npt.NDArray[np.int64]:
        """The rows of tiles, in the order given."""
        return np.array([row_of_tile(self._ids, id) for id in tile_ids], dtype=np.int64)

    def read_matrix(self, rows: Iterable[int], *, workers: int | None = None) -> npt.NDArray[Any]:
        """Features as one writable array (n, dim) of the stored dtype."""
        return self._pack.read_matrix(rows, workers)

    def read_matrix_of(
        self, tile_ids: Iterable[str], *, workers: int | None = None
    ) -> npt.NDArray[Any]:
        """:meth:`read_matrix` of tiles by their ids."""
        return self.read_matrix(self.rows_of(tile_ids), workers=workers)

    def read_features_at(
        self, rows: Iterable[int], *, workers: int | None = None
    ) -> npt.NDArray[np.float32]:
        """Features as one writable array (n, dim) of float32, to which wider ones are rounded.

        Raises ValueError for complex features and for values beyond float32.
        """
        stored = self.read_matrix(rows, workers=workers)
        if stored.dtype == np.float32:
            return stored
        path = self._pack.reader.package_path
        if stored.dtype.kind == "c":
            raise ValueError(f"{path}: features of {stored.dtype} have no float32, use read_matrix")
        with np.errstate(over="ignore"):
            values = stored.astype(np.float32)
        if stored.dtype.itemsize > 4 and (np.isinf(values) & np.isfinite(stored)).any():
            raise ValueError(f"{path}: features are beyond float32, use read_matrix")
        return values

    def read_feature_at(self, row: int) -> npt.NDArray[np.float32]:
        """One feature, (dim,) of float32, as :meth:`read_features_at`."""
        return self.read_features_at([row])[0]

    def read_feature(self, tile_id: str) -> npt.NDArray[np.float32]:
        """One feature by its tile's id as :meth:`read_features_at`."""
        return self.read_feature_at(row_of_tile(self._ids, tile_id))

    def close(self) -> None:
        """Lets go of the file."""
        self._pack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        """Number of features."""
        return len(self._pack)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self._pack.reader.package_path),)

    def __repr__(self) -> str:
        return repr(self._pack).replace("FixedRecordPack", type(self).__name__, 1)


def read_feature_package_records(package_path: PathLike) -> list[TileRecord]:
    """The tiles of a pack, in row order. Their paths are ``features/<tile_id>.bin``."""
    with FeatureCacheReader(package_path) as reader:
        return tile_records(reader.pack.reader, "features", "bin")
