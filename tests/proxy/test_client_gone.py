"""A client that leaves: the upstream is closed within a second, whatever it was doing."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterator

import pytest

from analyzer.replies import read_reply
from tests.proxy.bare import Between, Client, between, post
from tests.upstream.bare import OK, STREAM_HEAD, Taken

EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Between]:
    with between(tmp_path_factory.mktemp("gone")) as made:
        yield made


def closed(client: Client) -> None:
    client.sock.close()


def reset(client: Client) -> None:
    client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.sock.close()


def nothing(client: Client, taken: Taken) -> bytes:
    """The upstream thinks: for a stream and for a plain answer, there is no head yet."""
    return b""


def in_a_stream(client: Client, taken: Taken) -> bytes:
    taken.send(STREAM_HEAD + b"%x\r\n%s\r\n" % (len(EVENT), EVENT))
    client.read_until(EVENT)
    return EVENT


def in_a_plain_answer(client: Client, taken: Taken) -> bytes:
    taken.send(JSON + b'{"object":')
    client.read_until(b'{"object":')
    return b'{"object":'


@pytest.mark.parametrize("leave", [closed, reset])
@pytest.mark.parametrize("phase", [nothing, in_a_stream, in_a_plain_answer])
@pytest.mark.parametrize("body", [b'{"stream":true}', b'{"stream":false}'])
def test_the_upstream_is_closed_within_a_second(
    shared: Between,
    leave: Callable[[Client], None],
    phase: Callable[[Client, Taken], bytes],
    body: bytes,
) -> None:
    client = shared.client()
    client.send(post(body=body))
    taken = shared.take()
    taken.read_until(body)
    got = phase(client, taken)
    left = time.monotonic()
    leave(client)
    assert taken.read() == b""
    assert time.monotonic() - left < 1
    exchange = shared.recorded()
    assert (exchange.ended, exchange.request.content) == ("client_gone", body)
    assert (exchange.status, exchange.response.content) == (200 if got else None, got)
    assert read_reply(exchange).outcome == "client_gone"


def test_a_client_of_http_1_0_that_leaves_is_noticed_too(shared: Between) -> None:
    client = shared.client()
    client.send(post().replace(b"HTTP/1.1", b"HTTP/1.0", 1))
    taken = shared.take()
    taken.read_until(b"\r\n\r\n{}")
    left = time.monotonic()
    client.close()
    assert taken.read() == b""
    assert time.monotonic() - left < 1
    assert shared.recorded().ended == "client_gone"


def test_a_client_that_is_slow_to_read_is_still_there(shared: Between) -> None:
    client = shared.client()
    client.send(post())
    taken = shared.take()
    time.sleep(1.5)
    taken.send(OK)
    assert client.read_until(b"{}") == OK
    assert shared.recorded().ended == "complete"
