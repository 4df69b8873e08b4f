"""Arrow tables as the IPC streams that packs hold."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["normalised", "stream_bytes", "stream_length"]


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


def _write(table: pa.Table, sink: pa.NativeFile) -> None:
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)


def normalised(table: pa.Table) -> pa.Table:
    """The table with view, list-view and run-end encoded columns as plain ones."""
    for i, field in enumerate(table.schema):
        plain = _plain_type(field.type)
        if plain == field.type:
            continue
        column = table.column(i)
        if isinstance(field.type, pa.RunEndEncodedType):
            column = pc.run_end_decode(column)
        table = table.set_column(i, field.with_type(plain), column.cast(plain))
    return table


def _plain_type(type: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_string_view(type):
        return pa.string()
    if types.is_binary_view(type):
        return pa.binary()
    if isinstance(type, pa.RunEndEncodedType):
        return _plain_type(type.value_type)
    if isinstance(type, pa.DictionaryType):
        return pa.dictionary(type.index_type, _plain_type(type.value_type), type.ordered)
    if types.is_list(type) or types.is_list_view(type):
        return pa.list_(_plain_field(type.value_field))
    if types.is_large_list(type) or types.is_large_list_view(type):
        return pa.large_list(_plain_field(type.value_field))
    if types.is_fixed_size_list(type):
        return pa.list_(_plain_field(type.value_field), type.list_size)
    if types.is_struct(type):
        return pa.struct([_plain_field(field) for field in type.fields])
    return type


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(_plain_type(field.type))
