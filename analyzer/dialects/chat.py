"""OpenAI chat completions, as vLLM 0.32 validates them (entrypoints/openai/chat_completion/protocol.py).

It stops where the chat template's needs begin: message parts are still as sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from analyzer.core import Conversation


class ChatDialect:
    """Chat completions: messages and tools, rendered by the chat template."""

    name = "chat"
    path = "/v1/chat/completions"

    def conversations(self, body: Mapping[str, Any]) -> tuple[Conversation, ...]:
        """The one prompt of a chat body."""
        messages = body.get("messages")
        if not isinstance(messages, list) or not all(isinstance(item, Mapping) for item in messages):
            raise ValueError("the body has no list of messages")
        tools = body.get("tools")
        if tools is not None and not isinstance(tools, list):
            raise ValueError("tools is not a list")
        return (
            Conversation(
                dialect=self.name,
                prompt_index=0,
                messages=tuple(_with_reasoning(item) for item in messages),
                tools=None if tools is None else tuple(_dump_tool(item) for item in tools),
                template_kwargs=_template_kwargs(body),
                reasoning_effort=body.get("reasoning_effort"),
                add_generation_prompt=bool(body.get("add_generation_prompt", True)),
                continue_final_message=bool(body.get("continue_final_message", False)),
                add_special_tokens=bool(body.get("add_special_tokens", False)),
            ),
        )


def _with_reasoning(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """`reasoning_content` counts as `reasoning` where that is missing (protocol.py:554-579)."""
    if message.get("reasoning") is None and message.get("reasoning_content") is not None:
        renamed = {key: value for key, value in message.items() if key != "reasoning_content"}
        return renamed | {"reasoning": message["reasoning_content"]}
    return message


def _dump_tool(tool: Any) -> Mapping[str, Any]:
    """A tool as the template sees it: fixed order, unknown keys gone, absent texts null (protocol.py:202)."""
    function = tool.get("function") if isinstance(tool, Mapping) else None
    if not isinstance(function, Mapping):
        raise ValueError("a tool has no function")
    dumped = {key: function.get(key) for key in ("name", "description", "parameters")}
    dumped |= _given(function, ("strict", "defer_loading"))
    return {"type": tool.get("type", "function"), "function": dumped} | _given(tool, ("defer_loading",))


def _given(holder: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    return {key: holder[key] for key in keys if holder.get(key) is not None}


def _template_kwargs(body: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments the request gives the template; top-level fields win (protocol.py:621-655)."""
    asked = body.get("chat_template_kwargs")
    kwargs = dict(asked) if isinstance(asked, Mapping) else {}
    derived: dict[str, Any] = {}
    if (effort := body.get("reasoning_effort")) is not None:
        derived["reasoning_effort"] = effort
        if "enable_thinking" not in kwargs:
            derived["enable_thinking"] = effort != "none"
    derived |= _given(body, ("documents",))
    # None and "auto" never override (renderers/params.py:36-48).
    return {key: value for key, value in (kwargs | derived).items() if value not in (None, "auto")}


DIALECT = ChatDialect()
