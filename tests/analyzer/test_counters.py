"""The server's counters over time: what they say of a capture, and when the server was started anew."""

from __future__ import annotations

import pytest

from analyzer.counters import Look, engines_of, looks, restarts_ns
from store.records import ServerFact

SECOND = 1_000_000_000


def page(at: float, queries: int, hits: int, began: float | None = 5.0, engines: int = 1) -> ServerFact:
    """As vLLM 0.32 writes it (`/metrics`), cut to the lines that are read."""
    lines = [] if began is None else [f"process_start_time_seconds {began!r}"]
    for engine in range(engines):
        label = f'{{engine="{engine}",model_name="m"}}'
        lines += [
            f"vllm:prefix_cache_queries_total{label} {float(queries)}",
            f"vllm:prefix_cache_hits_total{label} {float(hits)}",
        ]
    return ServerFact(at_ns=int(at * SECOND), path="/metrics", status=200, body="\n".join(lines).encode())


def test_a_look_holds_both_counters_and_the_servers_beginning() -> None:
    assert looks([page(10, 1180, 736)]) == (
        Look(at_ns=10 * SECOND, queries=1180, hits=736, engines=1, began_ns=5 * SECOND),
    )


def test_engines_are_counted_and_added_up() -> None:
    seen = looks([page(10, 100, 40, engines=2)])
    assert (seen[0].queries, seen[0].hits, engines_of(seen)) == (200, 80, 2)


@pytest.mark.parametrize(
    "body", [b"", b"vllm:prefix_cache_queries_total 3", b"vllm:prefix_cache_queries_total e\xff", b"{}"]
)
def test_a_page_without_both_counters_is_no_look(body: bytes) -> None:
    assert looks([ServerFact(at_ns=0, path="/metrics", status=200, body=body)]) == ()


def test_a_server_that_began_later_was_started_anew_then() -> None:
    assert restarts_ns(looks([page(10, 100, 40), page(30, 100, 40), page(60, 900, 500, began=42.0)])) == (
        42 * SECOND,
    )


def test_a_beginning_by_another_clock_is_put_between_the_looks() -> None:
    assert restarts_ns(looks([page(10, 1, 0), page(20, 1, 0, began=4000.0)])) == (20 * SECOND,)
    assert restarts_ns(looks([page(10, 1, 0), page(20, 1, 0, began=1.0)])) == (10 * SECOND,)


def spans(*seconds: tuple[float, float]) -> list[tuple[int, int]]:
    return [(int(start * SECOND), int(end * SECOND)) for start, end in seconds]


BUSY = spans((11, 19), (19.5, 30), (41, 58))
"""A run that answered until 30, and one that did from 41 on."""


@pytest.mark.parametrize(
    ("began", "expected"),
    [(35.0, 35), (30.5, 30.5), (19.2, 30), (14.0, 30), (44.0, 41), (3.0, 30), (4000.0, 41), (None, 41)],
)
def test_a_server_that_answered_was_not_started_in_the_middle(began: float | None, expected: float) -> None:
    """A beginning within an answer, or in a pause that is too short for one, is by a clock that is off."""
    seen = looks([page(10, 100, 40, began and 1.0), page(60, 50, 10, began)])
    assert restarts_ns(seen, BUSY) == (expected * SECOND,)
    assert restarts_ns(seen, reversed(BUSY)) == (expected * SECOND,)


def test_a_restart_in_traffic_without_any_long_pause_is_put_into_the_longest() -> None:
    seen = looks([page(10, 100, 40, 1.0), page(60, 50, 10, 12.0)])
    assert restarts_ns(seen, spans((5, 20), (21, 30), (32, 70))) == (30 * SECOND,)
    assert restarts_ns(seen, spans((5, 70))) == (12 * SECOND,)


def test_without_a_beginning_counters_that_fall_tell_a_restart() -> None:
    seen = looks([page(10, 100, 40, None), page(20, 150, 40, None), page(30, 20, 0, None)])
    assert restarts_ns(seen) == (30 * SECOND,)


def test_the_counters_own_beginning_stands_in_for_the_processs() -> None:
    made = page(10, 1, 0, None)
    created = b'\nvllm:prefix_cache_queries_created{engine="%d"} %.1f'
    line = created % (0, 1.5) + created % (1, 7.5)
    (seen,) = looks([ServerFact(at_ns=0, path="/metrics", status=200, body=made.body + line)])
    assert seen.began_ns == 7_500_000_000


@pytest.mark.parametrize("off", [-300.0, 300.0])
def test_a_process_clock_minutes_off_does_not_move_the_restart_to_another_pause(off: float) -> None:
    """Where a session has several long pauses, a wrong beginning points into an idle one."""
    busy = spans((10, 200), (240, 500), (560, 800), (860, 1000))
    created = b'\nvllm:prefix_cache_queries_created{engine="0"} %.9e'
    seen = looks(
        ServerFact(at_ns=fact.at_ns, path=fact.path, status=200, body=fact.body + created % made)
        for fact, made in ((page(5, 100, 40, 1.0 + off), 4.0), (page(1001, 50, 10, 520.0 + off), 548.0))
    )
    assert restarts_ns(seen, busy) == (548 * SECOND,)
