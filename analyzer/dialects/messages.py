"""Anthropic messages, as vLLM 0.32 turns them into a chat request (entrypoints/anthropic/serving.py).

It stops where the chat template's needs begin. What the server decides by trying its template is marked
on the conversation and settled by whoever renders (`analyzer.anthropic_probes`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from analyzer import sourced_json
from analyzer.anthropic_tools import chat_tools
from analyzer.chat_requests import EFFORTS, MADE_UP_ID, template_kwargs
from analyzer.core import Conversation
from analyzer.shared_json import once, shared_like
from analyzer.sourced import concat, join
from analyzer.sourced_repr import repr_of

_BILLING_LINE = "x-anthropic-billing-header"
# protocol.py:47-57: any other block is refused.
_BLOCKS = frozenset(
    (
        *("text", "image", "thinking", "redacted_thinking"),
        *("tool_use", "tool_result", "tool_reference", "tool_addition", "tool_removal"),
    )
)
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}


class MessagesDialect:
    """Anthropic messages: system, blocks and tools, rendered by the chat template."""

    name = "messages"
    path = "/v1/messages"

    def conversations(self, body: Mapping[str, Any]) -> tuple[Conversation, ...]:
        """The one prompt of a messages body."""
        messages = body.get("messages")
        if not isinstance(messages, list) or not all(isinstance(item, Mapping) for item in messages):
            raise ValueError("the body has no list of messages")
        thinking = body.get("thinking")
        disabled = isinstance(thinking, Mapping) and thinking.get("type") == "disabled"
        output = body.get("output_config")
        effort = output.get("effort") if isinstance(output, Mapping) else None
        system = _system_text(body.get("system"), keep_billing=True)
        leading = [{"role": "system", "content": system}] if system else []
        tools = chat_tools(body.get("tools"), messages)
        return (
            Conversation(
                dialect=self.name,
                prompt_index=0,
                messages=(*leading, *(made for item in messages for made in once(_converted, item))),
                tools=tools,
                # "none" unless the server finds that its template does not know it (serving.py:196-238).
                template_kwargs=template_kwargs(body, "none" if disabled else effort),
                reasoning_effort="none" if disabled else effort,
                tool_choice=_tool_choice(body.get("tool_choice"), has_tools=tools is not None),
                merges_system=True,
                disabled_thinking=_by_effort(body) if disabled else None,
            ),
        )


def _by_effort(body: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {effort: template_kwargs(body, effort) for effort in EFFORTS}


def _tool_choice(choice: Any, *, has_tools: bool) -> Any:
    """A choice as chat spells it (serving.py:690-715); given tools and no choice, it is auto (:786)."""
    if not isinstance(choice, Mapping):
        return "auto" if has_tools else None
    if choice.get("type") == "tool":
        return {"type": "function", "function": {"name": choice.get("name")}}
    return _CHOICES.get(choice.get("type", ""))


def _system_text(content: Any, *, keep_billing: bool = False) -> str:
    """The text of a system field or message: blocks without a separator, billing headers left out.

    Only the top field's plain string keeps its header here; its first line goes later, with those of all
    system messages (serving.py:352-404).
    """
    if content is None or isinstance(content, str):
        billed = content is not None and content.startswith(_BILLING_LINE) and not keep_billing
        return "" if billed or content is None else content
    texts = [_text(block) for block in _blocks(content) if block["type"] == "text"]
    return concat(text for text in texts if not text.startswith(_BILLING_LINE))


def _blocks(content: Any) -> list[Mapping[str, Any]]:
    if not isinstance(content, list):
        raise ValueError("the content of a message is neither text nor a list of blocks")
    for block in content:
        kind = block.get("type") if isinstance(block, Mapping) else None
        if kind not in _BLOCKS:
            raise ValueError(f"the server knows no block of type {kind!r}")
    return content


def _text(block: Mapping[str, Any], key: str = "text") -> str:
    text = block.get(key)
    return text if isinstance(text, str) else ""


def _converted(message: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    return tuple(shared_like(message, made) for made in _messages(message))


def _messages(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The chat messages that one message becomes, tool results first (serving.py:406-480)."""
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant", "system"):
        raise ValueError(f"the server knows no role {role!r}")
    if role == "system":
        if text := _system_text(content):
            yield {"role": "system", "content": text}
    elif isinstance(content, str):
        yield {"role": role, "content": content}
    else:
        yield from _from_blocks(role, _blocks(content))


