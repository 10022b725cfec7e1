"""Hours of silence: nothing of the proxy's own ends a connection, and TCP finds a peer that vanished."""

from __future__ import annotations

import asyncio
import gc
import socket
import sys
import time
import warnings
from asyncio import base_events
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from proxy.upstream import Upstream
from store.records import RequestSeen, ResponseSeen, ServerFact
from tests.conftest import eventually
from tests.proxy.bare import Client, between, post
from tests.upstream.bare import OK, BareUpstream

# mitmproxy's proxy, imported into this process alone, brings pyasn1 along.
pytestmark = pytest.mark.filterwarnings("ignore:(tag|type)Map is deprecated:DeprecationWarning")

HOUR = 3600.0
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"


class Clock:
    """The clock that asyncio's timers and mitmproxy go by; `forward` makes it jump."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ahead = 0.0
        wall = time.time
        monkeypatch.setattr(base_events.BaseEventLoop, "time", lambda _: time.monotonic() + self.ahead)
        monkeypatch.setattr(time, "time", lambda: wall() + self.ahead)

    async def forward(self, seconds: float) -> None:
        """Let so much time pass, and whatever was due in it happen."""
        self.ahead += seconds
        await asyncio.sleep(0.2)


class Kept:
    """A sink that keeps how exchanges ended."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    def save_request(self, seen: RequestSeen) -> None: ...

    def save_facts(self, facts: Sequence[ServerFact]) -> None: ...

    def save_response(self, seen: ResponseSeen) -> None:
        self.ended.append(seen.ended)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def upstream() -> Iterator[BareUpstream]:
    with BareUpstream() as running:
        yield running


def served(upstream: BareUpstream, play: Callable[[Client], Awaitable[None]]) -> list[str]:
    """How exchanges ended at a proxy in this process, whose clock can be set; `play` has its only client."""
    from proxy.serve import serve

    sink = Kept()

    async def session(url: str) -> None:
        parts = urlsplit(url)
        with closing(socket.create_connection((parts.hostname or "", parts.port or 0), timeout=10)) as sock:
            await play(Client(sock))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # mitmproxy's listening socket ends with its process
        serve(Upstream.parse(upstream.url), sink, listen=("127.0.0.1", 0), session=session)
        gc.collect()
    return sink.ended


def test_a_day_of_silence_before_the_first_byte_and_within_the_answer_is_no_end(
    clock: Clock, upstream: BareUpstream
) -> None:
    async def play(client: Client) -> None:
        client.send(post())
        taken = await asyncio.to_thread(upstream.take)
        for _ in range(24):
            await clock.forward(HOUR)
        taken.send(HEAD)
        await asyncio.to_thread(client.read_until, HEAD)
        await clock.forward(24 * HOUR)
        taken.send(b"{}")
        assert await asyncio.to_thread(client.read_bytes, 2) == b"{}"

    assert served(upstream, play) == ["complete"]


def test_a_day_of_silence_within_a_request_and_between_two_is_no_end(
    clock: Clock, upstream: BareUpstream
) -> None:
    async def play(client: Client) -> None:
        client.send(post(body=b"{", length=2))
        taken = await asyncio.to_thread(upstream.take)
        await clock.forward(24 * HOUR)
        client.send(b"}")
        await asyncio.to_thread(taken.read_until, b"{}")
        taken.send(OK)
        await asyncio.to_thread(client.read_until, b"{}")
        await clock.forward(24 * HOUR)
        client.send(post(body=b"[]"))
        await asyncio.to_thread(taken.read_until, b"[]")
        taken.send(OK)
        await asyncio.to_thread(client.read_until, b"{}")

    assert served(upstream, play) == ["complete", "complete"]


def test_the_clock_that_is_set_is_the_one_that_mitmproxys_own_limit_goes_by(
    clock: Clock, upstream: BareUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    from proxy import serve

    monkeypatch.setattr(serve, "NEVER_SECONDS", 600)  # its default

    async def play(client: Client) -> None:
        client.send(post())
        await asyncio.to_thread(upstream.take)
        await clock.forward(601)
        assert await asyncio.to_thread(client.read_all) == b""

    assert served(upstream, play) == ["client_gone"]


@pytest.mark.skipif(sys.platform != "linux", reason="a socket's timer is read off /proc")
def test_tcp_looks_after_silent_connections_on_both_sides(tmp_path: Path) -> None:
    with between(tmp_path) as setup:
        client = setup.client()
        client.send(post())
        taken = setup.take()
        own, theirs = client.sock.getpeername()[1], client.sock.getsockname()[1]
        ours = taken.sock.getpeername()[1]
        assert eventually(lambda: 0 < seconds_to_a_probe(own, theirs) <= 60)
        assert eventually(lambda: 0 < seconds_to_a_probe(ours, setup.upstream.port) <= 60)
        taken.send(OK)
        client.read_until(b"{}")


def seconds_to_a_probe(local: int, remote: int) -> float:
    """Until TCP asks whether the peer is there, on a connection of 127.0.0.1; 0 where it does not."""
    for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
        fields = line.split()
        ports = [int(end.partition(":")[2], 16) for end in fields[1:3]]
        if ports == [local, remote]:
            kind, _, ticks = fields[5].partition(":")
            return int(ticks, 16) / 100 if kind == "02" else 0.0  # another may run until all is acknowledged
    raise AssertionError(f"no connection from {local} to {remote}")
