"""Packs of DICOM instances as iatro-iac-adapters builds them, and ones made wrong on purpose."""

from __future__ import annotations

import functools
import json
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pydicom
from iatro.iac.adapters import dicom as peer
from packs import DATA, replaced, segments_of
from pydicom.data import get_testdata_file

import iac_query as iac

PEER = DATA / "dicom_patient.iac"
SERIES = DATA / "series.iac"
ZSTD = iac.Codec.create("zstd", level=3)

#: Files of pydicom that the peer stores, each for what is odd about it.
FILES = (
    "CT_small.dcm",  # signed
    "MR_small.dcm",
    "examples_overlay.dcm",  # much inline binary
    "examples_rgb_color.dcm",
    "test-SR.dcm",  # deep sequences, no pixels
    "reportsi.dcm",
    "rtplan.dcm",
    "waveform_ecg.dcm",
    "reportsi_with_empty_number_tags.dcm",
    "SC_rgb_small_odd.dcm",
)


@functools.cache
def file_of(name: str) -> Path:
    return Path(get_testdata_file(name, download=False))


def build(path: Path, *sources: Any) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer.build_dicom_patient_package_from_files(
            list(sources), path, effort=1, workers=1, overwrite=True
        )
    return path


def dataset(pack: Path, row: int) -> pydicom.Dataset:
    """What the peer's reader makes of a row."""
    raw = peer.DicomPatientReader(pack).read_dicom(row, verify=True)
    return pydicom.dcmread(pydicom.filebase.DicomBytesIO(raw))


def pixel_arrays(pack: Path) -> list[np.ndarray | None]:
    """By the peer's reader."""
    reader = peer.DicomPatientReader(pack)
    there = reader.instance_table["has_pixel_data"].to_pylist()
    return [reader.read_pixel_array(row) if has else None for row, has in enumerate(there)]


def column(con, pack: Path, what: str) -> list:
    return [x for (x,) in con.sql(f"SELECT {what} FROM '{pack}' ORDER BY record.row").fetchall()]


def header_of(pack: Path, row: int) -> dict[str, Any]:
    """The delta of a row."""
    with iac.PackReader(pack) as reader:
        stored = reader.read_index_table(["dicom_delta"])["dicom_delta"][row].as_py()
    return json.loads(ZSTD.decode(stored))


def encoded(value: Any) -> bytes:
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return ZSTD.encode(text)


def rewritten(
    source: Path,
    path: Path,
    *,
    index: Callable[[pa.Table], pa.Table] = lambda table: table,
    series: Callable[[pa.Table], pa.Table] = lambda table: table,
    header: dict[str, Any] | None = None,
    more: bytes = b"",
) -> Path:
    """A copy of a pack with other tables and header fields, and more data behind its own."""
    fields, slides, rows, data = segments_of(source)
    kept = {
        key: value
        for key, value in fields.items()
        if not key.endswith(("_offset", "_length")) or key.startswith("metadata")
    }
    iac.build_pack_data_segment(
        path,
        {**kept, **(header or {})},
        series(pa.ipc.open_stream(slides).read_all()),
        index(pa.ipc.open_stream(rows).read_all()),
        data + more,
        overwrite=True,
    )
    return path


def with_delta(row: int, value: Any) -> Callable[[pa.Table], pa.Table]:
    """A change of the delta of a row, with the crc32 that belongs to it."""
    stored = encoded(value)

    def change(table: pa.Table) -> pa.Table:
        table = replaced("dicom_delta", row, stored)(table)
        return replaced("dicom_delta_crc32", row, zlib.crc32(stored))(table)

    return change


def with_template(pack: Path, path: Path, value: Any) -> Path:
    """A copy whose first series has another template, which lies behind all other data."""
    stored = encoded(value)
    at = segments_of(pack)[0]["data_length"]

    def series(table: pa.Table) -> pa.Table:
        table = replaced("template_offset", 0, at)(table)
        table = replaced("template_length", 0, len(stored))(table)
        return replaced("template_crc32", 0, zlib.crc32(stored))(table)

    return rewritten(
        pack, path, series=series, header={"metadata_length": at + len(stored)}, more=stored
    )
