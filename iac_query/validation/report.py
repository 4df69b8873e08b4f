"""What was found in packs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

import pyarrow as pa

__all__ = ["Finding", "PackReport", "ValidationReport"]

Severity = Literal["error", "note"]

#: What is counted in a pack.
COUNTS = ("records", "slides", "decoded", "crc_checked", "errors", "notes")

#: Findings of one check that a report lists; it counts the others.
_LISTED = 100
#: Packs that a notebook shows.
_SHOWN_PACKS = 50

_SCHEMA = pa.schema(
    {
        "pack": pa.string(),
        "row": pa.int64(),
        "severity": pa.string(),
        "check": pa.string(),
        "reason": pa.string(),
    }
)


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with a pack (``severity`` "error") or worth knowing ("note").

    ``row`` is None for what is of no single record. ``check`` says what was looked at:

    * ``"container"``: header, tables and where records are stored;
    * ``"checksum"``: stored bytes, against their crc32;
    * ``"codec"``: whether records decode;
    * ``"schema"``: header and columns of the payload type;
    * ``"ids"``: whether ids and slide numbers are unique;
    * ``"counts"``: how many records header and tables say there are, which :func:`repair` sets
      right;
    * ``"payload"``: what decoded records hold.
    """

    pack: str
    row: int | None
    check: str
    reason: str
    severity: Severity = "error"

    def __str__(self) -> str:
        row = "" if self.row is None else f"row {self.row}: "
        return f"{row}{self.reason}" if self.severity == "error" else f"note: {row}{self.reason}"


@dataclass(frozen=True)
class PackReport:
    """What was found in one pack.

    ``findings`` are at most 100 of each check, with the number of the others behind them;
    ``errors`` and ``notes`` count all. ``counts`` says of how many ``records`` and ``slides`` the
    pack is, and how many records were ``decoded`` and ``crc_checked``, sound or not; it is empty
    for a pack that could not be opened. ``payload_type`` and ``codec`` are the header's, which may
    leave out that the codec is "none".
    """

    pack: str
    findings: tuple[Finding, ...]
    errors: int
    notes: int
    counts: dict[str, int]
    payload_type: str | None = None
    codec: str | None = None

    @property
    def ok(self) -> bool:
        """Whether there are no errors. Notes do not count."""
        return self.errors == 0

    @property
    def summary(self) -> str:
        """One line."""
        state = f"{self.pack}: {'ok' if self.ok else _many(self.errors, 'error')}"
        if not self.counts:
            return state
        return (
            f"{state} ({self.payload_type}, codec {self.codec}, "
            f"{_many(self.counts['records'], 'record')}, {self.counts['decoded']:,} decoded, "
            f"{self.counts['crc_checked']:,} compared with their crc32)"
        )

    def to_table(self) -> pa.Table:
        """The findings as a table of pack, row, severity, check and reason."""
        return _table(self.findings)

    def __str__(self) -> str:
        return "\n".join([self.summary, *(f"  {finding}" for finding in self.findings)])

    def __repr__(self) -> str:
        return f"<PackReport {self.summary}>"


class ValidationReport:
    """What was found in packs, in their order."""

    def __init__(self, packs: Iterable[PackReport]) -> None:
        self.packs = tuple(packs)

    @property
    def ok(self) -> bool:
        """Whether no pack has errors."""
        return all(report.ok for report in self.packs)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all packs; see :class:`PackReport` for their bound."""
        return tuple(finding for report in self.packs for finding in report.findings)

    @property
    def counts(self) -> dict[str, int]:
        """The sums of the packs' ``counts``, ``errors`` and ``notes``, and how many ``packs``."""
        sums: Counter[str] = Counter(dict.fromkeys(COUNTS, 0), packs=len(self.packs))
        for report in self.packs:
            sums.update({**report.counts, "errors": report.errors, "notes": report.notes})
        return dict(sums)

    def to_table(self) -> pa.Table:
        """The findings as a table of pack, row, severity, check and reason."""
        return _table(self.findings)

    @property
    def summary(self) -> str:
        """One line."""
        counts, bad = self.counts, sum(not report.ok for report in self.packs)
        return (
            f"{_many(counts['packs'], 'pack')}, {bad:,} with errors, "
            f"{_many(counts['records'], 'record')}, {_many(counts['errors'], 'error')}, "
            f"{_many(counts['notes'], 'note')}"
        )

    def __str__(self) -> str:
        lines = [str(report) for report in self.packs]
        return "\n".join(lines if len(lines) == 1 else [*lines, self.summary])

    def __repr__(self) -> str:
        return f"<ValidationReport {self.summary}>"

    def _repr_html_(self) -> str:
        shown = sorted(self.packs, key=lambda report: report.ok)[:_SHOWN_PACKS]
        text = "\n".join(str(report) for report in shown)
        return f"<b>{escape(self.summary)}</b><pre>{escape(text)}</pre>"


def bounded(findings: Iterable[Finding]) -> tuple[tuple[Finding, ...], int, int]:
    """The findings that a report lists, and how many errors and notes there are of all."""
    totals: Counter[tuple[str, Severity, str]] = Counter()
    listed = []
    for finding in findings:
        key = finding.pack, finding.severity, finding.check
        totals[key] += 1
        if totals[key] <= _LISTED:
            listed.append(finding)
    for (pack, severity, check), total in totals.items():
        if total > _LISTED:
            reason = f"and {total - _LISTED:,} more of {check}"
            listed.append(Finding(pack, None, check, reason, severity))
    errors = sum(total for (_, severity, _), total in totals.items() if severity == "error")
    return tuple(listed), errors, totals.total() - errors


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _table(findings: Iterable[Finding]) -> pa.Table:
    rows: list[dict[str, Any]] = []
    for finding in findings:
        # Names of files need not be Unicode.
        pack = os.fsencode(finding.pack).decode("utf-8", "replace")
        rows.append({**vars(finding), "pack": pack})
    return pa.Table.from_pylist(rows, _SCHEMA)
