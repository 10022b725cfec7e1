"""gpt-oss: the text of its prompts knows the fields, so that its causes are found as those of a template."""

from __future__ import annotations

import copy
import json
import shutil
from datetime import timedelta
from typing import Any

import pytest

from analyzer.causes import Example
from analyzer.rendering import render, render_text
from analyzer.settings import UNTOLD
from analyzer.sourced import plain
from analyzer.token_text import TokenText
from analyzer.tokens import Tokenizer
from tests.causes.chats import chat, loop, said, user
from tests.causes.pairs import START, job, parted
from tests.tokenizers import FILES, folder_of, reason_missing

LOOP = chat(user(), *loop(2, reasoning=True))


@pytest.fixture(scope="module")
def gptoss(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    pytest.importorskip("openai_harmony")
    if (reason := reason_missing("gptoss")) is not None:
        pytest.skip(reason)
    made = tmp_path_factory.mktemp("gptoss")
    for file in FILES:
        shutil.copy(folder_of("gptoss") / file, made)
    (made / "config.json").write_text(json.dumps({"model_type": "gpt_oss"}), encoding="utf-8")
    return Tokenizer(made)


def test_the_text_is_that_of_the_ids(gptoss: Tokenizer) -> None:
    made = job("chat", LOOP, START, gptoss, UNTOLD)
    assert plain(render_text(made)) == TokenText(gptoss.directory).decode(render(made).token_ids.tolist())
    assert plain(render_text(made)).endswith("<|start|>assistant")
    assert not render_text(made, generation_prompt=False).endswith("<|start|>assistant")


def put(value: Any, *keys: Any) -> dict[str, Any]:
    body = copy.deepcopy(LOOP)
    holder: Any = body
    for key in keys[:-1]:
        holder = holder[key]
    holder[keys[-1]] = value
    return body


@pytest.mark.parametrize(
    ("changed", "path", "char"),
    [
        (put("You kept", "messages", 0, "content"), "messages[0].content", 6),
        (put("Which filez?", "messages", 1, "content"), "messages[1].content", 10),
        (put("I reed", "messages", 2, "reasoning_content"), "messages[2].reasoning_content", 4),
        (
            put("rear", "messages", 2, "tool_calls", 0, "function", "name"),
            "messages[2].tool_calls[0].function.name", 3,
        ),
        (
            put('{"p": "fime"}', "messages", 2, "tool_calls", 0, "function", "arguments"),
            "messages[2].tool_calls[0].function.arguments", 9,
        ),
        (put("The text on it", "messages", 3, "content"), "messages[3].content", 10),
        (put("The tool Glob", "tools", 0, "function", "description"), "tools[0].function.description", 9),
    ],
)  # fmt: skip
def test_a_change_is_named_with_its_field(
    changed: dict[str, Any], path: str, char: int, gptoss: Tokenizer
) -> None:
    found = parted(Example(before=LOOP, after=changed), gptoss).divergence
    assert found is not None
    assert (found.path, found.char) == (path, char)


def test_reasoning_that_a_final_answer_puts_aside_is_stripped(gptoss: Tokenizer) -> None:
    after = chat(user(), *loop(2, reasoning=True), said("Done."), user("thanks"))
    parting = parted(Example(before=LOOP, after=after), gptoss)
    assert [(found.cause, found.path) for found in parting.findings] == [
        ("template.think_strip", "messages[2].reasoning_content")
    ]


def test_the_date_in_the_system_message_is_the_templates_clock(gptoss: Tokenizer) -> None:
    after = chat(user(), *loop(3, reasoning=True))
    parting = parted(Example(before=LOOP, after=after, hours=timedelta(days=1) / timedelta(hours=1)), gptoss)
    assert [(found.cause, found.kind) for found in parting.findings] == [("template.clock", "rollover")]


def test_a_step_more_of_the_loop_is_an_append(gptoss: Tokenizer) -> None:
    parting = parted(Example(before=LOOP, after=chat(user(), *loop(3, reasoning=True))), gptoss)
    assert (parting.append, parting.divergence, parting.findings) == (True, None, ())
