"""Pieces of agents' sessions for tests of causes, in the dialects that write them differently."""

from __future__ import annotations

import json
from typing import Any

type Json = dict[str, Any]

SYSTEM: Json = {"role": "system", "content": "You keep the files of a small shop. " * 12}
TOOLS: list[Json] = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"The tool {name} of the shop",
            "parameters": {"type": "object", "properties": {"p": {"type": "string"}}, "required": ["p"]},
        },
    }
    for name in ("glob", "read")
]


def user(text: Any = "Which files are there?") -> Json:
    return {"role": "user", "content": text}


def said(text: Any = "There are two.", reasoning: str | None = None, key: str = "reasoning_content") -> Json:
    return {"role": "assistant", "content": text} | ({} if reasoning is None else {key: reasoning})


def step(number: int, reasoning: str | None = None, call_id: str = "call") -> list[Json]:
    """A tool call and its result."""
    function = {"name": "read", "arguments": json.dumps({"p": f"file-{number}.txt"})}
    call = {"id": f"{call_id}-{number}", "type": "function", "function": function}
    return [
        said("", reasoning) | {"tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"{call_id}-{number}", "content": f"The text of file {number}."},
    ]


def loop(steps: int, *, reasoning: bool, call_id: str = "call") -> list[Json]:
    """That many tool steps, each thought about or not."""
    return [
        message
        for number in range(steps)
        for message in step(
            number, f"I read file {number} to see what it holds." if reasoning else None, call_id
        )
    ]


def chat(*messages: Json, tools: bool = True, **more: Any) -> Json:
    return {"messages": [SYSTEM, *messages], **({"tools": TOOLS} if tools else {}), **more}


def blocks(*content: Json, role: str = "assistant") -> Json:
    """A message of Anthropic's dialect."""
    return {"role": role, "content": list(content)}


def thinking(text: str) -> Json:
    return {"type": "thinking", "thinking": text, "signature": "s"}


def text(content: str) -> Json:
    return {"type": "text", "text": content}


def use(number: int) -> Json:
    return {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {"p": f"{number}.txt"}}


def result(number: int) -> Json:
    return {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"The text of {number}."}


def anthropic(*messages: Json, **more: Any) -> Json:
    return {"max_tokens": 64, "system": SYSTEM["content"], "messages": list(messages), **more}


def responses(*items: Json, **more: Any) -> Json:
    return {"instructions": SYSTEM["content"], "input": list(items), **more}


def thought(content: str) -> Json:
    """A reasoning item of the Responses dialect."""
    return {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": content}]}


def called(number: int) -> list[Json]:
    return [
        {"type": "function_call", "call_id": f"c{number}", "name": "read", "arguments": '{"p": "a"}'},
        {"type": "function_call_output", "call_id": f"c{number}", "output": f"The text of {number}."},
    ]


def answered(content: str) -> Json:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": content}]}
