"""Messages that are none, on either side: refused at once and with a word, or passed on as all read them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.proxy.bare import CHAT, Between, Client, answer, between, post
from tests.upstream.bare import OK

CHUNKED = b"POST %s HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n" % CHAT.encode()
MEGABYTE = b"a" * 2**20


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Between]:
    with between(tmp_path_factory.mktemp("malformed")) as made:
        yield made


def flooded(client: Client, begin: bytes) -> bytes:
    """The answer to a client whose message goes on and on; it is read to the end of what it sends."""
    client.send(begin, *[MEGABYTE] * 16)
    return client.read_until(b"\r\n")


@pytest.mark.parametrize("empty", [b"\r\n", b"\n", b"\r\n\r\n\r\n"])
def test_empty_lines_before_a_message_do_not_count(shared: Between, empty: bytes) -> None:
    client = shared.client()
    client.send(empty + post())
    shared.take().send(empty + OK)
    assert client.read_until(b"{}") == OK
    assert shared.recorded().ended == "complete"


@pytest.mark.parametrize(
    ("first", "word"),
    [
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"http://", id="TLS"),
        pytest.param(b"\0" * 100, b"no request of HTTP/1.1", id="zeros"),
        pytest.param("é".encode(), b"no request of HTTP/1.1", id="letters"),
    ],
)
def test_a_client_that_does_not_speak_http_is_told_at_once(
    shared: Between, first: bytes, word: bytes
) -> None:
    client = shared.client()
    client.send(first)
    said = client.read_all()
    assert said.startswith(b"HTTP/1.1 400 ")
    assert word in said


@pytest.mark.parametrize(
    "chunks",
    [b"-2\r\n{}\r\n0\r\n\r\n", b"0x2\r\n", b"2\r\n{}x\r\n", b"f" * 40 + b"\r\n", b"0\r\nfoo\r\n\r\n"],
)
def test_chunks_that_are_none_get_400_and_are_not_laid_to_a_client_that_left(
    shared: Between, chunks: bytes
) -> None:
    client = shared.client()
    client.send(CHUNKED + chunks)
    assert client.read_until(b"\r\n") == b"HTTP/1.1 400 Bad Request\r\n"
    assert b"chunks" in client.read_all()
    assert shared.recorded().ended == "reset"


def test_a_head_without_an_end_is_refused_and_a_long_one_passes(shared: Between) -> None:
    assert flooded(shared.client(), b"GET /x HTTP/1.1\r\nX: ").startswith(b"HTTP/1.1 431 ")
    client = shared.client()
    client.send(post(b"X: " + MEGABYTE[:-1000]))
    taken = shared.take()
    assert len(taken.read_until(b"\r\n\r\n")) > 2**20 - 1000
    taken.send(OK)
    assert client.read_until(b"{}") == OK
    shared.recorded()


def test_a_line_between_chunks_without_an_end_is_refused(shared: Between) -> None:
    assert flooded(shared.client(), CHUNKED + b"2;").startswith(b"HTTP/1.1 400 ")
    shared.take()  # the request was on its way
    shared.recorded()


@pytest.mark.parametrize(
    "hint",
    [
        b"HTTP/1.1 103 Early Hints\r\nLink\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\n Link: a\r\n\r\n",
    ],
)
def test_an_interim_answer_that_is_none_gives_502_and_no_silence(shared: Between, hint: bytes) -> None:
    client = shared.client()
    client.send(post())
    shared.take().send(hint + OK)
    said = client.read_all()
    assert said.startswith(b"HTTP/1.1 502 ")
    shared.recorded()


@pytest.mark.parametrize("begin", [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 103 Early Hints\r\nX: "])
def test_an_answers_head_without_an_end_gives_502(shared: Between, begin: bytes) -> None:
    client = shared.client()
    client.send(post())
    taken = shared.take()
    taken.read_until(b"{}")
    taken.send(begin + MEGABYTE + b"a")
    assert client.read_all().startswith(b"HTTP/1.1 502 ")
    shared.recorded()


@pytest.mark.parametrize("bad", [b"\r", b"\0"])
def test_what_others_may_take_for_a_lines_end_goes_on_as_a_space(shared: Between, bad: bytes) -> None:
    field = b"X: a" + bad + b"Content-Length: 9"
    client = shared.client()
    client.send(post(field))
    taken = shared.take()
    assert b"\r\nX: a Content-Length: 9\r\n" in taken.read_until(b"{}")
    taken.send(answer(field))
    assert b"\r\nX: a Content-Length: 9" in client.read_until(b"{}")
    shared.recorded()
