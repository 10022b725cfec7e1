"""OpenAI chat completions, as vLLM 0.32 validates them (entrypoints/openai/chat_completion/protocol.py).

It stops where the chat template's needs begin: message parts are still as sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analyzer.chat_requests import declared_calls, dump_tool, template_kwargs
from analyzer.core import TOKEN_ID_LIMIT, Conversation, Truncation
from analyzer.lax_json import flag, whole
from analyzer.shared_json import once, shared_like

_TEXT_PARTS = ("text", "input_text", "output_text", "refusal", "thinking", "tool_reference")


class ChatDialect:
    """Chat completions: messages and tools, rendered by the chat template."""

    name = "chat"
    path = "/v1/chat/completions"

    def conversations(self, body: Mapping[str, Any]) -> tuple[Conversation, ...]:
        """The one prompt of a chat body."""
        messages = _messages(body)
        if (ids := _forwarded_ids(body, messages)) is not None:
            return (Conversation(dialect=self.name, prompt_index=0, token_ids=ids),)
        tools = body.get("tools")
        if tools is not None and (not isinstance(tools, list) or not tools):
            raise ValueError("tools is not a list of at least one tool")
        return (
            Conversation(
                dialect=self.name,
                prompt_index=0,
                messages=tuple(once(_declared, item) for item in messages),
                tools=None if tools is None else tuple(once(_dump_tool, item) for item in tools),
                template_kwargs=template_kwargs(body, body.get("reasoning_effort"), body.get("documents")),
                reasoning_effort=body.get("reasoning_effort"),
                add_generation_prompt=flag(body, "add_generation_prompt", default=True),
                continue_final_message=flag(body, "continue_final_message"),
                add_special_tokens=flag(body, "add_special_tokens"),
                tool_choice=body.get("tool_choice", "auto" if tools else "none"),
                chat_template=body.get("chat_template") or None,
                truncation=_truncation(body),
            ),
        )


def _messages(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    messages = body.get("messages")
    # dict comes first: asking an abstract class takes long
    if not isinstance(messages, list) or not all(isinstance(item, (dict, Mapping)) for item in messages):
        raise ValueError("the body has no list of messages")
    return messages


def _forwarded_ids(body: Mapping[str, Any], messages: list[Mapping[str, Any]]) -> tuple[int, ...] | None:
    """Ids that a prefill server passed on: they take the place of the messages (online_renderer.py:105-150).

    Not where the answer echoes the last message, nor where a message holds more than text.
    """
    handed_over = body.get("kv_transfer_params")
    ids = handed_over.get("prompt_token_ids") if isinstance(handed_over, Mapping) else None
    if ids is None or flag(body, "echo") or any(_has_media(message) for message in messages):
        return None
    whole = isinstance(ids, list) and all(type(item) is int and 0 <= item < TOKEN_ID_LIMIT for item in ids)
    if not whole or not ids:
        raise ValueError("kv_transfer_params.prompt_token_ids is not a list of token ids")
    return tuple(ids)


def _has_media(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return any(isinstance(part, Mapping) and part.get("type", "text") not in _TEXT_PARTS for part in parts)


def _declared(message: Mapping[str, Any]) -> Mapping[str, Any]:
    return shared_like(message, declared_calls(_with_reasoning(message)))


def _with_reasoning(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """`reasoning_content` counts as `reasoning` where that is missing (protocol.py:554-579)."""
    if "reasoning_content" not in message:
        return message
    renamed = {key: value for key, value in message.items() if key != "reasoning_content"}
    if message.get("reasoning") is None and message["reasoning_content"] is not None:
        renamed["reasoning"] = message["reasoning_content"]
    return renamed


def _dump_tool(tool: Any) -> Mapping[str, Any]:
    function = tool.get("function") if isinstance(tool, Mapping) else None
    if not isinstance(function, Mapping):
        raise ValueError("a tool has no function")
    return dump_tool(function, defer_loading=tool.get("defer_loading"))


def _truncation(body: Mapping[str, Any]) -> Truncation | None:
    """What the prompt is cut to (protocol.py:657-678): room is kept where output is asked for."""
    tokens = whole(body, "truncate_prompt_tokens")
    if tokens is None:
        return None
    asked = whole(body, "max_completion_tokens")
    asked = whole(body, "max_tokens") if asked is None else asked
    return Truncation(tokens=tokens, side=body.get("truncation_side"), reserves_output=bool(asked))


DIALECT = ChatDialect()
