"""Writing the rows of a query as a pack."""

from __future__ import annotations

import errno
import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from tqdm import tqdm

from .._matrix_header import matrix_header
from .._opening import PackOpener
from .._options import PathLike, checked_report, read_options, shows_progress
from .._slides import SLIDE_NAMES, key_name, part_slides
from .._tables import LAYOUT, normalised
from ..build import (
    codec_header,
    encoded_blocks,
    output_file,
    whole_header,
    write_data,
    write_records,
)
from ..codec import Codec, ImageCodec
from ..decoding.iter_decode import iter_decode
from ..decoding.kinds import Kind
from ..decoding.references import read_references
from ..decoding.rows import kept_rows, two_columns, whole
from ..errors import RecordFailure
from . import adapter_packs as adapters
from . import dicom_templates as dicom
from . import payloads
from .sources import Sources
from .stored_codecs import CODEC_ID

__all__ = ["write_pack"]

#: Of packs that say no other, as of COPY.
_PAYLOAD_TYPE = "records"
_CODEC = "zstd"

#: Stored bytes copied, and payloads encoded, at a time.
_COPY_BYTES = 16 << 20
_ENCODE_ROWS = 4096


def write_pack(
    result: Any,
    path: PathLike,
    codec: Codec | str | None = None,
    overwrite: bool = False,
    *,
    column: str = "record",
    payload: str = "payload",
    slide_columns: Sequence[str] | None = None,
    payload_type: str | None = None,
    extra_header: Mapping[str, Any] | None = None,
    workers: int | None = None,
    on_error: str = "raise",
    verify: bool = True,
    report: list[RecordFailure] | None = None,
    packs: Iterable[PathLike] | None = None,
    storage: Any = None,
    progress: bool | None = None,
) -> None:
    """Writes the rows of a query as a pack, in their order.

    ``result`` is what :func:`decode` takes. The column ``column`` refers to records, which are
    copied as they are stored, or the column ``payload`` has what is to be encoded; one of the two.
    All other columns become the tables.

    Copied records keep their codecs, each its own where they differ (then the header says
    ``record_codecs`` and the index ``codec_id``); rows of matrices of one dtype and length become
    a matrix pack. With ``codec`` they are decoded and encoded anew, but for those that are stored
    just so. The header is that of the packs referred to, as far as they agree. A cohort out of an
    adapter's packs stays such a pack, or the ValueError says why not and what to do.

    Payloads are bytes or text (``codec`` None is ``"zstd"``), images as ``decode`` gives them
    (which need a codec of images), or vectors (a matrix pack).

    * ``codec``: a :class:`Codec` or its name.
    * ``overwrite``: replace a file that is there.
    * ``slide_columns``: columns of the slide table, which has one row for each slide used; None for
      slide_id, patient_id, specimen_id, study_uid and series_uid and what else the packs referred
      to have there; [] for no slides. ``slide_idx``, else ``series_idx``, numbers the slides; where
      several packs use one number for different slides they are numbered anew.
    * ``payload_type``, ``extra_header``: fields of the header that go over the others; how records
      are stored is not for them to say.
    * ``on_error``: ``"raise"``, or ``"skip"`` to leave out records that cannot be had, which reads
      all of them once more beforehand. ``report`` collects them.
    * ``workers``, ``verify``, ``packs``, ``storage``: as :func:`decode`.
    * ``progress``: show a bar; None for where there is a terminal.

    In memory are the tables, and some 100 MB of records (or one, where it is larger). The pack
    appears whole or not at all; after an error or an interrupt an old file is as it was.

    Raises FileExistsError; the errors of ``decode`` for records; ValueError for a NULL among
    references or payloads, for references to no record at all, and for tables, headers and codecs
    that do not go together; KeyError without either column; OSError when the file cannot be
    written.
    """
    if on_error not in ("raise", "skip"):
        raise ValueError(f"on_error is {on_error!r}, expected 'raise' or 'skip'")
    read_options(True, workers, verify, on_error)
    checked_report(report)
    target = output_file(path)
    if not overwrite and os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, "there is a file, pass overwrite=True", os.fspath(path))
    if isinstance(codec, str):
        codec = Codec.create(codec)
    table = whole(result).table()
    table = _checked_columns(table, column, payload)
    reading = {"workers": workers, "verify": verify, "storage": storage}
    once = packs is None or isinstance(packs, str | os.PathLike)
    reading["packs"] = packs if once else list(packs)  # several readers go through it
    header = dict(extra_header or {})
    if "payload_type" in header:
        payload_type = header.pop("payload_type")
        if payload_type is None:
            raise ValueError("extra_header has payload_type None: leave it out")
    job = _Job(path, overwrite, slide_columns, payload_type, header, progress)
    if payload in table.column_names:
        _encode(job, table, payload, codec, workers)
        return
    if on_error == "skip":
        table = _without_failures(table, column, codec, reading, report)
    _copy(job, table, column, codec, reading)


