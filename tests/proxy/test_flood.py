"""Many agents at once through one proxy: nothing lost, and memory that stays where it was."""

from __future__ import annotations

import statistics
import threading
from pathlib import Path

from store.db import Capture
from tests.bench.flood import SIZE, memory
from tests.bench.overhead import body_of
from tests.bench.source import EVENT_BYTES
from tests.bench.streams import Stream, Took
from tests.conftest import proxy, running

AGENTS, TURNS, EVENTS = 64, 2, 40


def test_of_64_agents_that_stream_at_once_nothing_is_lost(tmp_path: Path) -> None:
    capture = tmp_path / "c.sqlite"
    took: list[Took] = []

    def agent(number: int) -> None:
        with Stream(ours.url) as stream:
            took.extend(stream.take(body_of(5_000, 100 * number + turn), EVENTS) for turn in range(TURNS))

    with running("tests.bench.source") as source, proxy(source.url, capture) as ours:
        agents = [threading.Thread(target=agent, args=(number,)) for number in range(AGENTS)]
        for one in agents:
            one.start()
        for one in agents:
            one.join()
        assert ours.stop(timeout=100) == 0, ours.said
    assert f"{AGENTS * TURNS} exchanges recorded, 0 lost" in ours.said
    assert [len(one.delays) for one in took] == [EVENTS] * AGENTS * TURNS
    sent = {body_of(5_000, 100 * number + turn) for number in range(AGENTS) for turn in range(TURNS)}
    with Capture.open(str(capture)) as opened:
        exchanges = list(opened.exchanges())
    assert {one.request.content for one in exchanges} == sent
    assert {(one.ended, one.response.wire_length) for one in exchanges} == {
        ("complete", EVENTS * EVENT_BYTES)
    }


def test_memory_does_not_grow_with_the_exchanges(tmp_path: Path) -> None:
    found = [one.resident for one in memory(tmp_path, 250, every=25)]
    # A quarter of the bodies that came after the first look: memory comes in pages, and some are kept.
    assert statistics.median(found[-3:]) - found[0] < 225 * SIZE / 4, found
