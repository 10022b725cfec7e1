"""The text of a harmony prompt, with the field of each character that a message or the instructions brought.

What the library writes of tools knows its tool and no character: it is the library's own way of telling them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from analyzer.sourced import Sourced, concat, covered, plain, sourced
from analyzer.sourced_json import path_of

_START, _MESSAGE = "<|start|>", "<|message|>"


def with_fields(text: str, messages: Sequence[Any], tools: Sequence[Mapping[str, Any]]) -> str:
    """`text`, decoded from the ids of the library's `messages`, whose strings may know their fields."""
    return concat(_pieces(text, messages, tools))


def _pieces(text: str, messages: Sequence[Any], tools: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    at = 0
    for message in messages:
        start = text.index(_MESSAGE, at) + len(_MESSAGE)
        named = [message.recipient, message.author.name]
        yield _replaced(text[at:start], [name for name in named if isinstance(name, Sourced)])
        end = start
        for content in message.content:
            said = getattr(content, "text", None)
            if said is None:  # the system's or the developer's
                end = text.index(_START, end)
                yield _told(text[start:end], content, tools)
            else:
                yield said
                end += len(said)
        at = text.index(_START, end)
        yield text[end:at]
    yield text[at:]


def _told(text: str, content: Any, tools: Sequence[Mapping[str, Any]]) -> str:
    """The instructions, exactly, and what is written of each tool, as a whole."""
    instructions = getattr(content, "instructions", None)
    known = [instructions] if isinstance(instructions, Sourced) else []
    head, mark, rest = text.partition("# Tools\n")
    return concat((_replaced(head, known), mark, _of_tools(rest, tools)))


def _of_tools(text: str, tools: Sequence[Mapping[str, Any]]) -> str:
    parts: list[str] = []
    at = 0
    for tool in tools:
        function = tool["function"]
        named = text.find(f"type {plain(function['name'])} = ", at)
        if named < 0:
            break
        following = text.find("\n\n", named)
        end = len(text) if following < 0 else following
        known = [function[key] for key in ("description", "name") if isinstance(function.get(key), Sourced)]
        parts.append(_replaced(text[at:end], known, owner=sourced("x", path_of(function) or "")))
        at = end
    return concat((*parts, text[at:]))


def _replaced(text: str, known: Sequence[str], owner: str = "") -> str:
    """`text` with each of `known` in it, in this order, knowing its field; the rest is the owner's."""
    parts: list[str] = []
    at = 0
    for each in known:
        found = text.find(plain(each), at)
        if found >= 0:
            parts += (covered(text[at:found], [owner]), each)
            at = found + len(each)
    return concat((*parts, covered(text[at:], [owner])))
