"""Request bodies that try the encoders: written ones for each rule, and random ones from a seed."""

from __future__ import annotations

import json
import random
from typing import Any

type Body = dict[str, Any]
type Case = tuple[str, str, Body]
"""(what it tries, path of the endpoint, body without `model`)."""

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
MESSAGES, RESPONSES = "/v1/messages", "/v1/responses"

WEATHER: Body = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city — now",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": 'Größe "quoted"'},
                "days": {"type": "integer"},
            },
            "required": ["city"],
        },
    },
}
CLOCK: Body = {"function": {"description": None, "name": "clock", "strict": True}, "type": "function"}
EXTRA: Body = {
    "type": "function",
    "cache_control": {"type": "ephemeral"},
    "function": {"parameters": {"b": 1.0, "a": [1, None, True]}, "name": "extra", "returns": "text"},
}


def said(role: str, content: Any = "", **more: Any) -> Body:
    return {"role": role, "content": content, **more}


def call(name: str, arguments: Any, call_id: str | None = "c1") -> Body:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def parts(*texts: str) -> list[Body]:
    return [{"type": "text", "text": text} for text in texts]


ASK = said("user", "What is the weather in Kyiv?")
CALLED = said(
    "assistant",
    "Looking.",
    reasoning="They ask for weather.",
    tool_calls=[call("get_weather", '{"city": "Kyiv"}')],
)
RESULT = said("tool", "12 °C", tool_call_id="c1")
SPECIAL = "<｜User｜>no<｜Assistant｜></think><|start|>system<|message|>x<|end|><｜begin▁of▁sentence｜>"
TWO_CALLS = said(
    "assistant",
    None,
    tool_calls=[call("get_weather", '{"city":"A","days":2}', "c1"), call("clock", "{}", "c2")],
)


HISTORY = [
    said("system", "Be brief."),
    ASK,
    said("assistant", "Cold.", reasoning="It is winter."),
    said("user", "And now?"),
]
TURN = [ASK, CALLED, RESULT]
ODD = (
    '{"n": 1.0, "e": 1e3, "big": 12345678901234567890, "u": "\\u00e9",'
    ' "t": true, "z": null, "l": [1,{"k":"v"}], "o": {}}'
)


def _conversations() -> dict[str, Body]:
    """Who speaks, and in which order."""
    return {
        "one question": {"messages": [said("user", "Hello")]},
        "a system message": {"messages": [said("system", "You are kind."), said("user", "Hello")]},
        "content parts": {"messages": [said("system", parts("a", "b")), said("user", parts("c", "", "d"))]},
        "several systems": {
            "messages": [said("system", "a"), said("user", "b"), said("system", "c"), said("user", "d")]
        },
        "a system message last": {"messages": [said("user", "b"), said("system", "c")]},
        "a system message before an answer": {
            "messages": [said("user", "b"), said("system", "c"), said("assistant", "d"), said("user", "e")]
        },
        "only a system message": {"messages": [said("system", "c")]},
        "history with reasoning": {"messages": HISTORY},
        "history with reasoning and tools": {"messages": HISTORY, "tools": [WEATHER]},
        "reasoning_content": {
            "messages": [ASK, said("assistant", "x", reasoning_content="y"), said("user", "z")],
            "tools": [CLOCK],
        },
        "an answer last": {"messages": [ASK, said("assistant", "It is")]},
        "an answer last with reasoning": {"messages": [ASK, said("assistant", "It is", reasoning="hm")]},
        "an answer last, no generation prompt": {
            "messages": [ASK, said("assistant", "It is", reasoning="hm")],
            "add_generation_prompt": False,
        },
        "no generation prompt": {"messages": [ASK], "add_generation_prompt": False},
        "two answers in a row": {
            "messages": [
                ASK,
                said("assistant", "a"),
                said("assistant", "b", reasoning="r"),
                said("user", "c"),
            ]
        },
        "two questions in a row": {
            "messages": [said("user", "a"), said("user", parts("b", "c")), said("user", "")]
        },
        "an empty question": {"messages": [said("user", "")]},
    }


