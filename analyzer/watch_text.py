"""The lines that `watch` prints: one a row, as text or as JSON, and the last one with what it adds up to.

Words and signs are those of the report's rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from analyzer.live import WHOLE_CAPTURE, Row
from analyzer.live_capture import Update
from analyzer.report import PrefillRate, Turn
from analyzer.reports._opening import reuse
from analyzer.reports._rows import cells
from analyzer.reports.json_report import turn_object
from analyzer.turns import summarise
from analyzer.wording import counted, known, one_line

SCHEMA = "locality-watch/1"
_WIDTHS = (5, 6, 9, 8, 8, 6, 17)
_HEADINGS = ("id", "conv", "tokens", "source", "reuse", "lost", "cached")
HEADING = (
    " ".join(f"{name:>{width}}" for name, width in zip(_HEADINGS, _WIDTHS, strict=True)) + "  what happened"
)

MAY_CHANGE = "may change: an earlier request is not over"
CORRECTED = "corrected"


def lines_of(update: Update, *, form: str) -> Iterator[str]:
    """A line for each row."""
    for row in update.rows:
        if form == "jsonl":
            yield json.dumps(row_object(row, corrects=update.corrects), ensure_ascii=False)
        else:
            yield _line(row, corrects=update.corrects)


def row_object(row: Row, *, corrects: bool) -> dict[str, Any]:
    """A row as in the report's JSON, without what only the whole capture tells."""
    turn = turn_object(row.turn)
    findings = [
        {name: value for name, value in finding.items() if name != "seconds"} for finding in turn["findings"]
    ]
    kept = {name: value for name, value in turn.items() if name not in WHOLE_CAPTURE}
    return {
        "schema": SCHEMA,
        **kept,
        "findings": findings,
        "settled": row.settled,
        "corrects": corrects,
    }


def _line(row: Row, *, corrects: bool) -> str:
    number, place, tokens, share, lost, cached, story = cells(row.turn)
    shown = (number, place, tokens, known(row.turn.token_source), share, lost, cached)
    fields = " ".join(f"{cell:>{width}}" for cell, width in zip(shown, _WIDTHS, strict=True))
    remarks = [CORRECTED] * corrects + [MAY_CHANGE] * (not row.settled)
    return one_line(f"{fields}  {story}" + "".join(f" [{remark}]" for remark in remarks))


def summary_line(turns: Sequence[Turn], in_flight: int) -> str:
    """What all rows add up to."""
    summary = summarise(turns, PrefillRate())
    held = f"{counted(len({turn.id for turn in turns}), 'exchange')}"
    open_ = f"; {counted(in_flight, 'exchange')} not over" if in_flight else ""
    return f"{held}, {counted(summary.conversations, 'conversation')}: {reuse(summary)}{open_}"
