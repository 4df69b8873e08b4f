"""Decoding ahead: images batch by batch, each used for as long as it takes to decode.

The use is a loop over the pixels that keeps one processor busy and leaves the interpreter free, as
the step of a model does. Decoding has one worker, so that the two have the two processors. The
limit: one thread decodes all batches while another uses one of them as often, neither waiting.
"""

from __future__ import annotations

import tempfile
import threading
import time
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa

import iac_query

from ._measure import interleaved, print_table
from ._packs import write
from .images import make_images

ROWS, BATCH = 256, 16
TARGET = 1.6  # times a serial loop


def references(path: Path, rows: int, images: int) -> pa.Table:
    record = pa.StructArray.from_arrays(
        [pa.array([str(path)] * rows), pa.array([row % images for row in range(rows)])],
        ["pack", "row"],
    )
    return pa.table({"record": record})


def use(batch: pa.Table, passes: int) -> int:
    """What is done with a batch. zlib works without the interpreter's lock."""
    pixels = batch["payload"].chunk(0).storage.values.buffers()[1]
    seen = 0
    for _ in range(passes):
        seen = zlib.adler32(pixels, seen)
    return seen


def main(rows: int = ROWS, rounds: int = 9) -> None:
    images = [image for image in make_images("tiles") if image is not None]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tiles.iac"
        write(iac_query, path, "jpeg", images, quality=90)
        table = references(path, rows, len(images))
        options: dict[str, Any] = {"batch_rows": BATCH, "as_": "tensor", "workers": 1}

        def loop(prefetch: int, passes: int) -> float:
            began = time.perf_counter()
            for batch in iac_query.iter_decode(table, prefetch=prefetch, **options):
                use(batch, passes)
            return time.perf_counter() - began

        one = iac_query.decode(table[:BATCH], as_="tensor", workers=1)
        times = interleaved({"decode": lambda: loop(0, 0), "use": lambda: use(one, 20)}, 5)
        each = times.median("use") / 20
        passes = max(round(times.median("decode") / (rows / BATCH) / each), 1)

        def at_once() -> None:
            decoding = threading.Thread(target=loop, args=(0, 0))
            decoding.start()
            for _ in range(0, rows, BATCH):
                use(one, passes)
            decoding.join()

        runs = {
            "serial": lambda: loop(0, passes),
            "ahead": lambda: loop(2, passes),
            "decode": lambda: loop(0, 0),
            "limit": at_once,
        }
        times = interleaved(runs, rounds)
        lines = [
            [
                f"{rows} tiles, {BATCH} in a batch",
                *(times.median(name) * 1e3 for name in runs),
                times.ratio("serial", to="ahead"),
                times.ratio("serial", to="limit"),
            ]
        ]
    columns = ["", "serial", "ahead", "decoding alone", "limit", "serial to ahead", "to limit"]
    print_table(f"iter_decode, milliseconds; target ratio {TARGET}", columns, lines)


if __name__ == "__main__":
    main()
