"""DICOM files into packs."""

from __future__ import annotations

import itertools
import os
import tempfile
import unicodedata
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from tqdm import tqdm

from ..._options import PathLike, worker_count
from ...build import build_data_segment_from_chunks
from . import schema
from .columns import TagColumn, tag_columns
from .instance import (
    Frame,
    Instance,
    StoredFrame,
    frames_as_pixels,
    frames_as_they_are,
    header_without_pixels,
    instance_of,
    read_dataset,
)
from .model import quiet
from .output import require_free
from .sources import DicomInput, files_below, name_of, read_source
from .tables import Series, instance_table, series_table
from .template import Template

Storage = Literal["jxl", "original"]
Patients = Literal["one", "many"]

#: Frames encoded at a time: so many, or so many bytes of them.
_BLOCK_FRAMES = 64
_BLOCK_BYTES = 16 << 20


class DicomConflictError(ValueError):
    """Files that cannot be in one pack together."""


@dataclass(frozen=True)
class FileFailure:
    """A file that is not in the pack, and why."""

    source: str
    error: Exception


@dataclass(frozen=True)
class DicomBuild:
    """What became of the files."""

    #: Instances, frames and series in the pack.
    instances: int
    frames: int
    series: int
    #: Files left out because they are byte for byte another one's copy.
    duplicates: int
    #: Files left out because they cannot be read.
    failures: tuple[FileFailure, ...]
    #: The pack's ``dicom_schema_version``: 1 where iatro-base-iac 0.1.4 reads it, else 2.
    schema_version: int


def build_dicom_patient_package(
    dicom_directory: PathLike,
    output_path: PathLike,
    *,
    effort: int = 7,
    workers: int | None = None,
    verify: bool = False,
    overwrite: bool = False,
    pattern: str = "*.dcm",
    **options: Any,
) -> DicomBuild:
    """A pack of the files below a folder, subfolders included, whose name fits ``pattern``.

    Upper and lower case are alike. All else as :func:`build_dicom_patient_package_from_files`.
    """
    return build_dicom_patient_package_from_files(
        files_below(dicom_directory, pattern),
        output_path,
        effort=effort,
        workers=workers,
        verify=verify,
        overwrite=overwrite,
        **options,
    )


def build_dicom_patient_package_from_files(
    dicom_files: Iterable[DicomInput],
    output_path: PathLike,
    *,
    effort: int = 7,
    workers: int | None = None,
    verify: bool = False,
    overwrite: bool = False,
    storage: Storage = "jxl",
    exact: bool | None = None,
    patients: Patients = "one",
    tags: Iterable[str] = (),
    strict: bool = False,
    show_progress: bool = False,
) -> DicomBuild:
    """A pack of DICOM files given as paths, bytes or binary streams.

    * ``effort``: of JPEG XL, 1 to 10. ``workers``: threads that encode; None for as many as are
      useful, 1 for none beside the caller's. ``verify``: decode again what was encoded.
    * ``storage``: ``"jxl"`` keeps pixels, as pydicom's pixel_array has them, without loss: as JPEG
      XL, those of 32 and 64 bits with Zstandard. ``"original"`` keeps the bytes of frames.
    * ``exact``: keep the headers' bytes too, so that ``read_dicom(row, exact=True)`` gives them
      back. None for where the storage is "original".
    * ``patients``: ``"one"`` refuses files of several, ``"many"`` takes them.
    * ``tags``: elements, by keyword or as eight hexadecimal digits, that become columns of the
      instance table: float64, int64, date32 or string, lists where there may be several values;
      null where an instance has no such value.
    * ``strict``: stop at the first file that cannot be read instead of leaving it out.

    Identical files are kept once. Pixels go to disk as they are encoded; what stays in memory is a
    block of frames, one file, and some kilobytes an instance.

    Raises DicomConflictError for files of several patients and for different ones with one SOP
    Instance UID, naming both files; ValueError where no file can be read; FileExistsError where
    there is a pack and not ``overwrite``. On any error nothing is left behind.
    """
    if storage not in ("jxl", "original"):
        raise ValueError(f"storage is {storage!r}, expected 'jxl' or 'original'")
    if patients not in ("one", "many"):
        raise ValueError(f"patients is {patients!r}, expected 'one' or 'many'")
    worker_count(workers)
    schema.codec_of(schema.PIXELS_JXL, effort)
    if isinstance(dicom_files, str | bytes | os.PathLike):
        raise TypeError("dicom_files is one file, expected a list of them")
    folder = os.path.dirname(require_free(output_path, overwrite))
    with tempfile.TemporaryFile(dir=folder) as spool:
        build = _Build(
            spool,
            tag_columns(tags),
            effort=effort,
            workers=workers,
            verify=verify,
            original=storage == "original",
            exact=storage == "original" if exact is None else exact,
            many=patients == "many",
            strict=strict,
        )
        with quiet(), tqdm(dicom_files, disable=not show_progress, unit="file") as sources:
            build.take(sources)
        return build.write(output_path, overwrite)


