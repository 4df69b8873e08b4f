"""Opening packs of few and many rows, their tables, one record at a time, and writing packs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
from iatro import iac as peer

import iac_query

from ._measure import interleaved, print_table
from ._packs import lines, tiles

SMALL, LARGE = 30_000, 3_000_000
MEMORY = Path("/dev/shm")
COLUMNS = ("", "us", "peer", "times the peer's speed")


def tables(rows: int) -> tuple[pa.Table, pa.Table]:
    """A slide table, and an index of strings and numbers."""
    random = np.random.default_rng(3)
    slides = pa.table({"slide_idx": pa.array([0], pa.uint8()), "slide_id": ["s0"]})
    index = pa.table(
        {
            "item_id": pa.array([f"item-{row:08}" for row in range(rows)]),
            "slide_idx": pa.array(np.zeros(rows, np.uint8)),
            "x": pa.array(random.integers(0, 1 << 16, rows).astype(np.uint16)),
            "score": pa.array(random.random(rows)),
        }
    )
    return slides, index


def build(package: ModuleType, path: Path, index: pa.Table, payloads: list[bytes]) -> None:
    header = {"payload_type": "benchmark", "codec": "none"}
    slides, _ = tables(0)
    package.build_pack(str(path), header, slides, index, payloads, overwrite=True)


def open_and_read(package: ModuleType, path: Path, row: int) -> bytes:
    reader = package.PackReader(str(path))
    payload = reader.read_payload(row)
    reader.close()
    return payload


def whole_index(package: ModuleType, path: Path) -> pa.Table:
    reader = package.PackReader(str(path))
    table = reader.index_table
    reader.close()
    return table


def sync(path: Path) -> None:
    """What a writer that syncs waits for: the file's bytes and its name on the disk."""
    for name in (path, path.parent):
        descriptor = os.open(name, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def compare(
    cases: dict[str, Callable[[ModuleType], Any]], rounds: int, times: int = 1
) -> list[list[Any]]:
    """A row of the table for each case, run some ``times`` with one package, then the other."""

    def repeat(run: Callable[[ModuleType], Any], package: ModuleType) -> None:
        for _ in range(times):
            run(package)

    rows = []
    for name, run in cases.items():
        contestants = {"peer": partial(repeat, run, peer), "ours": partial(repeat, run, iac_query)}
        timings = interleaved(contestants, rounds)
        ours, theirs = (timings.median(who) / times * 1e6 for who in ("ours", "peer"))
        rows.append([name, f"{ours:,.0f}", f"{theirs:,.0f}", timings.ratio("peer", "ours")])
    return rows


def reading(folder: Path, rounds: int) -> None:
    cases: dict[str, Callable[[ModuleType], Any]] = {}
    for rows in (SMALL, LARGE):
        path = folder / f"{rows}.iac"
        build(peer, path, tables(rows)[1], [b"x" * 16] * rows)
        cases[f"open {rows:,} rows, read one record"] = partial(
            open_and_read, path=path, row=rows // 2
        )
        cases[f"open, whole index of {rows:,} rows"] = partial(whole_index, path=path)
    print_table("Opening", COLUMNS, compare(cases, rounds, times=10))

    readers = {p: p.PackReader(str(folder / f"{LARGE}.iac")) for p in (peer, iac_query)}
    rows = np.random.default_rng(4).integers(0, LARGE, 1000).tolist()

    def one_by_one(package: ModuleType) -> None:
        read = readers[package].read_payload
        for row in rows:
            read(row)

    case = {"1,000 records of 16 bytes, one by one": one_by_one}
    print_table("Warm", COLUMNS, compare(case, rounds, times=10))


def writing(folder: Path, rounds: int) -> None:
    """On the disk, where ours waits for it and the peer is made to as well; and in memory, where
    there is nothing to wait for."""
    rows = []
    for name, payloads in {
        "300,000 x 64 bytes": lines(300_000, 64),
        "1,024 x 64 KiB": tiles(1024, 64 << 10),
    }.items():
        index = tables(len(payloads))[1]

        def to(target: Path, package: ModuleType, index=index, payloads=payloads) -> None:
            path = target / f"{package.__name__}.iac"
            build(package, path, index, payloads)
            if target == folder and package is peer:
                sync(path)

        rows += compare({f"{name}, on the disk (peer + fsync)": partial(to, folder)}, rounds)
        if MEMORY.is_dir():
            with tempfile.TemporaryDirectory(dir=MEMORY) as memory:
                rows += compare({f"{name}, in memory": partial(to, Path(memory))}, rounds)
    print_table("build_pack", COLUMNS, rows)


def main(rounds: int = 9) -> None:
    with tempfile.TemporaryDirectory() as folder:
        reading(Path(folder), rounds)
        writing(Path(folder), rounds)
