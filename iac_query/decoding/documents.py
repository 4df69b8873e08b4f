"""Documents of records as Arrow lists, as ``iac_docs`` and ``iac_doc_pairs`` give them in SQL."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .. import _native
from .._opening import PackOpener
from .._options import OnError, read_options, worker_count
from ..errors import CodecError, PackError
from .kinds import PackKind
from .references import References
from .resolve import ResolvedColumn, Resolver

#: A document as a struct: these, then its texts.
_FIELDS = {
    "doc_id": pa.large_string(),
    "doc_type": pa.large_string(),
    "doc_category": pa.large_string(),
    "doc_timestamp": pa.large_string(),
    "encounter": pa.large_string(),
    "episode_index": pa.int32(),
    "source": pa.large_string(),
}


@dataclass(frozen=True)
class DocumentSchema:
    """A payload type whose records are the documents of a patient."""

    payload_type: str
    what: str  # its records are
    method: str  # of pl.col("record").iac
    texts: tuple[str, ...]  # of a document

    @property
    def type(self) -> pa.DataType:
        """Of a record: a list of structs."""
        texts = dict.fromkeys(self.texts, pa.large_string())
        return pa.large_list(pa.struct({**_FIELDS, **texts}))


DOCS = DocumentSchema("clinical_text", "documents", "docs", ("text",))
DOC_PAIRS = DocumentSchema(
    "clinical_text_pair", "pairs of documents", "doc_pairs", ("source_text", "compressed_text")
)


def read_docs(
    references: References,
    schema: DocumentSchema,
    workers: int | None = None,
    on_error: OnError = "raise",
    verify: bool = True,
    packs: Iterable[str | os.PathLike[str]] | None = None,
    storage: Any = None,
) -> pa.ChunkedArray:
    """The documents of each reference, of ``schema.type``, in the order they are stored in. NULL
    for NULL, and under ``on_error="null"`` for what could not be had.

    Raises CodecError for a pack of other records, and for a manifest that is wrong; and what
    :func:`iac_query.decode` raises, whose options these are.
    """
    options = read_options(True, workers, verify, on_error)  # before anything is opened
    resolver = Resolver(references, PackOpener(packs, storage), on_error)
    column = ResolvedColumn(len(references))
    for pack, positions in resolver.packs():
        _check(pack, schema)
        if len(positions) == 0:
            continue
        rows = references.row[positions]
        try:
            batch = pack.read(rows, *options)
        except (PackError, OSError) as error:
            resolver.fail(positions, pack.path, error)
            continue
        ends, texts, episodes, wrong = _native.document_columns(
            batch.data,
            np.frombuffer(batch.offsets, np.uint64),
            schema.payload_type,
            worker_count(workers),
            os.fsencode(pack.path),
            rows,
        )
        failures = {**dict(wrong), **dict(batch.failures)}
        for at, error in sorted(failures.items()):
            resolver.fail(positions[at : at + 1], pack.path, error)
        missing = np.zeros(len(rows), dtype=bool)
        missing[list(failures)] = True
        docs = _structs(schema, texts, episodes)
        lists = pa.LargeListArray.from_arrays(ends, docs, schema.type, mask=pa.array(missing))
        column.add(positions, lists)
    return column.assembled(schema.type)


def _check(pack: _native.Pack, schema: DocumentSchema) -> None:
    PackKind(pack, "bytes")  # can be decoded
    payload_type = json.loads(pack.header_json).get("payload_type")
    if payload_type == schema.payload_type and pack.kind == "variable":
        return
    other = DOC_PAIRS if schema is DOCS else DOCS
    advice = f", use iac.{other.method}()" if payload_type == other.payload_type else ""
    raise CodecError(
        f"{pack.path}: its records are not {schema.what}, its payload type is "
        f"{payload_type!r}{advice}"
    )


def _structs(
    schema: DocumentSchema,
    texts: dict[str, tuple[_native.Buffer, npt.NDArray[np.int64]]],
    episodes: npt.NDArray[np.int32],
) -> pa.StructArray:
    """Documents over the core's memory."""
    fields = list(schema.type.value_type)
    columns: dict[str, pa.Array] = {"episode_index": pa.array(episodes, mask=episodes == -1)}
    for name, (values, offsets) in texts.items():
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(values)]
        columns[name] = pa.Array.from_buffers(pa.large_string(), len(episodes), buffers)
    return pa.StructArray.from_arrays([columns[field.name] for field in fields], fields=fields)
