"""Reading packs of image tiles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .._options import PathLike
from ..errors import PackError
from ..pack import read_header
from ..variable import VariableRecordPack
from ._row_ids import RowIds
from ._tile_images import rgb, rgb_image
from ._tile_tables import row_of_tile, tile_records
from .manifests import TileRecord

PAYLOAD_TYPE = "image_tiles"
EXTENDED_PAYLOAD_TYPE = "image_tiles_extended"

#: Tiles that iter_package_tiles decodes at a time.
_BLOCK = 64


class TilePackageReader:
    """Reads tiles, by id or by row, from packs of any codec of images.

    Opens eagerly, pickles as its absolute path, and may be shared by threads and forked children.
    Rows count from the end when negative. Stored bytes are compared with their crc32.

    Raises PackError for a pack of another payload type. Readers raise TileNotFoundError (a
    FileNotFoundError and KeyError) for an id that is not there, PackIndexError for such a row, and
    PackError for a tile that is not of the size that the header says.
    """

    def __init__(self, package_path: PathLike) -> None:
        self._pack = VariableRecordPack(package_path)
        header = self._pack.header
        path = self._pack.reader.package_path
        found = header.get("payload_type")
        if found not in (PAYLOAD_TYPE, EXTENDED_PAYLOAD_TYPE):
            raise PackError(f"{path}: is a pack of {found!r}, expected {PAYLOAD_TYPE!r}")
        try:
            if found == PAYLOAD_TYPE:
                shape, dtype = (header["tile_height"], header["tile_width"], 3), "uint8"
            else:
                shape, dtype = header["tile_shape"], header["tile_dtype"]
            height, width, channels = (int(side) for side in shape)
            #: Height, width and channels of the tiles, and their dtype, as the header says.
            self.tile_shape = (height, width, channels)
            self.tile_dtype = np.dtype(dtype)
        except (KeyError, TypeError, ValueError) as error:
            raise PackError(
                f"{path}: the header does not tell the tiles' shape: {error}"
            ) from error
        self._ids = RowIds(self._pack.reader, "tile_id")

    @property
    def pack(self) -> VariableRecordPack:
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
    def index_table(self) -> pa.Table:
        """The index table, a row a tile."""
        return self._pack.index_table

    @property
    def record_count(self) -> int:
        """Number of tiles."""
        return self._pack.record_count

    def tile_id_at(self, row: int) -> str:
        """The id of a row's tile."""
        return self._ids.at(row)

    def rows_of(self, tile_ids: Iterable[str]) -> npt.NDArray[np.int64]:
        """The rows of tiles, in the order given."""
        return np.array([row_of_tile(self._ids, id) for id in tile_ids], dtype=np.int64)

    def read_batch(
        self, rows: Iterable[int], *, workers: int | None = None, verify: bool = True
    ) -> npt.NDArray[Any]:
        """Tiles as one writable array (n, height, width, channels), exactly as they were stored.

        They are decoded in parallel, each straight into its place. One channel stays one.
        """
        rows = list(rows) if not isinstance(rows, np.ndarray) else rows
        if len(rows) == 0:
            return np.empty((0, *self.tile_shape), self.tile_dtype)
        batch = self._pack.read_tensor(rows, workers=workers, verify=verify)
        if not self._fits(batch.shape[1:3]):
            raise self._wrong_size(int(rows[0]), batch.shape[1:])
        return batch

    def read_batch_of(
        self, tile_ids: Iterable[str], *, workers: int | None = None, verify: bool = True
    ) -> npt.NDArray[Any]:
        """:meth:`read_batch` of tiles by their ids."""
        return self.read_batch(self.rows_of(tile_ids), workers=workers, verify=verify)

    def read_arrays_at(
        self, rows: Iterable[int], *, workers: int | None = None
    ) -> list[npt.NDArray[Any]]:
        """Tiles as arrays (height, width, 3): gray replicated, alpha dropped, dtype kept."""
        rows = list(rows)
        images = self._pack.read_many(rows, workers)
        for row, image in zip(rows, images, strict=True):
            if not self._fits(image.shape[:2]):
                raise self._wrong_size(row, image.shape)
        return [rgb(image) for image in images]

    def read_array_at(self, row: int) -> npt.NDArray[Any]:
        """One tile as :meth:`read_arrays_at`."""
        return self.read_arrays_at([row], workers=1)[0]

    def read_images_at(self, rows: Iterable[int], *, workers: int | None = None) -> list[Any]:
        """Tiles as Pillow's RGB images. Raises TypeError for tiles that are not of 8 bits."""
        path = str(self._pack.reader.package_path)
        return [rgb_image(array, path) for array in self.read_arrays_at(rows, workers=workers)]

    def read_image_at(self, row: int) -> Any:
        """One tile as :meth:`read_images_at`."""
        return self.read_images_at([row], workers=1)[0]

    def read_image(self, tile_id: str) -> Any:
        """One tile by its id as :meth:`read_images_at`."""
        return self.read_image_at(row_of_tile(self._ids, tile_id))

    def _fits(self, size: tuple[int, ...]) -> bool:
        return tuple(size) == self.tile_shape[:2]

    def _wrong_size(self, row: int, shape: tuple[int, ...]) -> PackError:
        height, width, _ = self.tile_shape
        path = str(self._pack.reader.package_path)
        error = PackError(
            f"{path}: row {row}: the tile is {shape[1]} x {shape[0]} pixels, the header says "
            f"{width} x {height}"
        )
        error.pack, error.row = path, row
        return error

    def close(self) -> None:
        """Lets go of the file."""
        self._pack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        """Number of tiles."""
        return len(self._pack)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self._pack.reader.package_path),)

    def __repr__(self) -> str:
        return repr(self._pack).replace("VariableRecordPack", type(self).__name__, 1)


def read_package_metadata(package_path: PathLike) -> dict[str, Any]:
    """The JSON header of a pack."""
    return read_header(package_path)


def read_package_manifest(package_path: PathLike) -> list[TileRecord]:
    """The tiles of a pack, in row order. Their paths are ``tiles/<tile_id>.<codec>``."""
    with TilePackageReader(package_path) as reader:
        return _records(reader)


def iter_package_tiles(package_path: PathLike) -> Iterator[tuple[TileRecord, Any]]:
    """Every tile and its image as Pillow's RGB, in row order, few decoded at a time."""
    with TilePackageReader(package_path) as reader:
        records = _records(reader)
        for start in range(0, len(records), _BLOCK):
            block = records[start : start + _BLOCK]
            rows = range(start, start + len(block))
            yield from zip(block, reader.read_images_at(rows), strict=True)


def _records(reader: TilePackageReader) -> list[TileRecord]:
    suffix = reader.header.get("codec", "bin")
    return tile_records(reader.pack.reader, "tiles", suffix)
