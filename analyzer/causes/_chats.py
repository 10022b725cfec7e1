"""Small conversations for the examples of causes in the history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SYSTEM = {"role": "system", "content": "You work on files. Be brief."}
NEXT = {"role": "user", "content": "Thank you. And now the tests?"}


def user(text: str) -> dict[str, Any]:
    """What a user says."""
    return {"role": "user", "content": text}


def assistant(text: str, **more: Any) -> dict[str, Any]:
    """What the model answers."""
    return {"role": "assistant", "content": text, **more}


def call(arguments: str, call_id: str = "call_1") -> dict[str, Any]:
    """The model's call of a tool."""
    function = {"name": "read", "arguments": arguments}
    return {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def result(text: str, call_id: str = "call_1") -> dict[str, Any]:
    """What the tool gave back."""
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def chat(*messages: Mapping[str, Any], system: bool = True) -> dict[str, Any]:
    """A chat body."""
    return {"messages": [*([SYSTEM] if system else []), *messages]}
