"""The server's own counters, as the proxy kept them: what they count between two looks, and when they began.

Nothing is predicted here; the counters are vLLM 0.32's (v1/metrics/loggers.py:662-680, in tokens), and the
moment of a start is prometheus_client's. A server that says neither is one of which nothing is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from analyzer.told import MOST_EXACT
from store.records import ServerFact

_LINE = re.compile(r"^([a-zA-Z_:]+)(\{[^}\n]*\})? ([0-9.eE+]+)$", re.MULTILINE)
_ENGINE = re.compile(r'\bengine="([^"]*)"')
_SECOND = 1_000_000_000

type Span = tuple[int, int]
"""From one wall-clock moment to another, in nanoseconds."""

LEAST_START_NS = 3 * _SECOND
"""No server of language models is up sooner: importing its libraries alone takes longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One look at the counters, over all engines. `queries` and `hits` are tokens since the start.

    `began_ns` is the wall-clock moment at which the server began, by its own clock. `counted_ns` is when it
    made these counters, before it answers anybody.
    """

    at_ns: int
    queries: int
    hits: int
    engines: int
    began_ns: int | None = None
    counted_ns: int | None = None

    def continues(self, earlier: Look) -> bool:
        """Whether it is the same run of the server as at an earlier look."""
        if self.began_ns is not None and earlier.began_ns is not None:
            return self.began_ns == earlier.began_ns
        return self.queries >= earlier.queries and self.hits >= earlier.hits


def looks(facts: Iterable[ServerFact]) -> tuple[Look, ...]:
    """The looks that were answered with both counters, in order of time."""
    found = (_look(fact) for fact in facts if fact.path == "/metrics" and fact.status == 200)
    return tuple(sorted((look for look in found if look), key=lambda look: look.at_ns))


def restarts_ns(seen: Sequence[Look], busy: Iterable[Span] = ()) -> tuple[int, ...]:
    """When the server began anew between the first look and the last.

    `busy` are the spans in which it answered, in any order: it was not started within one. Its own word is
    a clock that may not be ours, so it only chooses among the pauses that are long enough for a start. When
    it made its counters is the better word: Linux counts a process's beginning from a moment of boot that
    is off by minutes where clocks were set, and this is read from the clock.
    """
    anew = [(earlier, later) for earlier, later in pairwise(seen) if not later.continues(earlier)]
    spans = sorted(busy) if anew else []
    return tuple(_began_anew(earlier, later, spans) for earlier, later in anew)


def engines_of(seen: Sequence[Look]) -> int:
    """How many engines were seen, each with a cache of its own."""
    return max((look.engines for look in seen), default=1)


def _began_anew(earlier: Look, later: Look, busy: Sequence[Span]) -> int:
    began = later.began_ns if later.counted_ns is None else later.counted_ns
    pauses = list(_pauses(earlier.at_ns, later.at_ns, busy)) or [(earlier.at_ns, later.at_ns)]
    longest = max(pauses, key=lambda pause: pause[1] - pause[0])
    if began is None or not earlier.at_ns <= began <= later.at_ns:
        return _within(later.at_ns if began is None else began, longest)
    enough = [pause for pause in pauses if pause[1] - pause[0] >= LEAST_START_NS] or [longest]
    return min((_within(began, pause) for pause in enough), key=lambda moment: abs(moment - began))


def _pauses(at_ns: int, end_ns: int, busy: Sequence[Span]) -> Iterator[Span]:
    """The spans from `at_ns` to `end_ns` that no busy one touches; `busy` is in order."""
    for start, end in (*busy, (end_ns, end_ns)):
        if at_ns < start:
            yield at_ns, min(start, end_ns)
        at_ns = max(at_ns, end)
        if at_ns >= end_ns:
            return


def _within(moment_ns: int, span: Span) -> int:
    return min(max(moment_ns, span[0]), span[1])


def _look(fact: ServerFact) -> Look | None:
    values: dict[str, float] = {}
    engines: set[str] = set()
    for name, labels, value in _LINE.findall(fact.body.decode(errors="replace")):
        try:
            number = float(value)
        except ValueError:
            continue
        if number >= MOST_EXACT:  # no count, nor any moment in seconds
            continue
        before = values.get(name, 0.0)
        values[name] = max(before, number) if name.endswith("_created") else before + number
        if name == "vllm:prefix_cache_queries_total":
            engines |= set(_ENGINE.findall(labels))
    queries, hits = (values.get(f"vllm:prefix_cache_{what}_total") for what in ("queries", "hits"))
    if queries is None or hits is None:
        return None
    # Several API servers of one start tell no process; the counters' own beginning is the next best.
    counted = values.get("vllm:prefix_cache_queries_created")
    began = values.get("process_start_time_seconds", counted)
    return Look(
        at_ns=fact.at_ns,
        queries=int(queries),
        hits=int(hits),
        engines=max(1, len(engines)),
        began_ns=None if began is None else int(began * _SECOND),
        counted_ns=None if counted is None else int(counted * _SECOND),
    )
