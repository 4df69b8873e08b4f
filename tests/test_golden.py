"""Packs written by the package that the format comes from read with the hashes it gave."""

import hashlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from packs import DATA, IMAGES, MANIFEST, assert_same_table, segments_of

import iac_query as iac

PACKS = sorted(MANIFEST)
FIXED = [name for name in PACKS if "feature_dim" in MANIFEST[name]["header"]]
VARIABLE = [
    name
    for name in PACKS
    if any("decoded" in record for record in MANIFEST[name]["records"])
    and name not in FIXED
    and name not in IMAGES
]


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def assert_is_array(array: np.ndarray, expected: dict) -> None:
    assert array.dtype.name == expected["dtype"]
    assert list(array.shape) == expected["shape"]
    assert digest(array.tobytes()) == expected["sha256"]


def test_the_files_are_those_of_the_manifest():
    written_here = {"notes.iac", "series.iac"}  # by make_notes.py, make_series.py
    assert {path.name for path in DATA.glob("*.iac")} == {*PACKS, *written_here}
    assert {MANIFEST[name]["header"].get("codec") for name in PACKS} == {
        None,
        "none",
        "zstd",
        "brotli",
        "jxl",
        "jpeg",
        "jpeg2000",
        "jpegls",
    }
    for name in PACKS:
        assert digest((DATA / name).read_bytes()) == MANIFEST[name]["sha256"]


@pytest.mark.parametrize("name", PACKS)
def test_header_and_counts_are_the_manifests(name: str):
    with iac.PackReader(DATA / name) as reader:
        assert reader.header == MANIFEST[name]["header"]
        assert len(reader) == MANIFEST[name]["num_records"]
        assert reader.slide_table.num_rows == MANIFEST[name]["num_slides"]


@pytest.mark.parametrize("name", PACKS)
def test_tables_are_what_pyarrow_reads_from_the_segments(name: str):
    _, slides, index, _ = segments_of(DATA / name)
    with iac.PackReader(DATA / name) as reader:
        for ours, segment, key in [
            (reader.slide_table, slides, "slide_table"),
            (reader.index_table, index, "index_table"),
        ]:
            assert_same_table(ours, pa.ipc.open_stream(segment).read_all())
            expected = [(c["name"], c["type"]) for c in MANIFEST[name][key]["columns"]]
            assert [(field.name, str(field.type)) for field in ours.schema] == expected


@pytest.mark.parametrize("name", PACKS)
def test_each_column_alone_is_the_column_of_the_whole_table(name: str):
    with iac.PackReader(DATA / name) as reader:
        whole = reader.index_table
        for column in reversed(whole.column_names):
            assert_same_table(reader.read_index_table([column]), whole.select([column]))


@pytest.mark.parametrize("name", VARIABLE)
def test_stored_and_decoded_records_have_the_manifests_hashes(name: str):
    records = MANIFEST[name]["records"]
    rows = [record["row"] for record in records]
    with iac.VariableRecordPack(DATA / name) as pack:
        stored = pack.reader.read_payloads(rows)
        decoded = pack.read_many(rows)
        batch = pack.read_many_contiguous(rows, workers=2)
        for at, record in enumerate(records):
            assert len(stored[at]) == record["stored_length"]
            assert digest(stored[at]) == record["stored_sha256"]
            assert len(decoded[at]) == record["decoded"]["length"]
            assert digest(decoded[at]) == record["decoded"]["sha256"]
            assert decoded[at] == pack.read(rows[at]) == bytes(batch[at])


@pytest.mark.parametrize("name", FIXED)
def test_fixed_records_have_the_manifests_hashes_and_dtype(name: str):
    entry = MANIFEST[name]
    with iac.FixedRecordPack(DATA / name) as pack:
        for record in entry["records"]:
            assert digest(pack.reader.read_payload(record["row"])) == record["stored_sha256"]
            assert_is_array(pack.read(record["row"]), record["decoded"])
        matrix = pack.read_matrix(range(len(pack)))
        assert matrix.shape == (len(pack), entry["header"]["feature_dim"])
        if "read_matrix" in entry:
            assert_is_array(matrix, entry["read_matrix"])


def test_an_opaque_data_segment_is_read_by_spans():
    name = "data_segment_plain.iac"
    with iac.PackReader(DATA / name) as reader:
        data = reader.read_data_span(0, reader.header["data_length"])
        assert digest(data) == MANIFEST[name]["data_sha256"]
        with pytest.raises(iac.PackError, match="no records"):
            reader.read_payload(0)


@pytest.mark.parametrize("name", VARIABLE)
def test_decode_gives_the_same_payloads(name: str):
    rows = range(MANIFEST[name]["num_records"])
    record = pa.StructArray.from_arrays(
        [pa.array([str(DATA / name)] * len(rows)), pa.array(rows, pa.int64())], ["pack", "row"]
    )
    payload = iac.decode(pa.table({"record": record}))["payload"].to_pylist()
    expected = {r["row"]: r["decoded"]["sha256"] for r in MANIFEST[name]["records"]}
    assert {row: digest(payload[row]) for row in expected} == expected


def test_every_golden_file_is_small():
    assert sum(Path(path).stat().st_size for path in DATA.rglob("*.*")) < 3 << 20
