"""Sessions as agents send them, made up by a seeded generator: growing, edited, branched, with odd texts.

It renders nothing. A session's history is kept in plain form, and spelt as a body of one endpoint each turn.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

type Json = dict[str, Any]

WORDS = (
    *(
        "a",
        "Token",
        " ",
        "  ",
        "\n",
        "\n\n",
        "<",
        "｜",
        "|>",
        "é",
        "e\u0301",
        "日本",
        "12345",
        "'s",
        "_",
        "▁",
    ),
    *(
        "👩‍💻",
        '"',
        "\\",
        "</tool_call>",
        "<tool_response>",
        "{{ x }}",
        "\u2028",
        "\x7f",
        "def f(x):\n    ",
        "user",
    ),
)
MARKS = (
    *("<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "<bos>", "<start_of_turn>"),
    *("<end_of_turn>", "<｜User｜>", "<｜Assistant｜>", "<｜end▁of▁sentence｜>", "｜DSML｜", "<|endoftext|>"),
)


class Session:
    """One agent's conversation; `calls` says whether it may use tools and system messages."""

    def __init__(self, dice: random.Random, *, calls: bool) -> None:
        self.dice, self.calls = dice, calls
        self.messages: list[Json] = []
        self.tools = [self._tool(number) for number in range(dice.randint(0, 3) if calls else 0)]
        if calls and dice.random() < 0.7:
            self.messages.append({"role": "system", "content": self.text()})
        self.messages.append({"role": "user", "content": self.text()})

    def turns(self, count: int) -> Iterator[tuple[list[Json], list[Json]]]:
        """Messages and tools of each turn; what was given is not changed afterwards."""
        for _ in range(count):
            yield copy.deepcopy(self.messages), copy.deepcopy(self.tools)
            self.dice.choices(
                (self._grow, self._edit, self._branch, self._reorder, lambda: None), (12, 3, 2, 2, 1)
            )[0]()

    def text(self) -> str:
        """Words and special tokens; never blank, which some endpoints leave out."""
        return "x" + "".join(self.dice.choices(WORDS + MARKS, k=self.dice.randint(0, 14)))

    def _tool(self, number: int) -> Json:
        properties = {self.dice.choice("abc"): {"type": "string", "description": self.text()}}
        function = {
            "name": f"tool_{number}",
            "description": self.text(),
            "parameters": {"type": "object", "properties": properties},
        }
        return {"type": "function", "function": function}

    def _grow(self) -> None:
        answer: Json = {"role": "assistant", "content": self.text()}
        if self.calls and self.dice.random() < 0.5:
            answer["reasoning"] = self.text()
        self.messages.append(answer)
        if not self.calls or self.dice.random() < 0.4:
            self.messages.append({"role": "user", "content": self.text()})
            return
        names = [f"call_{len(self.messages)}_{number}" for number in range(self.dice.randint(1, 2))]
        answer["tool_calls"] = [self._call(name) for name in names]
        self.messages += [{"role": "tool", "tool_call_id": name, "content": self.text()} for name in names]

    def _call(self, name: str) -> Json:
        arguments = {
            "path": self.text(),
            "deep": [{"n": self.dice.choice((1, 1.0, True, None, 1 << 70)), "t": self.text()}],
        }
        return {"id": name, "type": "function", "function": {"name": "tool_0", "arguments": arguments}}

    def _edit(self) -> None:
        message = self.dice.choice(self.messages)
        # As often as not by its last character alone, which a length or a beginning does not show.
        message["content"] = self.dice.choice((self.text(), message["content"][:-1] + self.dice.choice("yz")))

    def _branch(self) -> None:
        users = [at for at, message in enumerate(self.messages) if message["role"] == "user"]
        del self.messages[self.dice.choice(users) + 1 :]

    def _reorder(self) -> None:
        self.dice.shuffle(self.tools)


def chat_body(messages: list[Json], tools: list[Json]) -> Json:
    """A chat completion: arguments are JSON text."""
    spelt = [_with_calls(message, _as_chat_call) for message in messages]
    return {"model": "m", "messages": spelt} | ({"tools": tools} if tools else {})


def messages_body(messages: list[Json], tools: list[Json]) -> Json:
    """An Anthropic body, whose last message carries a mark that moves from turn to turn."""
    spelt = [_anthropic(message) for message in messages if message["role"] != "system"]
    spelt[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
    system = [message["content"] for message in messages if message["role"] == "system"]
    functions = [tool["function"] for tool in tools]
    declared = [
        {"name": f["name"], "description": f["description"], "input_schema": f["parameters"]}
        for f in functions
    ]
    body = {"model": "m", "max_tokens": 9, "messages": spelt}
    return body | ({"system": system[0]} if system else {}) | ({"tools": declared} if declared else {})


def responses_body(messages: list[Json], tools: list[Json]) -> Json:
    """A Responses body: calls and results are items of their own, and a call may follow a bare message."""
    items = [item for message in messages for item in _items(message)]
    declared = [{"type": "function", **tool["function"]} for tool in tools]
    return {"model": "m", "input": items} | ({"tools": declared} if declared else {})


def _with_calls(message: Json, spell: Any) -> Json:
    calls = message.get("tool_calls")
    return message | {"tool_calls": [spell(call) for call in calls]} if calls else message


def _as_chat_call(call: Json) -> Json:
    function = call["function"]
    return call | {"function": function | {"arguments": json.dumps(function["arguments"])}}


def _anthropic(message: Json) -> Json:
    if message["role"] == "tool":
        result = {
            "type": "tool_result",
            "tool_use_id": message["tool_call_id"],
            "content": message["content"],
        }
        return {"role": "user", "content": [result]}
    blocks: list[Json] = []
    if "reasoning" in message:
        blocks.append({"type": "thinking", "thinking": message["reasoning"], "signature": "s"})
    blocks.append({"type": "text", "text": message["content"]})
    for call in message.get("tool_calls", ()):
        function = call["function"]
        blocks.append(
            {"type": "tool_use", "id": call["id"], "name": function["name"], "input": function["arguments"]}
        )
    return {"role": message["role"], "content": blocks}


def _items(message: Json) -> Iterator[Json]:
    if message["role"] == "tool":
        yield {
            "type": "function_call_output",
            "call_id": message["tool_call_id"],
            "output": message["content"],
        }
        return
    yield {"role": message["role"], "content": message["content"]}
    for call in message.get("tool_calls", ()):
        function = call["function"]
        arguments = json.dumps(function["arguments"])
        yield {
            "type": "function_call",
            "call_id": call["id"],
            "name": function["name"],
            "arguments": arguments,
        }
