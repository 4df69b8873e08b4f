"""Reading packs of documents. The two schemas of them differ in what a document is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, Self

import pyarrow as pa

from .._options import OnError, PathLike
from ..errors import RecordFailure
from ._documents import Patient, open_documents, read_documents, read_one
from ._row_ids import RowIds


class DocumentReader(Generic[Patient]):
    """Reads patients' documents, by patient or by row, from packs of any codec of bytes.

    Opens eagerly, pickles as its absolute path, and may be shared by threads. Raises PackError for
    a pack of another payload type.
    """

    #: What the schema calls such packs.
    _payload_type: str
    #: Makes a patient of id, institution and documents.
    _made: Callable[[str, str, list[tuple[Any, ...]]], Patient]

    def __init__(self, package_path: PathLike) -> None:
        self._pack = open_documents(package_path, self._payload_type)
        self._patients = RowIds(self._pack.reader, "patient_id")

    @property
    def header(self) -> dict[str, Any]:
        """The JSON header."""
        return self._pack.header

    @property
    def index_table(self) -> pa.Table:
        """The index table, a row a patient."""
        return self._pack.index_table

    @property
    def record_count(self) -> int:
        """Number of patients."""
        return len(self._pack)

    @property
    def patient_ids(self) -> list[str]:
        """The patient of each row."""
        return list(self._patients.ids)

    def read_patient(self, patient_id: str) -> Patient:
        """One patient. Raises KeyError for an unknown one, PackError where two rows have that id.

        Other errors as :meth:`read_patient_at`.
        """
        return self.read_patient_at(self._patients.row(patient_id))

    def read_patient_at(self, row: int) -> Patient:
        """The patient of a row; negative rows count from the end.

        Raises PackIndexError for a row that is not there, ChecksumError and CodecError for a
        damaged one, with pack and row in them.
        """
        return read_one(self._pack, row, self._made)

    def read_patients_at(
        self,
        rows: Iterable[int],
        *,
        workers: int | None = None,
        verify: bool = True,
        on_error: OnError = "raise",
        report: list[RecordFailure] | None = None,
    ) -> list[Patient | None]:
        """The patients of rows, decoded in parallel, in the order given, duplicates included.

        Options and errors as :meth:`VariableRecordPack.read_many`; a missing record is None.
        """
        return read_documents(
            self._pack,
            rows,
            self._made,
            workers=workers,
            verify=verify,
            on_error=on_error,
            report=report,
        )

    def close(self) -> None:
        """Lets go of the file."""
        self._pack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        """Number of patients."""
        return len(self._pack)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self._pack.reader.package_path),)

    def __repr__(self) -> str:
        return repr(self._pack).replace("VariableRecordPack", type(self).__name__, 1)
