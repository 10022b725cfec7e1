"""The shapes in which servers stream one and the same answer."""

from __future__ import annotations

from typing import Any

import pytest

from analyzer.answers import read_answers
from analyzer.core import ToolCall, Usage
from analyzer.replies import read_reply
from tests.analyzer.test_replies import events, exchange

LOOK = ToolCall(name="look", arguments='{"at": 1.0,"é":"x"}')
READ = ToolCall(name="read", arguments="{}")


def part(name: str | None, arguments: str, **told: Any) -> dict[str, Any]:
    return {**told, "function": {"name": name, "arguments": arguments}}


def delta(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"tool_calls": list(calls)}}]}


CALLS = {
    "by index": [
        delta(part("look", "", index=0, id="a")),
        delta(part(None, '{"at": 1.0,', index=0)),
        delta(part(None, '"é":"x"}', index=0)),
        delta(part("read", "{}", index=1, id="b")),
    ],
    "interleaved": [
        delta(part("look", '{"at": 1.0,', index=0)),
        delta(part("read", "{", index=1)),
        delta(part(None, '"é":"x"}', index=0)),
        delta(part(None, "}", index=1)),
    ],
    "several at once": [
        delta(part("look", '{"at": 1.0,', index=0), part("read", "", index=1)),
        delta(part(None, '"é":"x"}', index=0), part(None, "{}", index=1)),
    ],
    "by a new id": [
        delta(part("look", '{"at": 1.0,', id="a")),
        delta(part(None, '"é":"x"}')),
        delta(part("read", "{}", id="b")),
    ],
    "by an id that is repeated": [
        delta(part("look", '{"at": 1.0,', id="a")),
        delta(part(None, '"é":"x"}', id="a")),
        delta(part("read", "{}", id="b")),
    ],
    "an id of its own for each piece": [
        delta(part("look", '{"at": 1.0,', index=0, id="a")),
        delta(part(None, '"é":"x"}', index=0, id="b")),
        delta(part("read", "{}", index=1, id="c")),
    ],
    "whole, without index or id": [delta(part("look", LOOK.arguments), part("read", "{}"))],
    "whole, with ids": [delta(part("look", LOOK.arguments, id="a"), part("read", "{}", id="b"))],
}


@pytest.mark.parametrize("shape", CALLS)
def test_tool_calls_are_put_together_with_their_arguments_as_they_came(shape: str) -> None:
    (answer,) = read_answers(CALLS[shape])
    assert answer.tool_calls == (LOOK, READ)


def test_reasoning_is_read_under_every_name_it_has_even_if_they_change() -> None:
    said = [
        {"reasoning": "so "},
        {"reasoning_content": "be "},
        {"reasoning": None, "reasoning_content": "it"},
    ]
    (answer,) = read_answers([{"choices": [{"index": 0, "delta": one}]} for one in said])
    assert answer.thoughts == ("so ", "be ", "it")
    (answer,) = read_answers(
        [
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "thinking_delta", "thinking": "so be it"},
            }
        ]
    )
    assert answer.thoughts == ("so be it",)


def test_choices_may_be_missing_empty_null_or_several_in_turn() -> None:
    stream: list[dict[str, Any]] = [
        {"id": "c"},
        {"choices": []},
        {"choices": None},
        {"choices": [{"index": 1, "delta": {"content": "b"}}]},
        {"choices": [{"index": 0, "delta": {"content": "a"}}, {"index": 1, "delta": {"content": "c"}}]},
        {"choices": [{"index": 0, "delta": None, "finish_reason": "stop"}]},
    ]
    assert [answer.pieces for answer in read_answers(stream)] == [("a",), ("b", "c")]


def test_of_counts_that_grow_are_null_or_come_alone_the_last_holds() -> None:
    stream = events(
        {
            "choices": [{"index": 0, "delta": {"content": "a"}}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 0},
        },
        {"choices": [{"index": 0, "delta": {"content": "b"}}], "usage": None},
        {
            "choices": [{"index": 0, "delta": {"content": "c"}}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 2},
        },
        {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3}},
    )
    reply = read_reply(exchange(stream, stream=True))
    assert reply.usage == Usage(prompt_tokens=9, cached_tokens=None, completion_tokens=3)
