"""Rows of a pack by the id in a column of its index."""

from __future__ import annotations

from ..errors import PackError
from ..pack import PackReader


class RowIds:
    """The ids in one text column of an index table, read when they are first asked for."""

    def __init__(self, reader: PackReader, column: str) -> None:
        self._reader = reader
        self._column = column
        self._ids: list[str] | None = None
        self._rows: dict[str, int] | None = None

    @property
    def ids(self) -> list[str]:
        """The id of each row. Raises PackError where the index has no such column."""
        if self._ids is None:
            try:
                table = self._reader.read_index_table([self._column])
            except KeyError as error:
                raise PackError(
                    f"{self._reader.package_path}: its index has no column {self._column}"
                ) from error
            self._ids = table[self._column].to_pylist()
        return self._ids

    def row(self, id: str) -> int:
        """The row of an id.

        Raises KeyError for one that is not there, PackError where two rows have the same.
        """
        if self._rows is None:
            rows = dict(zip(reversed(self.ids), reversed(range(len(self.ids))), strict=True))
            if len(rows) < len(self.ids):
                again = next(row for row, id in enumerate(self.ids) if rows[id] != row)
                raise PackError(
                    f"{self._reader.package_path}: rows {rows[self.ids[again]]} and {again} have "
                    f"the same {self._column}, read them by row"
                )
            self._rows = rows
        try:
            return self._rows[id]
        except (KeyError, TypeError):
            raise KeyError(f"no {self._column} {id!r} in {self._reader.package_path}") from None
