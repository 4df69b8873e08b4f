"""A cohort written as a pack by references, against copying the source file.

Both are synced to the disk, which write_pack always does; and in memory, where there is nothing to
wait for.
"""

from __future__ import annotations

import subprocess
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

import iac_query

from ._measure import interleaved, print_table
from .open import MEMORY, sync

MEBIBYTES = 512
SIZES = (4 << 10, 64 << 10, 1 << 20)
TARGET = 0.7  # of cp's speed


def write_source(path: Path, size: int, total: int) -> pa.Table:
    """A pack of incompressible records and references to all of them."""
    data = np.random.default_rng(1).bytes(size + 4096)
    count = total // size
    index = pa.table({"item": pa.array(range(count), pa.uint32())})
    slides = pa.table({"slide_idx": pa.array([0], pa.uint8())})
    payloads = (data[row % 4096 : row % 4096 + size] for row in range(count))
    header = {"payload_type": "benchmark", "codec": "none"}
    iac_query.build_pack_streaming(path, header, slides, index, payloads)
    crc32 = iac_query.PackReader(path).read_index_table(["crc32"])["crc32"].combine_chunks()
    record = pa.StructArray.from_arrays(
        [pa.array([str(path)] * count), pa.array(np.arange(count)), crc32], ["pack", "row", "stamp"]
    )
    return index.append_column("record", record)


def measure(folder: Path, place: str, size: int, total: int, rounds: int) -> list[object]:
    source, out = folder / "source.iac", folder / "out.iac"
    rows = write_source(source, size, total)
    shuffled = rows.take(np.random.default_rng(2).permutation(rows.num_rows))

    def copy() -> None:
        subprocess.run(["cp", str(source), str(out)], check=True)
        sync(out)
        out.unlink()

    def write(table: pa.Table) -> None:
        iac_query.write_pack(table, out, progress=False)
        out.unlink()

    runs = {"cp": copy, "in order": partial(write, rows), "shuffled": partial(write, shuffled)}
    times = interleaved(runs, rounds)
    source.unlink()
    speeds = [total / 2**20 / times.median(name) for name in runs]
    ratios = [times.ratio("cp", to=name) for name in ("in order", "shuffled")]
    return [f"{size >> 10:,} KiB, {place}", *speeds, *ratios]


def main(mebibytes: int = MEBIBYTES, rounds: int = 7) -> None:
    lines = []
    for size in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            lines.append(measure(Path(folder), "disk", size, mebibytes << 20, rounds))
        if MEMORY.is_dir():
            with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
                lines.append(measure(Path(folder), "memory", size, mebibytes << 20, rounds))
    columns = ["", "cp", "in order", "shuffled", "of cp's speed", "shuffled"]
    print_table(f"write_pack by reference, MiB/s; target {TARGET} of cp's speed", columns, lines)


if __name__ == "__main__":
    main()
