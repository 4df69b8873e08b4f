"""Writing packs. Each appears at its path whole or not at all; inputs alone decide its bytes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from . import _native
from ._matrix_header import MATRIX_FIELDS, matrix_header, named_for
from ._options import PathLike, worker_count
from ._tables import normalised, stream_bytes, stream_length, value_buffers
from ._urls import public_url
from .codec import Codec

__all__ = [
    "build_pack",
    "build_pack_data_segment",
    "build_pack_data_segment_from_file",
    "build_pack_streaming",
]

#: Fields of a header that say how records are stored.
CODEC_FIELDS = frozenset({"codec", "codec_params", "record_codecs"})

#: Payloads handed to the core, and objects encoded, at a time: so many, or so many bytes.
_BLOCK_ITEMS = 256
_BLOCK_BYTES = 16 << 20

#: Bytes copied at a time.
_COPY_BYTES = 8 << 20


def build_pack(
    output_path: PathLike,
    header_json: Mapping[str, Any],
    slide_table: pa.Table,
    index_table: pa.Table,
    payloads: Iterable[Any],
    *,
    overwrite: bool = False,
) -> None:
    """Writes a pack of encoded payloads, one for each row of ``index_table``.

    ``offset`` (uint64), ``length`` (uint32) and ``crc32`` (uint32) columns are computed: they
    replace columns of those names, or come last. ``header_json`` is kept as it is but for the
    layout fields, which are computed as well. Payloads are bytes-like. Columns of view, list-view
    and run-end encoded types are stored as the plain types that every reader knows.

    Raises FileExistsError where there is a file and not ``overwrite``, ValueError when counts
    differ or the header cannot be stored exactly, TypeError for other kinds of input, and OSError
    when the file cannot be written. On any error nothing is left behind and an old file stays.
    """
    rows = _rows(index_table)
    if isinstance(payloads, Sized) and len(payloads) != rows:
        raise ValueError(f"{len(payloads)} payloads for {rows} rows of index_table")
    build_pack_streaming(
        output_path, header_json, slide_table, index_table, payloads, overwrite=overwrite
    )


def build_pack_streaming(
    output_path: PathLike,
    header_json: Mapping[str, Any],
    slide_table: pa.Table,
    index_table: pa.Table,
    payloads: Iterable[Any],
    *,
    overwrite: bool = False,
) -> None:
    """:func:`build_pack` from an iterator: payloads go to disk as they come.

    A payload too many is an error at once, one too few when the iterator ends.
    """
    write_records(
        output_path, header_json, slide_table, index_table, _blocks(payloads), overwrite=overwrite
    )


def write_records(
    output_path: PathLike,
    header_json: Mapping[str, Any],
    slide_table: pa.Table,
    index_table: pa.Table,
    blocks: Iterable[list[Any] | pa.LargeBinaryArray],
    *,
    prefix: Any = b"",
    overwrite: bool = False,
) -> None:
    """:func:`build_pack_streaming` of payloads that come in lists or arrays of large_binary, behind
    ``prefix``, bytes at the start of the data segment that belong to no record.
    """
    index_table = _with_layout(_table(index_table, "index_table"))

    def fill(writer: _native.Writer) -> pa.Table:
        writer.append_data(prefix)
        for block in blocks:
            if isinstance(block, pa.LargeBinaryArray):
                writer.append_all(*value_buffers(block))
            else:
                writer.append(block)
        written = len(writer.offsets)
        if written != index_table.num_rows:
            raise ValueError(f"{written} payloads for {index_table.num_rows} rows of index_table")
        return _with_layout(index_table, writer)

    _write(output_path, header_json, slide_table, index_table, fill, overwrite)


def write_data(
    output_path: PathLike,
    header_json: Mapping[str, Any],
    slide_table: pa.Table,
    index_table: pa.Table,
    chunks: Iterable[Any],
    *,
    overwrite: bool = False,
) -> None:
    """:func:`build_pack_data_segment` of bytes that come in several pieces."""

    def fill(writer: _native.Writer) -> None:
        for chunk in chunks:
            writer.append_data(chunk)

    _write(output_path, header_json, slide_table, index_table, fill, overwrite)


def build_pack_data_segment(
    output_path: PathLike,
    header_json: Mapping[str, Any],
    slide_table: pa.Table,
    index_table: pa.Table,
    data: Any,
    *,
    overwrite: bool = False,
) -> None:
    """Writes a pack around one opaque data segment; the index table is stored as it is.

    Errors as :func:`build_pack`.
    """
    write_data(output_path, header_json, slide_table, index_table, [data], overwrite=overwrite)


def build_pack_data_segment_from_file(
    output_path: PathLike,
    header_json: Mapping[str, Any],
    slide_table: pa.Table,
    index_table: pa.Table,
    data_path: PathLike,
    *,
    data_length: int,
    overwrite: bool = False,
) -> None:
    """:func:`build_pack_data_segment` from a file, which must have ``data_length`` bytes."""
    with open(data_path, "rb") as data:
        size = os.fstat(data.fileno()).st_size
        if size != data_length:
            raise ValueError(f"{os.fspath(data_path)}: has {size} bytes, expected {data_length}")

        def chunks() -> Iterator[bytes]:
            read = 0
            while chunk := data.read(_COPY_BYTES):
                read += len(chunk)
                yield chunk
            if read != data_length:
                raise ValueError(
                    f"{os.fspath(data_path)}: {read} bytes were read, expected {data_length}: it "
                    "changed meanwhile"
                )

        write_data(
            output_path, header_json, slide_table, index_table, chunks(), overwrite=overwrite
        )


def build_variable(
    output_path: PathLike,
    *,
    payload_type: str,
    slide_table: pa.Table,
    index_table: pa.Table,
    objects: Iterable[Any],
    codec: Codec | str | None = None,
    extra_header: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    streaming: bool = False,
    workers: int | None = None,
) -> None:
    """Encodes objects, in parallel, and writes them, one for each row of ``index_table``.

    ``codec`` is a :class:`Codec`, a name, or None for ``none``. The header holds ``payload_type``,
    ``codec`` and ``codec_params``, with ``extra_header`` over them. ``streaming=True`` takes any
    iterable and holds few objects at a time; without it ``objects`` is a sequence whose length is
    checked first. Errors as :func:`build_pack`, and ValueError where ``extra_header`` contradicts
    how records are stored.
    """
    worker_count(workers)
    if codec is None or isinstance(codec, str):
        codec = Codec.create(codec or Codec.NONE)
    coding = codec_header(codec)
    whole_header({"payload_type": payload_type, **coding}, extra_header)  # before the work
    if not streaming:
        objects = objects if isinstance(objects, Sequence) else list(objects)
        if len(objects) != (rows := _rows(index_table)):
            raise ValueError(f"{len(objects)} objects for {rows} rows of index_table")
    encoded = chain.from_iterable(encoded_blocks(codec, objects, workers))
    build_variable_from_payloads(
        output_path,
        payload_type=payload_type,
        slide_table=slide_table,
        index_table=index_table,
        payloads=encoded,
        codec_name=codec.name,
        codec_params=codec.parameters(),
        extra_header=extra_header,
        overwrite=overwrite,
    )


def build_variable_from_payloads(
    output_path: PathLike,
    *,
    payload_type: str,
    slide_table: pa.Table,
    index_table: pa.Table,
    payloads: Iterable[Any],
    codec_name: str,
    codec_params: Mapping[str, Any] | None = None,
    extra_header: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> None:
    """Writes payloads that are encoded already. That they are is not checked.

    ``extra_header`` may say of them what no argument does: ``record_codecs``, and ``codec_params``
    where there are none. Errors as :func:`build_pack`, and ValueError where it contradicts them.
    """
    header: dict[str, Any] = {"payload_type": payload_type, "codec": codec_name}
    free = {"record_codecs"}
    if codec_params:
        header["codec_params"] = dict(codec_params)
    else:
        free.add("codec_params")
    header = whole_header(header, extra_header, free)
    build_pack(output_path, header, slide_table, index_table, payloads, overwrite=overwrite)


def build_fixed(
    output_path: PathLike,
    *,
    payload_type: str,
    slide_table: pa.Table,
    index_table: pa.Table,
    matrix: npt.ArrayLike,
    extra_header: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> None:
    """Writes the rows of a 2-D matrix as fixed-length records, one for each row of the index.

    Any bool, integer, float or complex dtype is kept; other byte orders are stored little-endian.
    Errors as :func:`build_pack`, and ValueError where ``extra_header`` contradicts the matrix.
    """
    array = np.asarray(matrix)
    if array.ndim != 2:
        raise ValueError(f"matrix has {array.ndim} dimensions, expected 2")
    if len(array) != (rows := _rows(index_table)):
        raise ValueError(f"{len(array)} matrix rows for {rows} rows of index_table")
    step = max(1, _COPY_BYTES // max(1, array.shape[1] * array.itemsize))
    build_fixed_streaming(
        output_path,
        payload_type=payload_type,
        slide_table=slide_table,
        index_table=index_table,
        blocks=(array[start : start + step] for start in range(0, len(array), step)),
        dim=array.shape[1],
        dtype=array.dtype,
        extra_header={"codec": Codec.NONE, **(extra_header or {})},
        overwrite=overwrite,
    )


def build_fixed_streaming(
    output_path: PathLike,
    *,
    payload_type: str,
    slide_table: pa.Table,
    index_table: pa.Table,
    blocks: Iterable[npt.NDArray[Any]],
    dim: int,
    dtype: npt.DTypeLike,
    extra_header: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> None:
    """:func:`build_fixed` from the rows of many matrices, which go to disk as they come.

    Each of ``blocks`` has ``dim`` columns of ``dtype``.
    """
    dtype = np.dtype(dtype).newbyteorder("=")
    if dtype.kind not in "biufc" or dtype.itemsize > 16 or dtype.char in "gG":
        raise TypeError(f"matrix of {dtype} cannot be stored")
    rows = _rows(index_table)
    header = {"payload_type": payload_type, **matrix_header(dim, dtype)}
    extra = dict(extra_header or {})
    codec = extra.get("codec", Codec.NONE)
    if codec != Codec.NONE:
        raise ValueError(f"extra_header says codec {codec!r}, but a matrix is stored as it is")
    header = whole_header(header, extra, {"codec"})

    def fill(writer: _native.Writer) -> None:
        written = 0
        for block in blocks:
            if block.ndim != 2 or block.shape[1] != dim or block.dtype.newbyteorder("=") != dtype:
                raise ValueError(
                    f"matrix rows from {written} on are {block.shape} of {block.dtype}, expected "
                    f"{dim} columns of {dtype}"
                )
            block = np.ascontiguousarray(block, dtype=dtype.newbyteorder("<"))
            writer.append_data(block.reshape(-1).view(np.uint8))
            written += len(block)
            if written > rows:
                break
        if written != rows:
            more = "more than " if written > rows else ""
            raise ValueError(
                f"{more}{min(written, rows)} matrix rows for {rows} rows of index_table"
            )

    _write(output_path, header, slide_table, index_table, fill, overwrite)


def whole_header(
    written: Mapping[str, Any],
    extra_header: Mapping[str, Any] | None,
    free: Collection[str] = (),
) -> dict[str, Any]:
    """The header of what is ``written``, with a caller's fields over it.

    Raises ValueError for a payload type that is no text, and for a field of the caller's that says
    of how records are stored what is not so, but for those that are ``free``.
    """
    extra = dict(extra_header or {})
    written = named_for(extra.get("payload_type", written["payload_type"]), written)
    for name in sorted((CODEC_FIELDS | MATRIX_FIELDS).difference(free) & extra.keys()):
        if name not in written:
            raise ValueError(f"extra_header has {name!r}, which this pack does not have")
        if extra.pop(name) != written[name]:
            raise ValueError(
                f"extra_header has another {name!r} than what is written, {written[name]!r}: leave "
                "it out"
            )
    header = {**written, **extra}
    payload_type = header["payload_type"]
    if not isinstance(payload_type, str) or not payload_type:
        raise ValueError(f"payload_type is {payload_type!r}, expected a text that is not empty")
    return header


def codec_header(codec: Codec) -> dict[str, Any]:
    """What the header of a pack says of its codec."""
    params = dict(codec.parameters())
    return {"codec": codec.name, **({"codec_params": params} if params else {})}


def _write(
    output_path: PathLike,
    header_json: Mapping[str, Any],
    slide_table: pa.Table,
    index_table: pa.Table,
    fill: Callable[[_native.Writer], pa.Table | None],
    overwrite: bool,
) -> None:
    """Makes room for both tables, lets ``fill`` write the data, then writes the tables.

    What ``fill`` returns is the index table to write, None for the one given.
    """
    path = output_file(output_path)
    slides = stream_bytes(_table(slide_table, "slide_table"))
    index_table = _table(index_table, "index_table")
    if not isinstance(header_json, Mapping):
        raise TypeError(f"header_json is {type(header_json)}, expected a dict")
    writer = _native.Writer(
        os.fsencode(path),
        overwrite,
        json.dumps(dict(header_json), allow_nan=False),
        len(slides),
        stream_length(index_table),
        slide_table.num_rows,
        index_table.num_rows,
    )
    try:
        filled = fill(writer)
        writer.finish(slides, stream_bytes(index_table if filled is None else filled))
    finally:
        writer.abandon()


def output_file(output_path: PathLike) -> str:
    """The absolute path to write to. Raises ValueError for a URL."""
    path = os.fsdecode(output_path)
    if "://" in path:
        raise ValueError(f"{public_url(path)}: packs are written to local paths, not to URLs")
    return os.path.abspath(path)


def _checked(table: pa.Table, name: str) -> pa.Table:
    if not isinstance(table, pa.Table):
        raise TypeError(f"{name} is {type(table)}, expected a pyarrow.Table")
    return table


def _table(table: pa.Table, name: str) -> pa.Table:
    return normalised(_checked(table, name))


def _rows(index_table: pa.Table) -> int:
    return _checked(index_table, "index_table").num_rows


def _with_layout(table: pa.Table, writer: _native.Writer | None = None) -> pa.Table:
    """The index table with its layout columns: zeros as long as there is no writer to ask."""
    rows = table.num_rows
    columns = {
        "offset": np.zeros(rows, np.uint64) if writer is None else writer.offsets,
        "length": np.zeros(rows, np.uint32) if writer is None else writer.lengths,
        "crc32": np.zeros(rows, np.uint32) if writer is None else writer.crc32s,
    }
    for name, values in columns.items():
        at = table.schema.get_all_field_indices(name)
        if len(at) > 1:
            raise ValueError(f"index_table has {len(at)} columns called {name!r}")
        column = pa.array(values)
        place = at[0] if at else table.num_columns
        table = (table.set_column if at else table.add_column)(place, name, column)
    return table


def _blocks(items: Iterable[Any]) -> Iterator[list[Any]]:
    """The items in lists of bounded size. What an iterator may use again comes by itself."""
    kept = isinstance(items, Sequence)
    block: list[Any] = []
    size = 0
    for item in items:
        block.append(item)
        size += len(item) if isinstance(item, bytes) else getattr(item, "nbytes", 0)
        reusable = not (kept or isinstance(item, bytes))
        if reusable or len(block) == _BLOCK_ITEMS or size >= _BLOCK_BYTES:
            yield block
            block, size = [], 0
    if block:
        yield block


def encoded_blocks(
    codec: Codec, objects: Iterable[Any], workers: int | None
) -> Iterator[list[bytes]]:
    """The payloads of objects, encoded in parallel, few at a time."""
    first = 0
    for block in _blocks(objects):
        try:
            yield codec.encode_many(block, workers)
        except TypeError as error:
            raise TypeError(f"objects from {first} on: {error}") from error
        first += len(block)
