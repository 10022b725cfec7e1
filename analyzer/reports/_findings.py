"""The findings of a report for people: what each cause cost, the dearest first, and what to do.

It adds up and words; what a cause is, is told in `analyzer.causes`.
"""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.core import Finding
from analyzer.report import CauseTotal, Report

UNCLAIMED = "no known cause"


def finding_lines(report: Report) -> Iterator[str]:
    """Two lines a cause: what it cost, and an example of it with advice."""
    if not report.summary.causes:
        return
    yield "findings, the dearest first:"
    for total in report.summary.causes:
        turn, finding = _dearest(report, total.cause)
        yield f"  {_cost(total)}"
        yield f"    {finding.evidence} ({finding.path}, turn {turn}): {finding.advice}"


def _cost(total: CauseTotal) -> str:
    kind = "expected" if total.expected else "waste"
    return (
        f"{total.cause or UNCLAIMED}: {total.tokens} tokens, {total.blocks} blocks in {total.turns} turns"
        f" ({kind})"
    )


def _dearest(report: Report, cause: str | None) -> tuple[int, Finding]:
    """The exchange and finding in which a cause cost most."""
    found = [(turn.id, item) for turn in report.turns for item in turn.findings if item.cause == cause]
    return max(found, key=lambda pair: pair[1].tokens or 0)
