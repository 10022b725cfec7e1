"""OpenAI chat completions, as vLLM 0.32 validates them (entrypoints/openai/chat_completion/protocol.py).

It stops where the chat template's needs begin: message parts are still as sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analyzer.chat_requests import dump_tool, template_kwargs
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
                template_kwargs=template_kwargs(body, body.get("reasoning_effort"), body.get("documents")),
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
    function = tool.get("function") if isinstance(tool, Mapping) else None
    if not isinstance(function, Mapping):
        raise ValueError("a tool has no function")
    return dump_tool(function, defer_loading=tool.get("defer_loading"))


DIALECT = ChatDialect()