@dataclass
class _Build:
    """Instances so far, their frames in the spool."""

    spool: Any
    columns: list[TagColumn]
    effort: int
    workers: int | None
    verify: bool
    original: bool
    exact: bool
    many: bool
    strict: bool
    series: dict[tuple[str, str], Series] = field(default_factory=dict)
    instances: dict[str, Instance] = field(default_factory=dict)  # by SOP Instance UID
    # The first of each circle that has a Patient ID.
    patients: dict[tuple[str, str] | None, Instance] = field(default_factory=dict)
    failures: list[FileFailure] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)  # of the header's "errors"
    spooled: int = 0

    def take(self, sources: Iterable[Any]) -> None:
        """Reads all files; the next block is read while one is being encoded."""
        blocks = _blocks(self._frames(sources))
        if self.workers == 1:
            for block in blocks:
                self._store(block, self._encoded(block))
            return
        with ThreadPoolExecutor(1) as encoder:
            waiting: tuple[list[Frame], Future[list[bytes]]] | None = None
            for block in blocks:
                future = encoder.submit(self._encoded, block)
                if waiting:
                    self._store(waiting[0], waiting[1].result())
                waiting = block, future
            if waiting:
                self._store(waiting[0], waiting[1].result())

    def _frames(self, sources: Iterable[Any]) -> Iterator[Frame]:
        """The frames of all files that can be read."""
        for position, source in enumerate(sources):
            name = name_of(source, position)
            try:
                yield from self._frames_of(source, name)
            except (DicomConflictError, MemoryError):
                raise
            except Exception as error:  # pydicom has one of every kind for broken files
                if self.strict:
                    raise ValueError(f"{name}: cannot be read: {error}") from error
                self.failures.append(FileFailure(name, error))

    def _frames_of(self, source: Any, name: str) -> Iterator[Frame]:
        data = read_source(source)
        ds = read_dataset(data)
        instance, model = instance_of(ds, data, name, self.columns)
        if self._is_duplicate(instance):
            return
        self._check_patient(instance)
        if self.original:
            frames = frames_as_they_are(ds, data, instance)
        else:
            frames = frames_as_pixels(ds, instance)
            if self.exact:
                instance.header = header_without_pixels(ds, data, instance)
        yield from frames
        self._add(instance, model)

    def _is_duplicate(self, instance: Instance) -> bool:
        other = self.instances.get(instance.sop_instance_uid)
        if other is None:
            return False
        if other.digest != instance.digest:
            raise DicomConflictError(
                f"{other.source} and {instance.source} differ but have one SOP Instance UID"
            )
        self._count("duplicate_sop_identical")
        return True

    def _check_patient(self, instance: Instance) -> None:
        """Raises DicomConflictError where it is of another patient than those it belongs to.

        Files without a Patient ID belong to any.
        """
        known = self.patients.get(self._circle(instance.key))
        if known is None or not instance.patient_id:
            return
        if _normalised(known.patient_id) != _normalised(instance.patient_id):
            advice = "but of one series" if self.many else "pass patients='many' to take both"
            raise DicomConflictError(
                f"{known.source} and {instance.source} are of different patients, {advice}"
            )
        if known.patient_id != instance.patient_id:
            self._count("patient_id_normalized")

    def _circle(self, series: tuple[str, str]) -> tuple[str, str] | None:
        """What has to be of one patient: each series, or all."""
        return series if self.many else None

    def _add(self, instance: Instance, model: dict[str, Any]) -> None:
        """Takes an instance whose frames have all been read."""
        self.instances[instance.sop_instance_uid] = instance
        if instance.patient_id:
            self.patients.setdefault(self._circle(instance.key), instance)
        series = self.series.get(instance.key)
        if series is None:
            series = self.series[instance.key] = Series(Template(model), instance.modality)
        else:
            series.template.add(model)
        series.instances.append(instance)
        for error in model.get("errors", ()):
            self._count(error["code"])

    def _count(self, code: str) -> None:
        self.counts[code] = self.counts.get(code, 0) + 1

    # Encoding

    def _encoded(self, block: list[Frame]) -> list[bytes]:
        """What is stored of a block's frames."""
        payloads: list[Any] = [frame.data for frame in block]
        for codec_id in {frame.codec_id for frame in block}.intersection(schema.ENCODED):
            codec = schema.codec_of(codec_id, self.effort)
            places = [i for i, frame in enumerate(block) if frame.codec_id == codec_id]
            objects = [payloads[i] for i in places]
            encoded = codec.encode_many(objects, self.workers)
            if self.verify:
                decoded = codec.decode_many(encoded, self.workers)
                for i, obj, found in zip(places, objects, decoded, strict=True):
                    if not _same(found, obj):
                        source = block[i].instance.source
                        raise ValueError(f"{source}: a frame decodes to other pixels")
            for i, payload in zip(places, encoded, strict=True):
                payloads[i] = payload
        return payloads

    def _store(self, block: list[Frame], payloads: list[bytes]) -> None:
        for frame, payload in zip(block, payloads, strict=True):
            self.spool.write(payload)
            stored = StoredFrame(frame.codec_id, self.spooled, len(payload), zlib.crc32(payload))
            frame.instance.frames.append(stored)
            self.spooled += len(payload)

    # Writing

    def write(self, output_path: PathLike, overwrite: bool) -> DicomBuild:
        """Writes the pack of all instances."""
        if not self.instances:
            first = f", the first: {self.failures[0].error}" if self.failures else ""
            raise ValueError(f"none of {len(self.failures)} files can be read{first}")
        series = [self.series[key] for key in sorted(self.series)]
        if len(series) > 1 << 16:
            raise ValueError(f"{len(series)} series in one pack, it holds at most 65536")
        names: dict[str, str] = {}
        for one in series:
            known = self.patients.get(self._circle(one.instances[0].key))
            if known is not None:
                name = names.setdefault(_normalised(known.patient_id), known.patient_id)
                one.patient_id = name
        instances = list(self.instances.values())
        templates = [one.encoded_template() for one in series]
        version = self._version(instances)
        metadata_length = sum(map(len, templates))
        _lay_out(instances, metadata_length)
        frames = [frame for instance in instances for frame in instance.frames]
        build_data_segment_from_chunks(
            output_path,
            self._header(version, metadata_length, {frame.codec_id for frame in frames}),
            series_table(series, templates),
            instance_table(series, self.columns, version=version, exact=self.exact),
            itertools.chain(templates, map(self._spooled, frames)),
            overwrite=overwrite,
        )
        return DicomBuild(
            len(instances),
            len(frames),
            len(series),
            self.counts.get("duplicate_sop_identical", 0),
            tuple(self.failures),
            version,
        )

    def _version(self, instances: list[Instance]) -> int:
        beyond = self.original or self.exact or self.many
        if beyond or not all(instance.for_peer for instance in instances):
            return schema.VERSION
        return schema.PEER_VERSION

    def _header(self, version: int, metadata_length: int, used: set[int]) -> dict[str, Any]:
        counts = {**self.counts, "unreadable_file": len(self.failures)}
        header: dict[str, Any] = {
            "payload_type": schema.PAYLOAD_TYPE,
            "dicom_schema_version": version,
            "metadata_offset": 0,
            "metadata_length": metadata_length,
            "metadata_codec": schema.METADATA_CODEC.name,
            "metadata_codec_params": dict(schema.METADATA_CODEC.parameters()),
            "checksum": "crc32",
            "created_by": "iac_query",
        }
        if errors := [{"code": k, "count": n} for k, n in sorted(counts.items()) if n]:
            header["errors"] = errors
        if version == schema.PEER_VERSION:
            params = {"lossless": True, "effort": self.effort, "usecontainer": True}
            return {
                **header,
                "codec": "jxl",
                "codec_params": params,
                "jxl_stream_format": "container",
                "dicom_transfer_syntax": schema.JPEG_XL_LOSSLESS,
                "record_unit": "dicom_instance",
            }
        return {
            **header,
            "record_codecs": schema.record_codecs(used or {schema.PIXELS_JXL}, self.effort),
            "storage": "original" if self.original else "jxl",
            "record_unit": "dicom_frame",
        }

    def _spooled(self, frame: StoredFrame) -> bytes:
        self.spool.seek(frame.spooled)
        payload = self.spool.read(frame.length)
        if len(payload) != frame.length:
            raise OSError("the temporary file of frames was truncated meanwhile")
        return payload


def _lay_out(instances: list[Instance], start: int) -> None:
    """Says where frames will lie in the data, one behind the other from ``start`` on."""
    for instance in instances:
        instance.offset = start
        for frame in instance.frames:
            frame.offset = start
            start += frame.length


def _blocks(frames: Iterable[Frame]) -> Iterator[list[Frame]]:
    block: list[Frame] = []
    size = 0
    for frame in frames:
        block.append(frame)
        size += memoryview(frame.data).nbytes
        if len(block) == _BLOCK_FRAMES or size >= _BLOCK_BYTES:
            yield block
            block, size = [], 0
    if block:
        yield block


def _same(found: Any, obj: Any) -> bool:
    return np.array_equal(found, obj) if isinstance(obj, np.ndarray) else found == obj


def _normalised(patient_id: str) -> str:
    """A Patient ID as it is compared."""
    return unicodedata.normalize("NFKC", patient_id).strip().casefold()
