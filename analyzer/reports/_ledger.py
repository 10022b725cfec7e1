"""What a report for people says of the ledger as a whole: the server's own counters, and the residuals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from analyzer.report import Counters, Report
from analyzer.residuals import LABELS
from analyzer.wording import counted, known


def ledger_lines(report: Report) -> Iterator[str]:
    """A sentence each; none where everything is as predicted and nothing was counted."""
    if report.server.metrics is not None:
        yield from _counters(report.server.metrics)
    found = Counter(turn.residual for turn in report.turns if turn.cache in ("server_less", "server_more"))
    for name, count in sorted((name, count) for name, count in found.items() if name is not None):
        yield f"{name}: {counted(count, 'hit')} unlike the prediction; {LABELS[name]}"


def _counters(counters: Counters) -> Iterator[str]:
    """What the server counted itself, where that can be said of this capture."""
    if counters.restarts:
        yield f"the server was started anew {counted(counters.restarts, 'time')} in this capture"
    if counters.cached_before:
        yield "the server had served other prompts before this capture began: it may hit more than predicted"
    own = f"the server counted {known(counters.hits)} of {known(counters.queries)} prompt tokens as cached"
    here = f"{known(counters.predicted_hits)} of {known(counters.captured_queries)} by this capture"
    match counters.verdict:
        case "agree":
            yield f"{own}, as predicted"
        case "other_traffic":
            yield f"{own}, {here}: other traffic was there"
        case "differ":
            yield f"{own}, {here}"
        case None:
            pass
