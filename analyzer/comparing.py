"""Sets two captures side by side, as text or JSON: what `compare` does.

Data goes to stdout; progress and complaints go to stderr. No text of a prompt is in it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from analyzer.comparison import Comparison, compare
from analyzer.finding_words import UNCLAIMED
from analyzer.layout import console_of, printed
from analyzer.open_capture import open_capture
from analyzer.pipeline import Options
from analyzer.report import CauseTotal, Report
from analyzer.reporting import DONE, FAILED, check_usage, put, read_report
from analyzer.reports.json_report import rounded, server_object, summary_object
from analyzer.sealed_overlap import Overlap, overlap, overlap_line
from analyzer.wording import counted, duration, known, one_line

SCHEMA = "locality-compare/1"

_NOTHING = CauseTotal(cause=None, turns=0, tokens=0, blocks=0, expected=True)

type Row = tuple[str, str, str, str]


def run_compare(targets: tuple[str, str], options: Options, *, form: str) -> int:
    """Compare two captures; returns the exit status: 1 where nothing of one could be rendered.

    Raises what an analysis raises.
    """
    check_usage(options)
    reports = [read_report(target, options, no_text=True) for target in targets]
    found = compare(*reports)
    with open_capture(targets[0]) as a, open_capture(targets[1]) as b:
        prompts = overlap(a, b)
    if form == "json":
        text = json.dumps(as_object(found, targets, prompts), indent=1, ensure_ascii=False) + "\n"
        put(lambda width, color: text, None)
    else:
        lines = () if prompts is None else (overlap_line(prompts),)
        put(lambda width, color: comparison_text(found, targets, lines, width=width, color=color), None)
    empty = [target for target, report in zip(targets, reports, strict=True) if not report.summary.rendered]
    for target in empty:
        print(f"locality: nothing of {target} was rendered; `locality report` says why", file=sys.stderr)
    return FAILED if empty else DONE


def as_object(found: Comparison, targets: tuple[str, str], prompts: Overlap | str | None) -> dict[str, Any]:
    """The comparison as one JSON object; summaries and servers are as in the report's."""
    sides = {
        name: {
            "capture": target,
            "server": server_object(report.server),
            "summary": summary_object(report.summary),
        }
        for name, target, report in (("a", targets[0], found.a), ("b", targets[1], found.b))
    }
    return {
        "schema": SCHEMA,
        **sides,
        "causes": [{"cause": pair.cause, "a": _total(pair.a), "b": _total(pair.b)} for pair in found.causes],
        "better": found.better,
        "cautions": [*found.cautions, *([prompts] if isinstance(prompts, str) else [])],
        "shared_prompts": asdict(prompts) if isinstance(prompts, Overlap) else None,
    }


def _total(total: CauseTotal | None) -> dict[str, Any] | None:
    return None if total is None else rounded(asdict(total))


def comparison_text(
    found: Comparison, targets: tuple[str, str], lines: Sequence[str] = (), *, width: int | None, color: bool
) -> str:
    """The verdict, `lines`, a table of totals, one of causes, and what makes the two hard to compare."""
    console = console_of(width, color=color)
    for name, target in zip("AB", targets, strict=True):
        console.print(one_line(f"{name}: {target}"), soft_wrap=True)
    console.print(verdict(found), style="bold")
    for line in lines:
        console.print(line)
    console.print()
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("", overflow="fold")
    for heading in ("A", "B", "B - A"):
        table.add_column(heading, justify="right", overflow="fold")
    for row in (*_totals(found.a, found.b), *_causes(found)):
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)
    if found.cautions:
        console.print()
    for caution in found.cautions:
        console.print(one_line(f"mind: {caution}"))
    return printed(console)


def verdict(found: Comparison) -> str:
    """Which side is better and by how much, in one sentence."""
    a, b = found.a.summary, found.b.summary
    if found.better is None:
        return "which is better is not known: one of them has no turn with a parent"
    assert a.reusable_prefix_pct is not None and b.reusable_prefix_pct is not None
    assert a.recomputed_tokens is not None and b.recomputed_tokens is not None
    points = round(abs(b.reusable_prefix_pct - a.reusable_prefix_pct), 1)
    tokens = abs(b.recomputed_tokens - a.recomputed_tokens)
    if found.better == "neither":
        if not points and not tokens:
            return "neither is better: they reuse the same share, and compute equally many tokens again"
        more = "B" if b.reusable_prefix_pct > a.reusable_prefix_pct else "A"
        again = counted(tokens, "more token")
        return f"neither is better: {more} reuses {points} points more, and yet computes {again} again"
    return (
        f"{found.better.upper()} is better: {points} points more of its prompt tokens are reusable,"
        f" and {counted(tokens, 'token')} fewer are computed again"
    )


def _totals(a: Report, b: Report) -> Iterator[Row]:
    ours, theirs = a.summary, b.summary
    yield _row("turns with a parent", ours.turns, theirs.turns)
    yield _row("prompt tokens", ours.prompt_tokens, theirs.prompt_tokens)
    yield _row("reusable, %", ours.reusable_prefix_pct, theirs.reusable_prefix_pct)
    yield _row("tokens computed again", ours.recomputed_tokens, theirs.recomputed_tokens)
    yield _row("blocks lost", ours.invalidated_blocks, theirs.invalidated_blocks)
    rates = [report.summary.prefill_rate.tokens_per_second for report in (a, b)]
    yield _row("prefill, tokens/s", *(None if rate is None else round(rate) for rate in rates))


def _causes(found: Comparison) -> Iterator[Row]:
    if not found.causes:
        return
    yield "", "", "", ""
    yield "lost by cause", "", "", ""
    for pair in found.causes:
        a, b = pair.a or _NOTHING, pair.b or _NOTHING
        expected = all(total is None or total.expected for total in (pair.a, pair.b))
        yield f"{pair.cause or UNCLAIMED} ({'expected' if expected else 'waste'})", "", "", ""
        yield _row("  tokens", a.tokens, b.tokens)
        yield _row("  blocks", a.blocks, b.blocks)
        yield "  time", _time(pair.a), _time(pair.b), ""


def _time(total: CauseTotal | None) -> str:
    return "0" if total is None else duration(total.seconds)


def _row[N: (int, float)](name: str, a: N | None, b: N | None) -> Row:
    return name, known(a), known(b), _difference(a, b)


def _difference(a: float | None, b: float | None) -> str:
    return known(None) if a is None or b is None else f"{round(b - a, 1):+}" if b != a else "0"
