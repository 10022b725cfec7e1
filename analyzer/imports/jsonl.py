"""Reads JSON lines of request bodies, each by itself or in an envelope with what else is known of it.

It cannot know to which endpoint a body went where that is not said and its shape leaves it open: chat is the
commonest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from analyzer.imports import UNTIMED, Found, Read, Source
from store.records import RequestSeen, ResponseSeen

_CHAT, _MESSAGES = "/v1/chat/completions", "/v1/messages"
_BY_FIELD = {"messages": _CHAT, "input": "/v1/responses", "prompt": "/v1/completions"}
_ANTHROPIC_FIELDS = ("system", "stop_sequences", "anthropic_version", "anthropic_beta", "thinking")
_ANTHROPIC_PARTS = ("tool_use", "tool_result", "thinking", "redacted_thinking")


class JsonLines:
    """JSON lines of request bodies; or of envelopes: body, path, response, status, started_at, duration_ms.

    A body or response that is a string is taken as it is, an object is written anew. `started_at` is ISO 8601
    or seconds since 1970. The lines of batch files (`vllm run-batch`) are envelopes too: `url` is their path.
    """

    name = "jsonl"

    def read(self, source: Source) -> Read:
        """Every line that is not empty."""
        with source.path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                line = raw.strip().removeprefix(b"\xef\xbb\xbf")
                if line:
                    where = f"line {number}"
                    try:
                        yield where, _exchange(where, line, source.dialect_path)
                    except (ValueError, TypeError, OverflowError, RecursionError) as error:
                        # Not what it says: that may quote the line.
                        yield where, f"not understood: {type(error).__name__}"


def _exchange(where: str, line: bytes, dialect_path: str | None) -> Found:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        return f"no JSON: {error}"
    if not isinstance(value, dict):
        return "no JSON object"
    envelope = value if _is_envelope(value) else {}
    body = _bytes(envelope["body"]) if envelope else line
    path = envelope.get("path") or envelope.get("url") or dialect_path or _path_of(json.loads(body))
    if not isinstance(path, str):
        return "no request body that is known: it has none of messages, input and prompt"
    try:
        started_at_ns = _moment(envelope.get("started_at"))
    except (ValueError, TypeError, OverflowError):
        return "started_at is neither ISO 8601 nor a number of seconds"
    request = RequestSeen(
        key=where,
        started_at_ns=started_at_ns,
        method="POST",
        path=path.partition("?")[0],
        query=path.partition("?")[2],
        headers=(("content-type", "application/json"),),
        body=body,
    )
    return request, _response(where, envelope)


def _is_envelope(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("body"), dict | str) and not value.keys() & _BY_FIELD.keys()


def _response(where: str, envelope: Mapping[str, Any]) -> ResponseSeen | None:
    if envelope.get("response") is None and envelope.get("status") is None:
        return None
    body = b"" if envelope.get("response") is None else _bytes(envelope["response"])
    streamed = body.lstrip().startswith((b"event:", b"data:", b":"))
    spent = envelope.get("duration_ms")
    return ResponseSeen(
        key=where,
        status=200 if envelope.get("status") is None else int(envelope["status"]),
        headers=(("content-type", "text/event-stream" if streamed else "application/json"),),
        body=body,
        chunks=(),
        ttft_ns=None,
        duration_ns=None if spent is None else round(float(spent) * 1e6),
        ended="complete",
        error=None,
    )


def _bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _path_of(body: Any) -> str | None:
    """The endpoint whose bodies have this shape."""
    if not isinstance(body, dict):
        return None
    path = next((path for field, path in _BY_FIELD.items() if field in body), None)
    return _MESSAGES if path == _CHAT and _is_anthropic(body) else path


def _is_anthropic(body: Mapping[str, Any]) -> bool:
    if any(field in body for field in _ANTHROPIC_FIELDS):
        return True
    tools, messages = body.get("tools"), body["messages"]
    if isinstance(tools, list) and any(isinstance(tool, dict) and "input_schema" in tool for tool in tools):
        return True
    contents = [item.get("content") for item in messages if isinstance(item, dict)]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    return any(isinstance(part, dict) and part.get("type") in _ANTHROPIC_PARTS for part in parts)


def _moment(said: Any) -> int:
    if said is None:
        return UNTIMED
    if isinstance(said, str):
        return round(datetime.fromisoformat(said).timestamp() * 1e6) * 1000
    return round(float(said) * 1e6) * 1000


IMPORT = JsonLines()
