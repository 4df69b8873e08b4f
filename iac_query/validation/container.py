"""What all packs have in common: tables that can be read, and records that lie in the data segment
and are told apart by their codecs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..codec import Codec, codec_of_header
from ..cohorts.stored_codecs import CODEC_ID, codec_ids
from ..errors import CodecError, PackError
from ..fixed import fixed_shape
from .checked_pack import UNREADABLE, CheckedPack, numbers
from .report import Finding


def check_tables(pack: CheckedPack) -> Iterator[Finding]:
    """Every column of both tables, one in memory at a time."""
    for table, schema in pack.schemas.items():
        repeated = sorted({name for name in schema.names if schema.names.count(name) > 1})
        for name in repeated:
            reason = f"{table} table: two columns are called {name!r}, names find the first"
            yield pack.finding("container", reason, severity="note")
        # Columns behind those are found with the whole table only.
        for names in [None] if repeated else [[name] for name in schema.names]:
            try:
                pack.read_columns(table, names)
            except UNREADABLE as error:
                reason = pack.reason(error).removeprefix(f"{table} table: ")
                yield pack.finding("container", f"{table} table: {reason}")


class Places:
    """Where records are stored: ``lengths`` in bytes, and which of them are ``inside``, which is
    False for those that cannot be read at all.
    """

    def __init__(self, pack: CheckedPack) -> None:
        self._pack = pack
        self._limit = np.uint64(pack.header["data_length"])
        count = len(pack)
        self.offsets = np.zeros(count, np.uint64)
        self.lengths = np.zeros(count, np.uint64)
        self.inside = np.ones(count, bool)

    def check(self) -> Iterator[Finding]:
        """Finds the places, and what is wrong with them."""
        kind = self._pack.native.kind
        if kind == "none":
            self.inside[:] = False
            if len(self._pack):
                yield self._pack.finding(
                    "container", "has one data segment and no records", severity="note"
                )
        elif kind == "fixed":
            yield from self._check_matrix()
        else:
            yield from self._check_columns()

    def _check_matrix(self) -> Iterator[Finding]:
        pack = self._pack
        try:
            fixed_shape(pack.header, pack.path)
        except PackError as error:
            yield pack.finding("container", pack.reason(error))
        record_bytes, length = pack.header["feature_record_bytes"], int(self._limit)
        self.lengths[:] = record_bytes
        if length > len(pack) * record_bytes:
            yield pack.finding(
                "container",
                f"the data segment has {length} bytes, {len(pack)} records of {record_bytes} have "
                f"{len(pack) * record_bytes}",
            )
        if record_bytes:
            self.inside[length // record_bytes :] = False
        for row in np.flatnonzero(~self.inside):
            yield pack.finding("container", "lies behind the end of the data segment", row)

    def _check_columns(self) -> Iterator[Finding]:
        pack, limit = self._pack, self._limit
        columns = [pack.column("index", name) for name in ("offset", "length")]
        if any(column is None for column in columns):
            self.inside[:] = False  # said of the tables
            return
        # Signed ones wrap, as they do in the core.
        offsets, lengths = map(numbers, columns)
        self.offsets = offsets.astype(np.uint64)
        self.lengths = lengths.astype(np.uint32).astype(np.uint64)
        self.inside = self.lengths <= limit
        self.inside &= self.offsets <= limit - np.minimum(self.lengths, limit)
        for row in np.flatnonzero(~self.inside):
            yield pack.finding(
                "container",
                f"payload span outside the data segment: offset {self.offsets[row]} + length "
                f"{self.lengths[row]} > {limit}",
                row,
            )
        yield from self._check_overlaps()
        yield from self._check_codec_ids()
        if not pack.has("index", "crc32"):
            yield pack.finding(
                "checksum", "the index has no crc32, so nothing tells damage", severity="note"
            )

    def _check_overlaps(self) -> Iterator[Finding]:
        """Records that share bytes, which the format allows. Equal places are one stored record."""
        rows = np.flatnonzero(self.inside & (self.lengths > 0))
        starts, ends = self.offsets[rows], self.offsets[rows] + self.lengths[rows]
        if (starts[1:] >= ends[:-1]).all():  # one behind the other, as writers have them
            return
        rows = rows[np.lexsort((self.lengths[rows], self.offsets[rows]))]
        starts, ends = self.offsets[rows], self.offsets[rows] + self.lengths[rows]
        same = (starts[1:] == starts[:-1]) & (ends[1:] == ends[:-1])
        shares = (starts[1:] < np.maximum.accumulate(ends)[:-1]) & ~same
        if shares.any():
            first = rows[1:][shares].min()
            reason = f"shares bytes with another record, the first of {int(shares.sum()):,}"
            yield self._pack.finding("container", reason, first, "note")

    def _check_codec_ids(self) -> Iterator[Finding]:
        pack = self._pack
        try:
            ids = codec_ids(pack.native, pack.header)
        except UNREADABLE:
            self.inside[:] = False  # said of the tables
            return
        if ids is None:
            return
        known = np.isin(ids, [entry["id"] for entry in pack.header["record_codecs"]])
        self.inside &= known
        for row in np.flatnonzero(~known):
            yield pack.finding(
                "container", "its codec_id is not in the header's record_codecs", row
            )


def check_codecs(pack: CheckedPack) -> Iterator[Finding]:
    """Whether all codecs of a pack can decode here: no finding, or those that say why not."""
    if pack.native.kind != "variable":
        return
    header = pack.header
    specs = [(header.get("codec", "none"), header.get("codec_params"))]
    if header.get("record_codecs") and pack.has("index", CODEC_ID):
        specs = [(entry["name"], entry.get("params")) for entry in header["record_codecs"]]
    built_in = {value for name, value in vars(Codec).items() if name.isupper()}
    for name, params in specs:
        try:
            codec_of_header({"codec": name, "codec_params": params})
        except (CodecError, ValueError, TypeError) as error:
            reason = f"no record was decoded: {pack.reason(error)}"
            known = isinstance(name, str) and name in built_in
            yield pack.finding("codec", reason, severity="error" if known else "note")
