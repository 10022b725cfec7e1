"""Renders messages in DeepSeek V3.2's format, which vLLM writes in Python and not through a chat template.

Rules: vLLM 0.32 tokenizers/deepseek_v32.py, tokenizers/deepseek_v32_encoding.py, renderers/deepseek_v32.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from analyzer.anthropic_probes import settle_encoder
from analyzer.chat_messages import parse_chat_messages
from analyzer.core import Rendering
from analyzer.dsml import (
    ASSISTANT,
    BOS,
    END_THINK,
    EOS,
    THINK,
    USER,
    NotEncodable,
    last_user_index,
    tool_calls_text,
    tool_schemas,
)
from analyzer.dsml_texts import V32_TOOLS_HEAD, V32_TOOLS_TAIL
from analyzer.renderers import Job, RenderFailed, is_chat_in, tokenized
from analyzer.sourced import concat
from analyzer.template_arguments import arguments_of

type _Messages = Sequence[Mapping[str, Any]]


class DeepseekV32Renderer:
    """DeepSeek V3.2's own encoder, as vLLM runs it (tokenizer mode deepseek_v32)."""

    name = "deepseek_v32"
    rank = 31

    def fits(self, job: Job) -> bool:
        """Whether there are messages for a DeepSeek V3.2 tokenizer."""
        return is_chat_in(job, self.name)

    def render(self, job: Job) -> Rendering:
        """Encode to text, then tokenize the text, as the server does."""
        return tokenized(job, self.render_text(job), self.name)

    def render_text(self, job: Job, *, generation_prompt: bool = True) -> str:
        """The encoded prompt. The server opens the answer whatever `add_generation_prompt` says."""
        conversation = settle_encoder(job, self.render_text)
        if not conversation.is_chat:
            raise RenderFailed("deepseek_v32 renders messages; a raw prompt has none")
        kwargs = arguments_of(replace(job, conversation=conversation))
        try:
            messages: _Messages = parse_chat_messages(conversation.messages, "string")
            if tools := kwargs.get("tools"):
                # In a system message of their own, before any other (tokenizers/deepseek_v32.py:42-44).
                messages = [{"role": "system", "tools": tools}, *messages]
            thinking = bool(kwargs.get("thinking") or kwargs.get("enable_thinking"))
            return _encode(messages, thinking=thinking, answer=generation_prompt)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RenderFailed(f"DeepSeek V3.2's encoder refuses these messages: {error!r}") from error


def _encode(messages: _Messages, *, thinking: bool, answer: bool) -> str:
    # Reasoning is dropped only where the newest message asks a question (tokenizers/deepseek_v32.py:46-48).
    if thinking and messages[-1]["role"] == "user" and len(_kept(messages)) < len(messages):
        # The server counts on in the shorter list and fails (deepseek_v32_encoding.py:311-318).
        raise NotEncodable("a developer message stands before the last question of a thinking conversation")
    last_user = last_user_index([message["role"] for message in messages])
    parts = [BOS]
    for at in range(len(messages)):
        thinks = thinking and at >= last_user
        parts.append(_message_text(messages, at, thinks=thinks))
        if answer or at + 1 < len(messages):
            parts.append(_transition(messages, at, thinks=thinks))
    return concat(parts)


def _kept(messages: _Messages) -> _Messages:
    """The messages that dropping reasoning leaves (deepseek_v32_encoding.py:263-284)."""
    last_user = last_user_index([message["role"] for message in messages])
    kept = ("user", "system", "tool", "assistant")
    return [message for at, message in enumerate(messages) if at >= last_user or message["role"] in kept]


def _message_text(messages: _Messages, at: int, *, thinks: bool) -> str:
    """One message without what opens the answer to it (deepseek_v32_encoding.py:139-260)."""
    message = messages[at]
    text: str = message.get("content") or ""
    match message["role"]:
        case "system":
            return concat((text, _tools_text(message)))
        case "developer":
            if not text:
                raise NotEncodable("a developer message is empty")
            return concat((USER, _tools_text(message), "\n\n# The user's message is: ", text))
        case "user":
            return concat((USER, text))
        case "tool":
            number, _ = _place_among_results(messages, at)
            opening = "\n\n<function_results>" if number == 1 else ""
            return concat((opening, "\n<result>", text, "</result>"))
        case "assistant":
            return _assistant_text(message, text, thinks=thinks)
    raise NotEncodable(f"a message has the role {message['role']}")


def _assistant_text(message: Mapping[str, Any], text: str, *, thinks: bool) -> str:
    reasoning, calls = message.get("reasoning") or "", message.get("tool_calls")
    if thinks and not (reasoning or calls):
        raise NotEncodable("an answer after the last question has neither reasoning nor tool calls")
    thought = (reasoning, END_THINK) if thinks else ()
    called = ("\n\n", tool_calls_text(calls, "function_calls")) if calls else ()
    return concat((*thought, text, *called, EOS))


def _transition(messages: _Messages, at: int, *, thinks: bool) -> str:
    """What opens the answer to a question, or to the last result of a turn's calls."""
    opening = THINK if thinks else END_THINK
    match messages[at]["role"]:
        case "user" | "developer":
            return ASSISTANT + opening
        case "tool":
            number, count = _place_among_results(messages, at)
            return f"\n</function_results>\n\n{opening}" if number == count else ""
    return ""


def _place_among_results(messages: _Messages, at: int) -> tuple[int, int]:
    """A result's number, from 1, and how many calls there were; one too many is refused (:178-206)."""
    caller = at
    while caller >= 0 and messages[caller]["role"] == "tool":
        caller -= 1
    # Of a result that opens the conversation the server looks at the last message for the call.
    calls = messages[caller].get("tool_calls") if caller >= 0 or at == 0 else None
    if not calls or len(calls) < at - caller:
        raise NotEncodable("a tool result follows no call")
    return at - caller, len(calls)


def _tools_text(message: Mapping[str, Any]) -> str:
    tools = message.get("tools")
    return concat(("\n\n", V32_TOOLS_HEAD, tool_schemas(tools), V32_TOOLS_TAIL)) if tools else ""


RENDERER = DeepseekV32Renderer()
