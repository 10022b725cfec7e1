"""Heads on their way: what belongs to one hop stays there, everything else arrives as it was sent."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import locality
from tests.proxy.bare import CHAT, Between, answer, between, post
from tests.upstream.bare import OK

OF_THE_CLIENTS_HOP = (
    b"Connection: keep-alive, X-Named, Content-Length",
    b"Keep-Alive: timeout=5",
    b"Proxy-Connection: keep-alive",
    b"TE: trailers",
    b"Upgrade: irc/6.9",
    b"Proxy-Authorization: Basic Zm9vOmJhcg==",
    b"x-named: 1",
)
ORDINARY = (
    b"X-Odd-CASE: a  b",
    b"accept: text/event-stream",
    b"X-Twice: 1",
    b"authorization: Bearer none",
    b"x-twice: 2",
    b"X-Empty: ",
    b"X-Latin: \xe9",
    b"traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
)


def why_no_ipv6() -> str | None:
    """Why nothing can listen on IPv6's loopback, or None where it can."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as error:
        return f"nothing can listen on ::1 here: {error.strerror}"
    return None


NO_IPV6 = why_no_ipv6()
needs_ipv6 = pytest.mark.skipif(NO_IPV6 is not None, reason=NO_IPV6 or "")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Between]:
    with between(tmp_path_factory.mktemp("headers")) as made:
        yield made


def mixed(first: tuple[bytes, ...], second: tuple[bytes, ...]) -> list[bytes]:
    """Two lists of lines, shuffled into one."""
    size = max(len(first), len(second))
    return [line for at in range(size) for line in (*first[at : at + 1], *second[at : at + 1])]


def head_at_upstream(setup: Between, request: bytes) -> list[bytes]:
    """The lines in which a request arrives; it is answered."""
    client = setup.client()
    client.send(request)
    taken = setup.take()
    head = taken.data.partition(b"\r\n\r\n")[0]
    taken.send(OK)
    client.read_until(b"{}")
    client.close()
    return head.split(b"\r\n")


def test_of_a_request_only_the_fields_of_its_hop_and_host_are_changed(shared: Between) -> None:
    lines = head_at_upstream(shared, post(*mixed(OF_THE_CLIENTS_HOP, ORDINARY)))
    host = b"Host: 127.0.0.1:%d" % shared.upstream.port
    # The length stays, though Connection names it: without it the body would be the next request.
    assert lines == [b"POST %s HTTP/1.1" % CHAT.encode(), host, b"Content-Length: 2", *ORDINARY]
    shared.recorded()


def test_of_an_answer_only_the_fields_of_its_hop_are_left_out(shared: Between) -> None:
    of_the_upstreams_hop = (
        b"Connection: close, x-named",
        b"Keep-Alive: timeout=5",
        b"Proxy-Connection: close",
        b"Upgrade: h2c",
        b"X-Named: 1",
    )
    ordinary = (b"Set-Cookie: a=1", b"X-Odd-CASE: a  b", b"Set-Cookie: b=2", b"Date: today", b"trailer: x")
    client = shared.client()
    client.send(post())
    taken = shared.take()
    taken.send(answer(*mixed(of_the_upstreams_hop, ordinary), status=b"207 My Own Words"))
    taken.sock.close()
    expected = [b"HTTP/1.1 207 My Own Words", b"Content-Length: 2", *ordinary, b"", b"{}"]
    assert client.read_until(b"{}").split(b"\r\n") == expected
    shared.recorded()
    # The upstream has closed its connection, and the client's goes on.
    client.send(post())
    shared.take().send(OK)
    assert client.read_until(b"{}") == OK
    shared.recorded()


def test_a_client_that_asks_for_it_gets_its_connection_closed_and_the_upstream_does_not(
    shared: Between,
) -> None:
    client = shared.client()
    client.send(post(b"Connection: close"))
    taken = shared.take()
    assert b"connection" not in taken.data.lower()
    taken.send(OK)
    assert client.read_all() == OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    shared.recorded()


def test_an_answer_up_to_the_connections_end_reaches_the_client_as_such(shared: Between) -> None:
    client = shared.client()
    client.send(post())
    taken = shared.take()
    taken.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nto the end")
    taken.sock.close()
    assert client.read_all().endswith(b"Content-Type: text/plain\r\nConnection: close\r\n\r\nto the end")
    assert shared.recorded().ended == "complete"


def test_the_clients_own_host_arrives_where_that_is_asked_for(tmp_path: Path) -> None:
    with between(tmp_path, "--keep-host") as setup:
        assert head_at_upstream(setup, post())[1] == b"Host: here"


@needs_ipv6
def test_an_upstream_at_an_ipv6_address_is_named_in_brackets(tmp_path: Path) -> None:
    with between(tmp_path, host="::1") as setup:
        assert head_at_upstream(setup, post())[1] == b"Host: [::1]:%d" % setup.upstream.port


@needs_ipv6
def test_the_proxy_listens_on_an_ipv6_address(tmp_path: Path) -> None:
    with between(tmp_path, "--listen", "[::1]:0") as setup:
        assert setup.proxy.url.startswith("http://[::1]:")
        assert head_at_upstream(setup, post())[0].startswith(b"POST ")


def test_a_target_arrives_below_the_upstreams_path_as_it_was_spelled(tmp_path: Path) -> None:
    with between(tmp_path, prefix="/llm/v1") as setup:
        for target in ("/v1/models?limit=1&after=%20x%2F", "/api/hello?", "/a%2Fb/../c//d;e=f?g=h?i#j"):
            assert head_at_upstream(setup, post(path=target))[0] == f"POST /llm{target} HTTP/1.1".encode()
        assert head_at_upstream(setup, post(path="*"))[0] == b"POST * HTTP/1.1"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--insecure",), "are for an https:// server"),
        (("--cacert", __file__), "are for an https:// server"),
    ],
)
def test_options_of_tls_are_refused_where_there_is_none(
    tmp_path: Path, options: tuple[str, ...], why: str
) -> None:
    capture = str(tmp_path / "c.sqlite")
    ended = locality("proxy", "--upstream", "http://127.0.0.1:1", "--capture", capture, *options)
    assert ended.returncode == 2
    assert why in ended.stderr
