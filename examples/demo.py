"""The main job, start to end: open packs, pick rows with SQL, decode just those, write a new pack.

Run it with ``./dev demo``. The packs under tests/data were written by the package iatro-base-iac.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa

import iac_query

DATA = Path(__file__).parent.parent / "tests" / "data"
NOTES = DATA / "notes.iac"
IMAGES = ("jxl_lossy", "jpeg_default", "htj2k_lossless_color", "jpegls_bits12")
LAYOUT = ("offset", "length", "crc32")

COHORT = f"""
    SELECT patient_id, site, written, note_id, record
    FROM iac_scan('{NOTES}')
    WHERE note_type = 'pathology' AND site = 'colon' AND written >= DATE '2024-06-01'
    ORDER BY patient_id, written
"""
IN_SQL = f"""
    SELECT site, count(*) AS notes,
           count(*) FILTER (iac_text(record) LIKE '%deep margin%') AS tumour_at_margin
    FROM iac_scan('{NOTES}') WHERE note_type = 'pathology' GROUP BY site ORDER BY site
"""


@contextmanager
def step(title: str) -> Iterator[None]:
    print(f"\n{title}")
    began = time.perf_counter()
    yield
    print(f"   [{(time.perf_counter() - began) * 1e3:.1f} ms]")


def show_packs() -> None:
    for name in ("notes", "brotli_default", "features_f32", *IMAGES):
        with iac_query.PackReader(DATA / f"{name}.iac") as pack:
            codec = pack.header.get("codec", "none")
            columns = [c for c in pack.index_table.column_names if c not in LAYOUT]
            print(f"   {name + '.iac':25} {len(pack):3} records, {codec:8}  {', '.join(columns)}")


def print_indented(text: str) -> None:
    print("   " + text.rstrip().replace("\n", "\n   "))


def print_query(query: str) -> None:
    print_indented(textwrap.dedent(query).strip().replace(f"{DATA}/", ""))


def print_notes(notes: pa.Table) -> None:
    for note in notes.to_pylist():
        text = f"{note['patient_id']}  {note['written']}  {note['payload']}"
        print(textwrap.fill(text, 100, initial_indent=" " * 3, subsequent_indent=" " * 20))


def write_cohort(path: Path, notes: pa.Table) -> None:
    """The decoded notes as a pack of their own."""
    iac_query.VariableRecordPack.build(
        path,
        payload_type="clinical_notes",
        slide_table=pa.table({"slide_idx": pa.array([0], pa.uint8()), "slide_id": ["cohort"]}),
        index_table=notes.select(["note_id", "patient_id", "written"]),
        objects=notes["payload"].cast(pa.large_binary()).to_pylist(),
        codec=iac_query.Codec.create("zstd", level=19),
    )


def read_back(path: Path, notes: pa.Table) -> None:
    rows = list(reversed(range(len(notes))))
    expected = [notes["payload"][row].as_py().encode() for row in rows]
    with iac_query.VariableRecordPack(path) as pack:
        assert [bytes(text) for text in pack.read_many_contiguous(rows)] == expected
    print(f"   iac_query reads the same {len(rows)} notes")
    try:
        from iatro import iac as peer
    except ImportError:
        return
    assert peer.VariableRecordPack(str(path)).read_many(rows) == expected
    print("   iatro-base-iac does, too")


def decode_images(con: Any) -> None:
    """Images of several codecs, in one query and one decode; a tensor where they are alike."""
    scans = " UNION ALL ".join(f"SELECT record FROM '{DATA / name}.iac'" for name in IMAGES)
    query = f"""
        SELECT i.height, i.width, i.channels, i.dtype, count(*) AS images
        FROM (SELECT iac_image(record) AS i FROM ({scans})) GROUP BY ALL ORDER BY ALL
    """
    print_indented(str(con.sql(query)))
    images = iac_query.decode(con.sql(scans))["payload"]
    print(f"   decode: {len(images)} images, {images.type}")
    tiles = con.sql(f"SELECT record FROM '{DATA / 'tiles_lossless.iac'}'")
    tensor = iac_query.decode(tiles, as_="tensor")["payload"].chunk(0)
    print(f"   as_='tensor': {tensor.to_numpy_ndarray().shape} {tensor.type.value_type}")


def command_line() -> None:
    """The same extension in DuckDB's own command line."""
    beside = Path(sys.executable).with_name("duckdb")
    binary = str(beside) if beside.exists() else shutil.which("duckdb")
    if binary is None:
        print("   the duckdb command is not installed here: pip install duckdb-cli")
        return
    load = f"LOAD '{files('iac_query') / 'iac.duckdb_extension'}';"
    query = " ".join(IN_SQL.split())
    print(f"   $ duckdb -unsigned -c \"LOAD '.../iac.duckdb_extension'; {query[:40]} ...\"")
    asked = [binary, "-unsigned", "-box", "-c", load, "-c", query]
    shown = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    print_indented(shown)


def main() -> None:
    pa.array([0])  # the first array makes pyarrow import pandas where there is one: not timed
    with step("1. Packs written by iatro-base-iac"):
        show_packs()

    con = iac_query.connect()
    with step("2. SQL picks rows; no payload is read"):
        print_query(COHORT)
        cohort = con.sql(COHORT).to_arrow_table()
        reference = cohort["record"][0].as_py()
        print(f"   -> {len(cohort)} rows; a record is pack, row {reference['row']} and a stamp")

    with step("3. iac_query.decode turns them into one contiguous column"):
        notes = iac_query.decode(cohort, as_="text")
        payload = notes["payload"]
        print(f"   payload: {payload.type}, {payload.num_chunks} chunk, {payload.nbytes} bytes")
        print_notes(notes)

    with step("4. Or SQL looks into them, with iac_text(record)"):
        print_query(IN_SQL)
        print_indented(str(con.sql(IN_SQL)))

    with step("5. Images: JPEG XL, JPEG, HTJ2K and JPEG-LS"):
        decode_images(con)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cohort.iac"
        with step("6. The cohort as a pack of its own"):
            write_cohort(path, notes)
            print(f"   cohort.iac, {path.stat().st_size:,} bytes, synced to disk")
        with step("7. Read back"):
            read_back(path, notes)

    with step("8. The same in the DuckDB command line"):
        command_line()


if __name__ == "__main__":
    main()
