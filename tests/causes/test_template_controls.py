"""What must not be called a fault: bodies differ or go on, and every token of the parent is kept.

The cases are the field's controls, on the templates of real models.
"""

from __future__ import annotations

from typing import Any

import pytest

from analyzer.causes import Example
from tests.causes.chats import (
    TOOLS,
    anthropic,
    blocks,
    chat,
    loop,
    result,
    said,
    step,
    text,
    thinking,
    use,
    user,
)
from tests.causes.models import tokenizer_of
from tests.causes.pairs import parted

SWITCH: dict[str, Any] = {"chat_template_kwargs": {"enable_thinking": False}}
NOTE = {"role": "system", "content": "left: 900"}


def two_results(*order: int) -> list[dict[str, Any]]:
    calls = [step(number)[0]["tool_calls"][0] for number in (0, 1)]
    return [said("") | {"tool_calls": calls}, *[step(number)[1] for number in order]]


CASES: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {
    "a tool step with its reasoning": (
        "qwen3", "chat",
        chat(user(), *loop(2, reasoning=True)),
        chat(user(), *loop(3, reasoning=True)),
    ),
    "a tool step without its reasoning": (
        "qwen3", "chat",
        chat(user(), *loop(2, reasoning=False)),
        chat(user(), *loop(3, reasoning=False)),
    ),
    "a new user turn, reasoning not echoed": (
        "qwen3", "chat",
        chat(user(), *loop(6, reasoning=False)),
        chat(user(), *loop(6, reasoning=False), said(), user("thanks")),
    ),
    "other tool ids": (
        "qwen3", "chat",
        chat(user(), *loop(2, reasoning=True)),
        chat(user(), *loop(2, reasoning=True, call_id="x"), *step(3, "And one more.")),
    ),
    "a system message kept in place": (
        "qwen3", "chat",
        chat(user(), *step(0), NOTE),
        chat(user(), *step(0), NOTE, *step(1), NOTE),
    ),
    "thinking switched off for the next call": (
        "qwen3", "chat",
        chat(user(), *loop(1, reasoning=False)),
        chat(user(), *loop(2, reasoning=False), **SWITCH),
    ),
    "a string sent as a list": (
        "qwen3", "chat",
        chat(user(), *step(0)),
        chat(user([text("Which files are there?")]), *step(0), said(), user("And then?")),
    ),
    "Anthropic's system message in place": (
        "qwen3", "messages",
        anthropic(user(), blocks(use(1)), blocks(result(1), role="user"), NOTE),
        anthropic(user(), blocks(use(1)), blocks(result(1), role="user"), NOTE, said(), user("thanks"), NOTE),
    ),
    "Anthropic's thinking inside the loop": (
        "qwen3", "messages",
        anthropic(user(), blocks(thinking("Read one."), use(1)), blocks(result(1), role="user")),
        anthropic(
            user(),
            blocks(thinking("Read one."), use(1)), blocks(result(1), role="user"),
            blocks(thinking("Read two."), use(2)), blocks(result(2), role="user"),
        ),
    ),
    "a new user turn where tools keep the reasoning": (
        "deepseek_v4", "chat",
        chat(user(), *loop(2, reasoning=True)),
        chat(user(), *loop(2, reasoning=True), said("Two.", "I have read both."), user("thanks")),
    ),
    "tool results in another order": (
        "deepseek_v4", "chat",
        chat(user(), *two_results(0, 1)),
        chat(user(), *two_results(1, 0), *step(2)),
    ),
    "a question more": (
        "gemma3", "chat",
        chat(user(), tools=False),
        chat(user(), said(), user("thanks"), tools=False),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_prompt_that_goes_on_is_an_append_without_a_finding(name: str) -> None:
    model, dialect, before, after = CASES[name]
    tokenizer, template = tokenizer_of(model)
    example = Example(before=before, after=after, dialect=dialect, template=template)
    parting = parted(example, tokenizer)
    assert parting.problem is None
    assert (parting.append, parting.divergence, parting.findings) == (True, None, ())


def test_the_tools_of_these_sessions_are_printed() -> None:
    tokenizer, template = tokenizer_of("qwen3")
    before, after = chat(user()), chat(user()) | {"tools": TOOLS[:1]}
    assert parted(Example(before=before, after=after, template=template), tokenizer).append is False
