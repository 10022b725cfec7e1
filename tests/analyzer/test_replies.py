"""What a response said, over the four spellings and the ways a stream can end."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from analyzer.core import Usage
from analyzer.replies import read_reply, read_usage
from store.records import Body, Ended, Exchange


def exchange(
    body: bytes, *, stream: bool = False, status: int | None = 200, ended: Ended = "complete"
) -> Exchange:
    kind = "text/event-stream; charset=utf-8" if stream else "application/json"
    return Exchange(
        id=1,
        started_at_ns=0,
        method="POST",
        path="/v1/chat/completions",
        query="",
        request_headers=(),
        request=Body(),
        status=status,
        response_headers=(("Content-Type", kind),),
        response=Body(content=body, wire_length=len(body)),
        chunks=(),
        ttft_ns=None,
        duration_ns=None,
        ended=ended,
        error=None,
    )


def events(*items: Any, done: bool = True) -> bytes:
    lines = [f"data: {json.dumps(item)}\n\n" for item in items] + ["data: [DONE]\n\n"] * done
    return "".join(lines).encode()


@pytest.mark.parametrize(
    ("spelled", "expected"),
    [
        # vLLM 0.32 chat/completions with --enable-prompt-tokens-details (reference §2.1)
        (
            {"prompt_tokens": 1000, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 960}},
            Usage(prompt_tokens=1000, cached_tokens=960, completion_tokens=9),
        ),
        # Responses
        (
            {"input_tokens": 1000, "output_tokens": 9, "input_tokens_details": {"cached_tokens": 960}},
            Usage(prompt_tokens=1000, cached_tokens=960, completion_tokens=9),
        ),
        # Anthropic: input_tokens leaves out what was cached
        (
            {"input_tokens": 40, "cache_read_input_tokens": 960, "cache_creation_input_tokens": 0},
            Usage(prompt_tokens=1000, cached_tokens=960),
        ),
        ({"input_tokens": 1000, "output_tokens": 9}, Usage(prompt_tokens=1000, completion_tokens=9)),
        # DeepSeek's own API
        (
            {"prompt_tokens": 1000, "prompt_cache_hit_tokens": 960},
            Usage(prompt_tokens=1000, cached_tokens=960),
        ),
        ({"prompt_tokens": 1000, "prompt_tokens_details": None}, Usage(prompt_tokens=1000)),
        (
            {"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 0}},
            Usage(prompt_tokens=5, cached_tokens=0),
        ),
    ],
)
def test_every_spelling_of_usage_gives_the_same_counts(spelled: dict[str, Any], expected: Usage) -> None:
    assert read_usage(spelled) == expected


def test_the_last_usage_that_is_not_null_counts() -> None:
    body = events(
        {"choices": [], "usage": None},
        {"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 0}},
        {"choices": [], "usage": {"prompt_tokens": 120, "completion_tokens": 9}},
        {"choices": [], "usage": None},
    )
    usage = read_reply(exchange(body, stream=True)).usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (120, 9)


def test_an_anthropic_stream_counts_what_its_last_delta_says() -> None:
    body = events(
        {"type": "message_start", "message": {"usage": {"input_tokens": 1000, "output_tokens": 0}}},
        {
            "type": "message_delta",
            "usage": {"input_tokens": 40, "cache_read_input_tokens": 960, "output_tokens": 7},
        },
        {"type": "message_stop"},
        done=False,
    )
    reply = read_reply(exchange(body, stream=True))
    assert reply.outcome == "done"
    assert reply.usage == Usage(prompt_tokens=1000, cached_tokens=960, completion_tokens=7)


def test_a_stream_without_its_end_mark_is_eof_and_not_done() -> None:
    body = events({"choices": [{"index": 0, "delta": {"content": "x"}}]}, done=False)
    assert read_reply(exchange(body, stream=True)).outcome == "eof"


def test_an_error_event_after_200_is_told_with_its_message() -> None:
    reply = read_reply(exchange(events({"error": {"message": "out of blocks"}}), stream=True))
    assert (reply.outcome, reply.error) == ("error_event", "out of blocks")


@pytest.mark.parametrize("ended", ["reset", "stopped", "open"])
def test_a_broken_transport_is_the_outcome_whatever_was_received(ended: Ended) -> None:
    body = events({"choices": []})
    assert read_reply(exchange(body, stream=True, ended=ended)).outcome == ended


LEFT = "Client disconnected."


@pytest.mark.parametrize(
    ("body", "outcome", "error"),
    [
        (events({"choices": []}), "done", None),
        (events({"type": "response.completed", "response": {}}, done=False), "done", None),
        (events({"choices": []}, done=False), "client_gone", LEFT),
        (b"", "client_gone", LEFT),
    ],
    ids=["after [DONE]", "after response.completed", "before the end", "before anything"],
)
def test_a_client_that_hangs_up_once_it_has_the_whole_answer_has_not_broken_it_off(
    body: bytes, outcome: str, error: str | None
) -> None:
    reply = read_reply(replace(exchange(body, stream=True, ended="client_gone"), error=LEFT))
    assert (reply.outcome, reply.error) == (outcome, error)


def test_a_refusal_in_html_is_told_by_its_first_line() -> None:
    reply = read_reply(exchange(b"<html>no such model</html>\n<p>", status=404))
    assert (reply.outcome, reply.error) == ("done", "<html>no such model</html>")


def test_token_ids_of_a_stream_are_joined_by_choice() -> None:
    body = events(
        {"prompt_token_ids": [1, 2, 3], "choices": [{"index": 0, "token_ids": [7]}]},
        {"choices": [{"index": 1, "token_ids": [9]}, {"index": 0, "token_ids": [8]}]},
    )
    reply = read_reply(exchange(body, stream=True))
    assert reply.prompt_token_ids == ((1, 2, 3),)
    assert [answer.token_ids for answer in reply.answers] == [(7, 8), (9,)]


@pytest.mark.parametrize("body", [b"\xff\xfe", b"[]", b'{"choices": 3, "usage": []}', b'{"choices":[null]}'])
def test_a_body_of_any_other_shape_is_read_without_an_error(body: bytes) -> None:
    assert read_reply(exchange(body)).usage == Usage()


# What vLLM 0.32 sent on /v1/messages and /v1/responses, cut to what is read.
MESSAGES_STREAM: list[dict[str, Any]] = [
    {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 15, "output_tokens": 0}}},
    {"type": "content_block_start", "content_block": {"type": "text", "text": ""}, "index": 0},
    {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "x"}, "index": 0},
    {"type": "content_block_stop", "index": 0},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "max_tokens", "stop_sequence": None},
        "usage": {
            "input_tokens": 5,
            "output_tokens": 2,
            "cache_creation_input_tokens": 2,
            "cache_read_input_tokens": 8,
        },
    },
    {"type": "message_stop"},
]
RESPONSES_USAGE = {
    "input_tokens": 15,
    "input_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 0, "input_tokens_per_turn": []},
    "output_tokens": 2,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 17,
}
COUNTED = Usage(prompt_tokens=15, cached_tokens=8, completion_tokens=2)


def test_a_messages_stream_ends_with_message_stop_and_counts_the_whole_prompt() -> None:
    reply = read_reply(exchange(events(*MESSAGES_STREAM, done=False), stream=True))
    assert (reply.outcome, reply.usage, reply.error) == ("done", COUNTED, None)


def test_a_messages_stream_that_was_cut_still_knows_its_prompt() -> None:
    reply = read_reply(exchange(events(*MESSAGES_STREAM[:3], done=False), stream=True))
    assert reply.outcome == "eof"
    assert (reply.usage.prompt_tokens, reply.usage.cached_tokens) == (15, None)
    # The 0 that it begins with counts nothing: 25 tokens had been sent when a client left vLLM 0.32.
    assert reply.usage.completion_tokens is None


def test_a_messages_stream_may_end_with_an_error_event() -> None:
    error = {"type": "error", "error": {"type": "internal_error", "message": "the engine died"}}
    reply = read_reply(exchange(events(*MESSAGES_STREAM[:2], error, done=False), stream=True))
    assert (reply.outcome, reply.error) == ("error_event", "the engine died")


@pytest.mark.parametrize("status", ["completed", "incomplete"])
def test_a_responses_stream_ends_with_its_response(status: str) -> None:
    # vLLM ends with response.completed whatever the status; OpenAI's own API says response.incomplete.
    for kind in ("response.completed", f"response.{status}"):
        body = events(
            {"type": "response.created", "response": {"status": "in_progress", "usage": None}},
            {"type": "response.output_text.delta", "delta": "x"},
            {"type": kind, "response": {"status": status, "usage": RESPONSES_USAGE, "error": None}},
            done=False,
        )
        reply = read_reply(exchange(body, stream=True))
        assert (reply.outcome, reply.usage) == ("done", COUNTED)


def test_a_responses_stream_that_failed_says_why() -> None:
    failed = {"status": "failed", "usage": None, "error": {"code": "server_error", "message": "no blocks"}}
    body = events({"type": "response.failed", "response": failed}, done=False)
    reply = read_reply(exchange(body, stream=True))
    assert (reply.outcome, reply.error) == ("error_event", "no blocks")


def test_a_response_in_one_piece_is_done_and_counted() -> None:
    body = json.dumps({"object": "response", "status": "incomplete", "usage": RESPONSES_USAGE}).encode()
    reply = read_reply(exchange(body))
    assert (reply.outcome, reply.usage) == ("done", COUNTED)


def test_llama_cpps_timings_tell_what_no_usage_does() -> None:
    # llama.cpp tools/server: a stream has no usage unless asked for, and `prompt_n` is without the cached.
    last = {
        "choices": [{"delta": {}, "index": 0, "finish_reason": "stop"}],
        "timings": {"cache_n": 290, "prompt_n": 120, "predicted_n": 40},
    }
    told = read_reply(exchange(events({"choices": []}, last), stream=True)).usage
    assert told == Usage(prompt_tokens=410, cached_tokens=290, completion_tokens=40)
    body = {**last, "usage": {"prompt_tokens": 410, "prompt_tokens_details": {"cached_tokens": 291}}}
    told = read_reply(exchange(json.dumps(body).encode())).usage
    assert told == Usage(prompt_tokens=410, cached_tokens=291, completion_tokens=40)


def test_timings_of_another_shape_tell_nothing() -> None:
    shapes: list[object] = [{"prompt_n": 5}, {"cache_n": "7", "prompt_n": 5}, [], None]
    for timings in shapes:
        assert read_reply(exchange(json.dumps({"timings": timings}).encode())).usage == Usage()


def test_sglang_without_its_cache_report_is_not_known_and_not_zero() -> None:
    # SGLang srt/entrypoints/openai: prompt_tokens_details is null without --enable-cache-report
    body = {"usage": {"prompt_tokens": 7, "completion_tokens": 2, "prompt_tokens_details": None}}
    assert read_reply(exchange(json.dumps(body).encode())).usage == Usage(
        prompt_tokens=7, completion_tokens=2
    )
