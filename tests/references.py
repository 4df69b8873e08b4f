"""Record columns and the packs that they refer to."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import iac_query as iac

ROWS = 12
TYPES = (pa.string(), pa.int64(), pa.uint32())


def references(packs, rows, stamps=None, types=TYPES) -> pa.Array:
    """A record column: row i of the table is row ``rows[i]`` of ``packs[i]``."""
    fields = [pa.array(packs, types[0]), pa.array(rows, types[1])]
    names = ["pack", "row"]
    if stamps is not None:
        fields.append(pa.array(stamps, types[2]))
        names.append("stamp")
    return pa.StructArray.from_arrays(fields, names)


def table_of(record: pa.Array, **columns) -> pa.Table:
    return pa.table({**columns, "record": record})


def mixed(packs, count: int = 200):
    """References to all packs in any order, with duplicates, and what they stand for."""
    chance = np.random.default_rng(0)
    paths = chance.choice(list(packs), count).tolist()
    rows = chance.integers(0, ROWS, count).tolist()
    return paths, rows, [packs[path][row] for path, row in zip(paths, rows, strict=True)]


def stamps_of(path, rows) -> list[int]:
    crc32 = iac.PackReader(path).index_table["crc32"].to_pylist()
    return [crc32[row] for row in rows]
