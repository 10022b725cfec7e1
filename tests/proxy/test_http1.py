"""What the proxy does on the wire where mitmproxy by itself would do something else."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from proxy.http1 import in_our_words
from tests.proxy.setup import Setup, started
from tests.upstream.faults import DONE, EVENTS


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setup]:
    with started(tmp_path_factory.mktemp("http1")) as made:
        yield made


@pytest.fixture
def setup(shared: Setup) -> Iterator[Setup]:
    yield shared.begin()
    shared.connections.close()


def raw(setup: Setup, request: bytes) -> http.client.HTTPResponse:
    """Send bytes to the proxy; the answer's head has been read."""
    parts = urlsplit(setup.proxy.url)
    sock = socket.create_connection((parts.hostname or "", parts.port or 0), timeout=10)
    setup.connections.callback(sock.close)
    sock.sendall(request)
    answer = http.client.HTTPResponse(sock)
    answer.begin()
    return answer


def test_an_answer_with_trailers_ends(setup: Setup) -> None:
    assert setup.ask("trailers") == (200, b"".join(EVENTS) + DONE)
    (exchange,) = setup.recorded()
    assert exchange.ended == "complete"


def test_what_the_proxy_refuses_to_pass_on_gives_a_json_error_without_advice(setup: Setup) -> None:
    status, body = setup.ask("two_lengths")
    error = json.loads(body)["error"]
    assert (status, error["type"], error["code"]) == (502, "proxy_error", 502)
    (exchange,) = setup.recorded()
    assert exchange.ended == "reset"
    for message in (error["message"], exchange.error or ""):
        assert "smuggling" in message
        assert "option" not in message
        assert "mitmproxy" not in message


def test_a_request_that_is_none_gives_a_json_error(setup: Setup) -> None:
    with raw(setup, b"GET / HTTP/9.x\r\n\r\n") as answer:
        assert answer.status == 400
        assert answer.getheader("content-type") == "application/json"
        assert json.loads(answer.read())["error"]["code"] == 400


def test_only_sentences_of_advice_are_taken_from_a_message() -> None:
    assert in_our_words("connect to 127.0.0.1:1 failed") == "connect to 127.0.0.1:1 failed"
    assert in_our_words("It broke. Disable the x_y option to skip this.") == "It broke."
    assert in_our_words("Connect call failed ('::1', 1)").endswith(
        "; is the server up that --upstream of this proxy names?"
    )
    assert in_our_words("Use mitmproxy.") == "the proxy could not pass this on"