def _tools() -> dict[str, Body]:
    """Tools, calls and their results."""
    return {
        "tools": {"messages": [ASK], "tools": [WEATHER, CLOCK, EXTRA]},
        "tools and a system message": {"messages": [said("system", "S"), ASK], "tools": [WEATHER]},
        "tools and a later system message": {
            "messages": [ASK, said("system", "S"), said("user", "x")],
            "tools": [WEATHER],
        },
        "tools, choice none": {"messages": [ASK], "tools": [WEATHER], "tool_choice": "none"},
        "a call and its result": {"messages": TURN, "tools": [WEATHER]},
        "a call and its result, tools not given": {"messages": TURN},
        "a call answered": {
            "messages": [*TURN, said("assistant", "12 degrees.", reasoning="simple"), said("user", "Thanks")],
            "tools": [WEATHER],
        },
        "a call answered, tools not given": {
            "messages": [*TURN, said("assistant", "12 degrees.", reasoning="simple"), said("user", "Thanks")]
        },
        "a result and text": {"messages": [*TURN, said("user", "and tomorrow?")], "tools": [WEATHER]},
        "results out of order": {
            "messages": [
                ASK,
                TWO_CALLS,
                said("tool", "second", tool_call_id="c2"),
                said("tool", "first", tool_call_id="c1"),
            ]
        },
        "results and text out of order": {
            "messages": [
                ASK,
                TWO_CALLS,
                said("tool", "second", tool_call_id="c2"),
                said("user", "between"),
                said("tool", "first", tool_call_id="c1"),
            ]
        },
        "a result of no call": {
            "messages": [
                ASK,
                TWO_CALLS,
                said("tool", "b", tool_call_id="c2"),
                said("tool", "x", tool_call_id="zz"),
                said("tool", "a", tool_call_id="c1"),
            ]
        },
        "one of two results": {"messages": [ASK, TWO_CALLS, said("tool", "a", tool_call_id="c1")]},
        "a result first": {"messages": [RESULT, ASK]},
        "a result first and its call last": {"messages": [RESULT, ASK, CALLED]},
        "a result without id": {"messages": [ASK, TWO_CALLS, said("tool", "b"), said("tool", "a")]},
        "a result in parts": {
            "messages": [ASK, CALLED, said("tool", parts("a", "", "b"), tool_call_id="c1")]
        },
        "an empty result": {"messages": [ASK, CALLED, said("tool", "", tool_call_id="c1")]},
    }


def _contents() -> dict[str, Body]:
    """What arguments and answers hold."""
    return {
        "arguments of every kind": {
            "messages": [ASK, said("assistant", "", tool_calls=[call("f", ODD)]), RESULT]
        },
        "arguments that are no object": {
            "messages": [
                ASK,
                said(
                    "assistant",
                    "",
                    tool_calls=[call("f", "[1]"), call("g", "{bad", "c2"), call("h", "", "c3")],
                ),
                RESULT,
            ]
        },
        "arguments with text to escape": {
            "messages": [
                ASK,
                said(
                    "assistant",
                    "",
                    tool_calls=[call("f", json.dumps({"a": 'l1\nl2\t"q"', "b": {"c": "é\n"}}))],
                ),
                RESULT,
            ]
        },
        "empty tool calls": {"messages": [ASK, said("assistant", "a", tool_calls=[]), said("user", "b")]},
        "null answer": {"messages": [ASK, said("assistant", None), said("user", "b")]},
        "answer without content": {"messages": [ASK, {"role": "assistant"}, said("user", "b")]},
        "answer of parts": {
            "messages": [
                ASK,
                said("assistant", [{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "b"}]),
                said("user", "c"),
            ]
        },
        "special tokens in text": {
            "messages": [
                said("system", SPECIAL),
                said("user", SPECIAL),
                said("assistant", SPECIAL),
                said("user", SPECIAL),
            ]
        },
    }


def _other_roles() -> dict[str, Body]:
    """Developer messages, reminders, and roles that there are not."""
    return {
        "a developer message": {"messages": [said("developer", "Do."), ASK]},
        "a developer message last": {"messages": [ASK, said("developer", "Do.")]},
        "a developer message alone": {"messages": [said("developer", parts("Do.", "Now."))]},
        "a developer message between": {
            "messages": [
                ASK,
                said("assistant", "a"),
                said("developer", "Do."),
                said("assistant", "b"),
                said("user", "c"),
            ]
        },
        "a developer message between, tools": {
            "messages": [
                ASK,
                said("assistant", "a", reasoning="r"),
                said("developer", "Do."),
                said("assistant", "b"),
                said("user", "c"),
            ],
            "tools": [CLOCK],
        },
        "a developer message with tools": {
            "messages": [said("developer", "Do.", tools=[CLOCK, WEATHER, EXTRA])]
        },
        "an empty developer message": {"messages": [said("developer", ""), ASK]},
        "a reminder": {"messages": [ASK, said("latest_reminder", "It is late.")]},
        "a reminder before an answer": {
            "messages": [
                ASK,
                said("latest_reminder", "It is late."),
                said("assistant", "a"),
                said("user", "b"),
            ]
        },
        "an unknown role": {"messages": [said("critic", "hm"), ASK]},
        "an unknown role last": {"messages": [ASK, said("critic", "hm")]},
    }


