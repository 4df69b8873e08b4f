"""Damaged, cut and replaced files: errors, never a crash, never silently other records."""

import contextlib
import os
import random
import re
import shutil

import numpy as np
import pyarrow as pa
import pytest
from packs import (
    DATA,
    HEADER_BYTES,
    assemble,
    flip_payload,
    ipc_stream,
    layout_index,
    payloads_of,
    segments_of,
    write_encoded,
    write_matrix,
    write_pack,
)

import iac_query as iac

pytestmark = pytest.mark.asan

#: What a damaged file may raise. PackError and ArrowInvalid are ValueErrors.
ALLOWED = (ValueError, OSError, KeyError)


def many_batches(path):
    """Compressed batches with dictionaries, nested values and nulls."""
    rows = 40
    index = layout_index(
        range(0, rows * 3, 3),
        [3] * rows,
        text=pa.array([f"text {i}" if i % 4 else None for i in range(rows)]),
        word=pa.array(["u", "v", None, "w"] * 10).dictionary_encode(),
        nested=pa.array([[{"a": i, "b": [str(i)] * (i % 3)}] * (i % 2) for i in range(rows)]),
        view=pa.array(["a long string to view " * (i % 2) for i in range(rows)], pa.string_view()),
    )
    index = pa.concat_tables([index[:7], index[7:30], index[30:]])
    return assemble(path, ipc_stream(index, compression="zstd"), bytes(rows * 3), rows=(1, rows))


KINDS = {
    "many types": lambda path: shutil.copy(DATA / "index_many_types.iac", path),
    "many batches": many_batches,
    "zstd": lambda path: write_encoded(path, payloads_of(30, 300), "zstd", level=3),
    "brotli": lambda path: shutil.copy(DATA / "brotli_default.iac", path),
    "fixed": lambda path: write_matrix(path, np.arange(60, dtype=np.float32).reshape(20, 3)),
}


def use(path) -> list:
    """Everything a reader can be asked for; what it raises that is allowed is collected."""
    raised = []

    def attempt(call):
        try:
            return call()
        except ALLOWED as error:
            raised.append(error)

    reader = attempt(lambda: iac.PackReader(path))
    if reader is None:
        return raised
    rows = range(min(len(reader), 100))
    for read in (reader.read_slide_table, reader.read_index_table):
        table = attempt(read)
        if table is not None:
            check_and_materialise(table)
    for name in ("offset", "text", "item_id"):
        attempt(lambda name=name: reader.read_index_table([name]))
    attempt(lambda: reader.read_payload(0))
    attempt(lambda: reader.read_payloads(rows))
    attempt(lambda: reader.read_payload_views(rows))
    attempt(lambda: reader.read_payloads_contiguous(rows, on_error="skip"))
    attempt(lambda: reader.read_data_span(0, reader.header["data_length"]))
    for kind in (iac.VariableRecordPack, iac.FixedRecordPack):
        pack = attempt(lambda kind=kind: kind(path))
        if pack is not None:
            attempt(lambda pack=pack: pack.read_many(rows))
    variable = attempt(lambda: iac.VariableRecordPack(path))
    if variable is not None:
        limit = 1 << 24
        attempt(
            lambda: variable.read_many(rows, verify=False, on_error="null", max_record_bytes=limit)
        )
    record = pa.array([{"pack": str(path), "row": row} for row in rows], REFERENCE)
    attempt(lambda: iac.decode(pa.table({"record": record}), on_error="null"))
    attempt(lambda: repr(reader))
    return raised


REFERENCE = pa.struct([("pack", pa.string()), ("row", pa.int64())])


#: Values that their type does not allow, in memory that is sound. Some writers store them.
ODD_VALUES = "does not fit in precision|not within the acceptable range|whole number of days"


def check_and_materialise(table: pa.Table) -> None:
    """What is handed out is sound memory, whatever the values are."""
    for column in table.columns:
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            assert re.search(ODD_VALUES, str(error)), error
        # A date in the year 200,000, or a time zone that does not exist.
        with contextlib.suppress(ValueError, ArithmeticError, KeyError):
            column.to_pylist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", ["header", "tables"])
