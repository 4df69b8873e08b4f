"""The headers of DICOM instances, and single elements of them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .._opening import PackOpener
from .._options import OnError, read_options
from ..batch import ContiguousRecordBatch
from ..errors import PackError
from .references import References
from .resolve import ResolvedColumn, Resolver


def read_tags(
    references: References,
    tag: str | None,
    workers: int | None = None,
    on_error: OnError = "raise",
    verify: bool = True,
    packs: Iterable[str | os.PathLike[str]] | None = None,
    storage: Any = None,
) -> pa.ChunkedArray:
    """The header of each reference's DICOM instance as a large_string of DICOM JSON, or of one
    element the value. NULL for NULL, for an element that is missing or empty and, under
    ``on_error="null"``, for what could not be had.

    Raises PackError for damaged headers, ValueError for a pack that is none of DICOM instances and
    for a tag that there is not; and what :func:`iac_query.decode` raises, whose options these are.
    """
    read_options(True, workers, verify, on_error)  # before anything is opened
    resolver = Resolver(references, PackOpener(packs, storage), on_error)
    column = ResolvedColumn(len(references))
    for pack, positions in resolver.packs():
        rows = references.row[positions]
        try:
            batch = pack.dicom_tags(rows, tag, verify, "null")
        except (PackError, OSError) as error:
            resolver.fail(positions, pack.path, error)
            continue
        for at, error in batch.failures:
            resolver.fail(positions[at : at + 1], pack.path, error)
        texts = ContiguousRecordBatch.from_native(batch, "null").to_arrow(pa.large_string())
        column.add(positions, pc.if_else(pc.equal(pc.binary_length(texts), 0), None, texts))
    return column.assembled(pa.large_string())
