"""Encoded bodies: the wire's bytes go on as they came, in both directions, and the copy is decoded."""

from __future__ import annotations

import gzip
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import brotli
import pytest
import zstandard

from store.encodings import KEPT_BYTES, MAX_BYTES
from store.records import Body
from tests.proxy.bare import Between, answer, between, post

TEXT = b'{"model":"m","messages":[{"role":"user","content":"' + b"\xe6\xbd\xae\xe6\xb1\x90 " * 200 + b'"}]}'
ZIPPED = gzip.compress(TEXT, mtime=0)
ZSTD = zstandard.compress(TEXT)
BOMB = gzip.compress(bytes(MAX_BYTES + 1), mtime=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A body as it is sent, and what is to be in the capture: its text, and a word of what is wrong."""

    coding: bytes | None
    wire: bytes
    content: bytes | None = TEXT
    problem: str | None = None


CASES = {
    "identity": Case(coding=None, wire=TEXT),
    "named identity": Case(coding=b"identity", wire=TEXT),
    "gzip": Case(coding=b"gzip", wire=ZIPPED),
    "x-gzip": Case(coding=b"X-GZip", wire=ZIPPED),
    "deflate": Case(coding=b"deflate", wire=zlib.compress(TEXT)),
    "bare deflate": Case(coding=b"deflate", wire=zlib.compress(TEXT, wbits=-15)),
    "br": Case(coding=b"br", wire=brotli.compress(TEXT)),
    "zstd": Case(coding=b"zstd", wire=ZSTD),
    "stacked": Case(coding=b"gzip, br", wire=brotli.compress(ZIPPED)),
    "stacked thrice": Case(coding=b"zstd, gzip, br", wire=brotli.compress(gzip.compress(ZSTD, mtime=0))),
    "two members": Case(coding=b"gzip", wire=gzip.compress(TEXT[:9]) + gzip.compress(TEXT[9:])),
    "in name only": Case(coding=b"gzip", wire=TEXT, problem="the bytes are plain text"),
    "not in name": Case(coding=None, wire=ZIPPED, problem="no Content-Encoding header"),
    "another's name": Case(coding=b"br", wire=ZIPPED, content=None, problem="br: damaged"),
    "unknown": Case(coding=b"rot13", wire=b"\xff\xfe\x00", content=b"", problem="unknown Content-Encoding"),
    "truncated gzip": Case(coding=b"gzip", wire=ZIPPED[:-12], content=None, problem="ends early"),
    "truncated br": Case(coding=b"br", wire=brotli.compress(TEXT)[:-5], content=None, problem="ends early"),
    "truncated zstd": Case(coding=b"zstd", wire=ZSTD[:-3], content=None, problem="ends early"),
    "damaged": Case(coding=b"gzip", wire=ZIPPED[:10] + b"\xff" * 20, content=None, problem="damaged"),
    "empty": Case(coding=b"gzip", wire=b"", content=b""),
    "no text": Case(coding=None, wire=b"\xff\xfe\x00\x80{", content=b"\xff\xfe\x00\x80{"),
    "bomb": Case(coding=b"gzip", wire=BOMB, content=bytes(KEPT_BYTES), problem="decodes to more than"),
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Between]:
    with between(tmp_path_factory.mktemp("encodings")) as made:
        yield made


def lines(case: Case) -> tuple[bytes, ...]:
    return () if case.coding is None else (b"Content-Encoding: " + case.coding,)


def holds(case: Case, body: Body) -> None:
    """The copy is of what was sent, as far as it could be read."""
    assert body.wire_length == len(case.wire)
    assert (body.problem is None) == (case.problem is None)
    assert (case.problem or "") in (body.problem or "")
    if case.content is None:
        assert TEXT.startswith(body.content)
    else:
        assert body.content == case.content


@pytest.mark.parametrize("name", CASES)
def test_a_request_arrives_as_it_was_sent_and_is_recorded_decoded(shared: Between, name: str) -> None:
    case = CASES[name]
    request = post(*lines(case), body=case.wire)
    client = shared.client()
    client.send(request)
    taken = shared.take()
    while len(taken.data.partition(b"\r\n\r\n")[2]) < len(case.wire):
        assert taken.read()
    host = b"Host: 127.0.0.1:%d" % shared.upstream.port
    assert taken.data == request.replace(b"Host: here", host)
    reply = answer(*lines(case), body=case.wire, status=b"400 Bad Request")
    taken.send(reply)
    # An error's body as well.
    assert client.read_bytes(len(reply)) == reply
    client.close()
    exchange = shared.recorded()
    assert exchange.ended == "complete"
    holds(case, exchange.request)
    holds(case, exchange.response)


def test_an_encoded_stream_passes_event_by_event(shared: Between) -> None:
    events = [b'data: {"n":%d}\n\n' % number for number in range(5)]
    packer = zlib.compressobj(wbits=31)
    client = shared.client()
    client.send(post())
    taken = shared.take()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n"
    taken.send(head + b"Transfer-Encoding: chunked\r\n\r\n")
    client.read_until(b"\r\n\r\n")
    for event in events:
        piece = packer.compress(event) + packer.flush(zlib.Z_SYNC_FLUSH)
        framed = b"%x\r\n%s\r\n" % (len(piece), piece)
        sent = time.monotonic()
        taken.send(framed)
        assert client.read_bytes(len(framed)) == framed
        assert time.monotonic() - sent < 0.5
    piece = packer.flush()
    taken.send(b"%x\r\n%s\r\n0\r\n\r\n" % (len(piece), piece))
    client.read_until(b"0\r\n\r\n")
    exchange = shared.recorded()
    assert exchange.response.content == b"".join(events)


def test_a_stream_that_ends_in_its_compression_passes_as_far_as_it_came(shared: Between) -> None:
    client = shared.client()
    client.send(post())
    taken = shared.take()
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(ZIPPED)
    taken.send(head + ZIPPED[:-20])
    assert client.read_bytes(len(head) + len(ZIPPED) - 20) == head + ZIPPED[:-20]
    taken.sock.close()
    assert client.read_all() == b""
    exchange = shared.recorded()
    assert exchange.ended == "reset"
    assert TEXT.startswith(exchange.response.content)
    assert exchange.response.content
