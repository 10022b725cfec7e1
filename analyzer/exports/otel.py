"""Writes a trace as OpenTelemetry spans by the GenAI conventions, in the JSON that OTLP exporters send.

It writes none of the attributes that hold content, and no block numbers: the conventions have none.
Attributes as semantic-conventions-genai (docs/gen-ai/gen-ai-spans.md, status Development) names them, shapes
as opentelemetry-proto's trace.proto in its JSON mapping; this program's own begin with `locality.`.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from analyzer.exports import Exported, Row, Trace
from analyzer.exports._rows import line

_OPERATIONS = {"completions": "text_completion"}
_CHAT = "chat"
_CLIENT, _ERROR = 3, 2
# A stop may be a tool's call as well: what was read of an answer does not tell them apart.
_FINISHES = {"length": "length", "stop_string": "stop"}

type _Value = str | int | float | bool | list[str]


class OTel:
    """Spans by OpenTelemetry's GenAI conventions, as OTLP's JSON: counts and times, one span a prompt.

    What was not rendered is in it too, with what the server reported.
    """

    name = "otel"

    def export(self, trace: Trace) -> Exported:
        """One document; each conversation is a trace of its own."""
        traces: dict[int | None, str] = {}
        spans = []
        for row in trace.rows:
            alone = row.turn.conversation is None
            known = None if alone else traces.setdefault(row.turn.conversation, secrets.token_hex(16))
            spans.append(_span(row, trace, known or secrets.token_hex(16)))
        document = {
            "resourceSpans": [
                {
                    "resource": {"attributes": _attributes({"service.name": "locality"})},
                    "scopeSpans": [{"scope": {"name": "locality"}, "spans": spans}],
                }
            ]
        }
        return Exported(parts=(line(document),) if spans else (), rows=len(spans))


def _span(row: Row, trace: Trace, trace_id: str) -> dict[str, Any]:
    turn = row.turn
    operation = _OPERATIONS.get(turn.dialect, _CHAT)
    error = _error(row)
    return {
        "traceId": trace_id,
        "spanId": secrets.token_hex(8),
        "name": operation if row.model is None else f"{operation} {row.model}",
        "kind": _CLIENT,
        "startTimeUnixNano": str(turn.started_at_ns),
        "endTimeUnixNano": str(turn.started_at_ns + (turn.duration_ns or 0)),
        "attributes": _attributes(_conventions(row, trace, operation, error) | _own(row)),
        "status": {} if error is None else {"code": _ERROR},
    }


def _conventions(row: Row, trace: Trace, operation: str, error: str | None) -> dict[str, _Value | None]:
    turn = row.turn
    counted = turn.prompt_tokens if turn.reported_prompt_tokens is None else turn.reported_prompt_tokens
    finish = None if row.finish is None else _FINISHES.get(row.finish)
    return {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": trace.engine,
        "gen_ai.request.model": row.model,
        "gen_ai.request.stream": True if row.streams else None,  # unset says that it does not
        "gen_ai.conversation.id": None if turn.conversation is None else str(turn.conversation),
        "gen_ai.usage.input_tokens": counted,
        "gen_ai.usage.output_tokens": row.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": turn.reported_cached_tokens,
        "gen_ai.response.finish_reasons": None if finish is None else [finish],
        "gen_ai.response.time_to_first_chunk": _first_chunk(row),
        "error.type": error,
    }


def _own(row: Row) -> dict[str, _Value | None]:
    turn = row.turn
    return {
        "locality.exchange": turn.id,
        "locality.prompt_index": turn.prompt_index,
        "locality.turn": turn.turn,
        "locality.parent": turn.parent,
        "locality.rendering": turn.rendering,
        "locality.prompt_tokens": turn.prompt_tokens,
        "locality.common_prefix_tokens": turn.common_prefix_tokens,
        "locality.reusable_tokens": turn.reusable_tokens,
        "locality.predicted_cached_tokens": turn.predicted_cached_tokens,
    }


def _first_chunk(row: Row) -> float | None:
    return round(row.turn.ttft_ns / 1e9, 6) if row.streams and row.turn.ttft_ns is not None else None


def _error(row: Row) -> str | None:
    """A low-cardinality name of what went wrong, as `error.type` is to be: the status, or how it ended."""
    if row.turn.status is not None and row.turn.status >= 400:
        return str(row.turn.status)
    return None if row.turn.outcome == "done" else row.turn.outcome


def _attributes(values: Mapping[str, _Value | None]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in values.items() if value is not None]


def _value(value: _Value) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}  # 64-bit integers are strings in protobuf's JSON
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value}
        case list():
            return {"arrayValue": {"values": [_value(item) for item in value]}}


EXPORT = OTel()
