"""Opening costs nothing that is not asked for, however many records a pack has."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from packs import bytes_read, slide_table

import iac_query as iac

KIB = 1024


def write(path: Path, rows: int, chunk: int) -> Path:
    """A pack of empty and tiny records with two broad columns beside the layout."""
    numbers = np.arange(rows)
    index = pa.table(
        {
            "a": numbers,
            "b": numbers.astype(np.float64),
            "text": pa.array([f"item {i} of many" for i in range(rows)]),
        }
    )
    chunks = pa.Table.from_batches(index.to_batches(max_chunksize=chunk))
    payloads = [b"" if i % 1000 else str(i).encode() for i in range(rows)]
    iac.build_pack(path, {"payload_type": "tiny"}, slide_table(), chunks, payloads)
    return path


@pytest.fixture(scope="session")
def small(tmp_path_factory) -> Path:
    return write(tmp_path_factory.mktemp("lazy") / "small.iac", 10_000, 10_000)


@pytest.fixture(scope="session")
def large(tmp_path_factory) -> Path:
    return write(tmp_path_factory.mktemp("lazy") / "large.iac", 1_000_000, 1_000_000)


@pytest.fixture(scope="session")
def chunked(tmp_path_factory) -> Path:
    return write(tmp_path_factory.mktemp("lazy") / "chunked.iac", 1_000_000, 50_000)


def open_and_read(path: Path, row: int) -> bytes:
    with iac.PackReader(path) as reader:
        return reader.read_payload(row)


def test_opening_and_reading_one_record_does_not_grow_with_the_rows(small, large):
    assert open_and_read(large, 999_000) == b"999000"
    few = bytes_read(lambda: open_and_read(small, 9_000))
    many = bytes_read(lambda: open_and_read(large, 999_000))
    assert many < few + 8 * KIB
    assert many < 128 * KIB


def test_a_record_in_the_middle_costs_as_little(large):
    with iac.PackReader(large) as reader:
        for row in (0, 123_000, 500_000, -1000):
            assert bytes_read(lambda row=row: reader.read_payload(row)) < 32 * KIB
        assert bytes_read(lambda: reader.read_payload(500_000)) < KIB  # its layout is known


def test_many_batches_cost_only_their_metadata(chunked):
    assert open_and_read(chunked, 777_000) == b"777000"
    assert bytes_read(lambda: open_and_read(chunked, 777_000)) < 256 * KIB


def test_only_the_columns_asked_for_are_read(large):
    with iac.PackReader(large) as reader:
        read = bytes_read(lambda: reader.read_index_table(columns=["a"]))
        assert 8_000_000 <= read < 8_000_000 + 64 * KIB
        assert bytes_read(lambda: reader.read_slide_table()) < 64 * KIB
        assert bytes_read(lambda: reader.header) < KIB
        assert bytes_read(lambda: repr(reader) + str(len(reader))) < KIB


def test_a_column_that_was_read_is_not_read_again(large):
    with iac.PackReader(large) as reader:
        reader.read_index_table(columns=["a"])
        assert bytes_read(lambda: reader.read_index_table(columns=["a"])) < KIB


def test_neighbouring_records_are_read_together(large):
    with iac.PackReader(large) as reader:
        read = bytes_read(lambda: reader.read_payloads(range(0, 100_000, 1000)))
        assert read < 100_000 * 16 + 256 * KIB  # offset, length and crc32 of the first rows


def test_references_are_resolved_as_cheaply(large):
    record = pa.StructArray.from_arrays(
        [pa.array([str(large)]), pa.array([999_000])], ["pack", "row"]
    )
    table = pa.table({"record": record})
    assert iac.decode(table)["payload"].to_pylist() == [b"999000"]
    assert bytes_read(lambda: iac.decode(table)) < 128 * KIB