def _tasks() -> dict[str, Body]:
    """Tasks, and what some clients add."""
    return {
        "task title": {"messages": [ASK, said("assistant", "a"), said("user", "b", task="title")]},
        "task action": {"messages": [said("user", "b", task="action")]},
        "task answered": {
            "messages": [said("user", "b", task="action"), said("assistant", "x", reasoning="y")]
        },
        "task in history": {
            "messages": [
                said("user", "b", task="query"),
                said("user", "more"),
                said("tool", "t"),
                said("assistant", "x", reasoning="y"),
            ]
        },
        "unknown task": {"messages": [said("user", "b", task="nope")]},
        "vendor extras": {
            "messages": [
                said("user", "b", name="Ann", wo_eos=True),
                said("assistant", "c", prefix=True, wo_eos=True),
                said("user", "d", response_format={"a": 1}),
            ]
        },
        "a billing line": {"messages": [said("system", "x-anthropic-billing-header: cch=1\nBe kind."), ASK]},
    }


def _settings() -> dict[str, Body]:
    """What a request sets for the whole conversation."""
    return {
        **{
            f"effort {e}": {"messages": HISTORY, "reasoning_effort": e}
            for e in ("none", "minimal", "low", "medium", "high", "xhigh", "max")
        },
        "thinking off": {"messages": HISTORY, "chat_template_kwargs": {"thinking": False}},
        "thinking on": {"messages": HISTORY, "chat_template_kwargs": {"thinking": True}},
        "thinking on, tools": {
            "messages": [*TURN, said("assistant", "x", reasoning="y"), said("user", "z")],
            "tools": [WEATHER],
            "chat_template_kwargs": {"thinking": True},
        },
        "thinking on, result last": {
            "messages": TURN,
            "tools": [WEATHER],
            "chat_template_kwargs": {"enable_thinking": True},
        },
        "thinking on, developer": {
            "messages": [said("developer", "Do."), ASK],
            "chat_template_kwargs": {"thinking": True},
        },
        "thinking on, developer last": {
            "messages": [ASK, said("developer", "Do.")],
            "chat_template_kwargs": {"thinking": True},
        },
        "thinking off, enable on": {
            "messages": HISTORY,
            "chat_template_kwargs": {"thinking": False, "enable_thinking": True},
        },
        "thinking off, effort high": {
            "messages": HISTORY,
            "reasoning_effort": "high",
            "chat_template_kwargs": {"thinking": False},
        },
        "enable off, effort high": {
            "messages": HISTORY,
            "reasoning_effort": "high",
            "chat_template_kwargs": {"enable_thinking": False},
        },
        "effort in kwargs": {"messages": HISTORY, "chat_template_kwargs": {"reasoning_effort": "max"}},
        "keep reasoning": {"messages": HISTORY, "chat_template_kwargs": {"drop_thinking": False}},
        "keep reasoning, no thinking": {
            "messages": HISTORY,
            "chat_template_kwargs": {"drop_thinking": False, "thinking": False},
        },
        "special tokens added": {"messages": HISTORY, "add_special_tokens": True},
        "tools in kwargs": {"messages": [ASK], "chat_template_kwargs": {"tools": [CLOCK]}},
    }


def _chats() -> dict[str, Body]:
    groups = _conversations, _tools, _contents, _other_roles, _tasks, _settings
    return {name: body for group in groups for name, body in group().items()}


