"""What the chat-like request bodies share: how tools and template arguments reach the renderer.

Messages are each dialect's own; token ids are nobody's here. The rules are vLLM 0.32's, where the
Anthropic and Responses bodies become chat requests before they are rendered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from analyzer.sourced_json import like

EFFORTS = ("none", "low", "medium", "high", "xhigh", "max")
"""What may stand for disabled thinking (vLLM 0.32 entrypoints/anthropic/protocol.py:168-171)."""

MADE_UP_ID = "call_id-made-up-by-the-server"
"""Stands for the id of a call that has none: the server takes its clock for it (serving.py:511)."""


def dump_tool(function: Mapping[str, Any], *, defer_loading: Any = None) -> dict[str, Any]:
    """A function tool as the template sees it: fixed order, other keys gone, absent texts null.

    `function` holds name, description, parameters, strict, defer_loading. `defer_loading` is that of
    the tool around it, which its function takes over (vLLM 0.32
    entrypoints/openai/chat_completion/protocol.py:191-208, entrypoints/generate/base/protocol.py:298-313).
    """
    own = {key: key for key in function}  # which know their fields
    dumped = {own.get(key, key): function.get(key) for key in ("name", "description", "parameters")}
    dumped |= {own[key]: item for key, item in given(function, ("strict", "defer_loading")).items()}
    outer = {} if defer_loading is None else {"defer_loading": defer_loading}
    return {
        "type": "function",
        "function": like(function, dumped | {k: v for k, v in outer.items() if k not in dumped}),
    } | outer


def template_kwargs(body: Mapping[str, Any], effort: Any, documents: Any = None) -> dict[str, Any]:
    """Arguments a request gives the template; those of its own fields win over `chat_template_kwargs`.

    An effort switches thinking on or off where the request does not do so itself (vLLM 0.32
    chat_completion/protocol.py:621-655, responses/protocol.py:420-448).
    """
    asked = body.get("chat_template_kwargs")
    kwargs = dict(asked) if isinstance(asked, Mapping) else {}
    derived: dict[str, Any] = {"documents": documents, "reasoning_effort": effort}
    if effort is not None and "enable_thinking" not in kwargs:
        derived["enable_thinking"] = effort != "none"
    return _set(kwargs | _set(derived))


def given(holder: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """The members of `holder` that are set, in the order of `keys`."""
    return {key: holder[key] for key in keys if holder.get(key) is not None}


def declared_calls(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message whose tool calls have their keys as the chat request declares them, extras behind.

    Only what passes through that request's models is ordered so; Responses items do not.
    """
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return message
    return {**message, "tool_calls": [_declared_call(call) for call in calls]}


def _declared_call(call: Any) -> Any:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return call
    return ordered({**call, "function": ordered(function, ("arguments", "name"))}, ("id", "function", "type"))


def ordered(holder: Mapping[str, Any], first: Iterable[str]) -> dict[str, Any]:
    """The same members, those of `first` in its order and before the others."""
    head = {key: holder[key] for key in first if key in holder}
    return head | {key: value for key, value in holder.items() if key not in head}


def _set(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    # None and "auto" never override (renderers/params.py:36-48).
    return {key: value for key, value in kwargs.items() if value not in (None, "auto")}
