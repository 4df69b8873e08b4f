"""Timing of contestants against each other, and tables of what came out."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any


class Timings:
    """Seconds that each contestant took, round by round."""

    def __init__(self, seconds: dict[str, list[float]]) -> None:
        self._seconds = seconds

    @property
    def names(self) -> list[str]:
        """Of the contestants."""
        return list(self._seconds)

    def median(self, name: str) -> float:
        """Seconds of one contestant."""
        return statistics.median(self._seconds[name])

    def ratio(self, name: str, to: str) -> float:
        """How many times as long ``name`` takes as ``to``: the median of each round's ratio."""
        pairs = zip(self._seconds[name], self._seconds[to], strict=True)
        return statistics.median(one / other for one, other in pairs)


def interleaved(contestants: dict[str, Callable[[], Any]], rounds: int = 15) -> Timings:
    """Runs all contestants in every round, each time from another one on, so that what else the
    machine does hits all of them alike. A first round is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    names = list(contestants)
    for number in range(-1, rounds):
        start = number % len(names)
        for name in names[start:] + names[:start]:
            began = time.perf_counter()
            result = contestants[name]()
            took = time.perf_counter() - began
            del result
            if number >= 0:
                seconds[name].append(took)
    return Timings(seconds)


def print_in_pairs(
    title: str,
    name: str,
    run: Callable[[], Any],
    others: dict[str, Callable[[], Any]],
    at_most: dict[str, float],
    rounds: int,
) -> None:
    """A table of one contestant against each of the others, with the ratios aimed at.

    In pairs: behind a long scan nothing is left in the processor's caches.
    """
    lines = []
    for other, run_other in others.items():
        times = interleaved({name: run, other: run_other}, rounds)
        medians = (times.median(name) * 1e3, times.median(other) * 1e3)
        lines.append([other, *medians, times.ratio(name, to=other), at_most.get(other, "")])
    print_table(title, ["", name, "this", "ratio", "at most"], lines)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table with the first column to the left and the others to the right."""
    cells = [list(columns), *([_text(value) for value in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    print(title)
    for row in cells:
        rest = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        print("  " + "  ".join([row[0].ljust(widths[0]), *rest]))
    print(flush=True)


def _text(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)
