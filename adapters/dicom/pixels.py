"""Rows of a pack as pixel arrays, in native batches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydicom.uid import RLELossless

from ... import _native
from ..._options import OnError, checked_on_error, checked_report, read_options, row_array
from ...errors import CodecError, PackError, RecordFailure, row_error
from ...variable import VariableRecordPack
from .._table_rules import is_like
from . import frames, schema
from .frames import ImagePixel
from .model import quiet

Array = npt.NDArray[Any]

#: What version 1 does not have, or need not, with what holds for its rows.
_DEFAULTS = {
    "has_pixel_data": True,
    "samples_per_pixel": 1,
    "frame_index": 0,
    "number_of_frames": 1,
    "planar_configuration": 0,
    "codec_id": schema.PIXELS_JXL,
}
_SCHEMA = pa.schema([*schema.INSTANCES, *schema.FRAMES])
_KEYWORDS = {"float32": "FloatPixelData", "float64": "DoubleFloatPixelData"}


class PixelRows:
    """How the payload of each row becomes an array."""

    def __init__(self, pack: VariableRecordPack) -> None:
        self._pack = pack
        self._columns: dict[str, pa.Array] = {}
        self._arrays: dict[str, Array] = {}

    def _column(self, name: str) -> pa.Array:
        if name not in self._columns:
            reader = self._pack.reader
            try:
                column = reader.read_index_table([name])[name].combine_chunks()
            except KeyError as error:
                if name not in _DEFAULTS:
                    raise PackError(
                        f"{reader.package_path}: index table has no column {name!r}"
                    ) from error
                column = pa.repeat(_DEFAULTS[name], len(reader))
            found, wanted = column.type, _SCHEMA.field(name).type
            if not is_like(found.value_type if pa.types.is_dictionary(found) else found, wanted):
                raise PackError(
                    f"{reader.package_path}: index column {name!r} is {found}, expected {wanted}"
                )
            self._columns[name] = column
        return self._columns[name]

    def column(self, name: str) -> Array:
        """One column, of all rows. Raises PackError where the pack does not have it, or not of
        every row.
        """
        if name not in self._arrays:
            column = self._column(name)
            if column.null_count:
                row = column.is_null().index(True).as_py()
                raise self._error(PackError, row, f"{name} is missing")
            self._arrays[name] = column.to_numpy(zero_copy_only=False)
        return self._arrays[name]

    def at(self, name: str, row: int) -> Any:
        """One value of a column as a Python object. Raises PackError where there is none."""
        value = self._column(name)[row].as_py()
        if value is None:
            raise self._error(PackError, row, f"{name} is missing")
        return value

    def pixel(self, row: int) -> ImagePixel:
        """What the source file said of a row's pixels."""
        return ImagePixel(
            transfer_syntax=frames.known(self.at("source_transfer_syntax", row)),
            rows=self.at("rows", row),
            columns=self.at("columns", row),
            samples_per_pixel=self.at("samples_per_pixel", row),
            photometric_interpretation=self.at("photometric_interpretation", row),
            planar_configuration=self.at("planar_configuration", row),
            bits_allocated=self.at("bits_allocated", row),
            bits_stored=self.at("bits_stored", row),
            high_bit=self.at("high_bit", row),
            pixel_representation=self.at("pixel_representation", row),
            pixel_keyword=_KEYWORDS.get(self.at("pixel_dtype", row), "PixelData"),
        )

    def read(
        self,
        rows: Iterable[int],
        workers: int | None,
        verify: bool,
        on_error: OnError,
        report: list[RecordFailure] | None,
    ) -> Array | list[Array | None]:
        """The pixels of rows: one array (n, ...) where all are there and alike, else a list.

        Missing ones are None, or left out where ``on_error`` is "skip".
        """
        checked_on_error(on_error)
        checked_report(report)
        numbers = row_array(rows, len(self._pack))
        raises = on_error == "raise"
        without = self._without_pixels(numbers)
        if raises and without:
            raise next(iter(without.values()))
        batch = self._pack.reader.native.read(numbers, *read_options(True, workers, verify, "null"))
        if not batch.failures and not without:
            stacked = _stacked(batch)
            if stacked is not None:
                return stacked
        failures = {**dict(batch.failures), **without}
        arrays: list[Array | None] = []
        decoded = _Decoded(batch)
        with quiet():
            for position, row in enumerate(numbers.tolist()):
                array = None
                try:
                    if position in failures:
                        array = self._rescued(row, failures[position], verify)
                        del failures[position]
                    else:
                        array = self.single(row, *decoded[position])
                except PackError as error:
                    if raises:
                        raise
                    failures[position] = error
                arrays.append(array)
        if report is not None:
            report += [RecordFailure.of(p, failures[p]) for p in sorted(failures)]
        if on_error == "skip":
            return [array for array in arrays if array is not None]
        return arrays

    def _without_pixels(self, rows: npt.NDArray[np.int64]) -> dict[int, PackError]:
        """The errors of rows, by position, whose instance has no pixels."""
        inside = (rows >= 0) & (rows < len(self._pack))
        # Where the index does not say, the core's error of the row stands.
        says = self._column("has_pixel_data").take(pa.array(rows[inside])).to_pylist()
        return {
            position: self._error(CodecError, int(rows[position]), "its instance has no pixels")
            for position, there in zip(np.flatnonzero(inside).tolist(), says, strict=True)
            if there is not None and not there
        }

    def single(self, row: int, data: Array, image: Array | None) -> Array:
        """One row's array from what the core made of its payload: bytes, or an image as well.

        Raises CodecError for what is no frame of the row.
        """
        if image is not None:
            return image.copy()
        try:
            codec_id = self.at("codec_id", row)
            if codec_id not in schema.NEED_PYDICOM:
                raise ValueError(f"codec_id {codec_id} does not decode to images")
            return frames.decoded_frame(data.tobytes(), self.pixel(row))
        except Exception as error:  # pydicom has one of every kind for broken frames
            raise self._error(CodecError, row, str(error)) from error

    def _rescued(self, row: int, failure: PackError, verify: bool) -> Array:
        """What pydicom makes of a compressed frame that the core's codec does not decode.

        Raises ``failure`` of all other rows, and where pydicom does not either.
        """
        if not isinstance(failure, CodecError) or self.at("codec_id", row) != schema.FRAME_NONE:
            raise failure
        pixel = self.pixel(row)
        if pixel.transfer_syntax == RLELossless:
            raise failure
        try:
            (frame,) = self._pack.reader.read_payloads([row], verify=verify)
            return frames.decoded_frame(bytes(frame), pixel)
        except Exception:  # pydicom has one of every kind for broken frames
            raise failure from None

    def _error(self, kind: type[PackError], row: int, reason: str) -> PackError:
        return row_error(kind, str(self._pack.reader.package_path), row, reason)


