"""Packs of encoded records of any length."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from ._options import (
    MAX_BATCH_BYTES,
    MAX_RECORD_BYTES,
    MAX_SAMPLES,
    OnError,
    checked_on_error,
    checked_report,
    read_options,
    row_array,
    row_number,
)
from ._record_pack import RecordPack
from .batch import ContiguousRecordBatch
from .build import build_variable, build_variable_from_payloads
from .codec import Codec, codec_of_header, is_registered
from .errors import CodecError, PackError, RecordFailure, row_error
from .images import ImageBatch, single_image, stacked_images

__all__ = ["VariableRecordPack"]


class VariableRecordPack(RecordPack):
    """A pack of encoded records of any length, read decoded.

    Opens eagerly, takes the arguments of a :class:`PackReader`, and pickles and may be shared like
    one.
    """

    kind = "variable"
    other = "FixedRecordPack"
    _codec: Codec | None = None

    build = staticmethod(build_variable)
    build_from_payloads = staticmethod(build_variable_from_payloads)

    @property
    def codec(self) -> Codec:
        """The codec the header names. Raises CodecError for an unknown one."""
        if self._codec is None:
            self._codec = codec_of_header(self.header)
        return self._codec

    def read_bytes(self, row: int, *, verify: bool = True) -> bytes:
        """The stored bytes of one row."""
        return self._reader.read_payload(row, verify=verify)

    def read(
        self,
        row: int,
        *,
        verify: bool = True,
        max_record_bytes: int = MAX_RECORD_BYTES,
        max_samples: int = MAX_SAMPLES,
    ) -> Any:
        """One row, decoded: bytes, an array of an image codec, or what a registered codec makes.

        Images are (height, width) for one channel, else (height, width, channels).
        """
        if is_registered(self.header.get("codec")):
            return self._read_registered([row], 1, verify, "raise", None)[0]
        number = row_number(row, len(self._reader))
        native = self._reader.native
        if not native.decodes_to_images:
            return native.read_one(number, True, verify, max_record_bytes)
        options = read_options(True, 1, verify, "raise", max_record_bytes, max_samples=max_samples)
        batch = native.read(np.array([number]), *options, images=True)
        if batch.images is None:
            raise row_error(CodecError, native.path, number, "the DICOM instance has no pixels")
        return single_image(batch)

    def read_many(
        self,
        rows: Iterable[int],
        workers: int | None = None,
        *,
        verify: bool = True,
        on_error: OnError = "raise",
        report: list[RecordFailure] | None = None,
        max_record_bytes: int = MAX_RECORD_BYTES,
        max_samples: int = MAX_SAMPLES,
    ) -> list[Any]:
        """Rows, decoded as :meth:`read` does, in the order given, duplicates included.

        Options as :meth:`read_many_contiguous`; a missing record is None.
        """
        if is_registered(self.header.get("codec")):
            return self._read_registered(rows, workers, verify, on_error, report)
        batch = self.read_many_contiguous(
            rows,
            workers=workers,
            verify=verify,
            on_error=on_error,
            report=report,
            max_record_bytes=max_record_bytes,
            max_samples=max_samples,
        )
        own = np.array if isinstance(batch, ImageBatch) else bytes
        return [None if record is None else own(record) for record in batch]

    def _read_registered(
        self,
        rows: Iterable[int],
        workers: int | None,
        verify: bool,
        on_error: OnError,
        report: list[RecordFailure] | None,
    ) -> list[Any]:
        checked_on_error(on_error)
        checked_report(report)
        rows = row_array(rows, len(self._reader))
        stored = self._reader.read_payloads_contiguous(
            rows,
            workers=workers,
            verify=verify,
            on_error="raise" if on_error == "raise" else "null",
        )
        failures = {failure.position: failure for failure in stored.errors}
        objects: list[Any] = []
        for position, payload in enumerate(stored):
            decoded = None
            if payload is not None:
                try:
                    decoded = self.codec.decode(bytes(payload))
                except Exception as cause:
                    error = self._decode_error(int(rows[position]), cause)
                    if on_error == "raise":
                        raise error from cause
                    failures[position] = RecordFailure.of(position, error)
            if position not in failures or on_error == "null":
                objects.append(decoded)
        if report is not None:
            report.extend(failures[position] for position in sorted(failures))
        return objects

    def _decode_error(self, row: int, cause: Exception) -> PackError:
        path = str(self._reader.package_path)
        reason = f"codec {self.codec.name}: {type(cause).__name__}"
        error = row_error(CodecError, path, row, reason)
        error.__cause__ = cause
        return error

    def read_many_contiguous(
        self,
        rows: Iterable[int],
        *,
        workers: int | None = None,
        verify: bool = True,
        on_error: OnError = "raise",
        report: list[RecordFailure] | None = None,
        max_record_bytes: int = MAX_RECORD_BYTES,
        max_batch_bytes: int = MAX_BATCH_BYTES,
        max_samples: int = MAX_SAMPLES,
    ) -> ContiguousRecordBatch | ImageBatch:
        """Rows, decoded in parallel into one piece of memory, in the order given.

        Images come as an :class:`ImageBatch`.

        * ``workers``: None for as many threads as are useful, 1 for none beside the caller's.
        * ``verify``: compare stored bytes with the index's crc32 first.
        * ``on_error``: ``"raise"`` raises the first failed record's error, ``"null"`` marks such
          records missing, ``"skip"`` leaves them out.
        * ``report``: a list that each failed record's :class:`RecordFailure` is added to.
        * ``max_record_bytes``, ``max_batch_bytes``: bounds on decoded sizes, against
          decompression bombs; 0 for the batch stands for the machine's memory.
        * ``max_samples``: bound on height x width x channels of an image.

        Raises PackIndexError, ChecksumError, CodecError or PackError, with pack and row in them,
        and TypeError for a codec that does not decode to bytes.
        """
        if is_registered(self.header.get("codec")):
            return self._decode_contiguous(rows, workers, verify, on_error, report)
        checked_report(report)
        options = read_options(
            True, workers, verify, on_error, max_record_bytes, max_batch_bytes, max_samples
        )
        native = self._reader.native
        images = native.decodes_to_images
        batch = native.read(row_array(rows, len(self._reader)), *options, images=images)
        kind = ImageBatch if images else ContiguousRecordBatch
        return kind.from_native(batch, on_error, report)

    def read_tensor(
        self,
        rows: Iterable[int],
        *,
        workers: int | None = None,
        verify: bool = True,
        max_batch_bytes: int = MAX_BATCH_BYTES,
        max_samples: int = MAX_SAMPLES,
    ) -> npt.NDArray[Any]:
        """Images, decoded in parallel, as one writable array (n, height, width, channels).

        Options and errors as :meth:`read_many_contiguous`. Raises CodecError for a codec that does
        not decode to images, and for images that differ in shape or dtype; ValueError for no rows,
        which have no shape.
        """
        reader = self._reader
        if not reader.native.decodes_to_images:
            raise CodecError(f"{reader.package_path}: its codec does not decode to images")
        options = read_options(
            True,
            workers,
            verify,
            "raise",
            max_batch_bytes=max_batch_bytes,
            max_samples=max_samples,
        )
        rows = row_array(rows, len(reader))
        if len(rows) == 0:
            raise ValueError("no rows, so no shape of a tensor")
        batch = reader.native.read(rows, *options, images=True)
        try:
            return stacked_images(batch)
        except ValueError as error:
            raise CodecError(f"{reader.package_path}: {error}") from error

    def _decode_contiguous(
        self,
        rows: Iterable[int],
        workers: int | None,
        verify: bool,
        on_error: OnError,
        report: list[RecordFailure] | None,
    ) -> ContiguousRecordBatch:
        rows = row_array(rows, len(self._reader))
        failures: list[RecordFailure] = []
        objects = self._read_registered(rows, workers, verify, on_error, failures)
        present = np.ones(len(rows), dtype=bool)
        present[[failure.position for failure in failures]] = False
        nulls = on_error == "null" and len(failures) > 0
        if nulls:
            objects = [obj if here else b"" for obj, here in zip(objects, present, strict=True)]
        for obj in objects:
            if not isinstance(obj, bytes | bytearray | memoryview):
                raise TypeError(f"codec {self.codec.name} decodes to {type(obj)}, not to bytes")
        offsets = np.zeros(len(objects) + 1, dtype=np.uint64)
        offsets[1:] = np.cumsum([len(obj) for obj in objects])
        batch = ContiguousRecordBatch(
            b"".join(objects),
            offsets,
            validity=np.packbits(present, bitorder="little").tobytes() if nulls else None,
            errors=failures,
            positions=np.flatnonzero(present) if on_error == "skip" else None,
        )
        if report is not None:
            report.extend(failures)
        return batch

    def __repr__(self) -> str:
        return repr(self._reader).replace("PackReader", type(self).__name__, 1)
