"""Tells which lists of content parts vLLM's chat models leave unread, as an iterator that runs dry.

It matters to renderers that take messages as sent; a chat template gets them after they were read. A message
fits two types, and pydantic takes the one that declares more of what is there: one makes a list of the
parts, the other an iterator (vLLM 0.32 renderers/chat_utils.py:341-397; tried out, nobody documents it).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analyzer.chat_messages import is_function_tool

_OPENAI = {
    "developer": {"name"},
    "system": {"name"},
    "user": {"name"},
    "assistant": {"name", "tool_calls", "audio", "function_call", "refusal"},
    "tool": {"tool_call_id"},
}
"""The fields of OpenAI's own message types, which make an iterator, beside role and content."""

_VLLM = {"name", "tool_call_id", "tool_calls", "reasoning", "tools", "task"}
"""Those of vLLM's type for any role, which makes a list."""

_TEXT_KEYS = {"text": "text", "refusal": "refusal", "thinking": "thinking"}
_MEDIA_KEYS = frozenset(("image_url", "image_pil", "input_audio", "audio_url", "video_url", "file", "uuid"))


def is_unread(message: Mapping[str, Any]) -> bool:
    """Whether the message's content is an iterator after validation."""
    content, openai = message.get("content"), _OPENAI.get(str(message.get("role")))
    if openai is None or not isinstance(content, list | Mapping):
        return False
    if not _fits_openai(message, openai):
        return False
    if not isinstance(content, list) or not _fits_vllm(message, content):
        return True
    calls = message.get("tool_calls") or ()
    declared = sum(key in message for key in _VLLM - openai) + len(calls) * len(("id", "type", "function"))
    return declared + sum(map(_declared, content)) <= sum(key in message for key in openai - _VLLM)


def _fits_openai(message: Mapping[str, Any], keys: set[str]) -> bool:
    if "tool_call_id" in keys:
        return isinstance(message.get("tool_call_id"), str)
    null_calls = "tool_calls" in keys and message.get("tool_calls", ()) is None
    return isinstance(message.get("name", ""), str) and not null_calls


def _fits_vllm(message: Mapping[str, Any], parts: list[Any]) -> bool:
    texts = [message[key] for key in ("name", "task") if key in message]
    right = all(isinstance(text, str) for text in texts)
    right = right and all(isinstance(part, str | Mapping) for part in parts)
    return right and all(map(is_function_tool, message.get("tools") or ()))


def _declared(part: Any) -> int:
    """How many fields of a part its type declares; none where the part fits no type."""
    if not isinstance(part, Mapping):
        return 0
    if part.get("type") == "tool_reference":  # the one kind whose name may be absent
        return 1 + ("name" in part) if isinstance(part.get("name", ""), str) else 0
    if key := _TEXT_KEYS.get(part.get("type", "")):
        return 2 if isinstance(part.get(key), str) else 0
    return len(_MEDIA_KEYS & part.keys())
