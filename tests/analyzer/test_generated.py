"""What was sampled: from the wire, from pieces, from the whole text, or not known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from analyzer.answers import read_answers
from analyzer.core import UNKNOWN_ID, Answer, Generated, TokenIds, ToolCall
from analyzer.generated import generated_by

# A tokenizer of three merges; each other character is a token of its own.
MERGES = {"ab": 1, "\n\n": 2, "cat": 3}


def encode(texts: Sequence[str]) -> list[TokenIds]:
    return [np.array(_ids(text), dtype=np.int32) for text in texts]


def _ids(text: str) -> list[int]:
    found = []
    while text:
        merged = next((merge for merge in MERGES if text.startswith(merge)), None)
        found.append(MERGES[merged] if merged else 100 + ord(text[0]))
        text = text[len(merged or text[0]) :]
    return found


def char(text: str) -> int:
    return 100 + ord(text)


def one(answer: Answer, counted: int | None, **options: Any) -> Generated:
    (found,) = generated_by([answer], counted, encode, **options)
    return found


def test_ids_on_the_wire_are_taken_as_they_are() -> None:
    assert one(Answer(token_ids=(7, 8), pieces=("x",)), 5) == Generated(token_ids=(7, 8), source="wire")


def test_a_text_of_as_many_tokens_as_were_counted_is_trusted() -> None:
    found = one(Answer(pieces=("cat!",), finish="length"), 2)
    assert found == Generated(token_ids=(3, char("!")), source="retokenized", finish="length")


def test_a_stop_token_is_counted_and_has_no_text() -> None:
    assert one(Answer(pieces=("cat!",), finish="stop"), 3).token_ids == (3, char("!"), UNKNOWN_ID)
    assert one(Answer(pieces=("cat!",), finish="stop"), 2) == Generated(
        token_ids=(UNKNOWN_ID, UNKNOWN_ID), finish="stop"
    )


def test_a_text_that_was_sampled_in_other_tokens_is_unknown_and_takes_its_room() -> None:
    assert one(Answer(pieces=("cat",), finish="length"), 2) == Generated(
        token_ids=(UNKNOWN_ID, UNKNOWN_ID), finish="length"
    )


def test_pieces_of_a_stream_show_where_tokens_end() -> None:
    assert one(Answer(pieces=("a", "b"), finish="length"), 2).token_ids == (char("a"), char("b"))


def test_of_a_stream_is_known_what_comes_before_the_first_unsure_token() -> None:
    # Three pieces for three tokens; "xy" is one of them that the tokenizer would not make.
    found = one(Answer(pieces=("ab", "xy", "c"), finish="length"), 3)
    assert found.token_ids == (1, UNKNOWN_ID, UNKNOWN_ID)
    assert found.source == "retokenized"


def test_a_token_without_text_makes_all_places_unsure() -> None:
    # Two pieces for three tokens: the third may have stood before, between or behind them.
    assert one(Answer(pieces=("a", "c"), finish="length"), 3).source is None


def test_half_a_character_at_the_end_is_one_unknown_token() -> None:
    found = one(Answer(pieces=("a", "c", "\ufffd"), finish="length"), 3)
    assert found.token_ids == (char("a"), char("c"), UNKNOWN_ID)


def test_one_token_said_over_and_over_is_not_merged() -> None:
    assert one(Answer(pieces=("\n\n\n\n",), finish="length"), 4).token_ids == (char("\n"),) * 4
    assert one(Answer(pieces=("\n\n\n\n",), finish="length"), 2).token_ids == (2, 2)
    assert one(Answer(pieces=("\n\n\nxxx!",), finish="length"), 7).token_ids == (
        *(char("\n"),) * 3,
        *(char("x"),) * 3,
        char("!"),
    )


def test_without_a_count_only_a_stream_of_single_tokens_is_known() -> None:
    assert one(Answer(pieces=("cat", "!")), None).token_ids == (3, char("!"))
    assert one(Answer(pieces=("cat!",)), None) == Generated(token_ids=(UNKNOWN_ID, UNKNOWN_ID))


def test_a_stop_string_is_part_of_what_was_sampled() -> None:
    found = one(Answer(pieces=("x",), finish="stop_string", stop_string="ab"), 2)
    assert found.token_ids == (char("x"), 1)


def test_answers_cut_off_at_the_limit_are_counted_each_for_itself() -> None:
    # Two answers of two tokens each: the first as the tokenizer makes it, the second not.
    answers = [Answer(pieces=("x!",), finish="length"), Answer(pieces=("cat",), finish="length")]
    assert [item.token_ids for item in generated_by(answers, 4, encode, limit=2)] == [
        (char("x"), char("!")),
        (UNKNOWN_ID, UNKNOWN_ID),
    ]


def test_answers_of_unknown_lengths_are_trusted_together_or_not_at_all() -> None:
    answers = [Answer(pieces=("x",), finish="stop"), Answer(pieces=("yz",), finish="stop")]
    assert [item.source for item in generated_by(answers, 5, encode)] == ["retokenized"] * 2
    assert [item.source for item in generated_by(answers, 6, encode)] == [None] * 2


def test_tokens_named_by_logprobs_are_the_sampled_ones() -> None:
    answer = Answer(pieces=("ab!",), token_texts=("a", "b", "!", "<end>"), finish="stop")
    found = one(answer, 4)
    assert found.token_ids[:3] == (char("a"), char("b"), char("!"))


def test_a_parsed_answer_is_what_the_template_writes_if_the_count_agrees() -> None:
    other, written = np.array([9], dtype=np.int32), np.array([9, 3, 9], dtype=np.int32)
    answer = Answer(thoughts=("x",), tool_calls=(ToolCall(name="f", arguments="{}"),), finish="stop")
    assert one(answer, 3, written=lambda _: [other, written]).token_ids == (9, 3, 9)
    assert one(answer, 7, written=lambda _: [other, written]).source is None


def test_reasoning_that_never_ended_is_the_whole_text() -> None:
    assert one(Answer(thoughts=("cat", "!"), finish="length"), 2).token_ids == (3, char("!"))


def test_a_count_that_no_model_reaches_is_none() -> None:
    assert one(Answer(pieces=("cat",)), 1 << 40).token_ids == (UNKNOWN_ID,)


# What vLLM 0.32 sent, cut to what is read.
CHAT = {"choices": [{"index": 0, "message": {"content": "hi"}, "finish_reason": "stop", "stop_reason": None}]}
STOPPED = {"choices": [{"index": 0, "text": "hi", "finish_reason": "stop", "stop_reason": "e"}]}
MESSAGE = {
    "type": "message",
    "content": [{"type": "text", "text": "hi"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
}
MESSAGE_STREAM = [
    {"type": "message_start", "message": {"content": [], "stop_reason": None}},
    {"type": "content_block_start", "content_block": {"type": "text", "text": ""}, "index": 0},
    {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "h"}, "index": 0},
    {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "i"}, "index": 0},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "max_tokens", "stop_sequence": None}},
]
OUTPUT = [{"type": "message", "content": [{"type": "output_text", "text": "hi"}]}]
RESPONSE = {
    "object": "response",
    "status": "incomplete",
    "output": OUTPUT,
    "incomplete_details": {"reason": "max_output_tokens"},
}
RESPONSE_STREAM = [
    {"type": "response.created", "response": {"object": "response", "status": "in_progress", "output": []}},
    {"type": "response.output_text.delta", "delta": "h"},
    {"type": "response.output_text.delta", "delta": "i"},
    {"type": "response.output_text.done", "text": "hi"},
    {"type": "response.completed", "response": RESPONSE},
]


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([CHAT], Answer(pieces=("hi",), finish="stop")),
        ([STOPPED], Answer(pieces=("hi",), finish="stop_string", stop_string="e")),
        ([MESSAGE], Answer(pieces=("hi",), finish="stop")),
        (MESSAGE_STREAM, Answer(pieces=("h", "i"), finish="length")),
        ([RESPONSE], Answer(pieces=("hi",), finish="length")),
        (RESPONSE_STREAM, Answer(pieces=("h", "i"), finish="length")),
    ],
)
def test_every_dialect_says_what_was_answered_and_why_it_ended(objects: list[Any], expected: Answer) -> None:
    assert read_answers(objects) == (expected,)


def test_calls_and_reasoning_are_put_together_from_a_stream() -> None:
    def delta(**said: Any) -> dict[str, Any]:
        return {"choices": [{"index": 0, "delta": said}]}

    stream = [
        delta(reasoning="so "),
        delta(reasoning="be it"),
        delta(tool_calls=[{"index": 0, "function": {"name": "look", "arguments": ""}}]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": '{"at": '}}]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": "1}"}}]),
    ]
    (answer,) = read_answers(stream)
    assert answer.thoughts == ("so ", "be it")
    assert answer.tool_calls == (ToolCall(name="look", arguments='{"at": 1}'),)
    assert json.loads(answer.tool_calls[0].arguments) == {"at": 1}


def test_choices_that_were_not_sent_leave_their_places_empty() -> None:
    answers = read_answers([{"choices": [{"index": 2, "text": "x"}]}])
    assert [answer.pieces for answer in answers] == [(), (), ("x",)]
