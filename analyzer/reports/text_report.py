"""The report for people: what it adds up to, how far to trust it, a row a turn, and what was in the way.

Laid out with rich; colour only repeats what a word or sign says already.
"""

from __future__ import annotations

from analyzer.layout import console_of, printed
from analyzer.report import Report
from analyzer.reports._findings import print_findings
from analyzer.reports._opening import LEGEND, notes, opening
from analyzer.reports._pool_sweep import print_sweep
from analyzer.reports._rows import print_rows
from analyzer.wording import one_line


class TextReport:
    """A table for people."""

    name = "text"

    def format(self, report: Report, *, width: int | None, color: bool) -> str:
        """Summary, calibration, a row a turn, notes, and last, where a terminal stops, the findings."""
        console = console_of(width, color=color)
        for line in opening(report):
            console.print(one_line(line), soft_wrap=True)  # a line each, whoever reads them
        if report.turns:
            console.print()
            print_rows(console, report.turns, exact=report.server.engine_exact)
            console.print(LEGEND, style="dim")
        for line in notes(report):
            console.print(one_line(line))
        if report.pool_sweep:
            console.print()
            print_sweep(console, report.pool_sweep, report.server.pool_blocks)
        if report.turns:
            console.print()
            print_findings(console, report)
        return printed(console)


REPORT = TextReport()
