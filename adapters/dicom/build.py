"""DICOM files into packs."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from tqdm import tqdm

from ..._options import PathLike, worker_count
from ...build import write_data
from . import schema
from .columns import tag_columns
from .instance import Instance
from .intake import FileFailure, Intake
from .model import quiet
from .output import require_free
from .sources import DicomInput, files_below
from .spool import Spool
from .tables import instance_table, series_table

Storage = Literal["jxl", "original"]
Patients = Literal["one", "many"]
Conflicts = Literal["error", "first"]


@dataclass(frozen=True)
class DicomBuild:
    """What became of the files."""

    #: Instances, frames and series in the pack.
    instances: int
    frames: int
    series: int
    #: Files left out because they are byte for byte another one's copy.
    duplicates: int
    #: Files left out because they cannot be read, or conflict with an earlier one.
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
    storage: Storage = "jxl",
    exact: bool | None = None,
    patients: Patients = "one",
    conflicts: Conflicts = "error",
    tags: Iterable[str] = (),
    strict: bool = False,
    show_progress: bool = False,
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
        storage=storage,
        exact=exact,
        patients=patients,
        conflicts=conflicts,
        tags=tags,
        strict=strict,
        show_progress=show_progress,
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
    conflicts: Conflicts = "error",
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
      back. None for where the storage is "original", which always does.
    * ``patients``: ``"one"`` refuses files of several, ``"many"`` takes them.
    * ``conflicts``: what becomes of a file that has another one's SOP Instance UID but not its
      bytes, or is of another patient than it may be. ``"error"`` stops, with all of them in the
      error; ``"first"`` keeps the first file and has the others in ``failures``.
    * ``tags``: elements, by keyword or as eight hexadecimal digits, that become columns of the
      instance table: float64, int64, date32 or string, lists where there may be several values;
      null where an instance has no such value.
    * ``strict``: stop at the first file that cannot be read instead of leaving it out.

    Identical files are kept once. Pixels go to disk as they are encoded; what stays in memory is a
    block of frames, one file, and some kilobytes an instance.

    Raises DicomConflictError for files of several patients and for different ones with one SOP
    Instance UID, with all pairs of such files; ValueError where no file can be read;
    FileExistsError where there is a pack and not ``overwrite``. On any error nothing is left
    behind.
    """
    if storage not in ("jxl", "original"):
        raise ValueError(f"storage is {storage!r}, expected 'jxl' or 'original'")
    if patients not in ("one", "many"):
        raise ValueError(f"patients is {patients!r}, expected 'one' or 'many'")
    if conflicts not in ("error", "first"):
        raise ValueError(f"conflicts is {conflicts!r}, expected 'error' or 'first'")
    worker_count(workers)
    schema.codec_of(schema.PIXELS_JXL, effort)
    if isinstance(dicom_files, str | bytes | os.PathLike):
        raise TypeError("dicom_files is one file, expected a list of them")
    original, many = storage == "original", patients == "many"
    exact = original or bool(exact)
    columns = tag_columns(tags)
    folder = os.path.dirname(require_free(output_path, overwrite))
    with tempfile.TemporaryFile(dir=folder) as file:
        spool = Spool(file, effort=effort, workers=workers, verify=verify)
        intake = Intake(
            columns,
            original=original,
            exact=exact,
            many=many,
            strict=strict,
            keep_first=conflicts == "first",
        )
        with quiet(), tqdm(dicom_files, disable=not show_progress, unit="file") as sources:
            spool.take(intake.frames(sources))
        instances, series = intake.instances, intake.series
        if not instances:
            first = f", the first: {intake.failures[0].error}" if intake.failures else ""
            raise ValueError(f"none of {len(intake.failures)} files can be read{first}")
        if len(series) > 1 << 16:
            raise ValueError(f"{len(series)} series in one pack, it holds at most 65536")
        beyond = exact or many or not all(instance.for_peer for instance in instances)
        version = schema.VERSION if beyond else schema.PEER_VERSION
        templates = [one.encoded_template() for one in series]
        _lay_out(instances, sum(map(len, templates)))
        frames = [frame for instance in instances for frame in instance.frames]
        codecs = {frame.codec_id for frame in frames}
        if not all(instance.frames for instance in instances):
            codecs.add(schema.PIXELS_JXL)  # which rows without pixels name
        header = _header(version, storage, effort, codecs)
        header["metadata_length"] = sum(map(len, templates))
        if intake.counts:
            counts = sorted(intake.counts.items())
            header["errors"] = [{"code": code, "count": count} for code, count in counts]
        write_data(
            output_path,
            header,
            series_table(series, templates),
            instance_table(series, columns, version=version, exact=exact),
            itertools.chain(templates, map(spool.payload, frames)),
            overwrite=overwrite,
        )
    return DicomBuild(
        instances=len(instances),
        frames=len(frames),
        series=len(series),
        duplicates=intake.counts["duplicate_sop_identical"],
        failures=tuple(intake.failures),
        schema_version=version,
    )


def _lay_out(instances: list[Instance], start: int) -> None:
    """Says where frames will lie in the data, one behind the other from ``start`` on."""
    for instance in instances:
        instance.offset = start
        for frame in instance.frames:
            frame.offset = start
            start += frame.length


def _header(version: int, storage: str, effort: int, used: set[int]) -> dict[str, Any]:
    header: dict[str, Any] = {
        "payload_type": schema.PAYLOAD_TYPE,
        "dicom_schema_version": version,
        "metadata_offset": 0,
        "metadata_codec": schema.METADATA_CODEC.name,
        "metadata_codec_params": dict(schema.METADATA_CODEC.parameters()),
        "checksum": "crc32",
        "created_by": "iac_query",
    }
    if version == schema.PEER_VERSION:
        return {
            **header,
            "codec": "jxl",
            "codec_params": {"lossless": True, "effort": effort, "usecontainer": True},
            "jxl_stream_format": "container",
            "dicom_transfer_syntax": schema.JPEG_XL_LOSSLESS,
            "record_unit": "dicom_instance",
        }
    return {
        **header,
        "record_codecs": schema.record_codecs(used or {schema.PIXELS_JXL}, effort),
        "storage": storage,
        "record_unit": "dicom_frame",
    }
