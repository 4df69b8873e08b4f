"""iac_info, iac_check and iac_verify: facts about packs, sound and damaged ones."""

import json
import random
import shutil
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from packs import (
    DATA,
    MANIFEST,
    assemble,
    flip_payload,
    ipc_stream,
    layout_index,
    patch,
    segments_of,
    write_encoded,
    write_matrix,
    write_pack,
)

import iac_query as iac

pytestmark = pytest.mark.asan


def check(con, path: Path) -> list[tuple[int | None, str]]:
    return con.sql(f"SELECT row, reason FROM iac_check('{path}')").fetchall()


# iac_info


@pytest.mark.parametrize("name", sorted(MANIFEST))
def test_info_is_what_the_header_says(con, name: str):
    path = DATA / name
    relation = con.sql(f"FROM iac_info('{path}')")
    (row,) = relation.fetchall()
    info = dict(zip(relation.columns, row, strict=True))
    header = json.loads(info["header"])
    assert header == iac.PackReader(path).header
    assert info["path"] == str(path)
    assert info["payload_type"] == header.get("payload_type")
    assert info["codec"] == header.get("codec")
    params = header.get("codec_params", {}) if "codec" in header else None
    assert json.loads(info["codec_params"] or "null") == params
    assert info["num_records"] == header["num_records"]
    assert info["num_slides"] == header["num_slides"]
    for name in ("slide_table", "index_table", "data"):
        assert info[f"{name}_bytes"] == header[f"{name}_length"]
    assert info["file_size"] == path.stat().st_size


def test_info_of_a_header_without_codec_and_type(con, tmp_path: Path):
    path = assemble(tmp_path / "x.iac", layout_index([0], [0]), codec=3, payload_type=None)
    found = con.sql(f"SELECT payload_type, codec FROM iac_info('{path}')").fetchall()
    assert found == [(None, "3")]


# iac_verify


def test_verify_finds_just_the_damaged_records(con, tmp_path: Path):
    path = write_pack(tmp_path / "x.iac", [b"record %d" % i for i in range(5000)])
    damaged = random.Random(1).sample(range(5000), 20)
    for row in damaged:
        flip_payload(path, row)
    found = con.sql(f"SELECT record.row FROM '{path}' WHERE NOT iac_verify(record)").fetchall()
    assert sorted(row for (row,) in found) == sorted(damaged)
    con.execute("SET iac_verify = false")
    assert len(con.sql(f"SELECT 1 FROM '{path}' WHERE NOT iac_verify(record)").fetchall()) == 20


def test_verify_needs_no_room_for_the_payloads(con, tmp_path: Path):
    path = write_pack(tmp_path / "x.iac", [bytes([i]) * (3 << 20) for i in range(30)])
    flip_payload(path, 17)
    con.execute("SET iac_max_batch_bytes = 1")
    assert con.sql(f"SELECT record.row, iac_verify(record) FROM '{path}'").fetchall() == [
        (i, i != 17) for i in range(30)
    ]


def test_verify_has_null_where_there_is_no_crc32(con, tmp_path: Path):
    plain = assemble(tmp_path / "plain.iac", layout_index([0, 1], [1, 1]), b"ab")
    matrix = write_matrix(tmp_path / "matrix.iac", np.eye(2, dtype="f4"))
    sound = write_pack(tmp_path / "sound.iac", [b"1", b"2"])
    union = " UNION ALL ".join(f"SELECT record FROM '{p}'" for p in (plain, sound, matrix))
    found = con.sql(f"SELECT iac_verify(record) FROM ({union})").fetchall()
    assert sorted(found, key=str) == [(None,)] * 4 + [(True,)] * 2


def test_what_is_no_checksum_is_an_error_of_verify(con, tmp_path: Path):
    path = assemble(tmp_path / "x.iac", layout_index([0, 9], [1, 1], [0, 0]), b"ab")
    for query, reason in [
        (f"SELECT iac_verify(record) FROM '{path}'", r"x\.iac: row 1: payload span outside"),
        (f"SELECT iac_verify({{'pack': '{path}', 'row': 7}})", "row 7: payload row out of range"),
        (f"SELECT iac_verify({{'pack': '{path}x', 'row': 0}})", "No such file"),
        (f"SELECT iac_verify({{'pack': '{path}', 'row': 0, 'stamp': 9}})", "has changed"),
    ]:
        with pytest.raises(duckdb.Error, match=reason):
            con.sql(query).fetchall()


# iac_check


@pytest.mark.parametrize("name", sorted(MANIFEST))
def test_sound_packs_have_no_findings(con, name: str):
    assert check(con, DATA / name) == []


