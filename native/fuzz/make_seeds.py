"""Makes the seeds: make_seeds.py PACK...

A seed of the pack target is a pack without its padding, see pack.cpp. The streams of the native
tests become seeds as well. Packs of images give the seeds of the codecs target: small payloads
behind the number of their codec. Packs of documents give the records that the documents target
takes. Those of the dicom_frames target are frames of 2 x 3 pixels behind their format.
"""

import json
import struct
import sys
from pathlib import Path

import numpy as np

import iac_query as iac

HERE = Path(__file__).parent
STREAMS = HERE.parent / "tests/data"
SEEDS = HERE / "seeds/pack"
CODEC_SEEDS = HERE / "seeds/codecs"
DOCUMENT_SEEDS = HERE / "seeds/documents"
FRAME_SEEDS = HERE / "seeds/dicom_frames"
# As codecs.cpp has them.
CODECS = {"zstd": 0, "brotli": 1, "jxl": 2, "jpeg": 3, "jpeg2000": 5, "jpegls": 7}
IMAGE_CODECS = ("jxl", "jpeg", "jpeg2000", "jpegls")
SEEDS_A_PACK, MOST_BYTES = 3, 1200
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


def write_payloads(path: Path) -> None:
    """Write the seeds of a pack of images, of different sizes as far as it has them."""
    with iac.VariableRecordPack(path) as pack:
        payloads = sorted(map(pack.read_bytes, range(len(pack))), key=len)
        name = pack.header["codec"]
    payloads = [payload for payload in payloads if len(payload) <= MOST_BYTES] or payloads[:1]
    step = -(-len(payloads) // SEEDS_A_PACK)
    for i, payload in enumerate(payloads[::-step]):
        (CODEC_SEEDS / f"{path.stem}_{i}").write_bytes(bytes([CODECS[name]]) + payload)


def write_frames() -> None:
    """Write frames of DICOM: their format, as dicom_frames.cpp takes it, and their bytes."""
    one, three = (
        struct.pack("<16I", n, *(64 + 8 * i for i in range(n)), *[0] * (15 - n)) for n in (1, 3)
    )
    segment = b"\x01ab\xfdc\x80\x80\x80"
    frames = {
        "rle": bytes([1, 2, 0, 4, 7]) + one + segment,
        "rle_rgb": bytes([1, 2, 0, 5, 7]) + three + segment * 3,
        "rle_ybr": bytes([1, 2, 0, 5, 71]) + three + segment * 3,
        "big_endian_12_bits": bytes([1, 2, 3, 2, 11]) + bytes(range(240, 252)),
        "planes": bytes([1, 2, 0, 65, 7]) + bytes(range(18)),
        "ybr_422": bytes([1, 2, 0, 1, 135]) + bytes(range(12)),
        "bits": bytes([1, 2, 0, 128, 0]) + b"\x2a",
    }
    pixels = np.arange(18, dtype=np.uint8).reshape(2, 3, 3)
    codecs = iac.Codec.create("jpeg", lossless=True), *map(iac.Codec.create, ("jpegls", "jpeg2000"))
    for encoding, codec in enumerate(codecs, 3):
        format = bytes([1, 2, 0, 2 * encoding + 1, 0])
        frames[f"{codec.name}_ybr"] = format + codec.encode(pixels)
    for name, frame in frames.items():
        (FRAME_SEEDS / name).write_bytes(frame)


def main() -> None:
    """Write every seed."""
    FRAME_SEEDS.mkdir(parents=True, exist_ok=True)
    write_frames()
    SEEDS.mkdir(parents=True, exist_ok=True)
    CODEC_SEEDS.mkdir(parents=True, exist_ok=True)
    DOCUMENT_SEEDS.mkdir(parents=True, exist_ok=True)
    for path in map(Path, sys.argv[1:]):
        with iac.PackReader(path) as reader:
            holds_images = reader.header.get("codec") in IMAGE_CODECS
            holds_documents = reader.header.get("payload_type", "").startswith("clinical_text")
        if holds_images:
            write_payloads(path)
            continue
        if holds_documents:
            with iac.VariableRecordPack(path) as pack:
                for row, document in enumerate(pack.read_many(range(len(pack)))):
                    (DOCUMENT_SEEDS / f"{path.stem}_{row}").write_bytes(document)
        (SEEDS / path.stem).write_bytes(of_pack(path, literal=False))
        (SEEDS / f"{path.stem}_literal").write_bytes(of_pack(path, literal=True))
    empty = (STREAMS / "no_columns.arrows").read_bytes()
    for path in STREAMS.glob("*.arrows"):
        if path.stem not in NO_ROWS:
            rows = 0, ROWS.get(path.stem, 100)
            (SEEDS / path.stem).write_bytes(seed(False, b"{}", empty, path.read_bytes(), b"", rows))


if __name__ == "__main__":
    main()
