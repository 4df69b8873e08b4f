"""Packs of every schema with rules, and packs made of them with one thing changed."""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from iac_query.adapters.features import build_teacher_feature_package
from iac_query.adapters.tiles import build_tile_package_from_arrays
from packs import replaced, segments_of, write_encoded
from patients import PAIR, TEXT, make, some_patients
from tile_data import files_in, images_of, records_of

import iac_query as iac

COUNT = 6


def tiles(path: Path) -> Path:
    build_tile_package_from_arrays(
        records_of(COUNT), images_of(COUNT), path, lossless=True, effort=1, overwrite=True
    )
    return path


def extended_tiles(path: Path) -> Path:
    images = images_of(COUNT, 0, np.uint16)
    codec = iac.Codec.create("jpegls")
    build_tile_package_from_arrays(
        records_of(COUNT), images, path, extended=True, codec=codec, overwrite=True
    )
    return path


def features(path: Path, **options: Any) -> Path:
    matrix = np.arange(COUNT * 4, dtype=np.float64).reshape(COUNT, 4)
    build_teacher_feature_package(
        records_of(COUNT), matrix, path, "teacher", overwrite=True, **options
    )
    return path


def extended_features(path: Path) -> Path:
    return features(path, dtype="float64", extended=True)


def text(path: Path) -> Path:
    TEXT.build(path, make(TEXT, some_patients(TEXT, COUNT)), quality=1, overwrite=True)
    return path


def text_pair(path: Path) -> Path:
    PAIR.build(path, make(PAIR, some_patients(PAIR, COUNT)), codec="zstd", overwrite=True)
    return path


def unknown(path: Path) -> Path:
    return write_encoded(path, [f"record {i}".encode() * 9 for i in range(COUNT)], "zstd")


#: Every schema with rules, and one without.
SCHEMAS: dict[str, Callable[[Path], Path]] = {
    "image_tiles": tiles,
    "image_tiles_extended": extended_tiles,
    "teacher_features": features,
    "teacher_features_extended": extended_features,
    "clinical_text": text,
    "clinical_text_pair": text_pair,
    "bytes": unknown,
}
VARIABLE = [name for name in SCHEMAS if not name.startswith("teacher")]


def changed(
    path: Path,
    *,
    index: Callable[[pa.Table], pa.Table] = lambda table: table,
    slides: Callable[[pa.Table], pa.Table] = lambda table: table,
    data: bytes | None = None,
    drop: tuple[str, ...] = (),
    **header: Any,
) -> Path:
    """The pack with other tables, data or header fields, and without those of ``drop``."""
    with iac.PackReader(path) as reader:
        fields = {name: value for name, value in reader.header.items() if name not in drop}
        tables = slides(reader.slide_table), index(reader.index_table)
    data = segments_of(path)[3] if data is None else data
    iac.build_pack_data_segment(path, {**fields, **header}, *tables, data, overwrite=True)
    return path


def several(*cells: tuple[str, int, Any]) -> Callable[[pa.Table], pa.Table]:
    """A change of several values of a table: column, row and value of each."""

    def change(table: pa.Table) -> pa.Table:
        for cell in cells:
            table = replaced(*cell)(table)
        return table

    return change


def with_payload(path: Path, row: int, payload: bytes) -> Path:
    """The pack with other stored bytes for one row, and a crc32 that is theirs."""
    with iac.PackReader(path) as reader:
        payloads = reader.read_payloads(range(len(reader)))
        header, slides, index = reader.header, reader.slide_table, reader.index_table
    payloads[row] = payload
    iac.build_pack(path, header, slides, index, payloads, overwrite=True)
    assert zlib.crc32(payload) == iac.PackReader(path).index_table["crc32"][row].as_py()
    return path


def errors_of(path: Any, **options: Any) -> list[tuple[int | None, str, str]]:
    """Row, check and reason of every error, all records looked at."""
    options = {"max_decode": 0, "progress": False, **options}
    found = iac.validate(path, **options).findings
    return [(f.row, f.check, f.reason) for f in found if f.severity == "error"]


def refused(path: Path, reason: str) -> None:
    """Repair raises PackError, and leaves nothing and an old file as it was."""
    folder = path.parent / "new"
    folder.mkdir(exist_ok=True)
    with pytest.raises(iac.PackError, match=reason):
        iac.repair(path, folder / "out.iac")
    assert files_in(folder) == set()
    (folder / "out.iac").write_bytes(b"old")
    with pytest.raises(iac.PackError, match=reason):
        iac.repair(path, folder / "out.iac", overwrite=True)
    assert files_in(folder) == {"out.iac"} and (folder / "out.iac").read_bytes() == b"old"
    shutil.rmtree(folder)
