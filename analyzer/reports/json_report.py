"""The report as one JSON object, schema `locality-report/1`: relied on by other programs.

Fields may be added; none changes its meaning. A value that is not known is null.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from analyzer.core import Divergence, Finding
from analyzer.report import Report, Turn

SCHEMA = "locality-report/1"


class JsonReport:
    """One JSON object, for programs."""

    name = "json"

    def format(self, report: Report, *, width: int | None, color: bool) -> str:
        """The object, indented; width and color are for people."""
        return json.dumps(as_object(report), indent=1, ensure_ascii=False) + "\n"


def as_object(report: Report) -> dict[str, Any]:
    """The report in the contract's words."""
    server, summary = report.server, report.summary
    return {
        "schema": SCHEMA,
        "capture": {"exchanges": report.exchanges, "redaction": report.redaction},
        "server": {
            "engine": server.engine,
            "version": server.version,
            "model": server.model,
            "block_size": server.block_size,
            "pool_blocks": server.pool_blocks,
            "max_model_len": server.max_model_len,
            "tokenizer": server.tokenizer,
            "tokenizer_backend": server.tokenizer_backend,
            "assumed": list(server.assumed),
        },
        "summary": {
            "conversations": summary.conversations,
            "turns": summary.turns,
            "rendered": summary.rendered,
            "rendering_exact": summary.rendering_exact,
            "rendering_mismatch": summary.rendering_mismatch,
            "conversations_mismatch": summary.conversations_mismatch,
            "cache_reported": summary.cache_reported,
            "cache_exact": summary.cache_exact,
            "reusable_prefix_pct": summary.reusable_prefix_pct,
            "prompt_tokens": summary.prompt_tokens,
            "recomputed_tokens": summary.recomputed_tokens,
            "invalidated_blocks": summary.invalidated_blocks,
            "causes": [asdict(total) for total in summary.causes],
        },
        "turns": [_turn(turn) for turn in report.turns],
        "problems": list(report.problems),
    }


def _turn(turn: Turn) -> dict[str, Any]:
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
        "append": turn.append,
        "divergence": None if turn.divergence is None else _divergence(turn.divergence, turn.findings),
        "findings": [asdict(finding) for finding in turn.findings],
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


def _moment(nanoseconds: int) -> str:
    moment = datetime.fromtimestamp(nanoseconds / 1e9, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _milliseconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else round(nanoseconds / 1e6, 1)


REPORT = JsonReport()
