"""A member or item more, less, or of another type: the divergence names it, whichever body has it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from analyzer.causes import Example
from tests.causes.chats import chat, loop, user
from tests.causes.models import tokenizer_of
from tests.causes.pairs import parted

FUNCTION, ARGUMENTS = "tools[0].function", "messages[2].tool_calls[0].function.arguments"


def body() -> dict[str, Any]:
    made = copy.deepcopy(chat(user(), *loop(2, reasoning=True)))
    for message in made["messages"]:
        for call in message.get("tool_calls", []):
            call["function"]["arguments"] = {"p": "a", "list": [1, 2], "o": {}}
    function = made["tools"][0]["function"]
    function["strict"] = True
    function["parameters"]["properties"]["p"]["enum"] = ["a", "b"]
    return made


def function(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    made = body()
    change(made["tools"][0]["function"])
    return made


def arguments(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    made = body()
    change(made["messages"][2]["tool_calls"][0]["function"]["arguments"])
    return made


CHANGES = {
    f"{FUNCTION}.description": function(lambda f: f.pop("description")),
    f"{FUNCTION}.strict": function(lambda f: f.pop("strict")),
    f"{FUNCTION}.parameters.properties.q": function(lambda f: f["parameters"]["properties"].update(q={})),
    f"{FUNCTION}.parameters.properties.p.enum[2]": function(
        lambda f: f["parameters"]["properties"]["p"]["enum"].append("c")
    ),
    f"{FUNCTION}.parameters.required[0]": function(lambda f: f["parameters"].update(required=[])),
    f"{ARGUMENTS}.z": arguments(lambda given: given.update(z=1)),
    f"{ARGUMENTS}.p": arguments(lambda given: given.pop("p")),
    f"{ARGUMENTS}.o.k": arguments(lambda given: given["o"].update(k="v")),
    f"{ARGUMENTS}.list[2]": arguments(lambda given: given["list"].append(3)),
    f"{ARGUMENTS}.list[1]": arguments(lambda given: given.update(list=[1, None])),
}


@pytest.mark.parametrize("model", ["qwen3", "deepseek_v4"])
@pytest.mark.parametrize("path", CHANGES)
def test_the_member_that_only_one_body_has_is_named(model: str, path: str) -> None:
    tokenizer, template = tokenizer_of(model)
    for before, after in ((body(), CHANGES[path]), (CHANGES[path], body())):
        found = parted(Example(before=before, after=after, template=template), tokenizer).divergence
        assert found is not None
        assert (found.path, found.char) == (path, None)
