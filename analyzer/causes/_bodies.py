"""What causes ask of two bodies: which messages are there, what was appended, whose text comes next.

Every dialect's messages count alike: those of `messages`, and the items of a Responses `input`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from analyzer.body_paths import MISSING, value_at
from analyzer.change import Change, View
from analyzer.compare import next_span
from analyzer.core import Span

_HEAD = ("system", "instructions", "tools")
_ITEM = re.compile(r"((?:messages|input)\[(\d+)\])")
_REASONING = ("reasoning", "reasoning_content", "thinking")
_ASSISTANT_ITEMS = ("reasoning", "function_call", "custom_tool_call")
_RESULT_ITEMS = ("function_call_output", "custom_tool_call_output")


def items(body: Any) -> list[Any]:
    """The messages or input items of a body."""
    for key in ("messages", "input"):
        if isinstance(found := body.get(key), list):
            return found
    return []


def item_path(path: str | None) -> str | None:
    """The path of the message or item that a path lies in."""
    found = _ITEM.match(path or "")
    return found[1] if found else None


def item_index(path: str | None) -> int | None:
    """The index of that message or item."""
    found = _ITEM.match(path or "")
    return int(found[2]) if found else None


def appends(change: Change) -> bool:
    """Whether the child's body holds all that the parent's does in front, and goes on behind it."""
    before, after = change.before.body, change.after.body
    same_head = all(before.get(key) == after.get(key) for key in _HEAD)
    return same_head and items(after)[: len(items(before))] == items(before)


def new_items(change: Change) -> list[Any]:
    """What the child's body has behind as many messages as the parent's has."""
    return items(change.after.body)[len(items(change.before.body)) :]


def role(item: Any) -> str | None:
    """Who speaks: `tool` for results, also those that Anthropic puts into a message of the user."""
    if not isinstance(item, Mapping):
        return None
    kind = item.get("type")
    if kind in _RESULT_ITEMS:
        return "tool"
    if kind in _ASSISTANT_ITEMS:
        return "assistant"
    said, content = item.get("role"), item.get("content")
    if said == "user" and isinstance(content, list) and content and all(map(_is_result, content)):
        return "tool"
    return said if isinstance(said, str) else None


def last_user(body: Any) -> int:
    """The index of the last message of a user, -1 where there is none."""
    return max((at for at, item in enumerate(items(body)) if role(item) == "user"), default=-1)


def shown_next(view: View) -> Span | None:
    """The field whose text the prompt shows at the divergence, or next behind it."""
    return next_span(view.spans, view.char)


def is_reasoning(body: Any, path: str) -> bool:
    """Whether a path is that of reasoning, in any dialect."""
    if path.rpartition(".")[2] in _REASONING:
        return True
    item = value_at(body, item_path(path) or "")
    return isinstance(item, Mapping) and item.get("type") == "reasoning"


def same_value(change: Change, path: str) -> bool:
    """Whether both bodies hold the same at a path."""
    value = value_at(change.before.body, path)
    return value is not MISSING and value == value_at(change.after.body, path)


def strings(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Every string inside a JSON value, with its path."""
    if isinstance(value, str):
        yield path, value
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in pairs:
        yield from strings(item, f"{path}[{key}]" if isinstance(key, int) else f"{path}.{key}")


def _is_result(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type") == "tool_result"
