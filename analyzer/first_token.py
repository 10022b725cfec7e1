"""When an answer's first token came: not the first byte, where a stream opens before the model has answered.

It reads no text. vLLM 0.32 opens a stream of chat, completions and messages with the first token
(entrypoints/openai/chat_completion/serving.py:537, entrypoints/anthropic/serving.py:1010), and one of
responses before it (entrypoints/openai/responses/serving.py:1366).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from store.records import Exchange

_ANNOUNCEMENTS = frozenset({"response.created", "response.queued", "response.in_progress", "ping"})
"""Events that say nothing but that the request has been taken."""

_COMMENT = re.compile(rb"^:", re.MULTILINE)
_DATA = re.compile(rb"^data:[ ]?([^\r\n]*)", re.MULTILINE)


def first_token_ns(exchange: Exchange) -> int | None:
    """Nanoseconds from the request's first byte to the first event with a token in it.

    None where the answer did not stream, since it then came as a whole, and where it cannot be told.
    """
    if not is_stream(exchange) or exchange.status is None or exchange.status >= 400:
        return None
    begins = _first_token_begins(exchange.response.content)
    if not begins:
        return None if begins is None else exchange.ttft_ns
    if exchange.response.wire_length != len(exchange.response.content):
        return None  # what was decoded or replaced no longer lies where it lay on the wire
    return next((chunk.at_ns for chunk in exchange.chunks if chunk.byte_end > begins), None)


def is_stream(exchange: Exchange) -> bool:
    """Whether the response is an event stream."""
    content_type = next((v for k, v in exchange.response_headers if k.lower() == "content-type"), "")
    return content_type.lower().startswith("text/event-stream")


def _first_token_begins(body: bytes) -> int | None:
    """The byte at which the first event begins that is no announcement; 0 where nothing comes before it."""
    announced = False
    for start, event in _events(body):
        if event.get("error") or event.get("type") == "error":
            return None
        if event.get("type") not in _ANNOUNCEMENTS:
            return start if announced or _COMMENT.search(body, 0, start) else 0
        announced = True
    return None


def _events(body: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    for found in _DATA.finditer(body):
        try:
            event = json.loads(found[1])
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict):
            yield found.start(), event
