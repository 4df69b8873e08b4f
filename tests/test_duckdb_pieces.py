"""Payload functions over vectors of more bytes than are decoded at a time, stored or decoded."""

import random
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pytest
from dicoms import build as build_dicom
from dicoms import slice_of
from packs import flip_payload, write_encoded, write_matrix, write_pack
from patients import PAIR, TEXT, Schema, make
from test_images import write_images

import iac_query as iac

pytestmark = pytest.mark.asan

PIECE = 4 << 20  # stored bytes
RATIO = 16  # of decoded ones to these
RECORDS = 5  # of each pack: short ones and long ones
LONG = 900_000  # bytes
SIDES = (700, 3, 690, 1, 710)  # of images


def noise(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


def texts(seed: int) -> list[bytes]:
    long = [noise(seed + i, LONG // 2).hex().encode() for i in range(RECORDS - 2)]
    return [b"", *long, b"short"]


def blank_texts(seed: int) -> list[bytes]:
    return [b"", *(f"{seed} {i} ".encode() * LONG for i in range(RECORDS - 2)), b"short"]


def pixels(seed: int, side: int, dtype: str) -> np.ndarray:
    data = np.frombuffer(noise(seed, side * side * np.dtype(dtype).itemsize), dtype)
    return data.reshape(side, side) // 4  # within 14 bits, as CT is


def bytes_pack(path: Path, seed: int) -> None:
    if seed == 1:
        write_pack(path, texts(seed))
    else:
        write_encoded(path, texts(seed), "zstd", level=1)


def images_pack(path: Path, seed: int) -> None:
    write_images(path, [pixels(seed + i, side, "u1") for i, side in enumerate(SIDES)])


def matrix_pack(path: Path, seed: int) -> None:
    values = np.frombuffer(noise(seed, RECORDS * LONG // 4 * 4), "<i4")
    write_matrix(path, (values.reshape(RECORDS, -1) >> 9).astype("<f4"))


def blank_images_pack(path: Path, seed: int) -> None:
    sides = (1500, 3, 1400, 1, 1600)
    write_images(path, [np.full((side, side), seed + side, np.uint16) for side in sides])


def documents_pack(schema: Schema, texts=texts) -> Callable[[Path, int], None]:
    def write(path: Path, seed: int) -> None:
        patients = [
            {
                "patient_id": f"p{i}",
                "institution": "h",
                "docs": [
                    {"doc_id": f"d{k}", **{name: text.decode() for name in schema.texts}}
                    for k in range(i % 3)
                ],
            }
            for i, text in enumerate(texts(seed))
        ]
        codec = iac.Codec.create("zstd", level=1)
        schema.build(path, make(schema, patients), codec=codec)

    return write


def dicom_pack(path: Path, seed: int) -> None:
    slices = [slice_of(i, pixels=pixels(seed + i, 400, "i2")) for i in range(RECORDS)]
    build_dicom(path, *slices)


#: Calls that have the same value for all records.
ALIKE = ("iac_verify({})", "iac_tag({}, 'Rows')")
KINDS = {
    "bytes": (bytes_pack, ["iac_payload({})", "iac_text({})", "iac_stored({})", "iac_verify({})"]),
    "images": (images_pack, ["iac_image({})", "iac_payload({})", "iac_verify({})"]),
    "matrix": (matrix_pack, ["iac_vector({})", "iac_vector_double({})", "iac_payload({})"]),
    "documents": (documents_pack(TEXT), ["iac_docs({})", "iac_text({})"]),
    "pairs": (documents_pack(PAIR), ["iac_doc_pairs({})", "iac_payload({})"]),
    "blank images": (blank_images_pack, ["iac_image({})", "iac_payload({})"]),
    "blank documents": (documents_pack(TEXT, blank_texts), ["iac_docs({})", "iac_text({})"]),
    "dicom": (dicom_pack, ["iac_hu({})", "iac_image({})", "iac_tags({})", "iac_tag({}, 'Rows')"]),
}


#: Those whose records have a crc32.
CHECKED = [kind for kind in KINDS if kind != "matrix" and "blank" not in kind]


@pytest.fixture
def calls(request, con, tmp_path: Path) -> list[str]:
    """Functions for the references in the table ``refs``: shuffled ones to two packs, each many
    times, with NULLs between them."""
    write, calls = KINDS[request.param]
    paths = [str(tmp_path / f"{seed}.iac") for seed in (1, 2)]
    for seed, path in enumerate(paths, 1):
        write(Path(path), seed * 100)
    con.execute("SET threads = 1")  # all of them in one vector
    con.execute(
        f"""CREATE TABLE refs AS SELECT row_number() OVER () AS i, record FROM (
            SELECT CASE WHEN copy % 7 <> 6 THEN record END AS record
            FROM iac_scan({paths}), range(9) AS copies(copy)
            ORDER BY md5(record.pack[-5:] || record.row || copy))"""
    )
    sizes = con.sql(
        """SELECT sum(octet_length(iac_stored(record))), sum(octet_length(iac_payload(record)))
           FROM refs WHERE record IS NOT NULL GROUP BY record.pack"""
    ).fetchall()
    assert len(sizes) == 2
    assert all(max(stored, decoded / RATIO) > 1.2 * PIECE for stored, decoded in sizes), sizes
    return calls


def digests(con, call: str, rows: str = "refs") -> list[tuple]:
    """What a function gives, by pack and row of the references, in their order."""
    value = call.format("record")
    return con.sql(
        f"""SELECT record.pack, record.row, hash(value), value IS NULL
            FROM (SELECT i, record, {value} AS value FROM {rows}) ORDER BY i"""
    ).fetchall()


def each_alone(con, call: str) -> dict[tuple, tuple]:
    found = {}
    for pack, row in con.sql("SELECT DISTINCT record.pack, record.row FROM refs").fetchall():
        one = f"""(FROM refs WHERE record.pack IS NOT DISTINCT FROM {pack!r}
                   AND record.row IS NOT DISTINCT FROM {row} LIMIT 1)"""
        ((*_, digest, is_null),) = digests(con, call, one.replace("None", "NULL"))
        found[pack, row] = digest, is_null
    return found


@pytest.mark.parametrize("calls", KINDS, indirect=True)
def test_pieces_together_are_what_each_record_is_alone(con, calls: list[str]):
    for call in calls:
        alone = each_alone(con, call)
        assert [is_null for _, is_null in alone.values()].count(True) == 1
        assert len(set(alone.values())) > (2 if call in ALIKE else RECORDS) - 1
        for pack, row, *found in digests(con, call):
            assert tuple(found) == alone[pack, row], (call, pack, row)


@pytest.mark.parametrize("calls", CHECKED, indirect=True)
def test_a_damaged_record_in_any_piece_is_named_and_try_leaves_the_others(con, calls: list[str]):
    for call in calls:
        if call in ALIKE or call == "iac_tags({})":
            continue
        alone = each_alone(con, call)
        paths = {pack for pack, _ in alone if pack is not None}
        for path in paths:
            flip_payload(Path(path), 2)
        with pytest.raises(duckdb.Error, match=r"\d\.iac: row 2: .* damaged"):
            digests(con, call)
        nothing = alone[None, None]
        for pack, row, *found in digests(con, f"TRY({call})"):
            assert tuple(found) == (nothing if row == 2 else alone[pack, row]), (call, pack, row)
        assert len(con.sql("SELECT 1 FROM refs WHERE NOT iac_verify(record)").fetchall()) > 10
        for path in paths:
            flip_payload(Path(path), 2)  # mended