def _from_blocks(role: str, blocks: list[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    made: dict[str, Any] = {"role": role}
    parts: list[dict[str, Any]] = []
    reasoning = [block["thinking"] for block in blocks if _is_thinking(block)]
    calls = [_tool_call(block) for block in blocks if block["type"] == "tool_use"]
    for block in blocks:
        if block["type"] == "tool_result" and role == "user":
            yield from _tool_messages(block)
        elif (part := _part(block)) is not None:
            parts.append(part)
    if reasoning:
        made["reasoning"] = concat(reasoning)
    if calls:
        made["tool_calls"] = calls
    if parts:
        alone = len(parts) == 1 and parts[0]["type"] == "text"
        made["content"] = parts[0]["text"] if alone else parts
    # A user message that held nothing but results is not sent on; an assistant's is (serving.py:447).
    if role == "assistant" or parts:
        yield made


def _is_thinking(block: Mapping[str, Any]) -> bool:
    return block["type"] == "thinking" and isinstance(block.get("thinking"), str)


def _part(block: Mapping[str, Any]) -> dict[str, Any] | None:
    """A block's part of the message's own content, if it has one (serving.py:482-521)."""
    match block["type"]:
        case "text" if text := _text(block):
            return {"type": "text", "text": text}
        case "image" if source := block.get("source"):
            return _image(source)
        case "tool_result":
            content = block.get("content")
            shown = content if isinstance(content, str) else repr_of(content)
            return {"type": "text", "text": concat(("Tool result: ", shown if content else ""))}
    return None


def _tool_call(block: Mapping[str, Any]) -> dict[str, Any]:
    """A tool use with its input as JSON text (serving.py:523-534), keys as the chat request declares them."""
    function = {"arguments": _json_text(block.get("input") or {}), "name": block.get("name") or ""}
    return {"id": block.get("id") or MADE_UP_ID, "function": function, "type": "function"}


def _json_text(value: Any) -> str:
    # Text that knows no field needs no walk through the value.
    if sourced_json.path_of(value) is None:
        return json.dumps(value)
    return sourced_json.dumps(value, ensure_ascii=True)


def _tool_messages(block: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A result as messages of its own: its text, then images, then references (serving.py:555-617)."""
    content, call_id = block.get("content"), block.get("tool_use_id") or ""
    items = [item for item in content if isinstance(item, Mapping)] if isinstance(content, list) else []
    texts = [item.get("text", "") for item in items if item.get("type") == "text"]
    text = content if isinstance(content, str) else join("\n", texts)
    yield {"role": "tool", "tool_call_id": call_id, "content": text}
    images = [_image(item.get("source") or {}) for item in items if item.get("type") == "image"]
    if images:
        yield {"role": "user", "content": images}
    names = [
        item.get("tool_name") or item.get("name") for item in items if item.get("type") == "tool_reference"
    ]
    references = [{"type": "tool_reference", "name": name} for name in names if name]
    if references:
        yield {"role": "tool", "tool_call_id": call_id, "content": references}


def _image(source: Mapping[str, Any]) -> dict[str, Any]:
    """An image as chat sends it (serving.py:301-321)."""
    if source.get("type") == "url":
        url = source.get("url", "")
    else:
        kind, data = source.get("media_type", "image/jpeg"), source.get("data", "")
        url = concat(("data:", kind, ";base64,", data))
    return {"type": "image_url", "image_url": {"url": url}}


DIALECT = MessagesDialect()
