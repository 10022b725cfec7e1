"""Holds a report against an earlier one of the same task: what got worse since then.

It judges numbers alone, and only those that both reports know; what got better is not told.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analyzer.finding_words import UNCLAIMED
from analyzer.known_sums import percent
from analyzer.report import CauseTotal, Report
from analyzer.reports.json_report import SCHEMA
from analyzer.wording import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What one cause cost in the earlier report."""

    tokens: int
    blocks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What of an earlier report is compared. Shares are percentages; None was not known then."""

    reusable_prefix_pct: float | None
    exact_pct: float | None
    block_size: int | None
    causes: Mapping[str | None, Loss]


def read_baseline(path: Path) -> Baseline:
    """The numbers of a report made with `--format json`. Raises ValueError, saying what to give."""
    told = f"--baseline {path}"
    try:
        report = json.loads(path.read_bytes())
    except OSError as error:
        raise ValueError(f"{told}: {error.strerror or error}; make one with report --format json") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{told}: not JSON; make one with report --format json -o FILE") from error
    if not isinstance(report, dict) or report.get("schema") != SCHEMA:
        raise ValueError(f"{told}: not a {SCHEMA} object; make one with report --format json -o FILE")
    try:
        return _read(report["summary"], report["server"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{told}: the report in it is not whole ({error})") from error


def worsened(now: Report, then: Baseline, tolerance_pct: float) -> Iterator[str]:
    """What is worse now, a sentence each: the reuse, the renderings, then cause by cause.

    Shares may fall by `tolerance_pct` points, and what a cause costs may grow by as many per cent.
    """
    summary = now.summary
    exact = percent(summary.rendering_exact, summary.rendered)
    yield from _fallen(
        "reusable prefix", then.reusable_prefix_pct, summary.reusable_prefix_pct, tolerance_pct
    )
    yield from _fallen("renderings that are the server's", then.exact_pct, exact, tolerance_pct)
    sizes_agree = then.block_size == now.server.block_size
    for total in summary.causes:
        yield from _dearer(total, then.causes.get(total.cause), tolerance_pct, blocks_too=sizes_agree)


def _fallen(what: str, then: float | None, now: float | None, tolerance: float) -> Iterator[str]:
    if then is None:
        return
    if now is None:
        yield f"{what}: {then} % then, not known now"
    elif now < then - tolerance:
        yield f"{what}: {then} % then, {now} % now"


def _dearer(total: CauseTotal, then: Loss | None, tolerance: float, *, blocks_too: bool) -> Iterator[str]:
    name = f"{total.cause or UNCLAIMED}{' (expected)' if total.expected else ''}"
    if then is None:
        lost = f"{counted(total.tokens, 'token')}, {counted(total.blocks, 'block')}"
        yield f"{name}: new, {lost} lost in {counted(total.turns, 'turn')}"
        return
    most = 1 + tolerance / 100
    worse = []
    if total.tokens > then.tokens * most:
        worse.append(f"{counted(then.tokens, 'token')} lost then, {total.tokens} now")
    if blocks_too and total.blocks > then.blocks * most:
        worse.append(f"{counted(then.blocks, 'block')} lost then, {total.blocks} now")
    if worse:
        yield f"{name}: {'; '.join(worse)}"


def _read(summary: Mapping[str, Any], server: Mapping[str, Any]) -> Baseline:
    reusable, size = summary["reusable_prefix_pct"], server["block_size"]
    if reusable is not None and type(reusable) not in (int, float):
        raise TypeError(f"{reusable!r} is no percentage")
    losses = {
        item["cause"]: Loss(tokens=_whole(item["tokens"]), blocks=_whole(item["blocks"]))
        for item in summary["causes"]
    }
    return Baseline(
        reusable_prefix_pct=reusable,
        exact_pct=percent(_whole(summary["rendering_exact"]), _whole(summary["rendered"])),
        block_size=None if size is None else _whole(size),
        causes=losses,
    )


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is no count")
    return value
