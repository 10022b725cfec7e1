"""What is passed on without being recorded, and what is passed on of an upstream that breaks."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator

import pytest

from analyzer.replies import read_reply
from store.db import Capture
from tests.proxy.bare import CHAT, Between, answer, between, post
from tests.upstream.bare import OK, Taken

SIDE_CALLS = [
    b"HEAD / HTTP/1.1",
    b"HEAD /api/hello HTTP/1.1",
    b"HEAD /v1/chat/completions HTTP/1.1",
    b"GET /v1/chat/completions HTTP/1.1",
    b"GET /v1/models?limit=9 HTTP/1.1",
    b"GET /v1/responses/resp_1?stream=true HTTP/1.1",
    b"OPTIONS * HTTP/1.1",
    b"OPTIONS /v1/chat/completions HTTP/1.1",
    b"DELETE /v1/files/1 HTTP/1.1",
    b"POST /v1/messages/count_tokens?beta=true HTTP/1.1",
    b"POST /v1/chat/completions/render HTTP/1.1",
    b"POST /api/event_logging/batch HTTP/1.1",
    b"POST /tokenize HTTP/1.1",
    b"BREW /pot HTTP/1.1",
]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Between]:
    with between(tmp_path_factory.mktemp("passing")) as made:
        yield made


def close(taken: Taken) -> None:
    taken.sock.close()


def reset(taken: Taken) -> None:
    taken.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    taken.sock.close()


@pytest.mark.parametrize("line", SIDE_CALLS, ids=bytes.decode)
def test_a_side_call_is_answered_by_the_upstream_alone_and_is_no_turn(shared: Between, line: bytes) -> None:
    client = shared.client()
    client.send(line + b"\r\nHost: here\r\nContent-Length: 2\r\n\r\n{}")
    taken = shared.take()
    assert taken.read_until(b"\r\n\r\n{}").startswith(line + b"\r\n")
    # What it does not know it says itself: an answer made up here would be believed.
    reply = answer(b"X-Own: 1", status=b"404 Nothing Here", body=b"" if line.startswith(b"HEAD") else b"{}")
    taken.send(reply)
    assert client.read_bytes(len(reply)) == reply
    client.close()
    with Capture.open(str(shared.capture)) as capture:
        assert capture.counts().exchanges == 0


@pytest.mark.parametrize("breaks", [close, reset])
@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 O", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"])
def test_an_upstream_that_breaks_off_before_its_answer_gives_502_and_is_not_asked_again(
    broken: Between, sent: bytes, breaks: Callable[[Taken], None]
) -> None:
    before = broken.upstream.connections
    client = broken.client()
    client.send(post())
    taken = broken.take()
    taken.read_until(b"\r\n\r\n{}")
    taken.send(sent)
    breaks(taken)
    assert client.read_all().startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
    exchange = broken.recorded()
    assert (exchange.ended, exchange.status, exchange.request.content) == ("reset", None, b"{}")
    assert exchange.error
    assert broken.upstream.connections == before + 1


@pytest.mark.parametrize("breaks", [close, reset])
@pytest.mark.parametrize("framing", [b"Content-Length: 100", b"Transfer-Encoding: chunked"])
def test_an_upstream_that_breaks_off_in_its_answer_breaks_off_at_the_client(
    broken: Between, framing: bytes, breaks: Callable[[Taken], None]
) -> None:
    before = broken.upstream.connections
    head, body = b"HTTP/1.1 200 OK\r\n" + framing + b"\r\n\r\n", b"5\r\nhello\r\n"
    client = broken.client()
    client.send(post())
    taken = broken.take()
    taken.read_until(b"\r\n\r\n{}")
    taken.send(head + body)
    assert client.read_bytes(len(head + body)) == head + body
    breaks(taken)
    assert client.read_all() == b""
    exchange = broken.recorded()
    assert (exchange.ended, exchange.status) == ("reset", 200)
    assert read_reply(exchange).outcome == "reset"
    assert broken.upstream.connections == before + 1


def test_a_connection_that_the_upstream_closed_between_requests_is_made_anew(broken: Between) -> None:
    client = broken.client()
    for _ in range(2):
        client.send(post())
        taken = broken.take()
        taken.read_until(b"\r\n\r\n{}")
        taken.send(OK)
        assert client.read_until(b"{}") == OK
        taken.sock.shutdown(socket.SHUT_WR)
        assert taken.read() == b""  # the proxy has seen it, and closed its side
        assert broken.recorded().ended == "complete"


def test_a_retry_that_the_client_says_is_one_is_recorded_with_its_number(broken: Between) -> None:
    for number in (b"0", b"1"):
        client = broken.client()
        client.send(post(b"x-stainless-retry-count: " + number))
        broken.take().send(answer(status=b"503 Busy"))
        client.read_until(b"{}")
        client.close()
        assert ("x-stainless-retry-count", number.decode()) in broken.recorded().request_headers


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Between]:
    """Another proxy: nothing of it is recorded where nothing is to be recorded."""
    with between(tmp_path_factory.mktemp("broken")) as made:
        yield made


def test_what_comes_after_a_complete_answer_is_no_answer(broken: Between) -> None:
    client = broken.client()
    client.send(post())
    broken.take().send(OK + b"HTTP/1.1 500 Smuggled\r\nContent-Length: 0\r\n\r\n")
    assert client.read_until(b"{}") == OK
    assert broken.recorded().status == 200
    client.send(post(path=CHAT))
    broken.take().send(OK)
    assert client.read_until(b"{}") == OK
    assert broken.recorded().status == 200
