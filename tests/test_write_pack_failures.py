"""What a pack cannot be written of, and what writing one costs."""

import os
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import pyarrow as pa
import pytest
from cohorts import fails, read_all, refer
from iatro import iac as peer
from packs import (
    assemble,
    flip_payload,
    layout_index,
    payloads_of,
    write_pack,
)
from references import ROWS, references, table_of

import iac_query as iac


@pytest.fixture
def damaged(packs):
    """References to every record of two packs, of which three cannot be had."""
    one, two = list(packs)[:2]
    flip_payload(one, 3)
    table = table_of(
        references([one] * ROWS + [two] * ROWS + [two], [*range(ROWS)] * 2 + [ROWS]),
        n=range(2 * ROWS + 1),
    )
    os.remove(gone := list(packs)[2])
    missing = table_of(references([gone], [0]), n=[-1])
    objects = packs[one][:3] + packs[one][4:] + packs[two]
    return pa.concat_tables([missing, table]), objects


@pytest.mark.parametrize("codec", [None, "zstd"])
def test_records_that_cannot_be_had_are_left_out(damaged, codec, tmp_path):
    table, objects = damaged
    report = []
    out = tmp_path / "x.iac"
    iac.write_pack(table, out, codec, on_error="skip", report=report)
    assert read_all(out) == objects
    assert [failure.position for failure in report] == [0, 4, 25]
    kinds = [iac.PackNotFoundError, iac.ChecksumError, iac.PackIndexError]
    assert [type(failure.error) for failure in report] == kinds
    fails(tmp_path, iac.PackIndexError, "row 12", table, tmp_path / "y.iac", codec)
    fails(tmp_path, iac.PackNotFoundError, "none.iac", table[:-1], tmp_path / "y.iac", codec)
    fails(tmp_path, iac.ChecksumError, "row 3", table[1:-1], tmp_path / "y.iac", codec)


def test_a_pack_that_changed_is_an_error(pack, tmp_path):
    table = refer(pack, range(5))
    write_pack(pack, payloads_of(10, 50))
    fails(tmp_path, iac.StaleReferenceError, "row 0", table, tmp_path / "x.iac")


def test_a_reference_must_be_there(pack, tmp_path):
    record = pa.array([{"pack": str(pack), "row": 1}, None])
    fails(tmp_path, ValueError, "row 1: the record is NULL", table_of(record), tmp_path / "x.iac")
    skip = {"on_error": "skip"}
    fails(tmp_path, ValueError, "row 1: the record", table_of(record), tmp_path / "x.iac", **skip)


@pytest.mark.parametrize(
    ("columns", "options", "error", "reason"),
    [
        ({}, {"on_error": "null"}, ValueError, "on_error is 'null'"),
        ({}, {"slide_columns": "n"}, TypeError, "expected a list of names"),
        ({}, {"slide_columns": ["m"]}, ValueError, "'m', which is no column"),
        ({"slide_idx": ["a", "b"]}, {}, TypeError, "must be of integers"),
        (
            {"slide_idx": [0, 0], "slide_id": ["a", "b"]},
            {},
            ValueError,
            "two slides have the same number",
        ),
        (
            {"slide_idx": [0, None], "slide_id": ["a", "b"]},
            {},
            ValueError,
            "row 1: 'slide_idx' is NULL, but 'slide_id' is not",
        ),
        ({"payload": [b"", b""]}, {}, ValueError, "leave one of them out"),
        ({"length": [1, 2]}, {}, ValueError, "'length'.*another name"),
        ({}, {"column": "reference"}, KeyError, "no column 'reference' and no 'payload'"),
        ({}, {"packs": []}, iac.PackError, "not among the packs"),
        ({}, {"extra_header": {"x": float("nan")}}, ValueError, "JSON"),
        ({}, {"extra_header": {"x": "y" * 70_000}}, ValueError, "header"),
    ],
)
def test_what_does_not_go_together(pack, tmp_path, columns, options, error, reason):
    table = refer(pack, [0, 1], **columns)
    fails(tmp_path, error, reason, table, tmp_path / "x.iac", **options)


def test_a_file_is_replaced_only_when_told(pack, tmp_path):
    table = refer(pack, [3])
    fails(tmp_path, FileExistsError, "overwrite=True", table, pack)
    iac.write_pack(table, pack, overwrite=True)  # its own source
    assert read_all(pack) == [payloads_of(10)[3]]


