"""What a person or a program reads, one form a file; a file's REPORT is found by the registry."""

from __future__ import annotations

from typing import Protocol

from analyzer.report import Report


class ReportForm(Protocol):
    """One form of a report. `format` returns the whole text; nothing is printed here."""

    name: str

    def format(self, report: Report, *, width: int | None, color: bool) -> str:
        """The report as text; `width` is the terminal's in columns, or None where there is no terminal."""
