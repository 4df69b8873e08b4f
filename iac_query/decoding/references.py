"""Record references: which pack, which row, and a stamp that tells whether it is still that."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

#: Stands for a reference without a stamp: crc32 values are below 2^32.
NO_STAMP = -1


@dataclass(frozen=True)
class References:
    """The references of a column, row by row. Where ``pack`` is -1 there is none."""

    paths: list[str]
    pack: npt.NDArray[np.int64]  # position in paths, or -1
    row: npt.NDArray[np.int64]
    stamp: npt.NDArray[np.int64]  # or NO_STAMP

    def __len__(self) -> int:
        return len(self.pack)


def read_references(column: pa.ChunkedArray) -> References:
    """References from a struct column with ``pack`` (any string type) and ``row`` (any integer),
    and perhaps ``stamp``, in any order.

    A column of the null type has no reference in it. Raises TypeError for another column.
    """
    if pa.types.is_null(column.type):
        none = np.full(len(column), -1, dtype=np.int64)
        return References([], none, none, none)
    if not pa.types.is_struct(column.type):
        raise TypeError(f"record column is {column.type}, expected a struct of pack and row")
    names = [field.name for field in column.type.fields]
    if "pack" not in names or "row" not in names:
        raise TypeError(f"record column has the fields {names}, expected pack and row")
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)

    fields = {name: pc.struct_field(array, name) for name in names}
    paths, codes = _dictionary(fields["pack"])
    row = _integers(fields["row"], "row")
    missing = pc.invert(pc.and_(codes.is_valid(), fields["row"].is_valid()))
    pack = codes.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    pack[missing.to_numpy(zero_copy_only=False)] = -1
    if "stamp" in names and not pa.types.is_null(fields["stamp"].type):
        stamp = _integers(fields["stamp"], "stamp", NO_STAMP)
    else:
        stamp = np.full(len(array), NO_STAMP, dtype=np.int64)
    return References(paths, pack, row, stamp)


def _dictionary(packs: pa.Array) -> tuple[list[str], pa.Array]:
    if not pa.types.is_dictionary(packs.type):
        if not (
            pa.types.is_string(packs.type)
            or pa.types.is_large_string(packs.type)
            or pa.types.is_string_view(packs.type)
        ):
            raise TypeError(f"record field pack is {packs.type}, expected a string")
        packs = packs.cast(pa.large_string()).dictionary_encode()
    values = packs.dictionary.to_pylist()
    paths = sorted({value for value in values if value is not None})
    numbers = {path: number for number, path in enumerate(paths)}
    codes = pa.array([numbers.get(value) for value in values], pa.int64())
    return paths, codes.take(packs.indices)


def _integers(values: pa.Array, name: str, missing: int = 0) -> npt.NDArray[np.int64]:
    if not pa.types.is_integer(values.type):
        raise TypeError(f"record field {name} is {values.type}, expected an integer")
    if pa.types.is_uint64(values.type):  # what does not fit is outside of every pack
        largest = pa.scalar(np.iinfo(np.int64).max, pa.uint64())
        values = pc.if_else(pc.greater(values, largest), largest, values)
    return values.cast(pa.int64()).fill_null(missing).to_numpy(zero_copy_only=False)
