"""What is said of a finding wherever a person reads of it: its name, its field, both sides, and the advice.

It lays nothing out; what a cause is, is told in `analyzer.causes`.
"""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.core import Finding
from analyzer.registry import describe
from analyzer.report import PrefillRate
from analyzer.wording import counted, differing, known, side

UNCLAIMED = "no known cause"
_EXCERPT = 60


def label(finding: Finding) -> str:
    """A finding's cause, and whether it is waste."""
    kind = f", {finding.kind}" if finding.kind else ""
    return f"{finding.cause or UNCLAIMED} ({'expected' if finding.expected else 'waste'}{kind})"


def field(finding: Finding) -> str:
    """The field at fault and the character in it."""
    char = "" if finding.char is None else f" char {finding.char}"
    return f"{known(finding.path)}{char}"


def told(finding: Finding, gain: str | None) -> Iterator[tuple[str, str]]:
    """Both sides, why, and what to do, each with its label; `gain` is what the advice would bring."""
    if finding.before is not None and finding.after is not None:
        for name, text in zip(("before", "after"), differing(finding.before, finding.after), strict=True):
            yield name, side(text, _EXCERPT)
    if finding.evidence:
        yield "why", finding.evidence
    elif finding.evidence is None and finding.cause is not None:  # where no text is shown
        yield "why", dict(describe("causes"))[finding.cause]
    if advice := "; ".join(part for part in (finding.advice, gain) if part):
        yield "advice", advice


def rate_line(rate: PrefillRate) -> str:
    """What a price in seconds rests on."""
    if rate.tokens_per_second is None or rate.spread is None:
        return f"their time is not known: {rate.problem}"
    hits = {"reported": "", "predicted": " by predicted hits,", "mixed": " by predicted hits in part,"}
    low, high = (round(bound) for bound in rate.spread)
    return (
        f"prefill at {round(rate.tokens_per_second)} tokens/s, quartiles {low} to {high},"
        f"{hits[rate.source or 'reported']} over {counted(rate.turns, 'turn')}"
    )
