"""What in a body, besides its prompts, matters for the answers and the cache."""

from __future__ import annotations

import json
from typing import Any

import pytest

from analyzer.reading import read_request
from store.records import Body, Exchange

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
MESSAGES, RESPONSES = "/v1/messages", "/v1/responses"


def exchange(path: str, body: dict[str, Any]) -> Exchange:
    return Exchange(
        id=1,
        started_at_ns=0,
        method="POST",
        path=path,
        query="",
        request_headers=(),
        request=Body(content=json.dumps({"model": "m", **body}).encode()),
        status=200,
        response_headers=(),
        response=Body(),
        chunks=(),
        ttft_ns=None,
        duration_ns=None,
        ended="complete",
        error=None,
    )


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        (CHAT, {"max_tokens": 9}, 9),
        (CHAT, {"max_tokens": 9, "max_completion_tokens": 5}, 5),  # chat_completion/protocol.py
        (CHAT, {}, None),
        (COMPLETIONS, {}, 16),  # completion/protocol.py
        (COMPLETIONS, {"max_tokens": None}, 16),
        (MESSAGES, {"max_tokens": 7}, 7),
        (RESPONSES, {"max_output_tokens": 3}, 3),
        (CHAT, {"max_tokens": "many"}, None),
    ],
)
def test_where_an_answer_is_cut_off(path: str, body: dict[str, Any], expected: int | None) -> None:
    assert read_request(exchange(path, body)).max_tokens == expected


@pytest.mark.parametrize(
    ("body", "holds_back"),
    [
        ({}, False),
        ({"stop": "e"}, False),  # one character cannot begin in one piece and end in the next
        ({"stop": ["e", "a"]}, False),
        ({"stop": "end"}, True),
        ({"stop": ["e", "end"]}, True),
        ({"stop_sequences": ["end"]}, True),
        ({"stop": 7}, False),
    ],
)
def test_a_text_to_stop_at_makes_a_stream_come_late(body: dict[str, Any], holds_back: bool) -> None:
    assert read_request(exchange(CHAT, body)).holds_back is holds_back


@pytest.mark.parametrize(("n", "expected"), [(3, 3), (None, 1), (0, 1), ("2", 1), (True, 1), (1 << 40, 1)])
def test_the_number_of_answers_is_one_where_it_is_none(n: Any, expected: int) -> None:
    assert read_request(exchange(CHAT, {"n": n})).choices == expected


def test_streams_and_echoes_are_noticed() -> None:
    request = read_request(exchange(COMPLETIONS, {"stream": True, "echo": True}))
    assert (request.streams, request.echoes) == (True, True)
