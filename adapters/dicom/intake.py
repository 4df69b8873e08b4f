"""Which files go into a pack: those that can be read, once, of one patient."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from .._patient_ids import normalised
from .columns import TagColumn
from .conflicts import MOST_KEPT, DicomConflict, DicomConflictError
from .instance import (
    Frame,
    Instance,
    frames_as_pixels,
    frames_as_they_are,
    header_without_pixels,
    instance_of,
    read_dataset,
)
from .sources import name_of, read_source
from .tables import Series
from .template import Template


@dataclass(frozen=True)
class FileFailure:
    """A file that is not in the pack, and why."""

    source: str
    error: Exception


class Intake:
    """The instances of all files read so far, by series; their frames go elsewhere.

    ``original``: frames are their bytes in the file, not pixels. ``exact``: headers are kept.
    ``many``: of several patients, if not in one series. ``strict``: all files have to be readable.
    ``keep_first``: a file that conflicts with an earlier one is left out.
    """

    def __init__(
        self,
        columns: list[TagColumn],
        *,
        original: bool,
        exact: bool,
        many: bool,
        strict: bool,
        keep_first: bool,
    ) -> None:
        self._columns = columns
        self._original, self._exact = original, exact
        self._many, self._strict, self._keep_first = many, strict, keep_first
        self._series: dict[tuple[str, str], Series] = {}
        self._by_uid: dict[str, Instance] = {}
        # The first instance that names the patient of a series, or of the pack (None).
        self._patients: dict[tuple[str, str] | None, Instance] = {}
        self._conflicts: list[DicomConflict] = []
        self.failures: list[FileFailure] = []
        #: What the header's "errors" count.
        self.counts: Counter[str] = Counter()

    @property
    def instances(self) -> list[Instance]:
        """All instances in the order they came."""
        return list(self._by_uid.values())

    @property
    def series(self) -> list[Series]:
        """All series in the order of their UIDs, with their patients."""
        names: dict[str, str] = {}
        for key, series in self._series.items():
            named = self._patients.get(self._scope(key))
            if named is not None:
                same = names.setdefault(normalised(named.patient_id), named.patient_id)
                series.patient_id = same
        return [self._series[key] for key in sorted(self._series)]

    def frames(self, sources: Iterable[Any]) -> Iterator[Frame]:
        """The frames of all files that can be read.

        From the first conflict on there will be no pack: the files after it are only compared, and
        DicomConflictError with all conflicts is raised behind the last.
        """
        for position, source in enumerate(sources):
            name = name_of(source, position)
            try:
                yield from self._frames_of(source, name)
            except MemoryError:
                raise
            except DicomConflictError as conflict:
                self._conflict(name, conflict)
            except Exception as error:  # pydicom has one of every kind for broken files
                if self._strict:
                    raise ValueError(f"{name}: cannot be read: {error}") from error
                self.failures.append(FileFailure(name, error))
                self.counts["unreadable_file"] += 1
        if self._conflicts:
            raise DicomConflictError(self._conflicts, self.counts["conflicting_file"])

    def _conflict(self, name: str, error: DicomConflictError) -> None:
        self.counts["conflicting_file"] += 1
        if self._keep_first:
            self.failures.append(FileFailure(name, error))
        elif len(self._conflicts) < MOST_KEPT:
            self._conflicts += error.conflicts

    def _frames_of(self, source: Any, name: str) -> Iterator[Frame]:
        data = read_source(source)
        ds = read_dataset(data)
        instance, model = instance_of(ds, data, name, self._columns)
        if self._is_duplicate(instance):
            return
        self._check_patient(instance)
        if self._conflicts:
            self._add(instance, model)
            return
        if self._original:
            frames = frames_as_they_are(ds, data, instance)
        else:
            frames = frames_as_pixels(ds, instance)
            if self._exact:
                instance.header = header_without_pixels(ds, data, instance)
        yield from frames
        # Only now that all of its frames are known to be there.
        self._add(instance, model)

    def _is_duplicate(self, instance: Instance) -> bool:
        other = self._by_uid.get(instance.sop_instance_uid)
        if other is None:
            return False
        if other.digest != instance.digest:
            raise _conflict_of(
                other,
                instance,
                "differ but have one SOP Instance UID",
                "leave one of the two out, or pass conflicts='first' to keep the first",
            )
        self.counts["duplicate_sop_identical"] += 1
        return True

    def _check_patient(self, instance: Instance) -> None:
        """Files without a Patient ID are of any patient."""
        known = self._patients.get(self._scope(instance.key))
        if known is None or not instance.patient_id:
            return
        if normalised(known.patient_id) != normalised(instance.patient_id):
            raise _conflict_of(
                known,
                instance,
                "are of different patients" + (" but of one series" if self._many else ""),
                "leave one of the two out, or pass conflicts='first' to keep the first"
                if self._many
                else "pass patients='many' to take both",
            )
        if known.patient_id != instance.patient_id:
            self.counts["patient_id_normalized"] += 1

    def _scope(self, series: tuple[str, str]) -> tuple[str, str] | None:
        """What has to be of one patient: each series, or all (None)."""
        return series if self._many else None

    def _add(self, instance: Instance, model: dict[str, Any]) -> None:
        self._by_uid[instance.sop_instance_uid] = instance
        if instance.patient_id:
            self._patients.setdefault(self._scope(instance.key), instance)
        series = self._series.get(instance.key)
        if series is None:
            series = self._series[instance.key] = Series(Template(model), instance.modality)
        else:
            series.template.add(model)
        series.instances.append(instance)
        self.counts.update(error["code"] for error in model.get("errors", ()))


def _conflict_of(first: Instance, second: Instance, reason: str, advice: str) -> DicomConflictError:
    return DicomConflictError([DicomConflict(first.source, second.source, reason, advice)])
