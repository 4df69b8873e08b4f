"""What the tests of written cohorts share."""

import os
from pathlib import Path

import pyarrow as pa
import pytest
from references import references, stamps_of, table_of

import iac_query as iac


def refer(path, rows, **columns) -> pa.Table:
    """Rows of one pack, with stamps."""
    count = len(rows)
    record = references([str(path)] * count, rows, stamps_of(path, rows))
    return table_of(record, **columns)


def read_all(path) -> list:
    pack = iac.VariableRecordPack(path)
    return pack.read_many(range(len(pack)))


def fails(folder: Path, error, reason: str, *args, **options) -> None:
    """With that error, leaving the folder as it was."""
    before = {name: (folder / name).stat().st_mtime_ns for name in os.listdir(folder)}
    with pytest.raises(error, match=reason):
        iac.write_pack(*args, **options)
    assert {name: (folder / name).stat().st_mtime_ns for name in os.listdir(folder)} == before