def _stacked(batch: _native.Batch) -> Array | None:
    """All records as one array over the batch's memory, where they are images alike."""
    if batch.images is None or len(batch.images[0]) == 0:
        return None
    shapes, types = batch.images
    height, width, channels = shapes[0].tolist()
    if channels == 0 or (shapes != shapes[0]).any() or (types != types[0]).any():
        return None
    shape = (len(shapes), height, width, *([channels] if channels > 1 else []))
    return np.frombuffer(batch.take_data(), np.dtype(_native.PIXEL_TYPES[types[0]])).reshape(shape)


class _Decoded:
    """A batch's records one by one: their bytes, and as an image where the core made one."""

    def __init__(self, batch: _native.Batch) -> None:
        self._data = np.frombuffer(batch.data, np.uint8)
        self._offsets = np.frombuffer(batch.offsets, np.uint64).tolist()
        self._images = batch.images

    def __getitem__(self, position: int) -> tuple[Array, Array | None]:
        data = self._data[self._offsets[position] : self._offsets[position + 1]]
        if self._images is None:
            return data, None
        height, width, channels = self._images[0][position].tolist()
        if channels == 0:
            return data, None
        dtype = np.dtype(_native.PIXEL_TYPES[self._images[1][position]])
        shape = (height, width) if channels == 1 else (height, width, channels)
        # Behind an image of another dtype one may start at an odd address.
        return data, np.frombuffer(data.data, dtype).reshape(shape)
