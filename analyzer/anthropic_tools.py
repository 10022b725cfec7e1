"""Anthropic tool definitions as the chat template sees them (vLLM 0.32 entrypoints/anthropic).

Tools may change within the conversation; a template sees one list, that of its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from analyzer.chat_requests import dump_tool
from analyzer.sourced_json import like, with_members

_CHANGES = ("tool_addition", "tool_removal")


def chat_tools(
    tools: list[Mapping[str, Any]] | None, messages: Iterable[Mapping[str, Any]]
) -> tuple[dict[str, Any], ...] | None:
    """The tools in effect at the conversation's end, in the chat endpoint's form.

    None where the body names none; an empty list stays one. Raises ValueError for what the server refuses.
    """
    in_effect = _resolved(tools, messages)
    return None if in_effect is None else tuple(_chat_tool(tool) for tool in in_effect)


def _resolved(
    tools: list[Mapping[str, Any]] | None, messages: Iterable[Mapping[str, Any]]
) -> list[Mapping[str, Any]] | None:
    """The tools after all additions and removals within the messages (serving.py:717-757)."""
    changes = list(_changes(messages))
    if not changes:
        return tools
    declared = {tool["name"]: tool for tool in tools or []}
    removed: set[str] = set()
    for kind, change in changes:
        if change.get("type") == "tool_definition":
            name = change["definition"]["name"]
            declared[name] = change["definition"]
        else:
            name = change["name"]
            if name not in declared:
                raise ValueError(f"{kind} names the tool {name!r}, which is not declared")
            if kind == "tool_addition":
                declared[name] = {k: v for k, v in declared[name].items() if k != "defer_loading"}
        if kind == "tool_removal":
            removed.add(name)
        else:
            removed.discard(name)
    return [tool for name, tool in declared.items() if name not in removed]


def _changes(messages: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for message in messages:
        content = message.get("content")
        for block in content if isinstance(content, list) else []:
            if block.get("type") in _CHANGES:
                if message.get("role") != "system":
                    raise ValueError(f"{block['type']} is allowed in system messages alone")
                yield block["type"], block["tool"]


def _chat_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    schema = tool.get("input_schema")
    if not isinstance(schema, Mapping):
        raise ValueError("a tool has no input_schema")
    # A schema without a type gets one, last (protocol.py:119-127).
    typed = schema if "type" in schema else with_members(schema, {}, {"type": "object"})
    kept = {key: item for key, item in tool.items() if key != "input_schema"}
    return dump_tool(like(tool, kept | {"parameters": typed}))
