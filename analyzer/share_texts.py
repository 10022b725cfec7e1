"""All that was said in a capture, string by string: what a sealed copy is searched for and attacked with.

Whether a string may be told is not decided here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Set
from typing import Any

from store.db import Capture
from store.records import Exchange

_WORD = re.compile(r"[^\W_]+|\S+")


def texts_of(capture: Capture) -> set[str]:
    """Every string and key of the bodies, whatever else of a body is no JSON, and header values."""
    found: set[str] = set()
    for exchange in capture.exchanges():
        found.update(_texts(exchange))
    return found


def words_of(texts: Set[str]) -> set[str]:
    """The strings themselves, their lines and their words."""
    lines = {line for text in texts for line in text.split("\n")}
    return {*texts} | lines | {word for line in lines for word in _WORD.findall(line)}


def _texts(exchange: Exchange) -> Iterator[str]:
    yield from (value for _, value in (*exchange.request_headers, *exchange.response_headers))
    yield exchange.query
    for body in (exchange.request.content, exchange.response.content):
        for line in [body] if body.lstrip()[:1] in (b"{", b"[") else body.split(b"\n"):
            yield from _of_json(line.removeprefix(b"data:"))


def _of_json(data: bytes) -> Iterator[str]:
    try:
        yield from _strings(json.loads(data))
    except (ValueError, RecursionError):
        yield data.decode(errors="replace")


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
