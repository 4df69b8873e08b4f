"""Checking packs."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from tqdm import tqdm

from .._options import PathLike, shows_progress, worker_count
from .._urls import is_url
from ..codec import Codec
from ..errors import PackNotFoundError
from ..pack import PackReader
from ..scanning.files import PackFile, pack_files
from . import container, records
from .checked_pack import UNREADABLE, CheckedPack, Rules, reason_of
from .report import Finding, PackReport, ValidationReport, bounded

__all__ = ["validate"]


def validate(
    path: PathLike | Iterable[PathLike],
    max_decode: int = 8,
    max_crc: int = 0,
    *,
    workers: int | None = None,
    progress: bool | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> ValidationReport:
    """Checks packs, and reports all that is wrong with them.

    ``path`` is a pack, a folder whose ``.iac`` files are meant, those in its folders included, a
    pattern as :func:`scan_iac` has it, a URL, or a list of these.

    Looked at are header and tables; where every record is stored; crc32s and a sample of decoded
    records; and of the adapters' packs what their schemas ask for: columns, unique ids, slides that
    exist, sizes of images, documents, headers of DICOM instances, the grid of a whole slide. Of
    packs of another type a note says that their schema is not known.

    * ``max_decode``: records of a pack to decode, spread evenly; 0 for all.
    * ``max_crc``: records of a pack to compare with their crc32, beside those; 0 for all.
    * ``workers``: threads that read and decode, None for as many as are useful.
    * ``progress``: show a bar of bytes; None for where there is a terminal.
    * ``storage_options``: of the file system of URLs.

    What is wrong with packs is never raised. Raises PackNotFoundError for a path or pattern with
    nothing there, before anything is read, the OSError of one that may not be looked at, ValueError
    and TypeError for impossible arguments.
    """
    return ValidationReport(
        reports(
            found_packs(path),
            max_decode,
            max_crc,
            workers=workers,
            progress=progress,
            storage_options=storage_options,
        )
    )


def found_packs(path: PathLike | Iterable[PathLike]) -> list[PackFile]:
    """The packs that :func:`validate` means by ``path``, whose errors this raises."""
    listed = [path] if isinstance(path, str | os.PathLike) else list(path)
    files = pack_files([_pattern_of(one) for one in listed])
    for file in files:
        if not is_url(file.path):
            try:
                os.stat(file.path)
            except (FileNotFoundError, NotADirectoryError):
                raise PackNotFoundError(f"{file.path}: no such file") from None
    return files


def _pattern_of(path: Any) -> Any:
    """A folder as the pattern of the packs in it."""
    if isinstance(path, str | os.PathLike) and os.path.isdir(path):
        return os.path.join(glob.escape(os.fsdecode(path)), "**", "*.iac")
    return path


def reports(
    files: list[PackFile],
    max_decode: int,
    max_crc: int,
    *,
    workers: int | None = None,
    progress: bool | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Iterator[PackReport]:
    """The report of one pack after the other. Arguments as of :func:`validate`."""
    most = [_limit(max_decode, "max_decode"), _limit(max_crc, "max_crc")]
    worker_count(workers)
    bar = None
    if shows_progress(progress):
        bar = tqdm(total=sum(map(_size, files)), unit="B", unit_scale=True, desc="validate")
    try:
        for file in files:
            start = 0 if bar is None else bar.n
            yield _report(file, *most, workers, storage_options, bar)
            if bar is not None:
                bar.update(start + _size(file) - bar.n)
    finally:
        if bar is not None:
            bar.close()


def _limit(value: int, name: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} is {value!r}, expected an int")
    if value.__index__() < 0:
        raise ValueError(f"{name} is {value}, expected 0 for all or more")
    return value.__index__()


def _size(file: PackFile) -> int:
    """Bytes of a file; 0 for what cannot be told."""
    try:
        return 0 if is_url(file.path) else os.stat(file.path).st_size
    except OSError:
        return 0


def _report(
    file: PackFile,
    max_decode: int,
    max_crc: int,
    workers: int | None,
    storage_options: Mapping[str, Any] | None,
    bar: tqdm | None,
) -> PackReport:
    name = file.filename if is_url(file.path) else file.path
    try:
        options = storage_options if is_url(file.path) else None
        with PackReader(file.path, options) as reader:
            pack = CheckedPack(reader, workers)
            if bar is not None:
                pack.advance = bar.update
            return report_of(pack, findings(pack, max_decode, max_crc))
    except UNREADABLE as error:
        finding = Finding(name, None, "container", reason_of(error, name))
        return PackReport(name, (finding,), 1, 0, {})


def report_of(pack: CheckedPack, found: Iterable[Finding]) -> PackReport:
    """The report of an open pack, whose counts are those behind the last finding."""
    listed, errors, notes = bounded(found)
    counts = {
        "records": len(pack),
        "slides": pack.native.num_slides,
        "decoded": pack.decoded,
        "crc_checked": pack.crc_checked,
    }
    codec = pack.text_field("codec") if "codec" in pack.header else Codec.NONE
    return PackReport(pack.path, listed, errors, notes, counts, pack.payload_type, codec)


def findings(pack: CheckedPack, max_decode: int, max_crc: int) -> Iterator[Finding]:
    """All that is found in an open pack, one finding after the other, however many there are."""
    try:
        yield from _findings(pack, max_decode, max_crc)
    except UNREADABLE as error:  # what the checks themselves did not expect
        yield pack.failure(error)


def _findings(pack: CheckedPack, max_decode: int, max_crc: int) -> Iterator[Finding]:
    rules = rules_of(pack.payload_type)
    yield from container.check_tables(pack)
    places = container.Places(pack)
    yield from places.check()
    if rules.tables is None:
        reason = f"payload type {pack.payload_type} has no rules here: its schema is not checked"
        yield pack.finding("schema", reason, severity="note")
    else:
        yield from rules.tables(pack)

    rows = np.flatnonzero(places.inside)
    undecodable = list(container.check_codecs(pack))
    yield from undecodable
    decode = np.zeros(len(pack), bool)
    if not undecodable:
        decode[records.evenly(rows, max_decode)] = True
    if pack.native.kind == "variable" and pack.has("index", "crc32"):
        compare = records.evenly(rows, max_crc)
        yield from records.check_stored(pack, compare[~decode[compare]], places.lengths)
    yield from records.check_decoded(pack, np.flatnonzero(decode), places.lengths, rules)


def rules_of(payload_type: str | None) -> Rules:
    """The rules of packs of a type, none where it is not known."""
    # The adapters know what their records hold, and import this package: they come when needed.
    from ..adapters.validate import RULES

    return RULES.get(payload_type, Rules())
