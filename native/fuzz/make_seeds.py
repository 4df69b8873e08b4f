"""Makes the seeds of the pack target: make_seeds.py PACK...

A seed is a pack without its padding, see pack.cpp. The streams of the native tests become seeds
as well.
"""

import json
import struct
import sys
from pathlib import Path

HERE = Path(__file__).parent
STREAMS = HERE.parent / "tests/data"
SEEDS = HERE / "seeds/pack"
ROWS = {"every_type": 4, "nested_dictionaries": 6, "delta_dictionary": 5, "two_dictionaries": 2}
NO_ROWS = ("no_rows", "no_columns", "two_offsets")


def seed(
    literal: bool, text: bytes, slides: bytes, index: bytes, data: bytes, rows: tuple
) -> bytes:
    """Give the input of these parts, as pack.cpp takes it apart."""
    sizes = len(text), len(slides), len(index)
    return struct.pack("<BxHHHII", literal, *sizes, *rows) + text + slides + index + data


def of_pack(path: Path, literal: bool) -> bytes:
    """Give the input that stands for a pack."""
    pack = path.read_bytes()
    text = pack[16 : 16 + struct.unpack_from("<I", pack, 8)[0]]
    header = json.loads(text)
    slides = pack[65536 : header["index_table_offset"]]
    index = pack[header["index_table_offset"] : header["data_offset"]]
    data = pack[header["data_offset"] :]
    return seed(literal, text, slides, index, data, (header["num_slides"], header["num_records"]))


def main() -> None:
    """Write every seed."""
    SEEDS.mkdir(parents=True, exist_ok=True)
    for path in map(Path, sys.argv[1:]):
        (SEEDS / path.stem).write_bytes(of_pack(path, literal=False))
        (SEEDS / f"{path.stem}_literal").write_bytes(of_pack(path, literal=True))
    empty = (STREAMS / "no_columns.arrows").read_bytes()
    for path in STREAMS.glob("*.arrows"):
        if path.stem not in NO_ROWS:
            rows = 0, ROWS.get(path.stem, 100)
            (SEEDS / path.stem).write_bytes(seed(False, b"{}", empty, path.read_bytes(), b"", rows))


if __name__ == "__main__":
    main()
