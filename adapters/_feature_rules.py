"""What packs of features must hold."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..cohorts.adapter_packs import ADAPTERS
from ..errors import PackError
from ..fixed import fixed_shape
from ..validation.checked_pack import Batch, CheckedPack, Rows
from ..validation.report import Finding
from ._feature_reader import EXTENDED_PAYLOAD_TYPE, PAYLOAD_TYPE
from ._table_rules import check_counts
from ._tile_rules import check_grid
from ._tile_tables import EXTENDED_LIMITS, LIMITS


def check_tables(pack: CheckedPack) -> Iterator[Finding]:
    """The header and the tables."""
    if pack.native.kind != "fixed":
        yield pack.finding("schema", "its records are no rows of a matrix")
    yield from check_counts(pack, ("feature_dim",))
    teacher = pack.header.get("teacher")
    if not isinstance(teacher, str) or not teacher:
        yield pack.finding("schema", "the header has no 'teacher'")
    extended = pack.payload_type == EXTENDED_PAYLOAD_TYPE
    if extended and "dtype" in pack.header:
        reason = "the header has a 'dtype', by which readers of teacher_features round its values"
        yield pack.finding("schema", reason)
    if not extended and "feature_dtype" in pack.header:
        reason = "the header has a 'feature_dtype', which packs of this payload type do not have"
        yield pack.finding("schema", reason)
    limits = EXTENDED_LIMITS if extended else LIMITS
    yield from check_grid(pack, limits, ADAPTERS[PAYLOAD_TYPE].index)


def check_features(pack: CheckedPack, rows: Rows, batch: Batch) -> Iterator[Finding]:
    """Notes features that are not finite, which some packs have on purpose."""
    try:
        dim, dtype = fixed_shape(pack.header, pack.path)
    except (KeyError, PackError):
        return  # said of the header
    if dtype.kind not in "fc" or pack.native.kind != "fixed":
        return
    finite = np.isfinite(np.frombuffer(batch.buffer, dtype).reshape(len(rows), dim))
    for at in np.flatnonzero(~finite.all(axis=1)):
        yield pack.finding("payload", "has NaN or infinity", rows[at], "note")
