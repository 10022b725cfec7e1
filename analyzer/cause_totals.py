"""Adds up what each cause cost over all turns: the dearest first.

A turn that has one cause twice counts once; its tokens count in full.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from analyzer.core import Finding
from analyzer.report import CauseTotal, Turn


def cause_totals(turns: Iterable[Turn]) -> tuple[CauseTotal, ...]:
    """One total a cause; what could not be restored counts with no tokens."""
    found: dict[str | None, list[Finding]] = defaultdict(list)
    seen: dict[str | None, int] = defaultdict(int)
    for turn in turns:
        for cause in {finding.cause for finding in turn.findings}:
            seen[cause] += 1
        for finding in turn.findings:
            found[finding.cause].append(finding)
    totals = [
        CauseTotal(
            cause=cause,
            turns=seen[cause],
            tokens=sum(finding.tokens or 0 for finding in findings),
            blocks=sum(finding.blocks or 0 for finding in findings),
            expected=all(finding.expected for finding in findings),
            seconds=_sum(finding.seconds for finding in findings),
        )
        for cause, findings in found.items()
    ]
    return tuple(sorted(totals, key=lambda total: (-total.tokens, total.cause or "")))


def _sum(seconds: Iterable[float | None]) -> float | None:
    known = [each for each in seconds if each is not None]
    return sum(known) if known else None
