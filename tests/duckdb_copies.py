"""Packs that COPY writes into the current folder, for tests."""

import os
from pathlib import Path

import duckdb
import pytest

import iac_query as iac


def copy(con, query: str, path: str = "x.iac", options: str = "LEVEL 1") -> Path:
    more = f", {options}" if options else ""
    con.execute(f"COPY (SELECT t FROM ({query}) t) TO '{path}' (FORMAT iac{more})")
    return Path(path)


def fails(con, query: str, reason: str, options: str = "LEVEL 1", path: str = "x.iac") -> None:
    """With that error, leaving the folder as it was."""
    before = {name: Path(name).read_bytes() for name in os.listdir()}
    with pytest.raises(duckdb.Error, match=reason):
        copy(con, query, path, options)
    assert {name: Path(name).read_bytes() for name in os.listdir()} == before


def header_of(path: Path) -> dict:
    with iac.PackReader(path) as pack:
        return pack.header
