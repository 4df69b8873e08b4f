"""Arrow tables as the IPC streams that packs hold."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from . import _native

__all__ = [
    "LAYOUT",
    "normalised",
    "plain_type",
    "stream_bytes",
    "stream_length",
    "table_schema",
    "value_buffers",
]


#: The columns of an index that say where records are stored, which the writer computes.
LAYOUT = {"offset": pa.uint64(), "length": pa.uint32(), "crc32": pa.uint32()}


def table_schema(pack: _native.Pack, name: str) -> pa.Schema:
    """The schema of a pack's ``"slide"`` or ``"index"`` table, of which nothing else is read."""
    reader = pa.RecordBatchReader._import_from_c_capsule(pack.table(name, None))
    try:
        return reader.schema
    finally:
        reader.close()


def stream_bytes(table: pa.Table) -> pa.Buffer:
    """The table as an Arrow IPC stream: metadata V5, uncompressed, a batch a chunk."""
    sink = pa.BufferOutputStream()
    _write(table, sink)
    return sink.getvalue()


def stream_length(table: pa.Table) -> int:
    """The length of :func:`stream_bytes`, without keeping them."""
    sink = pa.MockOutputStream()
    _write(table, sink)
    return sink.size()


def value_buffers(array: pa.LargeBinaryArray) -> tuple[memoryview, npt.NDArray[np.int64]]:
    """The bytes that values lie in, and the n + 1 offsets that part them."""
    _, offsets, data = array.buffers()
    if len(array) == 0:
        return memoryview(b""), np.zeros(1, dtype=np.int64)
    window = slice(array.offset, array.offset + len(array) + 1)
    memory = memoryview(b"") if data is None else memoryview(data)
    return memory, np.frombuffer(offsets, np.int64)[window]


def _write(table: pa.Table, sink: pa.NativeFile) -> None:
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)


def normalised(table: pa.Table) -> pa.Table:
    """The table with view, list-view and run-end encoded columns as plain ones.

    Raises ValueError for a name that not every reader can hold.
    """
    for i, field in enumerate(table.schema):
        plain = _plain_field(field).type
        if plain != field.type:
            chunks = [_plain_array(chunk, plain) for chunk in table.column(i).chunks]
            table = table.set_column(i, field.with_type(plain), pa.chunked_array(chunks, plain))
    return table


def plain_type(type: pa.DataType) -> pa.DataType:
    """The type as :func:`normalised` has it."""
    types = pa.types
    if types.is_fixed_size_binary(type) and type.byte_width == 0:
        raise ValueError("columns of fixed-size binary without bytes cannot be stored")
    if types.is_string_view(type):
        return pa.string()
    if types.is_binary_view(type):
        return pa.binary()
    if isinstance(type, pa.RunEndEncodedType):
        return plain_type(type.value_type)
    if isinstance(type, pa.DictionaryType):
        return pa.dictionary(type.index_type, plain_type(type.value_type), type.ordered)
    if types.is_list(type) or types.is_list_view(type):
        return pa.list_(_plain_field(type.value_field))
    if types.is_large_list(type) or types.is_large_list_view(type):
        return pa.large_list(_plain_field(type.value_field))
    if types.is_fixed_size_list(type):
        return pa.list_(_plain_field(type.value_field), type.list_size)
    if types.is_map(type):
        fields = _plain_field(type.key_field), _plain_field(type.item_field)
        return pa.map_(*fields, keys_sorted=type.keys_sorted)
    if types.is_struct(type):
        return pa.struct([_plain_field(field) for field in type.fields])
    if types.is_union(type):
        return pa.union([_plain_field(field) for field in type], type.mode, type.type_codes)
    return type


def _plain_field(field: pa.Field) -> pa.Field:
    if "\0" in field.name:
        raise ValueError(f"column name {field.name!r} has a NUL in it")
    return field.with_type(plain_type(field.type))


def _plain_array(array: pa.Array, plain: pa.DataType) -> pa.Array:
    """The array as :func:`plain_type` of its type.

    pyarrow's own casts of nested arrays fail for some of these types, and that of list views with
    nulls gives damaged arrays.
    """
    type, types = array.type, pa.types
    if type == plain:
        return array
    if isinstance(type, pa.RunEndEncodedType):
        runs = pa.RunEndEncodedArray.from_arrays(array.run_ends, _plain_array(array.values, plain))
        return pc.run_end_decode(runs.slice(array.offset, len(array)))
    if isinstance(type, pa.DictionaryType):
        values = _plain_array(array.dictionary, plain.value_type)
        return pa.DictionaryArray.from_arrays(array.indices, values, ordered=type.ordered)
    if types.is_struct(type):
        fields = list(plain)
        children = [_plain_array(array.field(i), f.type) for i, f in enumerate(fields)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())
    if types.is_union(type):
        children = [_plain_array(array.field(i), field.type) for i, field in enumerate(plain)]
        names, codes = [field.name for field in plain], plain.type_codes
        # type_codes and offsets would be those of the array that this may be a slice of.
        span = slice(array.offset, array.offset + len(array))
        ids = pa.array(np.frombuffer(array.buffers()[1], np.int8)[span])
        if type.mode == "sparse":
            return pa.UnionArray.from_sparse(ids, children, names, codes)
        offsets = pa.array(np.frombuffer(array.buffers()[2], np.int32)[span])
        return pa.UnionArray.from_dense(ids, offsets, children, names, codes)
    if types.is_fixed_size_list(type):
        size = type.list_size
        values = array.values.slice(array.offset * size, len(array) * size)
        values = _plain_array(values, plain.value_type)
        return pa.FixedSizeListArray.from_arrays(values, type=plain, mask=array.is_null())
    if types.is_map(type):
        keys = _plain_array(array.keys, plain.key_type)
        items = _plain_array(array.items, plain.item_type)
        offsets = pa.array(array.offsets.to_numpy())
        return pa.MapArray.from_arrays(offsets, keys, items, plain, mask=array.is_null())
    if types.is_nested(type):  # the four lists of any length
        wide = types.is_large_list(plain)
        lengths = np.zeros(len(array) + 1, dtype=np.int64 if wide else np.int32)
        lengths[1:] = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
        values = _plain_array(array.flatten(), plain.value_type)
        lists = pa.LargeListArray if wide else pa.ListArray
        offsets = pa.array(np.cumsum(lengths, dtype=lengths.dtype))
        return lists.from_arrays(offsets, values, type=plain, mask=array.is_null())
    return array.cast(plain)
