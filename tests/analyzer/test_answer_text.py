"""A parsed answer in the words of a real model's template, against what that model is trained to write."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from analyzer.answer_text import written_answer
from analyzer.core import Answer, Conversation, Reply, ToolCall
from analyzer.renderers import Job
from analyzer.tokens import Tokenizer
from tests.tokenizers import folder_of, reason_missing

CALL = ToolCall(name="look", arguments='{"place": "fjord"}')
WRITTEN_CALL = '<tool_call>\n{"name": "look", "arguments": {"place": "fjord"}}\n</tool_call>'
END = "<|im_end|>"


@pytest.fixture(scope="module")
def qwen3() -> Tokenizer:
    if reason := reason_missing("qwen3"):
        pytest.skip(reason)
    return Tokenizer(folder_of("qwen3"))


def job(tokenizer: Tokenizer | None, *, text: str | None = None) -> Job:
    asked = Conversation(
        dialect="chat",
        prompt_index=0,
        text=text,
        messages=() if text else ({"role": "user", "content": "x"},),
    )
    return Job(conversation=asked, reply=Reply(outcome="done"), clock=datetime.now(UTC), tokenizer=tokenizer)


# Qwen3's own format: its model card, and the chat template in its tokenizer_config.json.
@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (Answer(tool_calls=(CALL,), finish="stop"), WRITTEN_CALL + END),
        (
            Answer(pieces=("Let me ", "look."), tool_calls=(CALL,), finish="stop"),
            "Let me look.\n" + WRITTEN_CALL + END,
        ),
        (Answer(tool_calls=(CALL, CALL), finish="stop"), WRITTEN_CALL + "\n" + WRITTEN_CALL + END),
        (
            Answer(thoughts=("So ", "be it."), pieces=("Done.",), finish="stop"),
            "<think>\nSo be it.\n</think>\n\nDone." + END,
        ),
        (Answer(thoughts=("So.",), pieces=("Do",), finish="length"), "<think>\nSo.\n</think>\n\nDo"),
    ],
)
def test_calls_and_reasoning_are_written_as_the_model_writes_them(
    qwen3: Tokenizer, answer: Answer, text: str
) -> None:
    found = written_answer(job(qwen3), answer)
    assert qwen3.encode(text).tolist() in [ids.tolist() for ids in found]


def test_what_the_template_cannot_write_is_unknown(qwen3: Tokenizer) -> None:
    broken = Answer(tool_calls=(ToolCall(name="look", arguments='{"place'),), finish="length")
    assert written_answer(job(qwen3), broken) == []
    assert written_answer(job(qwen3, text="raw"), Answer(tool_calls=(CALL,))) == []
    assert written_answer(job(None), Answer(tool_calls=(CALL,))) == []
