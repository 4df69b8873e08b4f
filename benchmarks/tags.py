"""Headers of 10,000 DICOM instances: from a pack in SQL, and parsed from their files by pydicom.

The files are a CT slice's of pydicom without its pixels, in memory; the pack is the one that
iatro-iac-adapters builds from them. pydicom is asked for no more than the SQL is: the header, as
JSON text or one element of it. It parses every tenth file, and its time is counted ten times.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from io import BytesIO
from pathlib import Path

import pydicom
from iatro.iac.adapters.dicom import build_dicom_patient_package_from_files
from pydicom.data import get_testdata_file

import iac_query

from ._measure import interleaved, print_table

INSTANCES = 10_000
SERIES = 25
SAMPLED = 10  # one file in so many is parsed by pydicom
TARGET = 20  # times as fast as pydicom


def files(count: int) -> Iterator[bytes]:
    ds = pydicom.dcmread(get_testdata_file("CT_small.dcm"))
    del ds.PixelData
    for number in range(count):
        ds.SOPInstanceUID = ds.file_meta.MediaStorageSOPInstanceUID = f"1.2.3.{number}"
        ds.SeriesInstanceUID = f"1.2.4.{number % SERIES}"
        ds.InstanceNumber = number // SERIES
        ds.SliceLocation = number / 4
        ds.ImagePositionPatient = [-158.1, -179.0, number / 4]
        ds.ContentTime = f"1119{number % 60:02}.{number:06}"
        buffer = BytesIO()
        ds.save_as(buffer)
        yield buffer.getvalue()


def headers(sources: list[bytes]) -> int:
    read = (pydicom.dcmread(BytesIO(source)) for source in sources)
    return sum(len(ds.to_json(1 << 40)) for ds in read)


def elements(sources: list[bytes]) -> float:
    tags = ["SliceThickness"]
    read = (pydicom.dcmread(BytesIO(source), specific_tags=tags) for source in sources)
    return sum(float(ds.SliceThickness) for ds in read)


def parsed(sources: list[bytes]) -> int:
    return sum(len(pydicom.dcmread(BytesIO(source))) for source in sources)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, iac_query.connect() as con:
        sources = list(files(INSTANCES))
        pack = Path(folder) / "ct.iac"
        build_dicom_patient_package_from_files(sources, pack, workers=1)
        sources = sources[::SAMPLED]

        def sql(what: str) -> object:
            return con.sql(f"SELECT sum({what}) FROM '{pack}'").fetchall()

        timings = interleaved(
            {
                "pydicom: dcmread": partial(parsed, sources),
                "pydicom: dcmread and to_json": partial(headers, sources),
                "pydicom: dcmread of one tag": partial(elements, sources),
                "iac_tags": partial(sql, "strlen(iac_tags(record))"),
                "iac_tag": partial(sql, "iac_tag(record, 'SliceThickness')::DOUBLE"),
            },
            rounds=3,
        )
    pairs = [
        ("pydicom: dcmread", "iac_tags"),
        ("pydicom: dcmread and to_json", "iac_tags"),
        ("pydicom: dcmread of one tag", "iac_tag"),
    ]
    print_table(
        f"headers of {INSTANCES:,} DICOM instances in {SERIES} series",
        ["", "s", "SQL", "SQL s", "times as fast", "target"],
        [
            [
                name,
                timings.median(name) * SAMPLED,
                ours,
                timings.median(ours),
                timings.ratio(name, ours) * SAMPLED,
                TARGET if ours == "iac_tags" else "-",
            ]
            for name, ours in pairs
        ],
    )


if __name__ == "__main__":
    main()
