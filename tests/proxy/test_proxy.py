"""The real proxy between a real client and an upstream that misbehaves, over sockets."""

from __future__ import annotations

import http.client
import itertools
import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from analyzer.replies import read_reply
from store.db import Capture
from tests.conftest import eventually, proxy
from tests.proxy.setup import CHAT, KEY, Setup, started
from tests.upstream.faults import ANSWER, DONE, EVENTS
from tests.upstream.misbehaving import MisbehavingUpstream, refused_url


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setup]:
    with started(tmp_path_factory.mktemp("shared")) as made:
        yield made


@pytest.fixture
def setup(shared: Setup) -> Iterator[Setup]:
    """One proxy for all tests that leave it running."""
    yield shared.begin()
    shared.connections.close()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Setup]:
    """A proxy of the test's own, to be stopped or killed."""
    with started(tmp_path) as made:
        yield made


def test_the_first_event_reaches_the_client_within_20_ms_of_its_sending(setup: Setup) -> None:
    delays = []
    for _ in range(5):
        connection = setup.connect()
        connection.request("POST", CHAT, b"{}", {"x-fault": "events_paused", "x-fault-ms": "150"})
        answer = connection.getresponse()
        assert answer.read1(65536) == EVENTS[0]
        arrived = time.monotonic()
        sent = next(at for at, data in reversed(setup.upstream.sent_at) if EVENTS[0] in data)
        delays.append(arrived - sent)
        assert answer.read() == b"".join(EVENTS[1:]) + DONE
        connection.close()
    # The least: what holds a stream back does so each time, a machine that is busy with other tests at times.
    assert min(delays) < 0.020


@pytest.mark.parametrize(
    "fault", ["event_split", "utf8_split", "byte_by_byte", "events_joined", "events_paused"]
)
def test_a_stream_passes_unchanged_and_is_recorded_whole(setup: Setup, fault: str) -> None:
    status, body = setup.ask(fault)
    assert (status, body) == (200, b"".join(EVENTS) + DONE)
    (exchange,) = setup.recorded()
    assert exchange.response.content == body
    assert exchange.chunks[-1].byte_end == len(body)
    assert exchange.ttft_ns == exchange.chunks[0].at_ns
    assert read_reply(exchange).outcome == "done"


def test_each_chunks_arrival_is_stamped(setup: Setup) -> None:
    setup.ask("events_paused")
    (exchange,) = setup.recorded()
    ends = [len(b"".join(EVENTS[:count])) for count in (1, 2, 3)]
    came = {chunk.byte_end: chunk.at_ns for chunk in exchange.chunks}
    assert set(ends) <= set(came)
    # The upstream waits 300 ms after each event.
    gaps = [(came[later] - came[earlier]) / 1e9 for earlier, later in itertools.pairwise(ends)]
    assert all(0.15 < gap < 2 for gap in gaps)


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        ("fine", "done"),
        ("no_done", "eof"),
        ("error_event", "error_event"),
        ("reset", "reset"),
        ("early_close", "reset"),
        ("early_close_chunked", "reset"),
        ("hang_up", "reset"),
        ("bad_request", "done"),
        ("not_found_html", "done"),
    ],
)
def test_how_an_exchange_ended_is_recorded(setup: Setup, fault: str, outcome: str) -> None:
    # What the client sees of a broken upstream is its own affair.
    with suppress(http.client.HTTPException, OSError):
        setup.ask(fault)
    (exchange,) = setup.recorded()
    assert read_reply(exchange).outcome == outcome


def test_a_client_that_leaves_is_recorded_and_the_upstream_sees_it(setup: Setup) -> None:
    connection = setup.connect()
    connection.request("POST", CHAT, b"{}", {"x-fault": "endless"})
    assert connection.getresponse().read1(65536) == EVENTS[0]
    assert connection.sock is not None
    left = time.monotonic()
    connection.sock.shutdown(socket.SHUT_RDWR)
    connection.close()
    (exchange,) = setup.recorded()
    assert exchange.ended == "client_gone"
    assert exchange.response.content.startswith(EVENTS[0])
    assert eventually(lambda: bool(setup.upstream.gone_at))
    assert setup.upstream.gone_at[0] - left < 1


def test_a_request_is_written_before_those_that_began_after_it_and_are_over_sooner(setup: Setup) -> None:
    connection = setup.connect()
    connection.request("POST", CHAT, b'{"model":"slow"}', {"x-fault": "endless"})
    connection.getresponse().read1(65536)
    assert setup.ask("fine") == (200, ANSWER)
    assert connection.sock is not None
    connection.sock.shutdown(socket.SHUT_RDWR)
    assert eventually(lambda: len(setup.recorded()) == 2)
    slow, quick = sorted(setup.recorded(), key=lambda exchange: exchange.started_at_ns)
    assert slow.request.content == b'{"model":"slow"}'
    assert slow.id < quick.id


