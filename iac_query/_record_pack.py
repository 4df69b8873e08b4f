"""What packs of variable and of fixed records have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import pyarrow as pa

from ._html import pack_html
from ._options import PathLike
from .errors import PackError
from .pack import PackReader
from .remote import RemoteOptions


class RecordPack:
    """A pack read as decoded records, over a :class:`PackReader` of the stored ones.

    Opens eagerly, from paths and URLs, and pickles and may be shared like the reader.
    """

    #: What the core calls such packs.
    kind: str
    #: The class for the others.
    other: str

    def __init__(
        self,
        package_path: PathLike,
        storage_options: Mapping[str, Any] | None = None,
        remote: RemoteOptions | None = None,
    ) -> None:
        self._reader = PackReader(package_path, storage_options, remote)
        if self._reader.native.kind != self.kind:
            raise PackError(
                f"{self._reader.package_path}: is not a pack of {self.kind} records: open it with "
                f"{self.other}"
            )

    @property
    def reader(self) -> PackReader:
        """The reader of stored bytes below."""
        return self._reader

    @property
    def header(self) -> dict[str, Any]:
        """The JSON header."""
        return self._reader.header

    @property
    def slide_table(self) -> pa.Table:
        """The slide table."""
        return self._reader.slide_table

    @property
    def index_table(self) -> pa.Table:
        """The index table, a row a record."""
        return self._reader.index_table

    @property
    def record_count(self) -> int:
        """Number of records."""
        return len(self._reader)

    @property
    def stats(self) -> dict[str, int]:
        """What a URL has cost so far, see :attr:`PackReader.stats`."""
        return self._reader.stats

    def close(self) -> None:
        """Lets go of the file."""
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        """Number of records."""
        return len(self._reader)

    def _repr_html_(self) -> str | None:
        return pack_html(self._reader, type(self).__name__)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._reader.__reduce__()[1]
