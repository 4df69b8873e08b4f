"""Packs of records that are made, encoded and written as they come."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any

import pyarrow as pa
from tqdm import tqdm

from .._options import PathLike, worker_count
from ..build import build_variable_from_payloads, output_file
from ..codec import ByteCodec, Codec
from ._parallel import in_order


def build_encoded(
    output_path: PathLike,
    *,
    payload_type: str,
    slide_table: pa.Table,
    index_schema: pa.Schema,
    records: Iterable[tuple[Mapping[str, Any], bytes]],
    codec: Codec,
    extra_header: Mapping[str, Any],
    overwrite: bool,
    workers: int | None,
    progress: tqdm[Any],
) -> None:
    """Writes a pack of ``records``: of each its row of the index and its decoded bytes.

    They are encoded by ``workers`` threads; few are held at a time. Since the tables come first in
    a pack, encoded records wait in a file without a name in the output's folder. ``progress``
    counts them, and is closed.
    """
    worker_count(workers)
    path = output_file(output_path)
    refuse_existing(path, overwrite)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    index: dict[str, list[Any]] = {name: [] for name in index_schema.names}

    def objects() -> Iterator[bytes]:
        for row, data in records:
            for name, values in index.items():
                values.append(row[name])
            yield data

    with progress, tempfile.TemporaryFile(dir=os.path.dirname(path)) as waiting:
        lengths = []
        for payload in encoded_in_order(codec, objects(), workers):
            waiting.write(payload)
            lengths.append(len(payload))
            progress.update()
        waiting.seek(0)
        build_variable_from_payloads(
            output_path,
            payload_type=payload_type,
            slide_table=slide_table,
            index_table=pa.table(index, index_schema),
            payloads=_pieces(waiting, lengths),
            codec_name=codec.name,
            codec_params=codec.parameters(),
            extra_header=extra_header,
            overwrite=overwrite,
        )


def refuse_existing(path: str, overwrite: bool) -> None:
    """Finds out before the work what writing would find out behind it."""
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path}: is a folder")
    if not overwrite and os.path.lexists(path):
        raise FileExistsError(f"{path}: pack already exists, pass overwrite=True to replace it")


def encoded_in_order(codec: Codec, objects: Iterable[Any], workers: int | None) -> Iterator[bytes]:
    """The payloads of ``objects``, in order. A registered codec works through them serially."""
    return in_order(codec.encode, objects, workers if isinstance(codec, ByteCodec) else 1)


def _pieces(file: IO[bytes], lengths: Iterable[int]) -> Iterator[bytes]:
    for length in lengths:
        yield file.read(length)
