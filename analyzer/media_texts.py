"""A conversation whose images, sounds and files are texts, so that two prompts with media can be compared.

It is for finding where prompts part and why, never for counting: how many tokens a medium takes, only the
server's own processor knows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from analyzer.core import Conversation
from analyzer.sourced import Sourced, spans_of
from analyzer.sourced_json import path_of

_MEDIA = ("image", "audio", "video", "file")


def with_media_as_texts(conversation: Conversation) -> Conversation | None:
    """The conversation with a short text, equal for equal media, for each medium; None where it has none."""
    if not any(_has_media(message) for message in conversation.messages):
        return None
    return replace(conversation, messages=tuple(map(_as_texts, conversation.messages)))


def _has_media(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    return isinstance(content, list | tuple) and any(map(_is_medium, content))


def _is_medium(part: Any) -> bool:
    kind = part.get("type") if isinstance(part, Mapping) else None
    return isinstance(kind, str) and any(word in kind for word in _MEDIA)


def _as_texts(message: Mapping[str, Any]) -> Mapping[str, Any]:
    if not _has_media(message):
        return message
    parts = [_as_text(part) if _is_medium(part) else part for part in message["content"]]
    return {**message, "content": parts}


def _as_text(part: Mapping[str, Any]) -> dict[str, str]:
    digest = hashlib.sha256(json.dumps(part, sort_keys=True, default=str).encode()).hexdigest()[:12]
    text = f"<{part['type']} {digest}>"
    path = _path_of(part)
    return {"type": "text", "text": Sourced(text, ((0, len(text), path, 0, False),)) if path else text}


def _path_of(part: Mapping[str, Any]) -> str | None:
    """The path of the part; of one that a dialect made anew, that of the first thing in it that has one."""
    found = path_of(part)
    values = [*part.values()]
    while found is None and values:
        value = values.pop(0)
        if isinstance(value, Mapping):
            found = path_of(value)
            values += value.values()
        elif isinstance(value, str) and (spans := spans_of(value)):
            found = spans[-1].path
    return found
