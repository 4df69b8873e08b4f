"""Packs as Polars lazy frames, and payloads of record references in Polars expressions.

Importing it registers the namespace ``iac`` of expressions.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import re
import zoneinfo
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

try:
    import polars as pl
    from polars.io.plugins import register_io_source
except ImportError as error:
    raise ImportError(
        "scanning packs with Polars needs it: pip install iac-query[polars]"
    ) from error

from ..decoding.decode import decode
from ..decoding.documents import DOC_PAIRS, DOCS, DocumentSchema, read_docs
from ..decoding.kinds import Kind
from ..decoding.references import read_references
from ..decoding.tags import read_tags
from ..errors import CodecError, PackError, row_error
from ..images import IMAGE_TYPE
from ..scanning.plan import ScanPlan, empty
from ..scanning.run import BATCH_ROWS, Conjunct, scan
from .exits import exit_safe

__all__ = ["PayloadNamespace", "lazy_frame"]


def lazy_frame(plan: ScanPlan) -> pl.LazyFrame:
    """A planned scan as a lazy frame."""
    if plan.options.as_ == "tensor":
        raise ValueError("as_ is 'tensor', which Polars does not have: use 'vector' or 'image'")
    schema, problems, frame_schema = _for_polars(plan.schema)
    plan = dataclasses.replace(plan, schema=schema, problems=problems | plan.problems)
    return register_io_source(_Source(plan), schema=frame_schema, is_pure=True)


@functools.lru_cache(maxsize=256)  # most scans are of packs that are alike
def _for_polars(schema: pa.Schema) -> tuple[pa.Schema, dict[str, str], pl.Schema]:
    """The schema with columns of types that Polars lacks as text that cannot be read, why it
    cannot, and what the rest is in Polars.
    """
    fields, problems = [], {}
    for field in schema:
        if not _is_known(field.type):
            problems[field.name] = f"column {field.name!r}: Polars has no type for {field.type}"
            field = field.with_type(pa.string())
        fields.append(field)
    known = pa.schema(fields)
    return known, problems, _frame_schema(known)


def _is_known(type: pa.DataType) -> bool:
    """Whether Polars has the type. It prints a panic for some that it lacks."""
    types = pa.types
    if types.is_interval(type) or types.is_union(type) or types.is_decimal256(type):
        return False
    if types.is_decimal(type):
        return 0 <= type.scale <= type.precision
    if types.is_fixed_size_binary(type):
        return type.byte_width > 0
    if types.is_timestamp(type) and type.tz is not None:
        return _is_zone(type.tz)
    if types.is_struct(type) and len({field.name for field in type.fields}) < type.num_fields:
        return False
    children = [type.field(i).type for i in range(type.num_fields)]
    return all(_is_known(child) for child in children)


def _is_zone(name: str) -> bool:
    if re.fullmatch(r"[+-]\d\d:\d\d", name):
        return True
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _frame_schema(schema: pa.Schema) -> pl.Schema:
    return _frame(empty(schema)).schema


def _frame(table: pa.Table) -> pl.DataFrame:
    for position, field in enumerate(table.schema):
        if _has_arrays(field.type):
            # Polars cannot read them where they have NULLs and begin behind their buffers' start.
            table = table.set_column(position, field, _copied(table.column(position)))
    return pl.DataFrame(pl.from_arrow(table, rechunk=False))


def _has_arrays(type: pa.DataType) -> bool:
    children = [type.field(i).type for i in range(type.num_fields)]
    return pa.types.is_fixed_size_list(type) or any(map(_has_arrays, children))


def _copied(column: pa.ChunkedArray) -> pa.ChunkedArray:
    is_plain = pa.types.is_fixed_size_list(column.type) and column.type.value_type.num_fields == 0
    if is_plain and column.null_count == 0:
        return column
    return column.take(pa.array(range(len(column)), pa.int64()))


class _Source:
    """What Polars asks for rows. It calls from threads of its own, and pickles it with frames."""

    def __init__(self, plan: ScanPlan) -> None:
        self._plan = plan

    def __call__(
        self,
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        batch_size: int | None,
    ) -> Iterator[pl.DataFrame]:
        return exit_safe(self._frames(with_columns, predicate, n_rows, batch_size))

    def _frames(
        self,
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        batch_size: int | None,
    ) -> Iterator[pl.DataFrame]:
        columns = self._plan.schema.names if with_columns is None else with_columns
        conditions = [] if predicate is None else [_conjunct(part) for part in _split(predicate)]
        any_rows = False
        for table in scan(self._plan, columns, conditions, n_rows, batch_size or BATCH_ROWS):
            any_rows = True
            yield _frame(table)
        if not any_rows:  # Polars needs one frame
            yield _frame(empty(self._plan.fields(columns)))


def _split(predicate: pl.Expr) -> Iterator[pl.Expr]:
    """The conditions of a predicate that is true where all of them are."""
    parts = [predicate]
    while parts:
        part = parts.pop()
        inputs = part.meta.pop()  # the last one first
        if len(inputs) == 2 and (inputs[1] & inputs[0]).meta.eq(part):
            parts += inputs
        else:
            yield part


def _conjunct(condition: pl.Expr) -> Conjunct:
    columns = frozenset(condition.meta.root_names())
    for name in columns:
        if name == "*" or (name.startswith("^") and name.endswith("$")):
            raise PackError(
                f"column {name!r}: Polars takes this name for a pattern, so packs cannot be "
                "filtered by it; filter with iac_scan in SQL or with scan_arrow"
            )

    def holds(table: pa.Table) -> npt.NDArray[np.bool_]:
        if not table.column_names:
            values = pl.select(condition).to_series()
        else:
            values = _frame(table).select_seq(condition).to_series()
        if values.null_count():
            values = values.fill_null(False)
        if len(values) not in (1, table.num_rows):
            raise ValueError(
                f"a condition on {sorted(columns)} has {len(values)} values for {table.num_rows} "
                "rows: a function in it is not elementwise"
            )
        return values.to_numpy()

    return Conjunct(columns, holds)


def _dtype(type: pa.DataType) -> pl.DataType:
    return _frame_schema(pa.schema({"x": type}))["x"]


IMAGE_DTYPE = _dtype(IMAGE_TYPE)


@pl.api.register_expr_namespace("iac")
class PayloadNamespace:
    """Payloads of a column of record references: ``pl.col("record").iac.text()``.

    To be used where few rows are left: behind filters, joins and sorts. ``options`` are those of
    :func:`iac_query.decode`: ``workers``, ``on_error`` (``"raise"``, or ``"null"`` for NULL),
    ``verify``, ``packs`` and ``storage``. A NULL reference gives NULL.
    """

    def __init__(self, expr: pl.Expr) -> None:
        self._expr = expr

    def payload(self, **options: Any) -> pl.Expr:
        """Decoded bytes as Binary; of an image its pixels, of a matrix pack the row."""
        return self._resolved("bytes", pl.Binary(), options)

    def text(self, **options: Any) -> pl.Expr:
        """Decoded bytes as String. Those that are not UTF-8 are an error of their row."""
        return self._resolved("text", pl.String(), options)

    def stored(self, **options: Any) -> pl.Expr:
        """Stored bytes as Binary."""
        return self._resolved("stored", pl.Binary(), options)

    def image(self, **options: Any) -> pl.Expr:
        """Decoded images as Struct of height, width, channels, dtype and data: pixels row by row,
        channels interleaved, little-endian.
        """
        return self._resolved("image", IMAGE_DTYPE, options)

    def vector(self, width: int | None = None, dtype: Any = pl.Float32, **options: Any) -> pl.Expr:
        """Rows of matrix packs as List of ``dtype``, as Array where their ``width`` is given.

        Polars must know the type before a pack is read. float64 is rounded to Float32; a number
        that would become infinite, and an integer that would change, is a CodecError.
        """
        inner = pl.List(dtype) if width is None else pl.Array(dtype, width)
        return self._resolved("vector", inner, options)

    def docs(self, **options: Any) -> pl.Expr:
        """The documents of ``clinical_text`` records, as ``iac_docs`` in SQL: List of Struct of
        doc_id, doc_type, doc_category, doc_timestamp, encounter, episode_index, source and text,
        all String but the episode (Int32, NULL for none), in the order they are stored in.

        ``frame.select(doc=...).explode("doc").unnest("doc")`` makes them rows.
        """
        return self._documents(DOCS, options)

    def doc_pairs(self, **options: Any) -> pl.Expr:
        """:meth:`docs` of ``clinical_text_pair`` records, with source_text and compressed_text in
        place of text.
        """
        return self._documents(DOC_PAIRS, options)

    def tag(self, tag: str, **options: Any) -> pl.Expr:
        """One element of DICOM instances' headers as String, as ``iac_tag`` in SQL: ``tag`` is a
        keyword (``"SliceThickness"``) or number (``"00180050"``). NULL where it is missing or
        empty; several values have a backslash between them.
        """
        if not isinstance(tag, str):
            raise TypeError(f"tag is {tag!r}, expected a str")
        return self._tags(tag, options)

    def tags(self, **options: Any) -> pl.Expr:
        """The headers of DICOM instances as String of DICOM JSON (PS3.18 annex F), as ``iac_tags``
        in SQL.
        """
        return self._tags(None, options)

    def _tags(self, tag: str | None, options: dict[str, Any]) -> pl.Expr:
        return self._mapped(functools.partial(_tags, tag=tag), pl.String(), options)

    def _resolved(self, kind: Kind, dtype: pl.DataType, options: dict[str, Any]) -> pl.Expr:
        resolve = functools.partial(_payloads, kind=kind, dtype=dtype)
        return self._mapped(resolve, dtype, options)

    def _documents(self, schema: DocumentSchema, options: dict[str, Any]) -> pl.Expr:
        resolve = functools.partial(_documents, schema=schema)
        return self._mapped(resolve, _dtype(schema.type), options)

    def _mapped(
        self,
        resolve: Callable[..., pl.Series],
        dtype: pl.DataType,
        options: dict[str, Any],
    ) -> pl.Expr:
        """What ``resolve`` makes of a Series of references."""
        unknown = options.keys() - {"workers", "on_error", "verify", "packs", "storage"}
        if unknown:
            raise TypeError(f"{sorted(unknown)[0]} is no option, see iac_query.decode")
        if options.get("on_error") == "skip":
            raise ValueError("on_error is 'skip', expected 'raise' or 'null'")
        # Polars takes only elementwise functions into a scan's filter, by way of cloudpickle.
        pickles = importlib.util.find_spec("cloudpickle") is not None
        resolve = functools.partial(resolve, options=options)
        return self._expr.map_batches(resolve, return_dtype=dtype, is_elementwise=pickles)


def _references(records: pl.Series) -> pa.ChunkedArray:
    return pa.chunked_array([records.to_arrow()])


def _payloads(
    records: pl.Series, kind: Kind, dtype: pl.DataType, options: dict[str, Any]
) -> pl.Series:
    """The payloads of references, NULL for NULL."""
    table = pa.table({"record": _references(records)})
    payloads = decode(table, as_=kind, **options)["payload"]
    if payloads.null_count == len(payloads):
        return pl.Series(records.name, [None] * len(payloads), dtype)
    if kind == "vector":
        payloads = _converted(payloads.combine_chunks(), records, dtype)
    return pl.Series(records.name, pl.from_arrow(payloads), dtype)


def _documents(records: pl.Series, schema: DocumentSchema, options: dict[str, Any]) -> pl.Series:
    """The documents of references, NULL for NULL."""
    docs = read_docs(read_references(_references(records)), schema, **options)
    return pl.Series(records.name, pl.from_arrow(docs))


def _tags(records: pl.Series, tag: str | None, options: dict[str, Any]) -> pl.Series:
    """The headers of references or an element of them, NULL for NULL."""
    texts = read_tags(read_references(_references(records)), tag, **options)
    return pl.Series(records.name, pl.from_arrow(texts))


def _converted(
    vectors: pa.FixedSizeListArray, records: pl.Series, dtype: pl.List | pl.Array
) -> pa.FixedSizeListArray:
    """Vectors with numbers of another type."""
    width = vectors.type.list_size
    if isinstance(dtype, pl.Array) and dtype.size != width:
        raise CodecError(f"vectors have {width} values, vector() says {dtype.size}")
    own = _dtype(vectors.type.value_type)
    if own == dtype.inner:
        return vectors
    if not dtype.inner.is_float():
        raise CodecError(f"vectors are of {own}, vector() gives them as that or as floats")
    values = vectors.values.slice(vectors.offset * width, len(vectors) * width)
    values = values.to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore"):
        numbers = values.astype(np.float32 if dtype.inner == pl.Float32 else np.float64)
    if values.dtype.kind == "f":
        unfit = np.isinf(numbers) & ~np.isinf(values)
    else:
        largest = 1 << (np.finfo(numbers.dtype).nmant + 1)  # of integers without gaps
        unfit = (values > largest) | (values < -largest)
    if unfit.any():
        record = records[int(unfit.argmax()) // width]
        reason = f"a number does not fit {dtype.inner}, pass another dtype to vector()"
        raise row_error(CodecError, record["pack"], record["row"], reason)
    return pa.FixedSizeListArray.from_arrays(
        pa.array(numbers),
        type=pa.list_(pa.from_numpy_dtype(numbers.dtype), width),
        mask=vectors.is_null(),
    )