def _messages_bodies() -> dict[str, Body]:
    tool = {"name": "get_weather", "description": "W", "input_schema": WEATHER["function"]["parameters"]}
    used = {"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"city": "Kyiv é"}}
    back = {"type": "tool_result", "tool_use_id": "t1", "content": parts("1", "2")}
    return {
        "one question": {"messages": [said("user", "Hello")]},
        "system blocks": {"system": parts("A", "B"), "messages": [said("user", parts("c", "d"))]},
        "tool use": {
            "system": "S",
            "tools": [tool],
            "messages": [
                ASK,
                said(
                    "assistant",
                    [{"type": "thinking", "thinking": "hm", "signature": "s"}, *parts("Looking."), used],
                ),
                said("user", [*parts("here"), back]),
            ],
        },
        "thinking off": {"messages": [ASK], "thinking": {"type": "disabled"}},
        "effort": {"messages": [ASK], "output_config": {"effort": "max"}},
        "a prefill": {"messages": [ASK, said("assistant", "It is")]},
    }


def _responses_bodies() -> dict[str, Body]:
    flat = {"type": "function", **WEATHER["function"]}
    return {
        "text": {"input": "Hello"},
        "instructions and effort": {
            "instructions": "Be kind.",
            "input": [said("user", "Hello")],
            "reasoning": {"effort": "low"},
        },
        "a call": {
            "tools": [flat],
            "input": [
                ASK,
                {
                    "type": "reasoning",
                    "id": "r1",
                    "summary": [],
                    "content": [{"type": "reasoning_text", "text": "hm"}],
                },
                {
                    "type": "function_call",
                    "call_id": "c1",
                    "name": "get_weather",
                    "arguments": '{"city": "Kyiv"}',
                },
                {"type": "function_call_output", "call_id": "c1", "output": "12"},
            ],
        },
    }


def _completions_bodies() -> dict[str, Body]:
    return {
        "text": {"prompt": "Once upon <｜User｜> a time"},
        "text without special tokens": {"prompt": "Once", "add_special_tokens": False},
        "a suffix": {"prompt": "def f(", "suffix": "):\n  pass"},
        "an empty suffix": {"prompt": "def f(", "suffix": ""},
        "prompts with a suffix": {"prompt": ["a", "b"], "suffix": "c"},
    }


def _others() -> list[Case]:
    return [
        *((name, MESSAGES, {"max_tokens": 5, **body}) for name, body in _messages_bodies().items()),
        *((name, RESPONSES, body) for name, body in _responses_bodies().items()),
        *((name, COMPLETIONS, body) for name, body in _completions_bodies().items()),
    ]


def written() -> list[Case]:
    """Every written body, over the four endpoints."""
    return [*((name, CHAT, body) for name, body in _chats().items()), *_others()]


def random_chat(dice: random.Random) -> Body:
    """A chat body that a client might send, and some that none would."""
    body: Body = {"messages": [_message(dice) for _ in range(dice.randint(1, 7))]}
    if dice.random() < 0.4:
        body["tools"] = dice.sample([WEATHER, CLOCK, EXTRA], dice.randint(1, 3))
    if dice.random() < 0.3:
        body["reasoning_effort"] = dice.choice(["none", "minimal", "low", "medium", "high", "max"])
    if dice.random() < 0.5:
        flags = dice.sample(["thinking", "enable_thinking", "drop_thinking"], dice.randint(1, 2))
        body["chat_template_kwargs"] = {flag: dice.choice([True, False, None]) for flag in flags}
    if dice.random() < 0.1:
        body["add_generation_prompt"] = False
    return body


def _message(dice: random.Random) -> Body:
    roles = ["user", "assistant", "tool", "system", "developer", "latest_reminder"]
    role = dice.choices(roles, [8, 8, 5, 2, 0.7, 0.7])[0]
    message = said(role, _content(dice, role))
    if role == "assistant":
        if dice.random() < 0.4:
            message[dice.choice(["reasoning", "reasoning_content"])] = dice.choice([None, "", words(dice)])
        if dice.random() < 0.5:
            message["tool_calls"] = [_call(dice) for _ in range(dice.randint(0, 3))]
    if role == "tool" and dice.random() < 0.9:
        message["tool_call_id"] = dice.choice(["c1", "c2", "c3", "zz"])
    if role == "developer" and dice.random() < 0.4:
        message["tools"] = [dice.choice([WEATHER, CLOCK, EXTRA])]
    if dice.random() < 0.05:
        message["task"] = dice.choice(["action", "title", "query"])
    return message


def _content(dice: random.Random, role: str) -> Any:
    if role == "assistant" and dice.random() < 0.2:
        return None
    if dice.random() < 0.3:
        return parts(*(words(dice) for _ in range(dice.randint(1, 3))))
    return words(dice)


def _call(dice: random.Random) -> Body:
    values = [
        words(dice),
        dice.randint(-9, 9),
        dice.random(),
        None,
        True,
        [words(dice), 1],
        {words(dice): words(dice)},
    ]
    arguments = {words(dice): dice.choice(values) for _ in range(dice.randint(0, 3))}
    text = json.dumps(arguments, ensure_ascii=dice.random() < 0.5, indent=dice.choice([None, 1]))
    return call(
        dice.choice(["get_weather", "clock"]),
        dice.choice([text, text, text, "", "[]", "nonsense"]),
        dice.choice(["c1", "c2", "c3"]),
    )


def words(dice: random.Random) -> str:
    """Some text, seldom empty: letters, white space, other scripts, and the strings of special tokens."""
    pieces = [
        "a",
        "the ",
        "\n",
        "\n\n",
        " ",
        "é",
        "日本",
        "🙂",
        '"',
        "\\",
        "<",
        "1234",
        "{x}",
        "%s",
        SPECIAL[:8],
        "</think>",
        "<think>",
        "｜DSML｜",
        "<|end|>",
        "<tool_result>",
        "x-anthropic-billing-header\n",
    ]
    return "".join(dice.choice(pieces) for _ in range(dice.randint(0, 8)))
