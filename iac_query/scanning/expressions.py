"""What a pyarrow expression is made of: the conditions that must all hold, and their columns.

pyarrow shows neither. But it pickles expressions as an Arrow record batch with the literals, whose
metadata spells the expression in prefix order, ``("call", name) ... ("end", name)``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .run import Conjunct

Words = list[tuple[bytes, bytes]]


def conjuncts(expression: pc.Expression) -> list[Conjunct]:
    """The conditions of an expression that is true where all of them are.

    Raises ValueError for one that names columns by number.
    """
    try:
        load, (buffer,) = expression.__reduce__()
    except pa.ArrowNotImplementedError as error:
        raise ValueError(f"filter names columns otherwise than by name: {error}") from error
    batch = pa.ipc.open_file(buffer).get_batch(0)
    found = []
    for words in _split(_metadata(batch.schema)):
        part_of = batch.replace_schema_metadata(pa.KeyValueMetadata(words))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, part_of.schema) as file:
            file.write_batch(part_of)
        found.append(Conjunct(frozenset(_columns(words)), _Holds(load(sink.getvalue()))))
    return found


class _Holds:
    """Evaluates a condition on tables; one without columns gives one value for all rows."""

    def __init__(self, expression: pc.Expression) -> None:
        self._expression = expression

    def __call__(self, table: pa.Table) -> npt.NDArray[np.bool_]:
        from pyarrow import acero  # it imports pandas

        if not table.column_names:
            table = pa.table({"": pa.nulls(1)})
        plan = acero.Declaration.from_sequence(
            [
                acero.Declaration("table_source", acero.TableSourceNodeOptions(table)),
                acero.Declaration("project", acero.ProjectNodeOptions([self._expression], ["x"])),
            ]
        )
        holds = plan.to_table(use_threads=False)["x"]
        if not pa.types.is_boolean(holds.type):
            raise TypeError(f"filter is of type {holds.type}, expected bool")
        return pc.fill_null(holds, False).to_numpy()


def _split(words: Words) -> Iterator[Words]:
    """The expressions below an ``and`` at the top, or the whole."""
    ends = _ends(words)
    begins = [0]
    while begins:
        at = begins.pop()
        if words[at] == (b"call", b"and_kleene"):
            begins += [ends[at + 1], at + 1]
        else:
            yield words[at : ends[at]]


def _ends(words: Words) -> dict[int, int]:
    """Where the expression that begins at a word ends."""
    ends, calls = {}, []
    for at, (kind, value) in enumerate(words):
        if kind == b"call":
            calls.append(at)
        elif kind == b"end":
            ends[calls.pop()] = at + 1
        elif kind == b"nested_field_ref":  # that many names follow
            ends[at] = at + 1 + int(value)
        else:
            ends[at] = at + 1
    return ends


def _columns(words: Words) -> Iterator[str]:
    """The columns that an expression reads; of fields in a struct, the struct."""
    at = 0
    while at < len(words):
        kind, value = words[at]
        if kind == b"nested_field_ref":
            yield words[at + 1][1].decode()
            at += int(value)
        elif kind == b"field_ref":
            yield value.decode()
        at += 1


def _metadata(schema: pa.Schema) -> Words:
    """A schema's metadata with all values of a key, of which ``schema.metadata`` has one."""
    capsule = schema.__arrow_c_schema__()
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    # struct ArrowSchema { const char* format, *name, *metadata; ... }
    address = ctypes.cast(get(capsule, b"arrow_schema"), ctypes.POINTER(ctypes.c_void_p))[2]
    at = 0

    def number() -> int:
        nonlocal at
        at += 4
        return ctypes.c_int32.from_address(address + at - 4).value

    def text() -> bytes:
        nonlocal at
        length = number()
        at += length
        return ctypes.string_at(address + at - length, length)

    return [(text(), text()) for _ in range(number())]