def test_the_upstream_gets_the_clients_bytes(setup: Setup) -> None:
    body = '{"messages":[{"role":"user","content":"\\u00e9 é 漢"}],  "model" : "m","a":1e3}'.encode()
    connection = setup.connect()
    connection.request("POST", f"{CHAT}?beta=true", body, {"x-fault": "fine", "X-Odd-Case": "a  b"})
    connection.getresponse().read()
    (received,) = setup.received
    assert received.body == body
    assert received.path == f"{CHAT}?beta=true"
    assert received.header("x-odd-case") == "a  b"
    (exchange,) = setup.recorded()
    assert exchange.request.content == body
    assert (exchange.path, exchange.query) == (CHAT, "beta=true")


@pytest.mark.parametrize("fault", ["gzip", "deflate", "br", "zstd"])
def test_a_compressed_answer_passes_as_it_is_and_is_recorded_decoded(setup: Setup, fault: str) -> None:
    _, body = setup.ask(fault)
    assert body != ANSWER
    (exchange,) = setup.recorded()
    assert exchange.response.content == ANSWER
    assert exchange.response.wire_length == len(body)


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/v1/models"), ("POST", "/v1/messages/count_tokens"), ("HEAD", "/api/hello")]
)
def test_other_endpoints_pass_and_are_not_recorded(setup: Setup, method: str, path: str) -> None:
    connection = setup.connect()
    connection.request(method, path, headers={"x-fault": "fine"})
    assert connection.getresponse().status == 200
    assert [item.method for item in setup.received] == [method]
    # A recorded one afterwards is the only one: what came before it would have been written first.
    setup.ask("fine")
    assert [exchange.path for exchange in setup.recorded()] == [CHAT]


@pytest.mark.parametrize("path", [CHAT, "/v1/completions", "/v1/messages", "/v1/responses"])
def test_the_four_endpoints_are_recorded(setup: Setup, path: str) -> None:
    setup.ask("fine", path)
    assert [exchange.path for exchange in setup.recorded()] == [path]


def test_no_credential_reaches_the_disk(own: Setup) -> None:
    own.ask("fine", f"{CHAT}?key={KEY}x", cookie=f"session={KEY}y", **{"x-api-key": f"{KEY}z"})
    own.recorded()
    assert own.proxy.stop() == 0
    for file in own.capture.parent.iterdir():
        assert KEY.encode() not in file.read_bytes(), file.name
    assert KEY not in own.proxy.said


def test_a_websocket_is_refused_at_once_with_a_hint(setup: Setup) -> None:
    connection = setup.connect()
    headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    connection.request("GET", "/v1/responses", headers=headers)
    answer = connection.getresponse()
    assert answer.status == 426
    assert "supports_websockets = false" in json.loads(answer.read())["error"]["message"]
    assert setup.received == []


def test_what_is_in_flight_when_the_proxy_stops_is_marked(own: Setup) -> None:
    connection = own.connect()
    connection.request("POST", CHAT, b"{}", {"x-fault": "endless"})
    connection.getresponse().read1(65536)
    own.proxy.process.terminate()
    time.sleep(0.5)
    assert own.proxy.stop() == 0  # a second signal ends the grace
    (exchange,) = own.recorded()
    assert exchange.ended in ("stopped", "reset")
    assert exchange.response.content.startswith(EVENTS[0])


def test_a_killed_proxy_leaves_what_it_saw(own: Setup) -> None:
    own.ask("fine")
    connection = own.connect()
    connection.request("POST", CHAT, b'{"model":"cut"}', {"x-fault": "endless"})
    connection.getresponse().read1(65536)

    def both_written() -> bool:
        with Capture.open(str(own.capture)) as capture:
            return capture.counts().exchanges == 2

    assert eventually(both_written)
    own.proxy.process.kill()
    own.proxy.process.wait(10)
    with Capture.open(str(own.capture)) as capture:
        finished, cut = capture.exchanges()
    assert finished.ended == "complete"
    assert (cut.ended, cut.request.content) == ("open", b'{"model":"cut"}')


def test_a_refused_upstream_gives_502_and_is_recorded(tmp_path: Path) -> None:
    capture = tmp_path / "c.sqlite"
    with (
        refused_url() as url,
        MisbehavingUpstream() as unused,
        proxy(url, capture) as listening,
        ExitStack() as connections,
    ):
        setup = Setup(unused, listening, capture, connections)
        status, body = setup.ask("fine")
        assert status == 502
        error = json.loads(body)["error"]
        assert (error["type"], error["code"]) == ("proxy_error", 502)
        assert "Connect call failed" in error["message"]
        (exchange,) = setup.recorded()
        assert exchange.status is None
        assert exchange.ended == "reset"
        assert json.loads(exchange.request.content) == {"model": "m", "messages": []}


def test_an_upstream_under_a_path_is_reached_there(tmp_path: Path) -> None:
    with started(tmp_path, prefix="/llm/v1") as setup:
        setup.ask("fine")
        assert setup.received[-1].path == f"/llm{CHAT}"
        assert [exchange.path for exchange in setup.recorded()] == [CHAT]
