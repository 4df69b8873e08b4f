"""Decoding a result batch by batch, the next ones while one is used."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _native
from .._options import OnError, PathLike, checked_report
from ..errors import PackError, RecordFailure
from .decode import BatchTooLarge, Decoded, Decoder
from .kinds import Kind, PackKind
from .references import read_references
from .rows import PIECE_ROWS, Rows, pieces

__all__ = ["iter_decode"]

#: Payload bytes of a batch where the caller names no bound.
_BATCH_BYTES = 64 << 20

#: Payload bytes for each stored byte, before any is decoded.
_FIRST_GROWTH = 8.0

#: More bytes than any machine has.
_NO_BOUND = 1 << 62

_THREAD_NAME = "iac_query.iter_decode"


def iter_decode(
    result: Any,
    batch_rows: int | None = None,
    batch_bytes: int | None = None,
    prefetch: int = 2,
    as_: Kind | None = None,
    column: str = "record",
    into: str = "payload",
    workers: int | None = None,
    on_error: OnError = "raise",
    verify: bool = True,
    report: list[RecordFailure] | None = None,
    packs: Iterable[PathLike] | None = None,
    storage: Any = None,
) -> Generator[Any, None, None]:
    """:func:`decode` batch by batch: the next ones are decoded while one is used.

    A stream, such as a pyarrow.RecordBatchReader, is read no further than the batches that are
    decoded, by the thread that iterates; of DuckDB the whole result is fetched first, without its
    payloads. Batches are of the kind that ``decode`` gives, in the order of the rows, none empty.

    * ``batch_rows``: rows of a batch, but for the last one.
    * ``batch_bytes``: most payload bytes of a batch, decoded; 64 MiB where ``batch_rows`` is not
      given either. A larger record comes alone. Such a batch has at most 65,536 rows.
    * ``prefetch``: batches decoded ahead, by one thread beside the caller's and its workers; 0 for
      none. In memory are two more at most: the one that comes and the one that is let go.
    * Others as :func:`decode`. ``report`` has the failures of the batches that were given out.

    Errors of the options are raised at once, those of a batch when its turn comes. The thread ends
    with the iteration: at its end, when it is closed or forgotten, or by an error or an interrupt
    of whoever iterates.
    """
    for name, value, least in (
        ("batch_rows", batch_rows, 1),
        ("batch_bytes", batch_bytes, 1),
        ("prefetch", prefetch, 0),
    ):
        if value is None and name != "prefetch":
            continue
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise TypeError(f"{name} is {value!r}, expected an int")
        if value < least:
            raise ValueError(f"{name} is {value}, expected {least} or more")
    decoder = Decoder(as_, column, into, workers, on_error, verify, packs, storage)
    checked_report(report)
    if batch_rows is None and batch_bytes is None:
        batch_bytes = _BATCH_BYTES
    elif batch_bytes is not None:
        batch_bytes = min(int(batch_bytes), _NO_BOUND)
    batches = _Batches(decoder, batch_rows or PIECE_ROWS, batch_bytes)
    parts = batches.cut(pieces(result))
    decoded = _ahead(batches, parts, prefetch) if prefetch else _in_turn(batches, parts)
    return _given_out(decoded, report)


def _given_out(
    decoded: Generator[Decoded, None, None], report: list[RecordFailure] | None
) -> Generator[Any, None, None]:
    try:
        for batch in decoded:
            if report is not None:
                report.extend(batch.failures)
            if len(batch.rows):
                frame = batch.rows.frame
                del batch  # it is the caller's alone
                yield frame
    finally:
        decoded.close()


@dataclass(frozen=True)
class _Part:
    """Rows that are to be decoded together, if they are not too large for that."""

    first: int  # their place in the result
    rows: Rows
    stored: npt.NDArray[np.int64]  # bytes of each row's record, of images a mean
    exact: npt.NDArray[np.bool_]  # whether the payload has just as many

    def __len__(self) -> int:
        return len(self.rows)

    def slice(self, start: int, stop: int) -> _Part:
        return _Part(
            self.first + start,
            self.rows.slice(start, stop),
            self.stored[start:stop],
            self.exact[start:stop],
        )

    @staticmethod
    def concat(parts: list[_Part]) -> _Part:
        if len(parts) == 1:
            return parts[0]
        return _Part(
            parts[0].first,
            type(parts[0].rows).concat([part.rows for part in parts]),
            np.concatenate([part.stored for part in parts]),
            np.concatenate([part.exact for part in parts]),
        )


class _Batches:
    """Cuts a result into parts and decodes them within the bounds.

    What a payload decodes to is known before for matrices and for what is stored as it is. Images
    of a cohort are taken to be alike; of other records the stored bytes are known, and how many
    times as many those before gave: that makes batches of about the right size. The core refuses
    one that would be too large, mostly before it decodes any of it, since most payloads tell their
    size; then there is another try with fewer rows, and the others are held for the next batch.
    """

    def __init__(self, decoder: Decoder, most_rows: int, most_bytes: int | None) -> None:
        self._decoder = decoder
        self._most_rows = most_rows
        self._most_bytes = most_bytes
        self._growth = _FIRST_GROWTH  # payload bytes for each stored byte
        self._has_learned = False
        self._image_bytes = 0  # what an image counts for, however well it was compressed
        self.held: _Part | None = None  # rows taken from the result that are not decoded yet
        self.failure: Exception | None = None  # of the result, to be raised behind its rows

    def cut(self, pieces: Iterator[Rows]) -> Iterator[_Part]:
        """The parts, also of a result that fails further behind, which ``failure`` says then."""
        parts: list[_Part] = []
        rows, size, first = 0, 0.0, 0
        try:
            for piece in pieces:
                self._decoder.check(piece)
                rest = self._sized(piece, first)
                first += len(rest)
                while len(rest):
                    count = self._fitting(rest, self._most_rows - rows, size)
                    if count == 0 and not parts:
                        count = 1
                    if count:
                        parts.append(rest.slice(0, count))
                        rows, size = rows + count, size + self._estimates(parts[-1]).sum()
                        rest = rest.slice(count, len(rest))
                    if len(rest) or rows == self._most_rows:
                        yield _Part.concat(parts)
                        parts, rows, size = [], 0, 0.0
        except Exception as error:
            self.failure = error
        if parts:
            yield _Part.concat(parts)

    @property
    def are_behind(self) -> bool:
        """Whether more rows are held than go into a batch."""
        held = self.held
        return held is not None and self._fitting(held, self._most_rows, 0.0) < len(held)

    def decode(self, part: _Part | None) -> Decoded | None:
        """As many of the rows held and the part's as the bounds allow; None without any."""
        parts = [rows for rows in (self.held, part) if rows is not None]
        if not parts:
            return None
        whole = _Part.concat(parts)
        count = max(self._fitting(whole, self._most_rows, 0.0), 1)
        while True:
            tried = whole.slice(0, count)
            most_bytes = self._most_bytes if self._most_bytes and count > 1 else 0
            try:
                decoded = self._decoder.decode(tried.rows, tried.first, most_bytes)
                break
            except BatchTooLarge:
                count -= max(count // (8 if self._has_learned else 2), 1)
        self.held = whole.slice(count, len(whole)) if count < len(whole) else None
        self._learn(tried, decoded)
        return decoded

    def _fitting(self, part: _Part, most_rows: int, size: float) -> int:
        """How many of the rows go together with ``size`` bytes."""
        if self._most_bytes is None:
            return min(len(part), most_rows)
        ends = size + np.cumsum(self._estimates(part))
        return min(int(np.searchsorted(ends, self._most_bytes, side="right")), most_rows)

    def _estimates(self, part: _Part) -> npt.NDArray[np.float64]:
        return np.where(part.exact, part.stored, part.stored * self._growth)

    def _learn(self, part: _Part, decoded: Decoded) -> None:
        stored = int(part.stored[~part.exact].sum())
        if stored and not decoded.failures:
            grown = (decoded.payload_bytes - int(part.stored[part.exact].sum())) / stored
            self._growth = grown * 1.05  # the next ones may be a little larger
            self._has_learned = True

    def _sized(self, rows: Rows, first: int) -> _Part:
        stored = np.zeros(len(rows), dtype=np.int64)
        exact = np.ones(len(rows), dtype=bool)
        if self._most_bytes is None:
            return _Part(first, rows, stored, exact)
        references = read_references(rows.column(self._decoder.column))
        for number, path in enumerate(references.paths):
            positions = np.flatnonzero(references.pack == number)
            try:
                pack = self._decoder.opener.open(path)
                sizes = PackKind(pack, self._decoder.as_).sizes(references.row[positions])
                stored[positions], exact[positions] = sizes.stored, sizes.exact
                if pack.decodes_to_images and self._decoder.as_ != "stored":
                    mean = int(stored[positions].mean()) if len(positions) else 0
                    self._image_bytes = self._image_bytes or mean
                    stored[positions] = self._image_bytes
            except (PackError, OSError):  # which decoding them says as well
                continue
        return _Part(first, rows, stored, exact)


def _in_turn(batches: _Batches, parts: Iterator[_Part]) -> Generator[Decoded, None, None]:
    part = next(parts, None)
    while part is not None or batches.held is not None:
        decoded = batches.decode(part)
        if decoded is not None:
            yield decoded
        del decoded
        part = None if batches.are_behind else next(parts, None)
    if batches.failure is not None:
        raise batches.failure


def _ahead(
    batches: _Batches, parts: Iterator[_Part], prefetch: int
) -> Generator[Decoded, None, None]:
    """The decoded batches, up to ``prefetch`` of them decoded by a thread before they are needed.

    The parts are taken from the result by the calling thread: it may be one of a library that
    keeps to its thread.
    """
    stop = _native.StopSource()
    pool = ThreadPoolExecutor(1, _THREAD_NAME, stop.stops_this_thread)
    ahead: deque[Future[Decoded | None]] = deque()
    ended = False

    def fill() -> None:
        nonlocal ended
        while len(ahead) < prefetch:
            part = None
            if not ended and not batches.are_behind:
                part = next(parts, None)
                ended = part is None
            if part is None and batches.held is None:
                return
            ahead.append(pool.submit(batches.decode, part))

    process = os.getpid()
    try:
        fill()
        while ahead:
            if os.getpid() != process:  # without the thread that decodes
                raise RuntimeError(
                    "this iterator is of the process that was forked, call iter_decode here as well"
                )
            decoded = ahead.popleft().result()
            fill()
            if decoded is not None:
                yield decoded
            del decoded
        if batches.failure is not None:
            raise batches.failure
    finally:
        stop.request_stop()  # what is being read and decoded
        # One that is forgotten may be collected by its own thread, which cannot wait for itself.
        own = threading.current_thread().name.startswith(_THREAD_NAME)
        pool.shutdown(wait=not own, cancel_futures=True)
