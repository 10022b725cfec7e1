"""Responses input items as chat messages: several items may make one assistant message.

The rules are vLLM 0.32's (entrypoints/openai/responses/utils.py:293-442), on items as its models accept
them (protocol.py:644-733).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from analyzer import sourced_json
from analyzer.sourced import concat

_INPUTS = ("input_text", "input_image", "input_file")
_OUTPUTS = ("function_call_output", "custom_tool_call_output")


def chat_messages(items: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The messages of a list of items. Raises ValueError for what the server refuses."""
    messages: list[dict[str, Any]] = []
    for item in items:
        last = messages[-1] if messages and messages[-1].get("role") == "assistant" else None
        if (message := _message(item, last)) is not None:
            messages.append(message)
    return messages


def _message(item: Mapping[str, Any], last: dict[str, Any] | None) -> dict[str, Any] | None:
    """The item as a message of its own, or None where it went into `last`, the assistant message before."""
    match item.get("type", "message"):
        case "function_call":
            return _with_call(last, _call(item["call_id"], _full_name(item), item["arguments"]))
        case "custom_tool_call":
            arguments = sourced_json.dumps({"input": item["input"]})
            return _with_call(last, _call(item["call_id"], item["name"], arguments))
        case "reasoning":
            return _filled(last, "reasoning", _reasoning(item))
        case kind if kind in _OUTPUTS:
            return {"role": "tool", "content": _checked(item, "output"), "tool_call_id": item.get("call_id")}
        case "message" if item.get("role") == "assistant":
            text = _first_text(item)
            return dict(item) if text is None else _filled(last, "content", text)
        case "message" if item.get("role") in ("user", "system", "developer"):
            return {**item, "content": _checked(item, "content")}
        case "additional_tools" if item.get("role") == "developer":
            return dict(item)
        case kind:
            raise ValueError(f"the server does not take an input item of type {kind!r}")


def _filled(last: dict[str, Any] | None, slot: str, value: str) -> dict[str, Any] | None:
    """Fill the slot of the last message if it is free; an item may so attach to what came before it."""
    if last is not None and last.get(slot) is None:
        last[slot] = value
        return None
    return {"role": "assistant", slot: value}


def _with_call(last: dict[str, Any] | None, call: dict[str, Any]) -> dict[str, Any] | None:
    if last is not None:
        # A new list: one that an item brought along is the body's own.
        last["tool_calls"] = [*last.get("tool_calls", ()), call]
        return None
    return {"role": "assistant", "tool_calls": [call]}


def _call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    # The order in which the server makes them, and in which a template that dumps a call shows them.
    return {"id": call_id, "function": {"name": name, "arguments": arguments}, "type": "function"}


def _full_name(item: Mapping[str, Any]) -> str:
    namespace, name = item.get("namespace"), item["name"]
    return concat((namespace, "__", name)) if namespace else name


def _reasoning(item: Mapping[str, Any]) -> str:
    """The first text of the content, else of the summary; the others are dropped (utils.py:375-398)."""
    if item.get("encrypted_content"):
        raise ValueError("the server does not take encrypted reasoning")
    content, summary = item.get("content") or [], item["summary"]
    if any(part["type"] != "reasoning_text" for part in content):
        raise ValueError("the server does not take reasoning of other parts than reasoning_text")
    texts = content or summary
    return texts[0]["text"] if texts else ""


def _first_text(item: Mapping[str, Any]) -> str | None:
    """An assistant's text: of several parts only the first (utils.py:399-410, 425-437).

    None where it has no part at all, which the server takes from an item that does not call itself a
    message, and then leaves as it is.
    """
    content = item.get("content")
    if isinstance(content, str):
        return content
    if content == [] and "type" not in item:
        return None
    first = content[0] if isinstance(content, list) and content else None
    text = first.get("text") if isinstance(first, Mapping) else None
    bare_output = "type" not in item and isinstance(first, Mapping) and first.get("type") not in _INPUTS
    if not isinstance(text, str) or bare_output:
        raise ValueError("the server does not take an assistant message that begins like this one")
    return text


def _checked(item: Mapping[str, Any], key: str) -> Any:
    """The text or list of input parts at `key` (openai EasyInputMessageParam, FunctionCallOutput)."""
    value = item.get(key)
    parts = value if isinstance(value, list) else []
    if not isinstance(value, str | list) or any(part.get("type") not in _INPUTS for part in parts):
        raise ValueError(f"the server does not take this {key} in an input item")
    return value
