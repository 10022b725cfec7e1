"""OpenAI Responses, as vLLM 0.32 turns them into chat messages (entrypoints/openai/responses/utils.py).

It stops where the chat template's needs begin. What a stored response holds is not in the body, so a
request that continues one is not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analyzer.chat_requests import template_kwargs
from analyzer.core import Conversation, Truncation
from analyzer.lax_json import whole
from analyzer.responses_items import chat_messages
from analyzer.responses_tools import chat_tools

_UNFINISHED = ("in_progress", "incomplete")


class ResponsesDialect:
    """Responses: instructions and input items, rendered by the chat template."""

    name = "responses"
    path = "/v1/responses"

    def conversations(self, body: Mapping[str, Any]) -> tuple[Conversation, ...]:
        """The one prompt of a Responses body."""
        if body.get("previous_response_id") is not None:
            raise ValueError("it continues a stored response (previous_response_id), which it does not hold")
        if body.get("prompt") is not None:
            raise ValueError("it names a stored prompt, which the server refuses")
        reasoning, tools = body.get("reasoning"), chat_tools(body.get("tools"))
        effort = reasoning.get("effort") if isinstance(reasoning, Mapping) else None
        messages, problem = _messages(body)
        unfinished = _is_unfinished(body.get("input"))
        return (
            Conversation(
                dialect=self.name,
                prompt_index=0,
                messages=messages,
                tools=tools,
                template_kwargs=template_kwargs(body, effort),
                reasoning_effort=effort,
                add_generation_prompt=not unfinished,
                continue_final_message=unfinished,
                # Never set by the endpoint, so the tokenizer adds its own, after a template that may have
                # written BOS already (protocol.py:460-467).
                add_special_tokens=True,
                tool_choice=body.get("tool_choice", "auto") if body.get("tools") else None,
                truncation=_truncation(body),
                items=_items(body),
                instructions=body.get("instructions"),
                messages_problem=problem,
            ),
        )


def _items(body: Mapping[str, Any]) -> str | tuple[Mapping[str, Any], ...]:
    given = body.get("input")
    if isinstance(given, str):
        return given
    if not isinstance(given, list) or not all(isinstance(item, Mapping) for item in given):
        raise ValueError("the body's input is neither text nor a list of items")
    return tuple(given)


def _messages(body: Mapping[str, Any]) -> tuple[tuple[Mapping[str, Any], ...], str | None]:
    """Instructions, then the input (utils.py:248-290); or none, and why the input makes none."""
    instructions, items = body.get("instructions"), _items(body)
    head = ({"role": "system", "content": instructions},) if instructions else ()
    if isinstance(items, str):
        return (*head, {"role": "user", "content": items}), None
    try:
        return (*head, *chat_messages(items)), None
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        return (), f"the body is not understood: {error}"


def _is_unfinished(given: Any) -> bool:
    """Whether the last item is to be continued rather than answered (utils.py:201-245)."""
    last = given[-1] if isinstance(given, list) and given else None
    if not isinstance(last, Mapping) or last.get("type", "message") not in ("message", "reasoning"):
        return False
    return last.get("status") in _UNFINISHED


def _truncation(body: Mapping[str, Any]) -> Truncation | None:
    """Anything but `disabled` cuts to what the model takes, null too (protocol.py:460-467)."""
    if body.get("truncation", "disabled") == "disabled":
        return None
    return Truncation(tokens=-1, reserves_output=bool(whole(body, "max_output_tokens")))


DIALECT = ResponsesDialect()
