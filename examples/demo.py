"""The main job, start to end: a cohort out of many packs, as a table, a picture and a new pack.

Run it with ``./dev demo``. The packs are made by hospital.py and stay in build/demo, to be played
with; the query is cohort.sql.
"""

from __future__ import annotations

import contextlib
import shlex
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl
from contact_sheet import contact_sheet
from hospital import build_hospital
from iac_query.adapters.tiles import TilePackageReader

import iac_query

EXAMPLES = Path(__file__).parent
DATA = EXAMPLES.parent / "tests" / "data"
QUERY = (EXAMPLES / "cohort.sql").read_text(encoding="utf-8")
ACROSS = (files("iac_query") / "sql/queries/across_modalities.sql").read_text(encoding="utf-8")
SHOWN = "SELECT patient_id, tile_id, round(similarity, 3) AS similarity FROM cohort"


@contextlib.contextmanager
def step(title: str) -> Iterator[None]:
    print(f"\n{title}\n")
    began = time.perf_counter()
    yield
    print(f"\n   [{(time.perf_counter() - began) * 1e3:,.0f} ms]")


def show(thing: Any) -> None:
    print(textwrap.indent(str(thing).rstrip(), "   "))


def show_packs(con: Any, packs: str | list[str]) -> None:
    query = """
        SELECT parse_filename(path) AS pack, payload_type, coalesce(codec, 'none') AS codec,
               num_records AS records, file_size AS bytes
        FROM iac_info(?)
    """
    show(con.sql(query, params=[packs]))


def read_with_the_other_package(pack: str) -> None:
    """Packs are exchanged with iatro-iac-adapters in both directions."""
    try:
        from iatro.iac.adapters.tiles import TilePackageReader as OtherReader
    except ImportError:
        return
    rows = range(12)
    with TilePackageReader(pack) as ours:
        expected = ours.read_batch(rows)
    assert (expected == OtherReader(pack).read_arrays_at(rows)).all()
    show("iatro-iac-adapters reads it, too, and sees the same pixels.")


def quoted(word: str) -> str:
    """A word as a shell takes it, better to read than what shlex makes of single quotes."""
    return f'"{word}"' if "'" in word else shlex.quote(word)


def command_line() -> None:
    """The same query in DuckDB's own command line."""
    beside = Path(sys.executable).with_name("duckdb")
    binary = str(beside) if beside.exists() else shutil.which("duckdb")
    if binary is None:
        show("The duckdb command is not installed here: pip install duckdb-cli")
        return
    package = files("iac_query")
    prepare = [
        f"LOAD '{package / 'iac.duckdb_extension'}'",
        f".read '{package / 'sql' / 'macros.sql'}'",
        f".read '{EXAMPLES / 'cohort.sql'}'",
    ]
    command = [binary, "-unsigned", "-no-init", "-box"]
    command += [part for line in prepare for part in ("-cmd", line)]
    command += ["-c", f"{SHOWN} LIMIT 3"]
    shown = " ".join(map(quoted, command)).replace(" -c", " \\\n    -c")
    show(f"$ cd {quoted(str(Path.cwd()))}\n$ {shown}")
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr)
    show(run.stdout)


def tell(folder: Path) -> None:
    con = iac_query.connect()  # DuckDB with the extension loaded

    with step("1. A small hospital: notes, tiles, features and DICOM scans of made-up patients"):
        build_hospital(folder)
        show_packs(con, ["notes.iac", "tiles.iac", "features.iac", "scans/P001.iac"])

    with step("2. SQL picks tiles by what notes say, by a table of labels, and by features"):
        show(QUERY)
        con.execute(QUERY)
        show(con.sql(SHOWN))

    with step("3. Just those tiles are decoded, into one tensor"):
        tiles = iac_query.decode(con.sql("FROM cohort"), as_="tensor")
        images = tiles["payload"].chunk(0).to_numpy_ndarray()
        show(f"payload: {images.shape} {images.dtype}")
        names, likeness = (tiles[name].to_pylist() for name in ("patient_id", "similarity"))
        labels = [f"{name} {like:.2f}" for name, like in zip(names, likeness, strict=True)]
        contact_sheet(images, labels).save(folder / "cohort.png")
        show(f"contact sheet: {folder / 'cohort.png'}")

    with step("4. The cohort as a pack of its own: stored bytes are copied, not encoded again"):
        iac_query.write_pack(con.sql("FROM cohort"), "cohort.iac", overwrite=True)
        show_packs(con, "cohort.iac")
        read_with_the_other_package("cohort.iac")

    with step("5. The same pack in Polars, with what the notes of these patients say"):
        cohort = iac_query.scan_iac("cohort.iac").group_by("patient_id").agg(tiles=pl.len())
        docs = iac_query.scan_iac("notes.iac").join(cohort, on="patient_id")
        docs = docs.select("patient_id", "tiles", doc=pl.col("record").iac.docs()).explode("doc")
        reports = docs.unnest("doc").filter(pl.col("doc_type") == "pathology")
        with pl.Config(tbl_hide_dataframe_shape=True, fmt_str_lengths=80):
            show(reports.select("patient_id", "tiles", "text").sort("patient_id").collect())

    with step("6. Across modalities: notes, tiles and thin CT slices, in a pack for each patient"):
        con.execute("CREATE TEMP TABLE labels AS FROM 'labels.csv'")
        asked = {"notes": "notes.iac", "word": "invasion is present", "tiles": "tiles.iac"}
        asked |= {"tissue": "tumour", "scans": "scans/*.iac", "thickness": 3}
        for name, value in asked.items():
            con.execute(f"SET VARIABLE {name} = ?", [value])
        show(ACROSS)
        show(con.sql(ACROSS))

    with step("7. The first query in the DuckDB command line"):
        command_line()

    with step("8. Packs that iatro-base-iac wrote: JPEG XL, JPEG, HTJ2K and JPEG-LS"):
        names = ("jxl_lossy", "jpeg_default", "htj2k_lossless_color", "jpegls_bits12")
        packs = [f"{DATA / name}.iac" for name in names]
        show_packs(con, packs)
        images = iac_query.decode(iac_query.scan_arrow(packs, columns=["record"]))["payload"]
        show(f"payload: {len(images)} images, {images.type}")


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.chdir(folder):
        tell(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1] if sys.argv[1:] else EXAMPLES.parent / "build" / "demo").absolute())
