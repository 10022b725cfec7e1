"""Reads what a response said: how it ended, the server's counts, and token ids where it sent them.

One reader for all dialects: their spellings are a table here. Texts and tool calls are not read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeGuard

from analyzer.core import TOKEN_ID_LIMIT, Outcome, Reply, Usage
from analyzer.first_token import is_stream
from analyzer.sse import read_events
from store.records import Exchange

# vLLM 0.32: chat/completions usage, Responses `input_tokens_details`, Anthropic `cache_read_...`;
# `prompt_cache_hit_tokens` is DeepSeek's own API.
_PROMPT_KEYS = ("prompt_tokens", "input_tokens")
_COMPLETION_KEYS = ("completion_tokens", "output_tokens")
_DETAIL_KEYS = ("prompt_tokens_details", "input_tokens_details")
_BESIDE_INPUT = ("cache_read_input_tokens", "cache_creation_input_tokens")
_CACHED_KEYS = ("cache_read_input_tokens", "prompt_cache_hit_tokens")
_MOST_EXACT = 1 << 53
"""JSON numbers are exact below it (RFC 8259 section 6); a count beyond it counts nothing."""

_END_EVENTS = frozenset({"message_stop", "response.completed", "response.incomplete"})
_ERROR_EVENTS = frozenset({"error", "response.failed"})


def read_reply(exchange: Exchange) -> Reply:
    """What the exchange's response said; never raises, whatever the body holds."""
    body = exchange.response.content
    if is_stream(exchange):
        events = read_events(body)
        objects = [parsed for event in events if (parsed := _object(event.data)) is not None]
        at_end = any(event.data == "[DONE]" for event in events)
    else:
        parsed = _object(body)
        objects = [] if parsed is None else [parsed]
        at_end = parsed is not None or exchange.response.wire_length == 0
    at_end = at_end or any(item.get("type") in _END_EVENTS for item in objects)
    error = next((message for item in objects if (message := _error(item))), None)
    return Reply(
        outcome=_outcome(exchange, at_end=at_end, error=error),
        usage=_usage(objects),
        prompt_token_ids=_prompt_ids(objects),
        generated_ids=_generated_ids(objects),
        error=error or _plain_error(exchange, objects) or exchange.error,
    )


def read_usage(usage: Mapping[str, Any]) -> Usage:
    """One usage object, whatever its spelling, in tokens.

    Anthropic's `input_tokens` leaves out what was read from and written to the cache; the prompt is
    the sum of the three (vLLM 0.32 entrypoints/anthropic/serving.py:63-99). What is no count is not known.
    """
    prompt = _first_count(usage, _PROMPT_KEYS)
    cached = _first_count(usage, _CACHED_KEYS)
    for key in _DETAIL_KEYS:
        if isinstance(details := usage.get(key), Mapping):
            cached = _first_count(details, ("cached_tokens",))
    if prompt is not None and "cache_read_input_tokens" in usage:
        read, created = (usage.get(key) or 0 for key in _BESIDE_INPUT)
        prompt = prompt + read + created if _is_count(read) and _is_count(created) else None
    return Usage(
        prompt_tokens=prompt, cached_tokens=cached, completion_tokens=_first_count(usage, _COMPLETION_KEYS)
    )


def _object(text: str | bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _error(item: Mapping[str, Any]) -> str | None:
    error = item.get("error")
    if item.get("type") in _ERROR_EVENTS and not error:
        response = item.get("response")
        error = (response.get("error") if isinstance(response, Mapping) else None) or item.get("message")
        error = error or item["type"]
    if isinstance(error, Mapping):
        return str(error.get("message") or error)
    return str(error) if error else None


def _plain_error(exchange: Exchange, objects: list[dict[str, Any]]) -> str | None:
    """A refusal that is not JSON in the usual form: its first line says more than nothing."""
    if exchange.status is None or exchange.status < 400:
        return None
    if objects:
        return str(objects[0].get("message") or objects[0].get("detail") or objects[0])[:300]
    return exchange.response.content[:300].decode(errors="replace").partition("\n")[0] or None


def _outcome(exchange: Exchange, *, at_end: bool, error: str | None) -> Outcome:
    if exchange.ended != "complete":
        return exchange.ended
    if exchange.status is not None and exchange.status >= 400:
        return "done"  # a whole answer, though not the one hoped for: the status says so
    if error is not None:
        return "error_event"
    return "done" if at_end else "eof"


def _usage(objects: Iterable[Mapping[str, Any]]) -> Usage:
    """The last usage that is not null: earlier ones are zeros or running counts.

    Anthropic's stream splits it: `message_start` has the input, `message_delta` the final counts.
    """
    merged: dict[str, Any] = {}
    for item in objects:
        for holder in (item, item.get("message"), item.get("response")):
            usage = holder.get("usage") if isinstance(holder, Mapping) else None
            if isinstance(usage, Mapping):
                merged |= {key: value for key, value in usage.items() if value is not None}
    return read_usage(merged)


def _prompt_ids(objects: Iterable[Mapping[str, Any]]) -> tuple[tuple[int, ...], ...]:
    found: dict[int, tuple[int, ...]] = {}
    for item in objects:
        if ids := _ids(item.get("prompt_token_ids")):
            found.setdefault(0, ids)
        for choice in _choices(item):
            if ids := _ids(choice.get("prompt_token_ids")):
                found.setdefault(_index(choice), ids)
    return tuple(found[index] for index in sorted(found))


def _generated_ids(objects: Iterable[Mapping[str, Any]]) -> tuple[tuple[int, ...], ...]:
    found: dict[int, list[int]] = {}
    for item in objects:
        for choice in _choices(item):
            if ids := _ids(choice.get("token_ids")):
                found.setdefault(_index(choice), []).extend(ids)
    return tuple(tuple(found[index]) for index in sorted(found))


def _choices(item: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    choices = item.get("choices")
    return [c for c in choices if isinstance(c, Mapping)] if isinstance(choices, list) else []


def _ids(value: Any) -> tuple[int, ...]:
    if isinstance(value, list) and all(type(item) is int and 0 <= item < TOKEN_ID_LIMIT for item in value):
        return tuple(value)
    return ()


def _index(choice: Mapping[str, Any]) -> int:
    index = choice.get("index")
    return index if _is_count(index) else 0


def _is_count(value: Any) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < _MOST_EXACT


def _first_count(holder: Mapping[str, Any], keys: Iterable[str]) -> int | None:
    for key in keys:
        value = holder.get(key)
        if _is_count(value):
            return value
    return None
