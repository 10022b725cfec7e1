"""What is not one plain request of HTTP/1.1 and its answer: interim answers, trailers, other versions."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import h2.config
import h2.connection
import h2.errors
import h2.events
import pytest

from analyzer.replies import read_reply
from tests.proxy.bare import CHAT, Between, Client, answer, between, post
from tests.upstream.bare import OK, STREAM_HEAD

EVENT = b'data: {"choices":[]}\n\n'
HINT = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Between]:
    with between(tmp_path_factory.mktemp("messages")) as made:
        yield made


def old(*lines: bytes, body: bytes = b"{}") -> bytes:
    """A request of HTTP/1.0."""
    return post(*lines, body=body).replace(b"HTTP/1.1", b"HTTP/1.0", 1)


def half_closed(shared: Between, request: bytes) -> Client:
    """A client that has said all it will ever say."""
    client = shared.client()
    client.send(request)
    client.sock.shutdown(socket.SHUT_WR)
    return client


def test_interim_answers_reach_the_client_and_are_not_taken_for_the_answer(shared: Between) -> None:
    client = shared.client()
    client.send(post())
    taken = shared.take()
    taken.send(b"HTTP/1.1 102 Processing\r\n\r\n" + HINT[:30])
    assert client.read_until(b"\r\n\r\n") == b"HTTP/1.1 102 Processing\r\n\r\n"
    taken.send(HINT[30:])
    assert client.read_until(b"\r\n\r\n") == HINT
    taken.send(HINT + OK)
    assert client.read_until(b"{}") == HINT + OK
    exchange = shared.recorded()
    assert (exchange.status, exchange.response.content, exchange.ended) == (200, b"{}", "complete")
    assert read_reply(exchange).outcome == "done"


def test_a_100_that_the_client_did_not_wait_for_stays_with_the_proxy(shared: Between) -> None:
    client = shared.client()
    client.send(post())
    shared.take().send(b"HTTP/1.1 100 Continue\r\n\r\n" + OK)
    assert client.read_until(b"{}") == OK
    shared.recorded()


def test_trailers_of_an_answer_reach_the_client(shared: Between) -> None:
    client = shared.client()
    client.send(post())
    end = b"0\r\nX-Checksum: 1\r\nx-other: b\r\n\r\n"
    stream = STREAM_HEAD + b"%x\r\n%s\r\n" % (len(EVENT), EVENT) + end
    taken = shared.take()
    taken.send(stream)
    assert client.read_until(b"b\r\n\r\n") == stream
    exchange = shared.recorded()
    assert (exchange.response.content, exchange.ended) == (EVENT, "complete")
    # The connection is as good as new.
    taken.data = b""
    client.send(post())
    taken.read_until(b"\r\n\r\n{}")
    taken.send(OK)
    assert client.read_until(b"{}") == OK
    shared.recorded()


def test_trailers_of_a_request_reach_the_upstream(shared: Between) -> None:
    client = shared.client()
    head = b"POST %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" % CHAT.encode()
    client.send(head, b"2\r\n{}\r\n0\r\nX-Checksum: 1\r\n\r\n")
    taken = shared.take()
    assert taken.read_until(b"1\r\n\r\n").endswith(b"\r\n\r\n2\r\n{}\r\n0\r\nX-Checksum: 1\r\n\r\n")
    taken.send(OK)
    assert client.read_until(b"{}") == OK
    assert shared.recorded().request.content == b"{}"


def test_a_client_that_closes_its_sending_side_gets_its_answer(shared: Between) -> None:
    client = half_closed(shared, post())
    taken = shared.take()
    time.sleep(1)  # longer than the proxy looks whether it has gone
    taken.send(STREAM_HEAD + b"%x\r\n%s\r\n" % (len(EVENT), EVENT))
    time.sleep(0.2)
    taken.send(b"0\r\n\r\n")
    got = client.read_all()
    # What was asked of it: an interim answer. And the end of the connection, for which it may be waiting.
    assert got.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
    assert b"Connection: close" in got
    assert got.endswith(EVENT + b"\r\n0\r\n\r\n")
    assert shared.recorded().ended == "complete"


def test_an_upstream_that_breaks_off_is_not_laid_to_a_half_closed_client(shared: Between) -> None:
    client = half_closed(shared, post())
    taken = shared.take()
    time.sleep(1)
    taken.send(STREAM_HEAD + b"%x\r\n%s\r\n" % (len(EVENT), EVENT))
    taken.sock.close()
    assert client.read_all().endswith(EVENT + b"\r\n")
    assert shared.recorded().ended == "reset"


def test_a_half_closed_client_that_leaves_in_mid_stream_is_gone(shared: Between) -> None:
    client = half_closed(shared, post())
    taken = shared.take()
    time.sleep(1)
    taken.send(STREAM_HEAD)
    client.read_until(b"chunked")
    client.close()
    with pytest.raises(OSError):
        for _ in range(1000):
            taken.send(b"%x\r\n%s\r\n" % (len(EVENT), EVENT))
            time.sleep(0.02)
    assert shared.recorded().ended == "client_gone"


def test_a_client_of_http_1_0_gets_an_answer_without_chunks(shared: Between) -> None:
    client = shared.client()
    client.send(old())
    taken = shared.take()
    taken.send(STREAM_HEAD + b"%x\r\n%s\r\n0\r\n\r\n" % (len(EVENT), EVENT))
    head, _, body = client.read_all().partition(b"\r\n\r\n")
    assert b"chunked" not in head
    assert head.endswith(b"Connection: close")
    assert body == EVENT
    assert shared.recorded().response.content == EVENT


def test_a_client_of_http_1_0_that_asks_for_it_may_go_on(shared: Between) -> None:
    client = shared.client()
    for _ in range(2):
        client.send(old(b"Connection: keep-alive"))
        shared.take().send(answer())
        assert client.read_until(b"{}").endswith(b"Connection: keep-alive\r\n\r\n{}")
        shared.recorded()


def test_http_2_without_tls_is_refused_at_once_in_its_own_words(shared: Between) -> None:
    client = shared.client()
    speaker = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
    speaker.initiate_connection()
    began = time.monotonic()
    client.send(speaker.data_to_send())
    (refused,) = [
        event
        for event in speaker.receive_data(client.read_all())
        if isinstance(event, h2.events.ConnectionTerminated)
    ]
    assert time.monotonic() - began < 1
    assert refused.error_code == h2.errors.ErrorCodes.HTTP_1_1_REQUIRED
    assert refused.additional_data == b"This proxy speaks HTTP/1.1 only: turn HTTP/2 off in the client."


def test_an_upgrade_to_http_2_is_left_out_and_the_request_answered(shared: Between) -> None:
    client = shared.client()
    client.send(post(b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABk"))
    taken = shared.take()
    assert b"upgrade" not in taken.data.lower()
    assert b"http2-settings" not in taken.data.lower()
    taken.send(OK)
    assert client.read_until(b"{}") == OK
    shared.recorded()


@pytest.mark.parametrize(
    ("says", "why"),
    [
        # SETTINGS, then GOAWAY: what a server of HTTP/2 alone answers to HTTP/1.1.
        (b"\0\0\0\x04\0\0\0\0\0" + b"\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x01", b"but HTTP/2"),
        (b"220 mail.example ESMTP\r\n", b"does not speak HTTP/1.1"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", b"switched to another protocol"),
        (b"HTTP/1.1 103 Early Hints\r\nno field\r\n\r\n", b"interim answer cannot be read"),
    ],
)
def test_an_upstream_that_speaks_otherwise_gives_502_at_once_and_says_so(
    shared: Between, says: bytes, why: bytes
) -> None:
    client = shared.client()
    client.send(post())
    taken = shared.take()
    began = time.monotonic()
    taken.send(says)
    got = client.read_all()
    assert time.monotonic() - began < 1
    assert got.startswith(b"HTTP/1.1 502 ")
    assert why in got
    assert why.decode() in (shared.recorded().error or "")


def test_a_websocket_to_a_silent_upstream_is_refused_at_once(shared: Between) -> None:
    before = shared.upstream.connections
    client = shared.client()
    upgrade = b"Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n\r\n"
    client.send(b"GET /v1/responses HTTP/1.1\r\nHost: x\r\n" + upgrade)
    assert client.read_until(b"it will use HTTP.").startswith(b"HTTP/1.1 426 ")
    assert shared.upstream.connections == before


def test_a_target_that_is_a_whole_url_reaches_the_upstream_and_nobody_else(shared: Between) -> None:
    client = shared.client()
    client.send(b"GET http://elsewhere.example/v1/models?a=%20b HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n")
    taken = shared.take()
    assert taken.data.startswith(b"GET /v1/models?a=%20b HTTP/1.1\r\n")
    taken.send(OK)
    assert client.read_until(b"{}") == OK