def test_no_rows(pack, tmp_path):
    out = tmp_path / "x.iac"
    iac.write_pack(pa.table({"n": [], "payload": pa.array([], pa.binary())}), out, overwrite=True)
    assert len(iac.PackReader(out)) == 0
    assert len(peer.PackReader(str(out)).index_table) == 0


def test_references_to_no_record_say_nothing_of_a_pack(pack, tmp_path):
    before = pack.read_bytes()
    for options in ({}, {"codec": "zstd"}, {"on_error": "skip"}):
        with pytest.raises(ValueError, match="refers to no record"):
            iac.write_pack(refer(pack, [], n=[]), pack, overwrite=True, **options)
    assert pack.read_bytes() == before


def test_two_columns_of_records(pack, tmp_path):
    table = refer(pack, [0, 1])
    joined = table.append_column("record", table["record"])
    for call in (iac.decode, lambda t: next(iac.iter_decode(t))):
        with pytest.raises(ValueError, match=r"two columns are called 'record'.*AS.*column="):
            call(joined)
    fails(tmp_path, ValueError, "two columns are called 'record'", joined, tmp_path / "x.iac")


# Cost


def sparse(path: Path, size: int, length: int) -> Path:
    """A pack of ``size`` bytes that takes none on the disk, records of ``length`` zeros in it."""
    count = 1000
    offsets = [i * ((size - length) // count) for i in range(count)]
    crc = zlib.crc32(bytes(length))
    index = layout_index(offsets, [length] * count, [crc] * count, n=range(count))
    assemble(path, index, rows=(1, count), data_length=size)
    with open(path, "r+b") as file:
        file.truncate(file.seek(0, os.SEEK_END) + size)
    return path


def test_no_more_is_read_than_needed(tmp_path):
    source = sparse(tmp_path / "s.iac", 10 << 30, 100_000)
    table = table_of(references([str(source)] * 8, [900, 3, 500, 4, 5, 6, 999, 0]))

    def read_so_far() -> int:
        return int(Path("/proc/self/io").read_text().split()[1])

    before = read_so_far()
    iac.write_pack(table, tmp_path / "x.iac")
    assert 800_000 <= read_so_far() - before < 1_600_000
    assert read_all(tmp_path / "x.iac") == [bytes(100_000)] * 8


def test_memory_is_bounded(tmp_path):
    """Half a gibibyte of references in a process that may have little more than it starts with."""
    source = sparse(tmp_path / "s.iac", 10 << 30, 4 << 20)
    code = (
        "import resource, sys, iac_query as iac, pyarrow as pa\n"
        "rows = [{'pack': sys.argv[1], 'row': i} for i in range(128)]\n"
        "table = pa.table({'record': rows})\n"
        "iac.write_pack(table[:1], sys.argv[2])\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "iac.write_pack(table, sys.argv[2], overwrite=True)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    command = [sys.executable, "-c", code, str(source), str(tmp_path / "x.iac")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 150_000  # KiB
    assert len(iac.PackReader(tmp_path / "x.iac")) == 128


def test_progress_is_shown_where_it_is_wanted(pack, tmp_path, capfd):
    for progress, shown in ((None, False), (False, False), (True, True)):
        iac.write_pack(
            refer(pack, range(10)), tmp_path / "x.iac", overwrite=True, progress=progress
        )
        assert ("10/10" in capfd.readouterr().err) == shown


def test_an_interrupt_leaves_nothing_behind(pack, tmp_path):
    class Interrupting(iac.Codec):
        name = "interrupting"

        def encode(self, obj):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as raised:
        iac.write_pack(refer(pack, range(10)), tmp_path / "x.iac", Interrupting())
    assert os.listdir(tmp_path) == [pack.name]
    assert [t.name for t in threading.enumerate() if t.name.startswith("iac_query")] == []
    assert raised.tb is not None  # which holds all that was at work


def test_a_full_disk_leaves_nothing_behind(pack, tmp_path):
    """In a process that may write files of a mebibyte only."""
    path = write_pack(tmp_path / "large.iac", [bytes(1000)] * 5000)
    code = (
        "import resource, signal, sys, threading, iac_query as iac, pyarrow as pa\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
        "rows = [{'pack': sys.argv[1], 'row': i} for i in range(5000)]\n"
        "try:\n"
        "    iac.write_pack(pa.table({'record': rows}), sys.argv[2])\n"
        "except OSError as error:\n"
        "    print(error.strerror, threading.active_count())\n"
    )
    command = [sys.executable, "-c", code, str(path), str(tmp_path / "x.iac")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "cannot write: File too large 1\n"
    assert sorted(os.listdir(tmp_path)) == ["large.iac", pack.name]