@pytest.mark.parametrize("threads", [1, 4])
def test_check_finds_every_damaged_record_in_order(con, tmp_path: Path, threads: int):
    path = write_encoded(tmp_path / "x.iac", [b"%d" % i * 99 for i in range(40_000)], "zstd")
    damaged = sorted(random.Random(2).sample(range(40_000), 3000))
    raw = bytearray(path.read_bytes())
    with iac.PackReader(path) as reader:
        offsets = reader.index_table["offset"].to_numpy() + reader.header["data_offset"]
    for row in damaged:
        raw[offsets[row] + 5] ^= 1
    path.write_bytes(raw)
    con.execute(f"SET iac_threads = {threads}")
    found = check(con, path)
    assert [row for row, _ in found] == damaged
    assert all("crc32" in reason for _, reason in found)
    assert con.sql(f"SELECT DISTINCT pack FROM iac_check('{path}')").fetchall() == [(str(path),)]


def test_check_decodes_as_well(con, tmp_path: Path):
    path = write_pack(tmp_path / "x.iac", [b"no frame"] * 3, codec="zstd")
    assert [row for row, _ in check(con, path)] == [0, 1, 2]
    assert all("zstd" in reason for _, reason in check(con, path))


def test_a_codec_that_is_unknown_is_told_once_and_checksums_are_compared(con, tmp_path: Path):
    path = write_pack(tmp_path / "x.iac", [b"one", b"two"], codec="unheard-of")
    flip_payload(path, 1)
    (codec, record) = check(con, path)
    assert codec[0] is None and "unheard-of" in codec[1]
    assert record[0] == 1 and "crc32" in record[1]


def test_check_of_records_outside_the_data(con, tmp_path: Path):
    index = layout_index([0, 9, 2**63, 1], [1, 1, 2**32 - 1, 1], [0xE8B7BE43, 0, 0, 0x71BEEFF9])
    path = assemble(tmp_path / "x.iac", index, b"ab")
    found = check(con, path)
    assert [row for row, _ in found] == [1, 2]
    assert all("outside the data segment" in reason for _, reason in found)


def test_check_of_records_above_the_limits(con, tmp_path: Path):
    path = write_encoded(tmp_path / "x.iac", [bytes(10**5), b"small", bytes(10**6)], "zstd")
    assert check(con, path) == []
    con.execute("SET iac_max_batch_bytes = 200_000")
    ((row, reason),) = check(con, path)
    assert row == 2 and "iac_max_batch_bytes" in reason
    con.execute("SET iac_max_record_bytes = 1000")
    assert [(row, "raise iac_max_record_bytes" in reason) for row, reason in check(con, path)] == [
        (0, True),
        (2, True),
    ]


def test_check_of_packs_whose_parts_are_broken(con, tmp_path: Path):
    sound = write_pack(tmp_path / "sound.iac", [b"x" * 50] * 20)
    header = segments_of(sound)[0]
    size = sound.stat().st_size
    for name, damage in {
        "magic": lambda path: patch(path, 0, b"NOPE"),
        "json": lambda path: patch(path, 16, b"["),
        "slides": lambda path: patch(path, header["slide_table_offset"], b"nothing!"),
        "index": lambda path: patch(path, header["index_table_offset"], b"nothing!"),
        "cut": lambda path: path.write_bytes(path.read_bytes()[: size - 1]),
        "short": lambda path: path.write_bytes(b"IATROC"),
        "empty": lambda path: path.write_bytes(b""),
    }.items():
        path = Path(shutil.copy(sound, tmp_path / f"{name}.iac"))
        damage(path)
        ((row, reason),) = check(con, path)
        assert row is None, name
        assert str(path) not in reason
    with pytest.raises(duckdb.Error, match="No such file"):
        check(con, tmp_path / "nothing.iac")
    with pytest.raises(duckdb.Error, match="directory"):
        check(con, tmp_path)


def test_check_reads_every_column_of_the_tables(con, tmp_path: Path):
    texts = pa.array(["first", "second"])
    bad = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(np.array([0, 99, 11], "i4")), texts.buffers()[2]]
    )
    index = layout_index([0, 1], [1, 1], [0xE8B7BE43, 0x71BEEFF9], good=texts, bad=bad)
    path = assemble(tmp_path / "x.iac", index, b"ab", slides=pa.table({"slide_id": bad}))
    found = check(con, path)
    assert [row for row, _ in found] == [None, None]
    assert "slide_id" in found[0][1] and "'bad'" in found[1][1]


