"""When the upstream is asked about itself: against a small server that counts the questions."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from proxy import watch
from proxy.probe import PROBE_PATHS, probe
from proxy.recorder import Recorder
from proxy.watch import Watch
from store.records import ServerFact
from tests.conftest import eventually


class Upstream:
    """Says when it began, and how much it has looked up."""

    def __init__(self) -> None:
        self.began, self.queries = 100, 0
        self.asked, self.answers = threading.Event(), threading.Event()
        self.answers.set()
        upstream = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                upstream.asked.set()
                upstream.answers.wait(10)
                page = f"process_start_time_seconds {upstream.began}\npython_info 1\n"
                page += f"vllm:prefix_cache_queries_total {upstream.queries}\n"
                self.send_response(200)
                self.end_headers()
                self.wfile.write(page.encode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    made = Upstream()
    yield made
    made.server.shutdown()
    made.server.server_close()


class Kept:
    """A sink for facts alone."""

    def __init__(self) -> None:
        self.facts: list[ServerFact] = []

    def save_request(self, seen: object) -> None:
        raise AssertionError("no request was made")

    save_response = save_request

    def save_facts(self, facts: Sequence[ServerFact]) -> None:
        self.facts += facts

    @property
    def paths(self) -> list[str]:
        return [fact.path for fact in self.facts]


def watched(url: str, life: Callable[[Watch, Kept], Awaitable[None]]) -> Kept:
    """What was kept over one life of a watch."""
    kept = Kept()
    recorder = Recorder(kept)

    async def run() -> None:
        made = Watch(url, recorder)
        await made.introduce()
        watching = asyncio.create_task(made.go_on())
        try:
            await life(made, kept)
        finally:
            watching.cancel()
        await made.conclude()

    asyncio.run(run())
    recorder.close()
    return kept


async def until(holds: Callable[[], bool]) -> None:
    assert await asyncio.to_thread(eventually, holds)


def test_without_traffic_there_is_nothing_to_look_for_at_the_end(upstream: Upstream) -> None:
    async def idle(made: Watch, kept: Kept) -> None:
        pass

    assert watched(upstream.url, idle).paths == list(PROBE_PATHS)


def test_the_counters_are_kept_before_the_first_and_after_the_last_exchange(upstream: Upstream) -> None:
    async def once(made: Watch, kept: Kept) -> None:
        upstream.queries = 1180
        made.passed(broken=False)

    kept = watched(upstream.url, once)
    assert kept.paths == [*PROBE_PATHS, "/metrics"]
    assert b"queries_total 0" in kept.facts[2].body
    assert kept.facts[-1].body == b"process_start_time_seconds 100\nvllm:prefix_cache_queries_total 1180"


def test_while_there_is_traffic_the_counters_are_looked_at_now_and_then(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "LOOK_SECONDS", 0.05)

    async def on_and_off(made: Watch, kept: Kept) -> None:
        made.passed(broken=False)
        await until(lambda: len(kept.facts) == len(PROBE_PATHS) + 1)
        await asyncio.sleep(0.3)  # no traffic, no look
        made.passed(broken=False)
        await until(lambda: len(kept.facts) == len(PROBE_PATHS) + 2)

    assert watched(upstream.url, on_and_off).paths == [*PROBE_PATHS, "/metrics", "/metrics"]


def test_a_look_that_the_end_cuts_short_is_taken_again(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "LOOK_SECONDS", 0.01)

    async def cut_short(made: Watch, kept: Kept) -> None:
        upstream.answers.clear()
        upstream.asked.clear()
        made.passed(broken=False)
        await until(upstream.asked.is_set)
        asyncio.get_running_loop().call_later(0.1, upstream.answers.set)

    assert watched(upstream.url, cut_short).paths == [*PROBE_PATHS, "/metrics"]


def test_many_exchanges_that_break_off_are_one_reason_to_look(upstream: Upstream) -> None:
    async def broken(made: Watch, kept: Kept) -> None:
        for _ in range(20):
            made.passed(broken=True)
            await asyncio.sleep(0.02)

    looks = watched(upstream.url, broken).paths[len(PROBE_PATHS) :]
    assert 1 < len(looks) < 6


def test_an_upstream_that_speaks_no_http_is_one_that_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def greet() -> None:
            for _ in PROBE_PATHS:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(1)
                    connection.sendall(b"220 ready\r\n")

        threading.Thread(target=greet, daemon=True).start()
        facts = probe(f"http://127.0.0.1:{listener.getsockname()[1]}")
    assert [fact.status for fact in facts] == [None] * len(PROBE_PATHS)


def test_a_server_that_began_anew_is_asked_everything(upstream: Upstream) -> None:
    async def restarted(made: Watch, kept: Kept) -> None:
        upstream.began = 200
        made.passed(broken=True)  # an exchange that broke off is reason enough to look
        await until(lambda: len(kept.facts) == 2 * len(PROBE_PATHS) + 1)

    kept = watched(upstream.url, restarted)
    assert kept.paths == [*PROBE_PATHS, "/metrics", *PROBE_PATHS]


def test_a_server_that_went_away_is_asked_everything_when_it_is_back(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "ASK_AGAIN_SECONDS", 0.05)

    async def away(made: Watch, kept: Kept) -> None:
        there, made.url = made.url, "http://127.0.0.1:9"
        made.passed(broken=True)
        await until(lambda: len(kept.facts) == len(PROBE_PATHS) + 1)
        await asyncio.sleep(0.3)
        made.url = there
        await until(lambda: len(kept.facts) == 2 * len(PROBE_PATHS) + 1)

    kept = watched(upstream.url, away)
    assert [fact.status for fact in kept.facts[len(PROBE_PATHS) :]] == [None, 200, 200, 200, 200]
    assert kept.paths[len(PROBE_PATHS) + 1 :] == list(PROBE_PATHS)


def test_a_server_that_answers_before_it_is_asked_again_is_asked_at_once(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first run may be over before the next question: then nobody would know of a restart."""
    monkeypatch.setattr(watch, "ASK_AGAIN_SECONDS", 60.0)

    async def late(made: Watch, kept: Kept) -> None:
        made.passed(broken=True)  # refused: nothing new
        await asyncio.sleep(0.3)
        assert len(kept.facts) == len(PROBE_PATHS)
        made.url = upstream.url
        made.passed(broken=False)
        await until(lambda: len(kept.facts) == 2 * len(PROBE_PATHS))

    kept = watched("http://127.0.0.1:9", late)
    assert {fact.status for fact in kept.facts[len(PROBE_PATHS) :]} == {200}
