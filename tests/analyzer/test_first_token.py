"""The first token's time is when the first event that holds one came; a whole answer has none."""

from __future__ import annotations

import json
from dataclasses import replace

from analyzer.first_token import first_token_ns
from store.records import Body, Chunk, Exchange
from tests.causes.pairs import exchange


def event(**fields: object) -> bytes:
    name = f"event: {fields['type']}\n" if "type" in fields else ""
    return f"{name}data: {json.dumps(fields)}\n\n".encode()


def streamed(*pieces: tuple[int, bytes], kind: str = "text/event-stream; charset=utf-8") -> Exchange:
    """An exchange whose response came in these pieces, each at its millisecond."""
    body, chunks = b"", []
    for milliseconds, piece in pieces:
        body += piece
        chunks.append(Chunk(byte_end=len(body), at_ns=milliseconds * 10**6))
    return replace(
        exchange("/v1/responses", b"{}"),
        response_headers=(("Content-Type", kind),),
        response=Body(content=body, wire_length=len(body)),
        chunks=tuple(chunks),
        ttft_ns=chunks[0].at_ns,
    )


CREATED = event(type="response.created", response={"status": "in_progress"})
IN_PROGRESS = event(type="response.in_progress", response={"status": "in_progress"})
ADDED = event(type="response.output_item.added", item={"type": "message"})
ROLE = event(object="chat.completion.chunk", choices=[{"delta": {"role": "assistant", "content": ""}}])


def test_responses_open_before_the_model_has_answered() -> None:
    sent = streamed((2, CREATED), (3, IN_PROGRESS), (840, ADDED), (860, ADDED))
    assert first_token_ns(sent) == 840 * 10**6


def test_an_event_that_comes_in_two_pieces_came_when_it_began() -> None:
    sent = streamed((2, CREATED + IN_PROGRESS), (840, ADDED[:40]), (900, ADDED[40:]))
    assert first_token_ns(sent) == 840 * 10**6


def test_a_chat_stream_opens_with_its_first_token() -> None:
    assert first_token_ns(streamed((310, ROLE), (330, ROLE))) == 310 * 10**6


def test_a_message_stream_opens_with_its_first_token() -> None:
    start = event(type="message_start", message={"usage": {"input_tokens": 4}})
    assert first_token_ns(streamed((310, start), (330, event(type="ping")))) == 310 * 10**6


def test_comments_that_keep_the_connection_open_are_no_token() -> None:
    assert first_token_ns(streamed((5, b": waiting\n\n"), (700, ROLE))) == 700 * 10**6


def test_what_came_before_it_may_have_been_pings() -> None:
    assert first_token_ns(streamed((5, event(type="ping")), (700, ROLE))) == 700 * 10**6


def test_an_answer_that_did_not_stream_has_no_first_token() -> None:
    assert first_token_ns(streamed((900, b'{"choices": []}'), kind="application/json")) is None


def test_an_error_or_nothing_is_no_first_token() -> None:
    assert first_token_ns(streamed((9, event(error={"message": "too long"})))) is None
    assert first_token_ns(streamed((9, CREATED))) is None
    assert first_token_ns(replace(streamed((9, ROLE)), status=503)) is None


def test_where_bytes_were_replaced_or_decoded_the_place_on_the_wire_is_not_known() -> None:
    sent = streamed((2, CREATED), (840, ADDED))
    shorter = replace(sent, response=replace(sent.response, wire_length=sent.response.wire_length - 7))
    assert first_token_ns(shorter) is None
    opened = streamed((310, ROLE))
    assert first_token_ns(replace(opened, response=replace(opened.response, wire_length=40))) == 310 * 10**6
