"""Shows one turn of a capture in depth: what `show` does.

Data goes to stdout; progress and complaints go to stderr.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from typing import Any

import click

from analyzer.no_text import without_text
from analyzer.pipeline import Options
from analyzer.reporting import DONE, check_usage, put, read_analysis
from analyzer.reports.json_report import rate_object, server_object, turn_object
from analyzer.turn_detail import Token, TurnDetail, turn_detail
from analyzer.turn_text import turn_text
from store.sealed import POLICY as SEALED

SCHEMA = "locality-show/1"
_NAME = re.compile(r"(\d{1,18})(?:#(\d{1,18}))?")


def run_show(target: str, name: str, options: Options, *, form: str, no_text: bool) -> int:
    """Show one turn; returns the exit status.

    `name` is the id of an exchange, with `#1` for the second prompt of its body. Raises click.UsageError
    for what is none, click.ClickException where the capture has none of it, and what an analysis raises.
    """
    named = _NAME.fullmatch(name)
    if named is None:
        raise click.UsageError(f"{name} is no exchange; give an id as in `locality report`, such as 7 or 7#1")
    check_usage(options)
    analysis = read_analysis(target, options, no_text=no_text)
    try:
        detail = turn_detail(analysis, int(named[1]), int(named[2] or 0))
    except LookupError as error:
        raise click.ClickException(str(error)) from error
    if detail.report.redaction == SEALED:
        print(
            "locality: the capture is sealed: tokens and texts of both prompts are not known", file=sys.stderr
        )
        detail = replace(detail, rows=())  # what stands for its tokens is no id
    if no_text:
        detail = _without_text(detail)
    if form == "json":
        put(lambda width, color: json.dumps(as_object(detail), indent=1, ensure_ascii=False) + "\n", None)
    else:
        put(lambda width, color: turn_text(detail, width=width, color=color), None)
    return DONE


def as_object(detail: TurnDetail) -> dict[str, Any]:
    """The detail as one JSON object; rows and server are as in the report's."""
    return {
        "schema": SCHEMA,
        "server": server_object(detail.report.server),
        "prefill_rate": rate_object(detail.report.summary.prefill_rate),
        "turn": turn_object(detail.turn),
        "parent": None if detail.parent is None else turn_object(detail.parent),
        "tokens": [
            {"index": row.index, "parent": _token(row.parent), "child": _token(row.child)}
            for row in detail.rows
        ],
    }


def _without_text(detail: TurnDetail) -> TurnDetail:
    """The same without what was sent; token ids are that too, spelt in numbers."""
    kept = [detail.turn] if detail.parent is None else [detail.turn, detail.parent]
    report = without_text(replace(detail.report, turns=tuple(kept)))
    parent = None if detail.parent is None else report.turns[1]
    return replace(detail, report=report, turn=report.turns[0], parent=parent, rows=())


def _token(token: Token | None) -> dict[str, Any] | None:
    return None if token is None else {"id": token.id, "text": token.text}
