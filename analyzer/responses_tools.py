"""Responses tools as the chat template sees them: functions alone, flat (vLLM 0.32 tool_parsers/utils.py).

Functions of a namespace carry its name, and a custom tool becomes a function of one string. Tools that
the server runs itself are never shown to the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from analyzer.chat_requests import dump_tool
from analyzer.sourced import concat
from analyzer.sourced_json import like


def chat_tools(tools: Iterable[Mapping[str, Any]] | None) -> tuple[dict[str, Any], ...] | None:
    """The function tools in the chat endpoint's form; None where the body lists no tool at all.

    Raises ValueError for what the server refuses.
    """
    return tuple(made for tool in tools for made in _chat_tools(tool)) if tools else None


def _chat_tools(tool: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    match tool.get("type"):
        case "function":
            yield _named(tool, tool.get("name"))
        case "namespace":
            functions = (item for item in tool["tools"] if item["type"] == "function")
            for function in functions:
                yield _named(function, concat((tool["name"], "__", function["name"])))
        case "custom":
            if isinstance(form := tool.get("format"), Mapping) and form.get("type") == "grammar":
                raise ValueError("the server does not take custom tools with a grammar")
            kept = {key: item for key, item in tool.items() if key in ("name", "description")}
            yield dump_tool(like(tool, kept | {"parameters": _custom_schema()}))


def _named(function: Mapping[str, Any], name: Any) -> dict[str, Any]:
    if not isinstance(name, str):
        raise ValueError("a tool has no name")
    return dump_tool(like(function, {**function, "name": name}))


def _custom_schema() -> dict[str, Any]:
    # tool_parsers/utils.py:46-57; part of every prompt that has such a tool, so word for word.
    payload = {"type": "string", "description": "The freeform text payload for this tool."}
    return {
        "type": "object",
        "properties": {"input": payload},
        "required": ["input"],
        "additionalProperties": False,
    }
