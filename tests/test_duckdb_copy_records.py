"""COPY ... TO 'x.iac': records that are copied as they are stored."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from duckdb_copies import copy, fails, header_of
from packs import DATA, IMAGES, MANIFEST, assemble, flip_payload, layout_index, write_encoded

import iac_query as iac

pytestmark = [pytest.mark.asan, pytest.mark.usefixtures("work")]

BYTES = sorted(
    name
    for name, entry in MANIFEST.items()
    if name not in IMAGES and "codec" in entry["header"] and "feature_dim" not in entry["header"]
)


@pytest.mark.parametrize("name", BYTES + IMAGES)
def test_records_are_copied_as_they_are_stored(con, name: str):
    header = MANIFEST[name]["header"]
    source = DATA / name
    if "record_codecs" in header or not MANIFEST[name]["records"]:
        pytest.skip("of several codecs, or without records")
    if header["payload_type"] == "dicom_patient":
        pytest.skip("an instance without pixels is a damaged image in other packs")
    query = f"SELECT * FROM '{source}' ORDER BY record.row DESC"
    path = copy(con, query, options="SLIDE_COLUMNS []")
    stored = "SELECT iac_stored(record), iac_payload(record) FROM '{}' ORDER BY record.row {}"
    assert (
        con.sql(stored.format(path, "")).fetchall()
        == con.sql(stored.format(source, "DESC")).fetchall()
    )
    assert header_of(path).get("codec_params", {}) == (header.get("codec_params") or {})
    assert header_of(path)["codec"] == header["codec"]


def test_records_of_many_packs_in_any_order(con, tmp_path: Path):
    objects = {level: [f"{level} {i}".encode() * 50 for i in range(100)] for level in (1, 3, 9)}
    packs = [
        write_encoded(tmp_path / f"{level}.iac", objects[level], "zstd", level=level)
        for level in objects
    ]
    refs = " UNION ALL ".join(
        f"SELECT {n} AS n, record FROM '{path}'" for n, path in enumerate(packs)
    )
    path = copy(con, f"FROM ({refs}) ORDER BY record.row, n", options="CODEC zstd")
    found = [blob for (blob,) in con.sql(f"SELECT iac_payload(record) FROM '{path}'").fetchall()]
    assert found == [objects[level][i] for i in range(100) for level in objects]
    assert "codec_params" not in header_of(path)  # the packs agree on no level


FEW_DESCRIPTORS = """
import resource
import iac_query

resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
with iac_query.connect() as con:
    con.execute(
        "COPY (SELECT t FROM (FROM iac_scan('packs/*.iac', filename := true)"
        " ORDER BY hash(filename, item_id)) AS t) TO 'x.iac' (FORMAT iac)"
    )
"""


def test_records_of_more_packs_than_there_are_descriptors(con):
    objects = [f"{i} ".encode() * 50 for i in range(3)]
    pack = write_encoded(Path("0.iac"), objects, "zstd", level=1)
    os.mkdir("packs")
    for i in range(500):
        os.link(pack, f"packs/{i}.iac")
    subprocess.run([sys.executable, "-c", FEW_DESCRIPTORS], check=True, timeout=60)
    rows = con.sql("SELECT filename, item_id, iac_payload(record) FROM 'x.iac'").fetchall()
    wanted = {
        (f"packs/{i}.iac", f"item-{k}", data) for i in range(500) for k, data in enumerate(objects)
    }
    assert len(rows) == 1500 and set(rows) == wanted


def test_records_of_a_matrix(con):
    source = DATA / "fixed_float32.iac"
    path = copy(con, f"SELECT * FROM '{source}'", options="")
    assert header_of(path)["codec"] == "none"
    rows = "SELECT iac_payload(record) FROM '{}'"
    assert con.sql(rows.format(path)).fetchall() == con.sql(rows.format(source)).fetchall()


def test_records_of_a_pack_of_several_codecs(con, tmp_path: Path):
    stored = [b"plain", iac.Codec.create("zstd").encode(b"packed"), b"again"]
    offsets = [0, len(stored[0]), len(stored[0]) + len(stored[1])]
    index = layout_index(offsets, [*map(len, stored)], codec_id=pa.array([4, 7, 4], pa.uint8()))
    codecs = [{"id": 7, "name": "zstd", "params": {"level": 3}}, {"id": 4, "name": "none"}]
    source = assemble(tmp_path / "source.iac", index, b"".join(stored), record_codecs=codecs)
    query = f"SELECT * FROM '{source}'"
    fails(con, query, "row 1: its codec is zstd, that of records before it none", "")
    for id, codec, found in [(4, "none", [b"plain", b"again"]), (7, "zstd", [b"packed"])]:
        path = copy(con, f"{query} WHERE codec_id = {id}", options="")
        assert header_of(path)["codec"] == codec
        rows = con.sql(f"SELECT iac_payload(record) FROM '{path}'").fetchall()
        assert [row for (row,) in rows] == found


@pytest.mark.parametrize(
    ("record", "reason", "options"),
    [
        ("CASE WHEN i <> 30 THEN {'pack': 'PACK', 'row': i % 5} END", "row 30: the record is", ""),
        ("{'pack': 'PACK', 'row': i}", "l3.iac: row 5: payload row out of range", ""),
        ("{'pack': 'PACK', 'row': i % 5, 'stamp': 1}", "the pack has changed since", ""),
        ("{'pack': 'nothing.iac', 'row': i}", "nothing.iac", ""),
        ("{'pack': 'PACK', 'row': i % 5}", "no parameters of a codec apply", "LEVEL 3"),
        ("{'pack': 'PACK', 'row': i % 5}", "its codec is zstd, CODEC is brotli", "CODEC brotli"),
    ],
)  # fmt: skip
def test_records_that_cannot_be_copied(con, record: str, reason: str, options: str):
    record = record.replace("PACK", str(DATA / "zstd_l3.iac"))
    fails(con, f"SELECT i, {record} AS record FROM range(5000) r(i)", reason, options)


def test_a_damaged_record_is_not_copied(con, tmp_path: Path):
    source = write_encoded(tmp_path / "source.iac", [b"x" * 90] * 9, "zstd")
    flip_payload(source, 6)
    fails(con, f"SELECT * FROM '{source}'", r"source\.iac: row 6: .*crc32", "")


def test_a_pack_may_be_copied_onto_itself(con):
    query = "SELECT i, 'payload ' || i AS payload FROM range(3000) r(i)"
    path = copy(con, query)
    copy(con, f"SELECT * FROM '{path}' WHERE i % 2 = 0", options="")
    assert con.sql(f"SELECT count(*), min(iac_text(record)) FROM '{path}'").fetchall() == [
        (1500, "payload 0")
    ]
