"""Writing packs without what is damaged in them."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from tqdm import tqdm

from .._options import PathLike, shows_progress
from .._urls import is_url, local_path
from ..batch import ContiguousRecordBatch
from ..build import write_data, write_records
from ..decoding.rows import kept_rows
from ..errors import PackError
from ..pack import PackReader
from . import records
from ._validate import findings, report_of, rules_of
from .checked_pack import UNREADABLE, CheckedPack, Remains, reason_of
from .report import Finding, PackReport, bounded

__all__ = ["RepairReport", "repair"]

_COPY_BYTES = 8 << 20


@dataclass(frozen=True)
class RepairReport:
    """What :func:`repair` did.

    ``kept`` and ``dropped`` are numbers of records; ``source`` is what was found in the pack that
    was read, with its rows. ``changes`` says of rows of that pack, at most 100, what became of
    them where they are not simply gone: tiles of a slide that are background now.
    """

    out: str
    kept: int
    dropped: int
    source: PackReport
    changes: tuple[Finding, ...] = ()

    def to_table(self) -> pa.Table:
        """The findings as a table of pack, row, severity, check and reason."""
        return self.source.to_table()

    def __str__(self) -> str:
        errors = [finding for finding in self.source.findings if finding.severity == "error"]
        lines = [f"  {finding}" for finding in [*errors, *self.changes]]
        return "\n".join([f"{self.out}: {self.kept:,} records, {self.dropped:,} dropped", *lines])


def repair(
    path: PathLike,
    out: PathLike,
    overwrite: bool = False,
    *,
    workers: int | None = None,
    progress: bool | None = None,
) -> RepairReport:
    """Writes the pack at ``path`` to ``out`` without its damaged rows.

    Every record is decoded, as by ``validate(path, max_decode=0)``. A row with an error is left
    out: bytes that are not those of the crc32, do not decode or lie outside the data segment, a
    record that is not what its schema asks for, a slide that does not exist. All others keep their
    stored bytes, their order and their columns; header and slide table stay as they are, a slide
    without rows too. A pack without damage comes out equal. Else ``offset``, ``length`` and
    ``crc32`` are made anew, and bytes of no record are left out.

    * DICOM: instances go with all their frames, series without any go too, and counts of
      instances are made anew.
    * Whole slides: tiles that are left out are background, which ``changes`` says of each; images
      beside the raster go with their profiles and what the scanner metadata say of them.

    Raises PackError, and writes nothing, for what leaving out rows does not mend: a broken header
    or table, ids that repeat (which of them is right cannot be told), a whole slide without its
    scanner metadata or any whole tile, and a pack that would lose all records. PackNotFoundError
    and OSError for a file that cannot be read or written, FileExistsError where there is one and
    not ``overwrite``, ValueError for a URL, whose failures may pass, and for ``out`` being
    ``path``. The pack appears at ``out`` whole or not at all.
    """
    source, target = local_path(os.fsdecode(path)), local_path(os.fsdecode(out))
    if is_url(source):
        raise ValueError(f"{source}: only local packs are repaired, download it first")
    if not overwrite and os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, "there is a file, pass overwrite=True", target)
    with PackReader(source) as reader:
        if os.path.exists(target) and os.path.samefile(source, target):
            raise ValueError(f"{source}: out is the pack itself, write beside it")
        with _refusing(str(reader.package_path)):
            pack = CheckedPack(reader, workers)
        bar = None
        if shows_progress(progress):
            size = 2 * pack.header["data_length"]  # each record is checked, then copied
            bar = tqdm(total=size, unit="B", unit_scale=True, desc="repair")
            pack.advance = bar.update
        try:
            report, remains = _checked(pack)
            _write(pack, remains, target, overwrite)
        finally:
            if bar is not None:
                bar.close()
    out, records = os.path.abspath(target), len(pack)
    if remains is None:
        return RepairReport(out, records, 0, report)
    count = int(remains.kept.sum())
    changes, _, _ = bounded(remains.changes)
    return RepairReport(out, count, records - count, report, changes)


def _checked(pack: CheckedPack) -> tuple[PackReport, Remains | None]:
    """What is found in the pack, and what is left of it, None for all. Raises PackError for what
    cannot be repaired.
    """
    kept = np.ones(len(pack), bool)
    unmended: list[Finding] = []
    repeated: list[Finding] = []
    miscounted: list[Finding] = []

    def noted() -> Iterator[Finding]:
        for finding in findings(pack, 0, 0):
            if finding.severity == "error":
                if finding.check == "counts":
                    miscounted.append(finding)
                elif finding.row is None:
                    unmended.append(finding)
                elif finding.check == "ids":
                    repeated.append(finding)
                else:
                    kept[finding.row] = False
            yield finding

    report = report_of(pack, noted())
    unmended += [finding for finding in repeated if kept[finding.row]]
    if unmended:
        raise _refused(pack.path, str(unmended[0]))
    if kept.all() and not miscounted:
        return report, None
    with _refusing(pack.path):
        remains = rules_of(pack.payload_type).remains(pack, kept)
    if not remains.kept.any():
        raise _refused(pack.path, "no record is whole")
    return report, remains


@contextmanager
def _refusing(pack: str) -> Iterator[None]:
    """For work on tables that may lack what it needs."""
    try:
        yield
    except (KeyError, TypeError, *UNREADABLE) as error:
        raise _refused(pack, reason_of(error, pack)) from error


def _refused(pack: str, reason: str) -> PackError:
    error = PackError(f"{pack}: cannot be repaired: {reason}")
    error.pack = pack
    return error


def _write(pack: CheckedPack, remains: Remains | None, out: str, overwrite: bool) -> None:
    index = pack.reader.index_table
    if remains is None:
        slides = pack.reader.slide_table
        write_data(out, pack.header, slides, index, _data_segment(pack), overwrite=overwrite)
        return
    header, slides = remains.header, remains.slides
    index = kept_rows(index, remains.kept).combine_chunks()
    if pack.native.kind == "fixed":
        chunks = (batch.buffer for batch in _stored(pack, np.flatnonzero(remains.kept)))
        write_data(out, header, slides, index, chunks, overwrite=overwrite)
        return
    blocks = _blocks(pack, remains)
    write_records(out, header, slides, index, blocks, prefix=remains.prefix, overwrite=overwrite)


def _blocks(pack: CheckedPack, remains: Remains) -> Iterator[pa.LargeBinaryArray | list[bytes]]:
    """The payloads of the rows that are kept, those that are stored anew among them."""
    rows = np.flatnonzero(remains.kept)
    first = 0
    for row in [*sorted(remains.payloads), len(pack)]:
        for batch in _stored(pack, rows[(rows >= first) & (rows < row)]):
            yield batch.to_arrow()
        if row in remains.payloads:
            yield [remains.payloads[row]]
        first = row + 1


def _data_segment(pack: CheckedPack) -> Iterator[bytes]:
    length = pack.header["data_length"]
    for start in range(0, length, _COPY_BYTES):
        size = min(_COPY_BYTES, length - start)
        yield pack.reader.read_data_span(start, size)
        pack.advance(size)


def _stored(pack: CheckedPack, rows: npt.NDArray[np.int64]) -> Iterator[ContiguousRecordBatch]:
    lengths = np.zeros(len(pack), np.uint64)
    lengths[rows] = pack.native.locate(rows)[1]
    for piece in records.pieces(rows, lengths):
        yield pack.reader.read_payloads_contiguous(piece, workers=pack.workers)
        pack.advance(int(lengths[piece].sum()))
