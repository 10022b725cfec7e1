"""Small requests for the examples of causes in the list of tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def toy(name: str, description: str, parameters: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A function tool of one string, or of other parameters."""
    path = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": dict(parameters or path)},
    }


TOOLS = [
    toy("glob", "Find files by a pattern."),
    toy("read", "Read one file."),
    toy("shell", "Run a command in /tmp/box."),
]


def asked(tools: Sequence[Mapping[str, Any]] | None, **more: Any) -> dict[str, Any]:
    """A chat body with these tools."""
    messages = [
        {"role": "system", "content": "You work on files. Be brief."},
        {"role": "user", "content": "Which files are there?"},
    ]
    return {"messages": messages} | ({"tools": list(tools)} if tools else {}) | more
