from __future__ import annotations

import copy
import os
import random
from collections.abc import Iterator
from typing import Any

import pytest

from analyzer.chat_template import compile_template
from analyzer.sourced import plain, spans_of
from analyzer.sourced_json import loads, wrap
from tests.analyzer.own_templates import CLOCK, REAL, both, source_of


def fields_of(
    value: Any, path: str, container: Any = None, key: Any = None
) -> Iterator[tuple[str, Any, Any]]:
    """(path, container, key) of every text a mutation may change."""
    if isinstance(value, str):
        if key in ("content", "description", "city", "x y", "reasoning_content") and value:
            yield path, container, key
    elif isinstance(value, dict | list):
        for name, item in value.items() if isinstance(value, dict) else enumerate(value):
            below = (
                f"[{name}]" if isinstance(value, list) else f'["{name}"]' if " " in str(name) else f".{name}"
            )
            yield from fields_of(item, path + below, value, name)


def named_at(text: str, char: int) -> tuple[str, int, bool] | None:
    for span in spans_of(text):
        if span.char_start <= char < span.char_end:
            return span.path, span.path_char + (char - span.char_start if span.exact else 0), span.exact
    return None


def mutate(body: dict[str, Any], dice: random.Random) -> tuple[dict[str, Any], str, int]:
    changed = copy.deepcopy(body)
    whole = [*fields_of(changed["messages"], "messages"), *fields_of(changed["tools"], "tools")]
    path, container, key = dice.choice(whole)
    at = dice.randrange(len(container[key]))
    new = dice.choice([char for char in "QZ7é" if char != container[key][at]])
    container[key] = container[key][:at] + new + container[key][at + 1 :]
    return changed, path, at


def verdict(source: str, body: dict[str, Any], dice: random.Random) -> str:
    """What became of one mutation: `right`, `unseen`, `inexact`, or how the span is wrong."""
    changed, path, at = mutate(body, dice)
    _, before = both(source, body)
    _, after = both(source, changed)
    if before == after:
        return "unseen"
    char = next(
        (i for i, (a, b) in enumerate(zip(plain(before), plain(after), strict=False)) if a != b), len(before)
    )
    named = [found for found in (named_at(before, char), named_at(after, char)) if found is not None]
    if any(found[:2] == (path, at) for found in named):
        return "right" if any(found == (path, at, True) for found in named) else "inexact"
    return f"wrong: {path}[{at}] named {named}"


def random_body(dice: random.Random) -> dict[str, Any]:
    def words() -> str:
        return "".join(dice.choice(" \n\"'\\<>&abcdéß") for _ in range(dice.randint(1, 20))) + "x"

    messages: list[dict[str, Any]] = [{"role": "system", "content": words()}]
    for _ in range(dice.randint(1, 3)):
        arguments = {"city": words(), "deep": [{"x y": words()}]}
        answer: dict[str, Any] = {"role": "assistant", "content": words(), "reasoning_content": words()}
        answer["tool_calls"] = [{"function": {"name": "get", "arguments": arguments}}]
        messages += [{"role": "user", "content": words()}, answer]
    parameters = {"city": {"type": "string", "description": words()}}
    function = {"name": "get", "description": words(), "parameters": parameters}
    return {"messages": messages, "tools": [{"type": "function", "function": function}]}


@pytest.mark.parametrize("name", ["chatml", "tools", *REAL])
def test_the_span_at_the_first_changed_character_names_the_changed_field(name: str) -> None:
    source, dice = source_of(name), random.Random(name)
    verdicts = [
        verdict(source, random_body(dice), dice) for _ in range(int(os.environ.get("MUTATIONS", "150")))
    ]
    wrong = [text for text in verdicts if text.startswith("wrong")]
    print(name, "right", verdicts.count("right"), "unseen", verdicts.count("unseen"), "wrong", wrong)
    assert verdicts.count("right") > 0
    assert wrong == []
    assert "inexact" not in verdicts


def test_an_argument_inside_json_text_is_named_by_its_offset_in_that_text() -> None:
    text = '{"city": "a\\nbc", "n": 12}'
    body = wrap({"messages": [{"role": "assistant", "content": "", "arguments": text}]})
    message = body["messages"][0]
    calls = [{"function": {"name": "get", "arguments": loads(message["arguments"])}}]
    source = "{{ messages[0].tool_calls[0].function.arguments|tojson }}"
    made = compile_template(source).render_sourced(messages=[{**message, "tool_calls": calls}], clock=CLOCK)
    assert plain(made.text) == text
    path = "messages[0].arguments"
    assert named_at(made.text, text.index("bc")) == (path, text.index("bc"), True)
    assert named_at(made.text, text.index("city")) == (path, text.index("city"), True)
    assert named_at(made.text, text.index("12")) == (path, text.index("12"), True)
    assert named_at(made.text, 0) is None
