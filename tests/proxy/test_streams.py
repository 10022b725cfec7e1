"""Event streams however they are framed, cut and ended: the bytes arrive, and the analyzer reads them."""

from __future__ import annotations

import itertools
import json
import random
import socket
from collections.abc import Callable, Iterator

import pytest

from analyzer.replies import read_reply
from tests.proxy.bare import Between, Client, between, post
from tests.upstream.bare import STREAM_HEAD, Taken

# A line and a paragraph separator and a next-line, which end a line for Python but not in an event stream.
TEXTS = ("Ahoy", " one\u2028two\u2029three\u0085four", " 潮汐 ⚓🚢", "\r\n: data: [DONE]\n\n")
DONE = "data: [DONE]\n\n"


def event(text: str, pattern: str = "data: {}\n\n") -> str:
    """One event of a chat stream; what JSON need not escape is not."""
    choices = [{"index": 0, "delta": {"content": text}}]
    return pattern.replace("{}", json.dumps({"choices": choices}, ensure_ascii=False))


def events(pattern: str = "data: {}\n\n") -> str:
    return "".join(event(text, pattern) for text in TEXTS)


STREAMS = {
    "plain": events() + DONE,
    "CRLF": (events() + DONE).replace("\n", "\r\n"),
    "CR": (events() + DONE).replace("\n", "\r"),
    "mixed ends": events("data: {}\r\n\n") + DONE,
    "byte order mark": "\ufeff" + events() + DONE,
    "no space after the colon": events("data:{}\n\n") + "data:[DONE]\n\n",
    "comments, names and numbers": ": ping\n\nretry: 9\n\n"
    + events("event: x\nid: 1\ndata: {}\n: y\n\n")
    + DONE,
    "unknown fields": events("colour: blue\nnothing\ndata: {}\n\n") + DONE,
    "data in two lines": "".join(event(text).replace('"index"', '\ndata: "index"') for text in TEXTS) + DONE,
    "no blank line at the end": events() + DONE.rstrip("\n"),
    "no end of line at the end": (events() + DONE).replace("\n", "\r\n").rstrip(),
}

type Cut = Callable[[bytes], list[bytes]]


def whole(stream: bytes) -> list[bytes]:
    return [stream]


def byte_by_byte(stream: bytes) -> list[bytes]:
    return [bytes([byte]) for byte in stream]


def anywhere(stream: bytes) -> list[bytes]:
    cuts = sorted(random.Random(7).sample(range(1, len(stream)), 20))
    return [stream[begin:end] for begin, end in itertools.pairwise([0, *cuts, len(stream)])]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Between]:
    with between(tmp_path_factory.mktemp("streams")) as made:
        yield made


def asked(shared: Between) -> tuple[Client, Taken]:
    client = shared.client()
    client.send(post(body=b'{"stream":true}'))
    taken = shared.take()
    taken.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client, taken


def read_chunks(client: Client) -> bytes:
    """A chunked body, up to its last chunk."""
    payload = b""
    while size := int(client.read_until(b"\r\n"), 16):
        payload += client.read_bytes(size)
        assert client.read_bytes(2) == b"\r\n"
    return payload


@pytest.mark.parametrize("cut", [whole, byte_by_byte, anywhere])
@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_arrives_unchanged_and_is_read(shared: Between, name: str, cut: Cut) -> None:
    stream = STREAMS[name].encode()
    client, taken = asked(shared)
    taken.send(STREAM_HEAD)
    assert client.read_until(b"\r\n\r\n") == STREAM_HEAD
    for piece in cut(stream):
        taken.send(b"%x\r\n%s\r\n" % (len(piece), piece))
    taken.send(b"0\r\n\r\n")
    assert read_chunks(client) == stream
    client.close()
    exchange = shared.recorded()
    assert exchange.response.content == stream
    assert exchange.chunks[-1].byte_end == len(stream)
    reply = read_reply(exchange)
    assert (reply.outcome, "".join(reply.answers[0].pieces)) == ("done", "".join(TEXTS))


def test_the_framing_itself_may_be_cut_anywhere(shared: Between) -> None:
    stream = STREAMS["plain"].encode()
    client, taken = asked(shared)
    for piece in byte_by_byte(STREAM_HEAD + b"%x;note=1\r\n%s\r\n0\r\n\r\n" % (len(stream), stream)):
        taken.send(piece)
    client.read_until(b"\r\n\r\n")
    assert read_chunks(client) == stream
    assert shared.recorded().response.content == stream


@pytest.mark.parametrize(
    ("last", "outcome", "said"),
    [
        ("", "eof", None),
        (event("").replace('"delta"', '"finish_reason": "stop", "delta"'), "eof", None),
        ('data: {"error":{"message":"the engine died","code":500}}\n\n', "error_event", "the engine died"),
        (
            'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n',
            "error_event",
            "busy",
        ),
        (
            'data: {"type":"response.failed","response":{"error":{"message":"no room"}}}\n\n',
            "error_event",
            "no room",
        ),
        ('data: {"type":"response.incomplete","response":{"status":"incomplete"}}\n\n', "done", None),
    ],
    ids=["no [DONE]", "a reason but no [DONE]", "OpenAI's error", "Anthropic's", "failed", "incomplete"],
)
def test_ends_are_told_apart(shared: Between, last: str, outcome: str, said: str | None) -> None:
    stream = (events() + last).encode()
    client, taken = asked(shared)
    taken.send(STREAM_HEAD + b"%x\r\n%s\r\n0\r\n\r\n" % (len(stream), stream))
    client.read_until(b"\r\n\r\n")
    assert read_chunks(client) == stream
    reply = read_reply(shared.recorded())
    assert (reply.outcome, reply.error) == (outcome, said)
    assert (reply.answers[0].finish == "stop") == ("finish_reason" in last)


def test_a_stream_that_breaks_off_breaks_off_at_the_client_too(shared: Between) -> None:
    stream = event("a").encode()
    client, taken = asked(shared)
    framed = STREAM_HEAD + b"%x\r\n%s\r\n" % (len(stream), stream)
    taken.send(framed)
    assert client.read_bytes(len(framed)) == framed
    taken.sock.close()
    assert client.read_all() == b""  # and no last chunk, which would make it look whole
    exchange = shared.recorded()
    assert (exchange.ended, exchange.response.content) == ("reset", stream)


@pytest.mark.parametrize("body", [b"<html><h1>413</h1>\n" + b"x" * 100_000 + b"</html>", b""])
def test_an_error_page_is_recorded_whole(shared: Between, body: bytes) -> None:
    client, taken = asked(shared)
    head = b"HTTP/1.1 413 Too Big\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body)
    taken.send(head + body)
    assert client.read_bytes(len(head + body)) == head + body
    exchange = shared.recorded()
    assert (exchange.status, exchange.response.content) == (413, body)
