"""Reading many records to check them, few in memory at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from .._options import read_options
from ..batch import ContiguousRecordBatch
from ..codec import codec_of_header, is_registered
from ..errors import PackError, RecordFailure
from ..images import ImageBatch
from .checked_pack import UNREADABLE, CheckedPack, Rows, Rules
from .report import Finding

#: Rows, and stored bytes, read at a time, and the most that they may decode to. A larger record
#: comes alone.
_PIECE_ROWS, _PIECE_BYTES = 4096, 8 << 20
_DECODED_BYTES = 256 << 20


def evenly(rows: Rows, most: int) -> Rows:
    """At most so many of the rows, spread evenly; all for 0."""
    if most == 0 or most >= len(rows):
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).round().astype(np.int64)]


def pieces(rows: Rows, lengths: npt.NDArray[np.uint64]) -> Iterator[Rows]:
    """The rows, a few MiB of them at a time; ``lengths`` are those of all rows of the pack."""
    first = 0
    while first < len(rows):
        sizes = np.cumsum(lengths[rows[first : first + _PIECE_ROWS]])
        count = max(int(np.searchsorted(sizes, _PIECE_BYTES, side="right")), 1)
        yield rows[first : first + count]
        first += count


def check_stored(
    pack: CheckedPack, rows: Rows, lengths: npt.NDArray[np.uint64]
) -> Iterator[Finding]:
    """Reads stored bytes and compares them with their crc32."""
    for piece in pieces(rows, lengths):
        failures: list[RecordFailure] = []
        try:
            pack.reader.read_payloads_contiguous(
                piece, workers=pack.workers, on_error="skip", report=failures
            )
        except UNREADABLE as error:  # of the index: no other record would be found either
            yield pack.failure(error)
            return
        pack.crc_checked += len(piece)
        pack.advance(int(lengths[piece].sum()))
        yield from _failed(pack, piece, failures)


def check_decoded(
    pack: CheckedPack, rows: Rows, lengths: npt.NDArray[np.uint64], rules: Rules
) -> Iterator[Finding]:
    """Decodes records, and lets the rules of the payload type look at them."""
    check = _check_objects if is_registered(pack.header.get("codec")) else _check_batch
    for piece in pieces(rows, lengths):
        try:
            yield from check(pack, piece, rules)
        except UNREADABLE as error:
            yield pack.failure(error)
            return
        pack.decoded += len(piece)
        if pack.has("index", "crc32"):
            pack.crc_checked += len(piece)
        pack.advance(int(lengths[piece].sum()))


def _check_batch(pack: CheckedPack, rows: Rows, rules: Rules) -> Iterator[Finding]:
    decode = pack.native.kind == "variable"
    most_bytes = _DECODED_BYTES if len(rows) > 1 else 0
    options = read_options(decode, pack.workers, True, "skip", max_batch_bytes=most_bytes)
    try:
        native = pack.native.read(rows, *options)
    except PackError:
        raise
    except ValueError as error:  # too large together
        if len(rows) == 1:
            yield pack.finding("codec", f"was not decoded: {error}", rows[0])
            return
        half = len(rows) // 2
        yield from _check_batch(pack, rows[:half], rules)
        yield from _check_batch(pack, rows[half:], rules)
        return
    # Of records with several codecs only some are images.
    images = native.images is not None or (decode and pack.native.decodes_to_images)
    batch = (ImageBatch if images else ContiguousRecordBatch).from_native(native, "skip")
    yield from _failed(pack, rows, batch.errors)
    if rules.records is not None and len(batch):
        yield from rules.records(pack, rows[batch.positions], batch)


def _check_objects(pack: CheckedPack, rows: Rows, rules: Rules) -> Iterator[Finding]:
    """Records of a codec that a user registered, whatever it decodes to."""
    codec = codec_of_header(pack.header)
    failures: list[RecordFailure] = []
    stored = pack.reader.read_payloads_contiguous(
        rows, workers=pack.workers, on_error="skip", report=failures
    )
    yield from _failed(pack, rows, failures)
    for row, payload in zip(rows[stored.positions], stored, strict=True):
        try:
            codec.decode(bytes(payload))
        except Exception as error:
            reason = f"codec {codec.name}: {type(error).__name__}"
            yield pack.finding("codec", reason, row)


def _failed(pack: CheckedPack, rows: Rows, failures: Iterable[RecordFailure]) -> Iterator[Finding]:
    for failure in failures:
        yield pack.failure(failure.error, rows[failure.position])
