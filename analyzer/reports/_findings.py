"""The findings of a report for people: what each cost, the dearest first, both sides of it, and what to do.

It words and lays out; what a cause is, is told in `analyzer.causes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from analyzer.finding_groups import FindingGroup, finding_groups
from analyzer.finding_words import field, label, rate_line, told
from analyzer.layout import labelled
from analyzer.report import Report
from analyzer.wording import counted, counted_or_unknown, duration, known

MOST_SHOWN = 12
"""Findings that are told in full: behind the dearest dozen nobody looks for the first thing to mend."""


def print_findings(console: Console, report: Report) -> None:
    """All that is to be said of why prompt was lost, a paragraph for each thing to mend."""
    groups = finding_groups(report.turns)
    if not groups:
        console.print(none(report))
        return
    console.print(f"findings, the dearest first ({rate_line(report.summary.prefill_rate)}):", style="bold")
    for number, group in enumerate(groups[:MOST_SHOWN], start=1):
        console.print()
        console.print(Text.assemble((f"{number}. {label(group.finding)}", "bold"), f": {cost(group)}"))
        console.print(Padding(labelled(details(group)), (0, 0, 0, 3)))
    for line in left(report, groups):
        console.print(f"\n{line}")


def details(group: FindingGroup) -> list[tuple[str, str]]:
    """Field, both sides, why and advice of the dearest of a group, each with its label."""
    finding, rows = group.finding, []
    if group.places > 1:
        rows.append(("field", f"{known(group.path)} ({counted(group.places, 'place')})"))
        rows.append(("such as", f"{field(finding)} in exchange {group.turn.id}"))
    else:
        rows.append(("field", f"{field(finding)}, as in exchange {group.turn.id}"))
    return [*rows, *told(finding, _gain(group))]


def cost(group: FindingGroup) -> str:
    """What the group cost alone."""
    if group.tokens is None:
        return f"{counted(group.turns, 'turn')}; what it costs alone is not known"
    return (
        f"{counted(group.turns, 'turn')}, {counted_or_unknown(group.blocks, 'block')},"
        f" {counted(group.tokens, 'token')}, {duration(group.seconds)}"
    )


def _gain(group: FindingGroup) -> str | None:
    if not group.tokens_a_turn:
        return None
    time = "" if group.seconds_a_turn is None else f" ({duration(group.seconds_a_turn)})"
    if group.expected:
        return f"it costs {counted(group.tokens_a_turn, 'token')}{time} per turn"
    return f"fix this and keep {counted(group.tokens_a_turn, 'more token')}{time} per turn"


def none(report: Report) -> str:
    """What is said where there are no findings."""
    summary = report.summary
    if not summary.rendered or not summary.turns:
        return "no findings: there is nothing to compare"
    unexplained = _unexplained(report)
    if not unexplained:
        return "no findings: every turn begins with all that was sent before it"
    return f"no findings, and no clean bill: {unexplained}"


def left(report: Report, groups: Sequence[FindingGroup]) -> Iterator[str]:
    """What is to be said behind the findings that were told."""
    if rest := groups[MOST_SHOWN:]:
        tokens = sum(group.tokens or 0 for group in rest)
        yield f"{counted(len(rest), 'more finding')}, {counted(tokens, 'token')} in all: see --format json"
    if unexplained := _unexplained(report):
        yield unexplained


def _unexplained(report: Report) -> str | None:
    """Turns that lost something and have no finding."""
    bare = [turn for turn in report.turns if turn.append is False and not turn.findings]
    if not bare:
        return None
    return (
        f"{counted(len(bare), 'turn')} left the parent's prompt, and why is not known: only token ids are,"
        f" or the row tells what failed (such as exchange {bare[0].id})"
    )
