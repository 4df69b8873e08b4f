"""Documents of records as Arrow lists, as ``iac_docs`` and ``iac_doc_pairs`` give them in SQL."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from .. import _native
from .._opening import PackOpener
from .._options import OnError, read_options, worker_count
from ..errors import CodecError, PackError, row_error
from .kinds import PackKind
from .references import References
from .resolve import Resolver

#: A document as the core gives it: its id, its texts, then these.
_DESCRIPTIONS = (
    "doc_type",
    "encounter",
    "doc_category",
    "source",
    "doc_timestamp",
    "episode_index",
)
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
_EPISODES = range(-(1 << 31), 1 << 31)  # of Int32


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
) -> pa.LargeListArray:
    """The documents of each reference, of ``schema.type``, in the order they are stored in. NULL
    for NULL, and under ``on_error="null"`` for what could not be had.

    Raises CodecError for a pack of other records, and for a manifest that is wrong; and what
    :func:`iac_query.decode` raises, whose options these are.
    """
    options = read_options(True, workers, verify, on_error)  # before anything is opened
    resolver = Resolver(references, PackOpener(packs, storage), on_error)
    found: list[list[tuple[Any, ...]] | None] = [None] * len(references)
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
        failures = dict(batch.failures)
        parsed = _native.parse_documents(
            batch.data,
            np.frombuffer(batch.offsets, np.uint64),
            schema.payload_type,
            worker_count(workers),
            os.fsencode(pack.path),
            rows,
        )
        for at, patient in enumerate(parsed):
            error = failures.get(at) or _error(patient, pack.path, int(rows[at]))
            if error is not None:
                resolver.fail(positions[at : at + 1], pack.path, error)
            else:
                found[positions[at]] = patient[2]
    return _lists(found, schema)


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


def _error(patient: Any, path: str, row: int) -> Exception | None:
    """What keeps a parsed record from being documents."""
    if isinstance(patient, Exception):
        return patient
    if all(doc[-1] in _EPISODES for doc in patient[2]):
        return None
    return row_error(CodecError, path, row, "Int32 cannot hold an episode_index of it")


def _lists(
    records: list[list[tuple[Any, ...]] | None], schema: DocumentSchema
) -> pa.LargeListArray:
    """Column by column, since a dict for each document would cost as much as parsing it."""
    offsets = np.cumsum([0, *(len(docs or ()) for docs in records)], dtype=np.int64)
    docs = [doc for docs in records for doc in docs or ()]
    names = ("doc_id", *schema.texts, *_DESCRIPTIONS)
    columns: dict[str, Any] = dict.fromkeys(names, ())
    if docs:
        columns = dict(zip(names, zip(*docs, strict=True), strict=True))
    columns["episode_index"] = [None if e == -1 else e for e in columns["episode_index"]]
    fields = list(schema.type.value_type)
    structs = pa.StructArray.from_arrays(
        [pa.array(columns[field.name], field.type) for field in fields], fields=fields
    )
    missing = pa.array([docs is None for docs in records], pa.bool_())
    return pa.LargeListArray.from_arrays(offsets, structs, schema.type, mask=missing)