def test_check_tells_what_makes_a_scan_refuse_the_pack(con, tmp_path: Path):
    index = layout_index([0, 1], [1, 1], [0xE8B7BE43, 0x71BEEFF9], slide_idx=[0, 0])
    slides = pa.table({"slide_idx": [0, 0], "slide_id": ["a", "b"]})
    path = assemble(tmp_path / "x.iac", index, b"ab", slides=slides)
    reason = "slide table: two rows have the same slide_idx, the second is row 1"
    assert check(con, path) == [(None, reason)]
    with pytest.raises(duckdb.Error, match=reason):
        con.sql(f"SELECT slide_id FROM '{path}'").fetchall()


def test_check_of_texts_as_slide_numbers(con, tmp_path: Path):
    index = layout_index([0, 1], [1, 1], [0xE8B7BE43, 0x71BEEFF9], slide_idx=["a", "b"])
    slides = pa.table({"slide_idx": [0, 1]})
    ((row, reason),) = check(con, assemble(tmp_path / "x.iac", index, b"ab", slides=slides))
    assert row is None and "index table: column 'slide_idx' has type string" in reason


def test_one_damage_is_told_once(con, tmp_path: Path):
    index = layout_index([0, 1], [1, 1], [0xE8B7BE43, 0x71BEEFF9], slide_idx=[0, 0])
    numbers = pa.array(range(41), pa.int32())
    size = numbers.buffers()[1].size.to_bytes(8, "little")
    slides = ipc_stream(pa.table({"slide_idx": numbers}))
    assert slides.count(size) == 1
    cut = slides.replace(size, (4).to_bytes(8, "little"))
    ((row, reason),) = check(con, assemble(tmp_path / "x.iac", index, b"ab", cut, rows=(41, 2)))
    assert row is None and "column 'slide_idx'" in reason


def test_packs_that_cannot_be_opened_are_rows_among_others(con, tmp_path: Path):
    sound = write_pack(tmp_path / "a.iac", [b"one"])
    (tmp_path / "b.iac").mkdir()
    (tmp_path / "c.iac").write_bytes(b"no pack")
    paths = [str(sound), *(str(tmp_path / name) for name in ("b.iac", "c.iac", "d.iac"))]
    for query in ("SELECT pack FROM iac_check(?)", "SELECT path FROM {} WHERE error IS NOT NULL"):
        query = query.format("iac_info(?, ignore_errors := true)")
        assert con.execute(query, [paths]).fetchall() == [(path,) for path in paths[1:]]
    for path in paths[1:]:
        with pytest.raises(duckdb.Error, match=path):
            con.execute("FROM iac_info(?)", [[paths[0], path]]).fetchall()


def test_what_the_settings_forbid_is_an_error_among_others_too(con, tmp_path: Path):
    inside = write_pack(tmp_path / "a.iac", [b"one"])
    other = write_pack(tmp_path / "b.iac", [b"two"])
    con.execute(f"SET allowed_paths = ['{inside}']")
    con.execute("SET enable_external_access = false")
    for call in ("iac_check(?)", "iac_info(?, ignore_errors := true)"):
        assert len(con.execute(f"FROM {call}", [[str(inside)]]).fetchall()) < 2
        with pytest.raises(duckdb.Error, match="disabled by configuration"):
            con.execute(f"FROM {call}", [[str(inside), str(other)]]).fetchall()


def test_check_sees_damage_that_came_while_the_pack_is_open(con, tmp_path: Path):
    path = write_pack(tmp_path / "x.iac", [b"one", b"two"])
    assert len(con.sql(f"SELECT iac_text(record) FROM '{path}'").fetchall()) == 2
    flip_payload(path, 0)
    assert [row for row, _ in check(con, path)] == [0]


def test_flipped_bits_anywhere_are_findings_or_errors(con, tmp_path: Path):
    sound = (DATA / "index_many_types.iac").read_bytes()
    chooser = random.Random(5)
    path = tmp_path / "x.iac"
    told = 0
    for _ in range(200):
        damaged = bytearray(sound)
        for _ in range(chooser.choice([1, 8])):
            damaged[chooser.randrange(65536, len(sound))] ^= 1 << chooser.randrange(8)
        path.write_bytes(damaged)
        told += bool(check(con, path))
        for function in ("iac_slides", "iac_info"):
            try:
                con.sql(f"FROM {function}('{path}')").fetchall()
            except (duckdb.Error, UnicodeDecodeError) as error:
                assert not isinstance(error, duckdb.InternalException)
    assert told > 100
