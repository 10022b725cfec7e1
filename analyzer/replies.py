"""Reads what a response said: how it ended, the server's counts, and token ids where it sent them.

One reader for all dialects: their spellings are a table here. Texts and tool calls are `analyzer.answers`'.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard

from analyzer.answers import choice_index, choices_of, ids_of, read_answers
from analyzer.core import Outcome, Reply, Usage
from analyzer.first_token import is_stream
from analyzer.sse import read_events
from analyzer.told import MOST_EXACT, json_object
from store.records import Exchange

# vLLM 0.32: chat/completions usage, Responses `input_tokens_details`, Anthropic `cache_read_...`;
# `prompt_cache_hit_tokens` is DeepSeek's own API.
_PROMPT_KEYS = ("prompt_tokens", "input_tokens")
_COMPLETION_KEYS = ("completion_tokens", "output_tokens")
_DETAIL_KEYS = ("prompt_tokens_details", "input_tokens_details")
_BESIDE_INPUT = ("cache_read_input_tokens", "cache_creation_input_tokens")
_CACHED_KEYS = ("cache_read_input_tokens", "prompt_cache_hit_tokens")

type _Object = dict[str, Any]
"""A JSON object, asked about by its class: an abstract one takes ten times as long, and events are many."""

_END_EVENTS = frozenset({"message_stop", "response.completed", "response.incomplete"})
_ERROR_EVENTS = frozenset({"error", "response.failed"})


def read_reply(exchange: Exchange) -> Reply:
    """What the exchange's response said; never raises, whatever the body holds."""
    body = exchange.response.content
    if is_stream(exchange):
        events = read_events(body)
        objects = [parsed for event in events if (parsed := json_object(event.data)) is not None]
        at_end = any(event.data == "[DONE]" for event in events)
    else:
        parsed = json_object(body)
        objects = [] if parsed is None else [parsed]
        at_end = parsed is not None or exchange.response.wire_length == 0
    at_end = at_end or any(_is_event(item, _END_EVENTS) for item in objects)
    error = next((message for item in objects if (message := _error(item))), None)
    # Codex hangs up on `response.completed`, ahead of the connection's own end: it has all it asked for.
    hung_up = exchange.ended == "client_gone" and at_end and bool(objects)
    return Reply(
        outcome=_outcome(exchange, at_end=at_end, error=error, hung_up=hung_up),
        usage=_usage(objects),
        prompt_token_ids=_prompt_ids(objects),
        answers=read_answers(objects),
        error=error or _plain_error(exchange, objects) or (None if hung_up else exchange.error),
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


def _is_event(item: _Object, kinds: frozenset[str]) -> bool:
    kind = item.get("type")
    return isinstance(kind, str) and kind in kinds


def _error(item: _Object) -> str | None:
    error = item.get("error")
    if _is_event(item, _ERROR_EVENTS) and not error:
        response = item.get("response")
        error = (response.get("error") if isinstance(response, dict) else None) or item.get("message")
        error = error or item["type"]
    if isinstance(error, dict):
        return str(error.get("message") or error)
    return str(error) if error else None


def _plain_error(exchange: Exchange, objects: list[dict[str, Any]]) -> str | None:
    """A refusal that is not JSON in the usual form: its first line says more than nothing."""
    if exchange.status is None or exchange.status < 400:
        return None
    if objects:
        return str(objects[0].get("message") or objects[0].get("detail") or objects[0])[:300]
    return exchange.response.content[:300].decode(errors="replace").partition("\n")[0] or None


def _outcome(exchange: Exchange, *, at_end: bool, error: str | None, hung_up: bool) -> Outcome:
    if exchange.ended != "complete" and not hung_up:
        return exchange.ended
    if exchange.status is not None and exchange.status >= 400:
        return "done"  # a whole answer, though not the one hoped for: the status says so
    if error is not None:
        return "error_event"
    return "done" if at_end else "eof"


def _usage(objects: Sequence[_Object]) -> Usage:
    """The last usage that is not null: earlier ones are zeros or running counts.

    Anthropic's stream splits it: `message_start` has the input, `message_delta` the final counts. What the
    former says of the output is no count of it, and where a client left there is no other.
    """
    merged: dict[str, Any] = {}
    for item in objects:
        for holder in (item, item.get("message"), item.get("response")):
            usage = holder.get("usage") if isinstance(holder, dict) else None
            if isinstance(usage, dict):
                merged |= {key: value for key, value in usage.items() if value is not None}
        if item.get("type") == "message_start":
            merged.pop("output_tokens", None)
    said = read_usage(merged)
    timed = [timings for item in objects if isinstance(timings := item.get("timings"), dict)]
    return _completed(said, timed[-1]) if timed else said


def _completed(usage: Usage, timings: _Object) -> Usage:
    """A usage with what only llama.cpp's `timings` say; a stream that nobody asked for usage has no other.

    `prompt_n` leaves out what came from the cache (llama.cpp tools/server/README.md, `timings`).
    """
    cached, computed, generated = (
        _first_count(timings, (key,)) for key in ("cache_n", "prompt_n", "predicted_n")
    )
    prompt = None if cached is None or computed is None else cached + computed
    return Usage(
        prompt_tokens=prompt if usage.prompt_tokens is None else usage.prompt_tokens,
        cached_tokens=cached if usage.cached_tokens is None else usage.cached_tokens,
        completion_tokens=generated if usage.completion_tokens is None else usage.completion_tokens,
    )


def _prompt_ids(objects: Iterable[_Object]) -> tuple[tuple[int, ...], ...]:
    found: dict[int, tuple[int, ...]] = {}
    for item in objects:
        if ids := ids_of(item.get("prompt_token_ids")):
            found.setdefault(0, ids)
        for choice in choices_of(item):
            if ids := ids_of(choice.get("prompt_token_ids")):
                found.setdefault(choice_index(choice), ids)
    return tuple(found[index] for index in sorted(found))


def _is_count(value: Any) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < MOST_EXACT


def _first_count(holder: Mapping[str, Any], keys: Iterable[str]) -> int | None:
    for key in keys:
        value = holder.get(key)
        if _is_count(value):
            return value
    return None
