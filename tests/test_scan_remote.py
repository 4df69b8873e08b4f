"""Scans over packs behind URLs."""

from __future__ import annotations

import pickle
from pathlib import Path

import fsspec
import polars as pl
import pyarrow.compute as pc
import pytest
from http_files import HttpFiles
from packs import item_table, payloads_of, write_pack

import iac_query as iac


@pytest.fixture
def server():
    with HttpFiles() as files:
        yield files


@pytest.fixture
def large(server, tmp_path: Path) -> str:
    """The URL of a pack of 4 MB of payloads."""
    path = write_pack(tmp_path / "large.iac", payloads_of(1000, 4000), item_table(1000))
    server.files["large.iac"] = path.read_bytes()
    return server.url("large.iac")


def test_rows_are_those_of_the_file(server, large: str, tmp_path: Path):
    local, secret = str(tmp_path / "large.iac"), large + "?signature=secret"
    names = ["item_id", "patient_id", "payload", "filename"]
    filter = pc.field("item_id") < "item-15"
    expected = iac.scan_arrow(local, names[:3], filter).read_all()
    found = iac.scan_arrow(secret, names, filter, filename=True).read_all()
    assert found.select(names[:3]).equals(expected)
    assert set(found["filename"].to_pylist()) == {large}

    frame = iac.scan_iac([local, secret])
    assert frame.collect().height == 2000
    records = frame.filter(pl.col("item_id") == "item-7").select("record").collect()
    assert [record["pack"] for record in records["record"]] == [local, large]
    storage = fsspec.filesystem("http")
    texts = records.select(pl.col("record").iac.text(storage=storage)).to_series().to_list()
    assert texts == [payloads_of(1000, 4000)[7].decode()] * 2


def test_what_is_asked_for(server, large: str):
    frame = iac.scan_iac(large)
    server.bytes_sent = 0
    assert frame.select(pl.len()).collect().item() == 1000
    assert server.bytes_sent < 600_000
    server.bytes_sent = 0
    rows = frame.filter(pl.col("item_id").is_in(["item-900", "item-901"])).collect()
    assert rows["payload"].to_list() == payloads_of(1000, 4000)[900:902]
    assert server.bytes_sent < 600_000


def test_options_of_the_storage(server, large: str):
    server.token = "Bearer secret"
    options = {"headers": {"Authorization": "Bearer secret"}}
    frame = iac.scan_iac(large, storage_options=options).select("payload").head(1)
    assert frame.collect().item() == payloads_of(1000, 4000)[0]
    assert pickle.loads(pickle.dumps(frame)).collect().height == 1
    with pytest.raises(PermissionError) as error:
        iac.scan_iac(large, storage_options={"headers": {"Authorization": "Bearer wrong"}})
    assert "wrong" not in str(error.value) and large in str(error.value)


def test_a_file_that_changes(server, large: str, tmp_path: Path):
    frame, reader = iac.scan_iac(large), iac.scan_arrow(large)
    index = item_table(3).append_column("new", [[1, 2, 3]])
    server.files["large.iac"] = write_pack(
        tmp_path / "other.iac", payloads_of(3), index
    ).read_bytes()
    for read in (frame.collect, reader.read_all):
        with pytest.raises(iac.StaleReferenceError, match="was replaced by one with other columns"):
            read()