def test_flipped_bytes_are_errors_or_harmless(tmp_path, kind, part):
    # 5 x 2 x 60: 300 in headers, 300 in Arrow segments.
    path = tmp_path / "x.iac"
    KINDS[kind](path)
    good = path.read_bytes()
    header = segments_of(path)[0]
    text = int.from_bytes(good[8:12], "little")
    spans = {
        "header": range(0, 16 + text),
        "tables": range(HEADER_BYTES, header["data_offset"]),
    }
    chance = random.Random(f"{kind} {part}")
    failed = 0
    for _ in range(60):
        damaged = bytearray(good)
        for _ in range(chance.randint(1, 3)):
            damaged[chance.choice(spans[part])] = chance.randrange(256)
        path.write_bytes(damaged)
        failed += bool(use(path))
    assert failed > 20
    path.write_bytes(good)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_cut_anywhere_is_refused(tmp_path, kind):
    path = tmp_path / "x.iac"
    KINDS[kind](path)
    good = path.read_bytes()
    chance = random.Random(kind)
    lengths = [0, 1, 15, 16, HEADER_BYTES - 1, HEADER_BYTES, HEADER_BYTES + 4, len(good) - 1]
    lengths += [chance.randrange(HEADER_BYTES, len(good)) for _ in range(40)]
    for length in lengths:
        path.write_bytes(good[:length])
        with pytest.raises(iac.PackError):
            iac.PackReader(path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("left", [0, 100, HEADER_BYTES, HEADER_BYTES + 600, -1])
def test_a_file_cut_under_an_open_reader_is_an_error(tmp_path, kind, left):
    path = tmp_path / "x.iac"
    KINDS[kind](path)
    data = segments_of(path)[3]
    reader = iac.PackReader(path)
    rows = range(len(reader))
    os.truncate(path, left % os.path.getsize(path))
    with contextlib.suppress(*ALLOWED):
        reader.index_table.validate(full=True)
    with pytest.raises(ValueError, match=r"x\.iac"):
        reader.read_payloads(rows)
    report = []
    try:
        batch = reader.read_payloads_contiguous(rows, on_error="null", report=report)
        assert len(report) > 0
        assert all(record is None or bytes(record) in data for record in batch)
    except iac.PackError as error:
        assert "index table" in str(error)
    with pytest.raises(ValueError):
        reader.read_data_span(0, len(data))
    with pytest.raises((ValueError, RuntimeError), match=r"x\.iac"):
        reader.read_payload_views(rows)


def test_only_the_rows_behind_the_cut_fail(tmp_path):
    payloads = payloads_of(200, 1000)
    path = write_pack(tmp_path / "x.iac", payloads)
    reader = iac.PackReader(path)
    start = reader.header["data_offset"] + sum(map(len, payloads[:150]))
    os.truncate(path, start + 5)
    for workers in (1, 3):
        batch = reader.read_payloads_contiguous(range(200), workers=workers, on_error="null")
        assert batch.validity.tolist() == [True] * 150 + [False] * 50
        assert [bytes(batch[i]) for i in range(150)] == payloads[:150]
        assert "truncated" in str(batch.errors[0].error)


def test_a_replaced_file_does_not_change_an_open_reader(tmp_path):
    payloads = payloads_of(50, 100)
    path = write_pack(tmp_path / "x.iac", payloads)
    reader = iac.PackReader(path)
    first = reader.read_payload(0)
    write_pack(path, [b"other"] * 9)
    os.unlink(path)
    assert first == payloads[0]
    assert reader.read_payloads(range(50)) == payloads
    assert reader.index_table.num_rows == 50
    assert [bytes(view) for view in reader.read_payload_views(range(50))] == payloads


def test_a_file_that_is_rewritten_in_place_is_noticed_by_the_checksums(tmp_path):
    path = write_pack(tmp_path / "x.iac", payloads_of(50, 100))
    reader = iac.PackReader(path)
    reader.read_payload(0)
    other = write_pack(tmp_path / "y.iac", [b"#" * len(p) for p in payloads_of(50, 100)])
    path.write_bytes(other.read_bytes())
    with pytest.raises(iac.ChecksumError, match=r"x\.iac: row 1: "):
        reader.read_payload(1)


@pytest.mark.parametrize("codec", ["none", "zstd", "brotli"])
def test_a_flipped_payload_byte_is_a_checksum_error_unless_told_not_to_verify(tmp_path, codec):
    objects = payloads_of(40, 200)
    path = write_encoded(tmp_path / "x.iac", objects, codec)
    with iac.PackReader(path) as reader:
        before = reader.read_payload(17)
    flip_payload(path, 17)
    damaged = bytes([before[0] ^ 0x40]) + before[1:]
    pack = iac.VariableRecordPack(path)
    for read in (
        lambda: pack.read(17),
        lambda: pack.read_bytes(17),
        lambda: pack.read_many([16, 17]),
        lambda: pack.read_many_contiguous([17], workers=2),
        lambda: pack.reader.read_payload(17),
        lambda: pack.reader.read_payloads([17]),
        lambda: list(iac.iter_payloads(path)),
    ):
        with pytest.raises(iac.ChecksumError, match=r"x\.iac: row 17: ") as raised:
            read()
        assert (raised.value.pack, raised.value.row) == (str(path), 17)
    assert pack.reader.read_payload(17, verify=False) == damaged
    assert pack.reader.read_payloads([17], verify=False) == [damaged]
    assert pack.read_bytes(17, verify=False) == damaged
    assert list(iac.iter_payloads(path, verify=False))[17] == damaged
    if codec == "none":
        assert pack.read(17, verify=False) == damaged
    assert pack.read_many([16, 18]) == [objects[16], objects[18]]


def test_every_single_flipped_payload_bit_is_found(tmp_path):
    path = write_pack(tmp_path / "x.iac", [b"abcdefgh"] * 3)
    start = segments_of(path)[0]["data_offset"] + 8
    good = path.read_bytes()
    for bit in range(64):
        damaged = bytearray(good)
        damaged[start + bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        batch = iac.PackReader(path).read_payloads_contiguous(range(3), on_error="null")
        assert batch.validity.tolist() == [True, False, True]
