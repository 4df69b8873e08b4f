"""What packs of clinical text must hold, pairs of texts too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..cohorts.adapter_packs import ADAPTERS
from ..validation.checked_pack import Batch, CheckedPack, Rows, as_indices
from ..validation.report import Finding
from ._documents import parsed
from ._table_rules import check_columns, check_ids

#: Columns of pairs, and the place of the text that they count in what is parsed of a document.
_SIZES = {"source_raw_bytes": 1, "compressed_raw_bytes": 2}


def check_tables(pack: CheckedPack) -> Iterator[Finding]:
    """The header and the index. The slide table only stands in for one."""
    schema = ADAPTERS[pack.payload_type]
    for name in schema.header:
        version = pack.header.get(name)
        if version != 1 or isinstance(version, bool):
            yield pack.finding("schema", f"header field {name} is not 1")
    if pack.native.kind != "variable":
        yield pack.finding("schema", "the index does not say where records are stored")
    elif pack.native.decodes_to_images:
        yield pack.finding("schema", "its codec is one of images")
    yield from check_columns(pack, "index", schema.index)
    yield from check_ids(pack, "index", schema.unique)


def check_documents(pack: CheckedPack, rows: Rows, batch: Batch) -> Iterator[Finding]:
    """That records are documents, and those that the index says they are."""
    if pack.native.kind != "variable" or pack.native.decodes_to_images:
        return  # said of the header
    offsets = np.frombuffer(batch.offsets_buffer, np.uint64)
    names = ADAPTERS[pack.payload_type].index
    index: dict[str, Any] = {}
    for name in names:
        if (column := pack.column("index", name)) is not None:
            index[name] = column.take(as_indices(rows)).to_pylist()
    found = parsed(pack.reader, batch.buffer, offsets, rows, pack.workers)
    for at, (row, patient) in enumerate(zip(rows, found, strict=True)):
        if isinstance(patient, Exception):
            yield pack.failure(patient, row)
            continue
        for name, value in _index_row(*patient, names).items():
            if name in index and index[name][at] != value:
                yield pack.finding("payload", f"{name} is another one in the index", row)
        ids = [document[0] for document in patient[2]]
        if len(set(ids)) < len(ids):
            yield pack.finding("payload", "two of its documents have one doc_id", row, "note")


def _index_row(
    patient_id: str, institution: str, documents: list[tuple[Any, ...]], names: Any
) -> dict[str, Any]:
    """What the index should say of a patient."""
    row = {"patient_id": patient_id, "institution": institution, "num_docs": len(documents)}
    for name, place in _SIZES.items():
        if name in names:
            row[name] = sum(len(document[place].encode()) for document in documents)
    return row
