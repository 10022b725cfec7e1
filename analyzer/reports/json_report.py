"""The report as one JSON object, schema `locality-report/1`: relied on by other programs.

Fields may be added; none changes its meaning. A value that is not known is null.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from analyzer.core import Divergence, Finding
from analyzer.report import PrefillRate, Report, Server, Summary, Turn
from analyzer.reports._pool_sweep import sweep_object

SCHEMA = "locality-report/1"


class JsonReport:
    """One JSON object, for programs."""

    name = "json"

    def format(self, report: Report, *, width: int | None, color: bool) -> str:
        """The object, indented; width and color are for people."""
        return json.dumps(as_object(report), indent=1, ensure_ascii=False) + "\n"


def as_object(report: Report) -> dict[str, Any]:
    """The report in the contract's words."""
    return {
        "schema": SCHEMA,
        "capture": {
            "exchanges": report.exchanges,
            "redaction": report.redaction,
            "lost": report.completeness.lost,
            "unfinished": report.completeness.unfinished,
            "secrets": None if report.secrets is None else [asdict(item) for item in report.secrets],
        },
        "server": server_object(report.server),
        "summary": summary_object(report.summary),
        **sweep_object(report.pool_sweep),
        "turns": [turn_object(turn) for turn in report.turns],
        "problems": list(report.problems),
    }


def server_object(server: Server) -> dict[str, Any]:
    """What is known of the server."""
    return {**asdict(server), "assumed": list(server.assumed)}


def summary_object(summary: Summary) -> dict[str, Any]:
    """The totals."""
    causes = [rounded(asdict(total)) for total in summary.causes]
    return {**asdict(summary), "prefill_rate": rate_object(summary.prefill_rate), "causes": causes}


def rate_object(rate: PrefillRate) -> dict[str, Any]:
    """What the seconds rest on."""
    spread = None if rate.spread is None else [round(bound, 1) for bound in rate.spread]
    per_second = None if rate.tokens_per_second is None else round(rate.tokens_per_second, 1)
    return {**asdict(rate), "tokens_per_second": per_second, "spread": spread}


def turn_object(turn: Turn) -> dict[str, Any]:
    """One row."""
    return {
        "id": turn.id,
        "prompt_index": turn.prompt_index,
        "conversation": turn.conversation,
        "turn": turn.turn,
        "parent": turn.parent,
        "dialect": turn.dialect,
        "path": turn.path,
        "model": turn.model,
        "status": turn.status,
        "outcome": turn.outcome,
        "started_at": _moment(turn.started_at_ns),
        "ttft_ms": _milliseconds(turn.ttft_ns),
        "first_token_ms": _milliseconds(turn.first_token_ns),
        "duration_ms": _milliseconds(turn.duration_ns),
        "prompt_tokens": turn.prompt_tokens,
        "reported_prompt_tokens": turn.reported_prompt_tokens,
        "token_source": turn.token_source,
        "rendering": turn.rendering,
        "conversation_rendering": turn.conversation_rendering,
        "common_prefix_tokens": turn.common_prefix_tokens,
        "reusable_tokens": turn.reusable_tokens,
        "reusable_prefix_pct": turn.reusable_prefix_pct,
        "block_size": turn.block_size,
        "prompt_blocks": turn.prompt_blocks,
        "reusable_blocks": turn.reusable_blocks,
        "invalidated_blocks": turn.invalidated_blocks,
        "predicted_cached_tokens": turn.predicted_cached_tokens,
        "reported_cached_tokens": turn.reported_cached_tokens,
        "cache": turn.cache,
        "residual": turn.residual,
        "generated_source": turn.generated_source,
        "append": turn.append,
        "divergence": None if turn.divergence is None else _divergence(turn.divergence, turn.findings),
        "findings": [rounded(asdict(finding)) for finding in turn.findings],
        "notes": [asdict(note) for note in turn.notes],
        "problem": turn.problem,
    }


def _divergence(divergence: Divergence, findings: tuple[Finding, ...]) -> dict[str, Any]:
    return {
        "token": divergence.token,
        "block": divergence.block,
        "path": divergence.path,
        "char": divergence.char,
        "before": divergence.before,
        "after": divergence.after,
        "cause": findings[0].cause if findings else None,
        "causes": [finding.cause for finding in findings if finding.cause is not None],
    }


def rounded(shape: dict[str, Any]) -> dict[str, Any]:
    """A finding or a cause's total with its seconds to the millisecond, which is more than is known."""
    seconds = shape["seconds"]
    return {**shape, "seconds": None if seconds is None else round(seconds, 3)}


def _moment(nanoseconds: int) -> str:
    moment = datetime.fromtimestamp(nanoseconds / 1e9, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _milliseconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else round(nanoseconds / 1e6, 1)


REPORT = JsonReport()
