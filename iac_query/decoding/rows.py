"""Query results as the libraries have them: rows that get a column and stay of their kind."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

#: Rows that are taken from a result at a time.
PIECE_ROWS = 1 << 16


class Rows(ABC):
    """A pyarrow.Table, or a DataFrame of Polars or pandas, in ``frame``."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    def __len__(self) -> int:
        return len(self.frame)

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """The columns' names."""

    @abstractmethod
    def column(self, name: str) -> pa.ChunkedArray:
        """A column as Arrow."""

    @abstractmethod
    def table(self) -> pa.Table:
        """All columns as Arrow."""

    @abstractmethod
    def slice(self, start: int, stop: int) -> Self:
        """Some rows, without a copy."""

    @abstractmethod
    def keep(self, kept: npt.NDArray[np.bool_]) -> Self:
        """The rows that are marked."""

    @abstractmethod
    def append(self, name: str, values: pa.ChunkedArray) -> Self:
        """With a column behind the others."""

    @classmethod
    @abstractmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """Rows of one kind, one behind the other."""


class ArrowRows(Rows):
    """Rows of a pyarrow.Table."""

    @property
    def names(self) -> list[str]:
        return self.frame.column_names

    def column(self, name: str) -> pa.ChunkedArray:
        return self.frame[name]

    def table(self) -> pa.Table:
        return self.frame

    def slice(self, start: int, stop: int) -> Self:
        return type(self)(self.frame.slice(start, stop - start))

    def keep(self, kept: npt.NDArray[np.bool_]) -> Self:
        return type(self)(kept_rows(self.frame, kept))

    def append(self, name: str, values: pa.ChunkedArray) -> Self:
        return type(self)(self.frame.append_column(name, values))

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        return cls(pa.concat_tables([part.frame for part in parts]))


class PolarsRows(Rows):
    """Rows of a polars.DataFrame."""

    @property
    def names(self) -> list[str]:
        return self.frame.columns

    def column(self, name: str) -> pa.ChunkedArray:
        return pa.chunked_array(self.frame.get_column(name))

    def table(self) -> pa.Table:
        return pa.table(self.frame)

    def slice(self, start: int, stop: int) -> Self:
        return type(self)(self.frame.slice(start, stop - start))

    def keep(self, kept: npt.NDArray[np.bool_]) -> Self:
        import polars as pl

        return type(self)(self.frame.filter(pl.Series(kept)))

    def append(self, name: str, values: pa.ChunkedArray) -> Self:
        import polars as pl

        return type(self)(self.frame.with_columns(pl.Series(name, _nested_lists(values))))

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        import polars as pl

        return cls(pl.concat([part.frame for part in parts]))


class PandasRows(Rows):
    """Rows of a pandas.DataFrame, whatever its index is."""

    @property
    def names(self) -> list[str]:
        return list(self.frame.columns)

    def column(self, name: str) -> pa.ChunkedArray:
        return type(self)(self.frame[[name]]).table()[name]

    def table(self) -> pa.Table:
        table = pa.Table.from_pandas(self.frame, preserve_index=False)
        return table.replace_schema_metadata()

    def slice(self, start: int, stop: int) -> Self:
        return type(self)(self.frame.iloc[start:stop])

    def keep(self, kept: npt.NDArray[np.bool_]) -> Self:
        return type(self)(self.frame[kept])

    def append(self, name: str, values: pa.ChunkedArray) -> Self:
        from pandas.arrays import ArrowExtensionArray

        return type(self)(self.frame.assign(**{name: ArrowExtensionArray(values)}))

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        import pandas as pd

        return cls(pd.concat([part.frame for part in parts]))


def whole(result: Any) -> Rows:
    """All rows of a result. Raises TypeError for what is none."""
    rows = _in_memory(result)
    return ArrowRows(pa.table(result)) if rows is None else rows


def pieces(result: Any) -> Iterator[Rows]:
    """The rows of a result, some at a time; a stream is read as far as they are asked for.

    Raises TypeError for what is none, before the first piece.
    """
    rows = _in_memory(result)
    if rows is not None:
        return _sliced(rows)
    return _streamed(pa.RecordBatchReader.from_stream(result))


def _sliced(rows: Rows) -> Iterator[Rows]:
    for start in range(0, len(rows), PIECE_ROWS):
        yield rows.slice(start, min(start + PIECE_ROWS, len(rows)))


def _streamed(reader: pa.RecordBatchReader) -> Iterator[Rows]:
    for batch in reader:
        yield from _sliced(ArrowRows(pa.Table.from_batches([batch])))


def _in_memory(result: Any) -> Rows | None:
    """The rows of a result, None for a stream of them."""
    if isinstance(result, pa.Table):
        return ArrowRows(result)
    if isinstance(result, pa.RecordBatch):
        return ArrowRows(pa.Table.from_batches([result]))
    # A library whose frame this is has been imported.
    if (polars := sys.modules.get("polars")) is not None:
        if isinstance(result, polars.DataFrame):
            return PolarsRows(result)
        if isinstance(result, polars.LazyFrame):
            raise TypeError("result is a LazyFrame, which has no rows yet: pass result.collect()")
    if (pandas := sys.modules.get("pandas")) is not None and isinstance(result, pandas.DataFrame):
        return PandasRows(result)
    # DuckDB goes on in its threads with what it streams, beside the decoding: a table comes first.
    for fetch in ("to_arrow_table", "fetch_arrow_table"):  # newer and older
        if hasattr(result, fetch):
            return ArrowRows(getattr(result, fetch)())
    if hasattr(result, "__arrow_c_stream__"):
        return None
    raise TypeError(
        f"result is {type(result)}, expected something with __arrow_c_stream__ or a DuckDB "
        "connection that holds a result"
    )


def two_columns(name: str) -> str:
    """What is wrong with two columns of one name, and what to do."""
    return (
        f"two columns are called {name!r}: name one in the query (AS ...), and if it holds the "
        "records pass column="
    )


def kept_rows(table: pa.Table, kept: npt.NDArray[np.bool_]) -> pa.Table:
    """The rows that are marked. pyarrow cannot filter every type."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], kept, [False]]).astype(np.int8)))
    runs = [table.slice(start, end - start) for start, end in edges.reshape(-1, 2).tolist()]
    return pa.concat_tables(runs) if runs else table.slice(0, 0)


def _nested_lists(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Tensors as lists of lists over the same memory, which is what Polars calls an Array of a
    shape; other columns as they are.
    """
    if not isinstance(values.type, pa.FixedShapeTensorType):
        return values
    chunks = [_nested_list(chunk.storage, values.type.shape) for chunk in values.chunks]
    return pa.chunked_array(chunks, _nested_type(values.type.value_type, values.type.shape))


def _nested_type(value: pa.DataType, shape: Sequence[int]) -> pa.DataType:
    for size in reversed(shape):
        value = pa.list_(value, size)
    return value


def _nested_list(storage: pa.Array, shape: Sequence[int]) -> pa.Array:
    size = storage.type.list_size
    child = storage.values.slice(storage.offset * size, len(storage) * size)
    for inner in reversed(shape[1:]):
        child = pa.FixedSizeListArray.from_arrays(child, inner)
    mask = storage.is_null() if storage.null_count else None
    return pa.FixedSizeListArray.from_arrays(child, shape[0], mask=mask)
