"""Each row's header: its model from template and delta, and the bytes of the file."""

from __future__ import annotations

import json
import zlib
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import ChecksumError, PackError, row_error
from ...variable import VariableRecordPack
from . import schema
from .pixels import PixelRows
from .template import merged

Json = dict[str, Any]

_KEPT_TEMPLATES = 256


class Headers:
    """The headers of a pack's instances."""

    def __init__(self, pack: VariableRecordPack, rows: PixelRows) -> None:
        self._pack = pack
        self._rows = rows
        self._templates: dict[tuple[int, bool], Json] = {}
        self._columns: dict[str, pa.ChunkedArray | None] = {}
        self._last: tuple[Any, Json] = (None, {})

    def model(self, row: int, verify: bool) -> Json:
        """The model of a row's instance. What is in it belongs to a cache: not to be changed."""
        first = self.first_row(row)
        key, model = self._last  # an instance's frames ask for the same one after the other
        if key == (first, verify):
            return model
        stored = self._stored("dicom_delta", first, verify)
        if stored is None:
            raise self._error(PackError, row, "has no column 'dicom_delta'")
        template = self.template(self._rows.at("series_idx", row), verify, row)
        try:
            model = merged(template, _json_of(stored))
        except (KeyError, RecursionError, TypeError, ValueError) as error:
            raise self._error(PackError, row, f"its header is damaged: {error}") from error
        self._last = (first, verify), model
        return model

    def exact(self, row: int, verify: bool) -> bytes | None:
        """What exact.py kept of a row's file; None where the pack has no such bytes."""
        stored = self._stored("dicom_header", self.first_row(row), verify)
        return None if stored is None else schema.METADATA_CODEC.decode(stored)

    def first_row(self, row: int) -> int:
        """The row of the first frame of a row's instance."""
        first = row - self._rows.at("frame_index", row)
        if first < 0:
            raise self._error(PackError, row, "its frame_index is larger than its row")
        return first

    def rows(self, row: int) -> range:
        """The rows of all frames of a row's instance, none where it has no pixels."""
        first = self.first_row(row)
        has_pixels = self._rows.at("has_pixel_data", row)
        count = self._rows.at("number_of_frames", row) if has_pixels else 0
        if first + count > len(self._pack):
            raise self._error(PackError, row, "its number_of_frames goes beyond the pack")
        return range(first, first + count)

    def _stored(self, name: str, row: int, verify: bool) -> bytes | None:
        column = self._column(name)
        if column is None:
            return None
        stored = column[row].as_py()
        checksums = self._column(f"{name}_crc32") if verify else None
        if stored is None or (checksums and zlib.crc32(stored) != checksums[row].as_py()):
            raise self._error(ChecksumError, row, f"its {name} differs from its crc32")
        return stored

    def _column(self, name: str) -> pa.ChunkedArray | None:
        if name not in self._columns:
            try:
                self._columns[name] = self._pack.reader.read_index_table([name])[name]
            except KeyError:
                self._columns[name] = None
        return self._columns[name]

    def template(self, series: int, verify: bool, row: int = -1) -> Json:
        """What a series' headers have in common; it stays for the next call.

        ``row`` is the one that it is for, where an error can name one.
        """
        key = series, verify
        if key not in self._templates:
            if len(self._templates) >= _KEPT_TEMPLATES:
                self._templates.clear()
            self._templates[key] = self._read_template(series, verify, row)
        return self._templates[key]

    def _read_template(self, series: int, verify: bool, row: int) -> Json:
        table = self._pack.slide_table
        path = self._pack.reader.package_path
        # By its number: packs that are parts of others do not have all of them.
        try:
            at = pc.index(table["series_idx"], series).as_py()
            entry = table.slice(max(at, 0), 1).to_pylist()[0]
            offset, length = entry["template_offset"], entry["template_length"]
            crc32 = entry["template_crc32"]
        except (IndexError, KeyError, pa.ArrowException) as error:
            raise PackError(f"{path}: its series table is damaged: {error}") from error
        if at < 0:
            raise PackError(f"{path}: there is no series {series}")
        try:
            stored = self._pack.reader.read_data_span(offset, length)
        except (OverflowError, TypeError, ValueError) as error:
            reason = f"series {series}: its template is not inside the data: {error}"
            if row < 0:
                raise PackError(f"{path}: {reason}") from error
            raise self._error(PackError, row, reason) from error
        if verify and zlib.crc32(stored) != crc32:
            raise ChecksumError(f"{path}: series {series}: its template differs from its crc32")
        try:
            return _json_of(stored)
        except (RecursionError, ValueError) as error:
            raise PackError(f"{path}: series {series}: its template is damaged") from error

    def _error(self, kind: type[PackError], row: int, reason: str) -> PackError:
        return row_error(kind, str(self._pack.reader.package_path), row, reason)


def _json_of(stored: bytes) -> Json:
    return json.loads(schema.METADATA_CODEC.decode(stored))
