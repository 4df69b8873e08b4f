"""Reading many records in any order into one piece of memory."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from iatro import iac as peer

import iac_query

from ._library_loop import LibraryLoop
from ._measure import Timings, interleaved, print_table
from ._packs import lines, tiles, write

PARAMS: dict[str, dict[str, Any]] = {"none": {}, "zstd": {"level": 3}, "brotli": {"quality": 5}}
WRITERS = {"peer": peer, "ours": iac_query}
SHUFFLE = np.random.default_rng(2)


def contestants_of(path: Path, objects: list[bytes], workers: int) -> dict[str, Callable[[], Any]]:
    """Everybody who reads all records of a pack, shuffled, into one piece of memory."""
    rows = SHUFFLE.permutation(len(objects))
    theirs, ours = peer.VariableRecordPack(str(path)), iac_query.VariableRecordPack(path)
    loop = LibraryLoop(path, rows, [len(objects[row]) for row in rows])
    read = partial(ours.read_many_contiguous, rows, workers=workers)
    contestants: dict[str, Callable[[], Any]] = {
        "peer": partial(theirs.read_many_contiguous, rows.tolist(), workers=workers),
        "ours": read,
        "unverified": partial(read, verify=False),
        "loop": partial(loop.run, workers),
    }
    expected = b"".join(objects[row] for row in rows)
    for name, run in contestants.items():
        result = run()
        if memoryview(getattr(result, "buffer", result)) != memoryview(expected):
            raise AssertionError(f"{name} reads other bytes from {path.name}")
    return contestants


def race(folder: Path, objects: list[bytes], codecs: list[str], rounds: int) -> list[list[Any]]:
    """The rows of a table: for each codec, writer and number of workers how many times as fast
    we are."""
    contestants = {}
    for codec in codecs:
        for writer, package in WRITERS.items():
            path = folder / f"{codec}-{writer}-{len(objects)}.iac"
            write(package, path, codec, objects, **PARAMS[codec])
            for workers in (1, 2):
                for name, run in contestants_of(path, objects, workers).items():
                    contestants[codec, writer, workers, name] = run
    timings: Timings = interleaved(contestants, rounds)

    rows = []
    for case in dict.fromkeys(key[:3] for key in contestants):
        mine, unverified = (*case, "ours"), (*case, "unverified")
        ratios = [
            timings.ratio((*case, other), of)
            for of in (mine, unverified)
            for other in ("peer", "loop")
        ]
        rows.append([*case, timings.median(mine) * 1e3, *ratios])
    return rows


COLUMNS = ("codec", "writer", "workers", "ms", "peer", "loop", "peer, no crc", "loop, no crc")


def main(rounds: int = 9) -> None:
    print("Times the speed of the peer's read_many_contiguous and of a plain library loop.\n")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = race(folder, tiles(1024, 64 << 10), ["none", "zstd", "brotli"], rounds)
        print_table("1,024 records of 64 KiB", COLUMNS, rows)
        rows = race(folder, lines(20_000, 4000), ["none", "zstd"], rounds)
        print_table("20,000 records of 4,000 bytes", COLUMNS, rows)
        rows = race(folder, lines(300_000, 64), ["none", "zstd"], rounds)
        print_table("300,000 records of 64 bytes", COLUMNS, rows)
