"""Files that cannot be in one pack together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

#: How many conflicts an error keeps, and how many of them its message names.
MOST_KEPT, MOST_NAMED = 1000, 10


@dataclass(frozen=True)
class DicomConflict:
    """A file that cannot be in a pack beside an earlier one."""

    #: The earlier file and the later one: paths, or the positions of inputs that have none.
    first: str
    second: str
    #: What is wrong with the two, and what can be done.
    reason: str
    advice: str

    def __str__(self) -> str:
        return f"{self.first} and {self.second} {self.reason}"


class DicomConflictError(ValueError):
    """Files that cannot be in one pack together: all of a run, by pairs.

    ``conflicts`` has them as DicomConflict, the first thousand where there are more; ``count`` is
    how many there are, ``paths`` the later file of each pair, without which the rest can be built.
    """

    def __init__(self, conflicts: Sequence[DicomConflict], count: int | None = None) -> None:
        self.conflicts = tuple(conflicts)
        self.count = len(self.conflicts) if count is None else count
        super().__init__(self.conflicts, self.count)

    @property
    def paths(self) -> tuple[str, ...]:
        """The later file of each pair."""
        return tuple(conflict.second for conflict in self.conflicts)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        advice = " or ".join(dict.fromkeys(each.advice for each in self.conflicts))
        if self.count == 1:
            yield f"{self.conflicts[0]}: {advice}"
            return
        yield f"{self.count} files conflict with earlier ones: {advice}"
        yield from map(str, self.conflicts[:MOST_NAMED])
        if self.count > MOST_NAMED:
            yield f"and {self.count - MOST_NAMED} more"