def _checked_columns(table: pa.Table, column: str, payload: str) -> pa.Table:
    """The table. Raises KeyError and ValueError for columns that are missing or too many."""
    names = table.column_names
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(two_columns(twice))
    if column in names and payload in names:
        raise ValueError(
            f"there is {column!r}, records to be copied, and {payload!r}, to be encoded: leave one "
            "of them out"
        )
    if column not in names and payload not in names:
        raise KeyError(f"no column {column!r} and no {payload!r}, there are {names}")
    return table


def _without_layout(table: pa.Table) -> pa.Table:
    """Without the three layout columns of an index table, which are made anew.

    Raises ValueError for a column that only has the name of one.
    """
    layout = [name for name in LAYOUT if name in table.column_names]
    if 0 < len(layout) < len(LAYOUT):
        raise ValueError(
            f"a column is called {layout[0]!r}, which is where the pack says how records are "
            "stored: leave it out, or give it another name"
        )
    return table.drop_columns(layout)


@dataclass
class _Job:
    """What is to be written, and where."""

    path: PathLike
    overwrite: bool
    slide_columns: Sequence[str] | None
    payload_type: str | None
    extra_header: dict[str, Any]
    progress: bool | None

    def tables(
        self,
        table: pa.Table,
        header: dict[str, Any],
        slide_names: Iterable[str] = (),
        source: npt.NDArray[np.int64] | None = None,
    ) -> tuple[pa.Table, pa.Table]:
        """The slide and the index table of a pack with that header."""
        payload_type = str(header["payload_type"])
        table = normalised(table)
        chosen = self.slide_columns
        placeholders = adapters.placeholder_columns(payload_type)
        if placeholders is not None:
            chosen = []
            table = table.drop_columns([n for n in placeholders if n in table.column_names])
        elif chosen is None:
            known = {*SLIDE_NAMES, *slide_names}
            chosen = [name for name in table.column_names if name in known]
        chosen = self._checked_slide_columns(chosen, table.column_names)
        slides, index = part_slides(table, chosen, source)
        return adapters.conform(payload_type, header, slides, index)

    @staticmethod
    def _checked_slide_columns(chosen: Sequence[str], names: list[str]) -> list[str]:
        if isinstance(chosen, str):
            raise TypeError(f"slide_columns is {chosen!r}, expected a list of names")
        for name in chosen:
            if name not in names:
                raise ValueError(f"slide_columns names {name!r}, which is no column")
        return [name for name in dict.fromkeys(chosen) if name != key_name(names)]

    def header(
        self, storing: Mapping[str, Any], kept: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """How records are stored over the ``kept`` fields of other packs, the caller's over all."""
        header = {"payload_type": _PAYLOAD_TYPE, **(kept or {}), **storing}
        if self.payload_type is not None:
            header["payload_type"] = self.payload_type
        return whole_header(header, self.extra_header)

    def shown(self, blocks: Iterable[Any], records: int) -> Generator[Any, None, None]:
        """The blocks, with a bar that says how many records are done."""
        if not shows_progress(self.progress):  # without the thread that tqdm has for all its bars
            yield from blocks
            return
        with tqdm(total=records, unit=" records", desc="write_pack") as bar:
            for block in blocks:
                yield block
                bar.update(len(block))


# Payloads


def _encode(
    job: _Job, table: pa.Table, payload: str, codec: Codec | None, workers: int | None
) -> None:
    column = table[payload]
    if column.null_count:
        row = column.is_null().index(True).as_py()
        raise ValueError(f"row {row}: the {payload} is NULL, every row must have one")
    table = table.drop_columns([payload])
    images = payloads.is_images(column.type)
    if len(payloads.shape_of(column.type)) == 1 and (codec is None or codec.name == Codec.NONE):
        _write_matrix(job, table, column)
        return
    if not images and not payloads.is_bytes(column.type):
        raise TypeError(f"payloads are {column.type}, expected bytes, text, images or vectors")
    if images and codec is None:
        raise ValueError("payloads are images: name a codec of images, such as 'jpeg2000'")
    codec = codec or Codec.create(_CODEC)
    _check_kind(codec, images, "payloads")
    objects = payloads.images if images else payloads.records
    starts = range(0, len(column), _ENCODE_ROWS)
    parts = (objects(column.slice(start, _ENCODE_ROWS)) for start in starts)
    blocks = _encoded(codec, parts, workers)
    header = job.header(codec_header(codec))
    slides, index = job.tables(_without_layout(table), header)
    shown = job.shown(blocks, table.num_rows)
    write_records(job.path, header, slides, index, shown, overwrite=job.overwrite)


def _write_matrix(job: _Job, table: pa.Table, column: pa.ChunkedArray) -> None:
    (dim,) = payloads.shape_of(column.type)
    dtype = np.dtype(payloads.value_type(column.type).to_pandas_dtype())
    if dtype.kind not in "biufc":
        raise TypeError(f"payloads are {column.type}, expected vectors of numbers or booleans")
    header = job.header({"codec": Codec.NONE, **matrix_header(dim, dtype)})
    slides, index = job.tables(table, header)
    chunks = (payloads.matrix_bytes(chunk) for chunk in column.chunks)
    write_data(job.path, header, slides, index, chunks, overwrite=job.overwrite)


def _encoded(
    codec: Codec, parts: Iterable[Sequence[Any]], workers: int | None
) -> Iterator[list[bytes]]:
    for part in parts:
        yield from encoded_blocks(codec, part, workers)


def _check_kind(codec: Codec, images: bool, what: str) -> None:
    """Raises ValueError where a built-in codec does not encode such payloads."""
    if not hasattr(codec, "_native") or isinstance(codec, ImageCodec) == images:
        return
    kinds = ("images", "bytes") if images else ("bytes", "images")
    raise ValueError(f"{what} are {kinds[0]}, codec {codec.name!r} is one of {kinds[1]}")


# References


def _without_failures(
    table: pa.Table,
    column: str,
    codec: Codec | None,
    reading: dict[str, Any],
    report: list[RecordFailure] | None,
) -> pa.Table:
    """The rows whose records can be had: all are read once, since the number of rows must be known
    before the first is written.
    """
    failures: list[RecordFailure] = []
    as_ = "stored" if codec is None else None
    rows = table.select([column])
    options = {**reading, "on_error": "skip", "report": failures, "prefetch": 0}
    for _ in _read(rows, as_, options):
        pass
    if report is not None:
        report.extend(failures)
    kept = np.ones(table.num_rows, dtype=bool)
    kept[[failure.position for failure in failures]] = False
    return kept_rows(table, kept)


def _copy(
    job: _Job, table: pa.Table, column: str, codec: Codec | None, reading: dict[str, Any]
) -> None:
    references = read_references(table[column])
    opener = PackOpener(reading["packs"], reading["storage"])
    sources = Sources(references, opener)
    records, table = table.select([column]), table.drop_columns([column])
    if not sources.paths:
        raise ValueError(
            "the result refers to no record, so nothing says of which kind and codec the pack is "
            "to be: nothing is written"
        )
    kept = sources.header()
    if adapters.is_known(kept.get("payload_type")) and job.payload_type not in (
        None,
        kept["payload_type"],
    ):
        kept = {}  # nothing of it holds for a pack of another kind
    slide_names = sources.slide_names()
    if kept.get("payload_type") == dicom.PAYLOAD_TYPE and len(sources.paths) > 1:
        raise adapters.refusal(dicom.PAYLOAD_TYPE, "it holds one patient, write one for each pack")
    if sources.matrices:
        if codec is not None and codec.name != Codec.NONE:
            raise ValueError(f"rows of matrices have no codec, codec is {codec.name!r}")
        matrix = matrix_header(*sources.shape())
        if any("codec" in header for header in sources.headers):  # it may be left out
            matrix["codec"] = Codec.NONE
        header = job.header(matrix, kept)
        slides, index = job.tables(table, header, slide_names, sources.source)
        parts = _stored(records, reading)
        with closing(parts), closing(job.shown(parts, table.num_rows)) as shown:
            chunks = map(payloads.joined_bytes, _chunks(shown))
            write_data(job.path, header, slides, index, chunks, overwrite=job.overwrite)
        return
    table = _without_layout(table)
    if CODEC_ID in table.column_names and sources.have_codec_ids:
        table = table.drop_columns([CODEC_ID])  # it is of those packs
    ids = None
    if codec is None:
        coding, ids = sources.codecs.header()
        blocks = _chunks(_stored(records, reading))
    else:
        coding = codec_header(codec)
        blocks = _transcoded(records, codec, sources, reading)
    header = job.header(coding, kept)
    if ids is not None:
        if CODEC_ID in table.column_names:
            raise ValueError(
                f"a column is called {CODEC_ID!r}, which is where the pack says how records of "
                "several codecs are stored: give it another name, or name one codec"
            )
        table = table.append_column(CODEC_ID, pa.array(ids, pa.uint8()))
    slides, index = job.tables(table, header, slide_names, sources.source)
    prefix = b""
    if header["payload_type"] == dicom.PAYLOAD_TYPE:
        prefix, slides = dicom.templates(opener.open(sources.paths[0]), slides, index)
        header = dicom.header(header, prefix)
    # Whatever happens to the pack, nobody goes on reading for it.
    with closing(blocks), closing(job.shown(blocks, table.num_rows)) as shown:
        write_records(
            job.path, header, slides, index, shown, prefix=prefix, overwrite=job.overwrite
        )


def _stored(records: pa.Table, reading: dict[str, Any]) -> Generator[pa.ChunkedArray, None, None]:
    """What references stand for as it is stored, some at a time and the next ones meanwhile."""
    return _read(records, "stored", {**reading, "batch_bytes": _COPY_BYTES, "prefetch": 1})


def _chunks(parts: Iterable[pa.ChunkedArray]) -> Generator[pa.Array, None, None]:
    return (chunk for part in parts for chunk in part.chunks)


def _read(
    records: pa.Table, as_: Kind | None, options: dict[str, Any]
) -> Generator[pa.ChunkedArray, None, None]:
    (column,) = records.column_names
    into = f"{column}_read"
    for batch in iter_decode(records, as_=as_, column=column, into=into, **options):
        yield batch[into]


def _transcoded(
    records: pa.Table, codec: Codec, sources: Sources, reading: dict[str, Any]
) -> Generator[list[Any] | pa.Array, None, None]:
    """Records of a codec, encoded anew where they are not stored with it already."""
    same = sources.codecs.stored_by(codec)
    if same.all():
        yield from _chunks(_stored(records, reading))
        return
    images = sources.images[~same]
    for kind in np.unique(images).tolist():
        _check_kind(codec, kind, "records")
    objects = payloads.images if images.all() else payloads.records
    to_encode = _read(kept_rows(records, ~same), None, {**reading, "prefetch": 1})
    to_copy = _stored(kept_rows(records, same), reading)
    with closing(to_encode), closing(to_copy):
        parts = map(objects, to_encode)
        encoded = chain.from_iterable(_encoded(codec, parts, reading["workers"]))
        stored = chain.from_iterable(map(payloads.records, to_copy))
        for is_same in same.tolist():
            yield [next(stored if is_same else encoded)]
