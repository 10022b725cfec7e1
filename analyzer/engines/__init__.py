"""How a kind of server reuses what it has computed, one a file; a file's ENGINE is found by the registry.

An engine is given the traffic of a capture and predicts; how it stands to what was reported is the ledger's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from analyzer.blocks import Namespace
from analyzer.core import Finish, Generated, TokenIds
from analyzer.report import Server
from analyzer.servers import EngineKind, ServerProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheRequest:
    """One prompt as the cache sees it. Times are wall-clock nanoseconds; `ended_ns` None: not seen.

    `generated` are the sampled ids (`UNKNOWN_ID` for one that is not known), or how many there were;
    `finish` says why they ended. `others` are the further answers to the same prompt (`n` > 1), `streams`
    whether the answer was asked for as a stream.
    """

    key: str
    started_ns: int
    ended_ns: int | None
    token_ids: TokenIds
    namespace: Namespace
    skip_reading: bool
    generated: tuple[int, ...] | int
    finish: Finish | None = None
    others: tuple[Generated, ...] = ()
    streams: bool = False

    def part(self, choice: int) -> str:
        """The key of one of several answers' own share of the traffic."""
        return f"{self.key}/{choice}" if self.others else self.key


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """All prompts of a capture that reached the cache, in the order of their start.

    `restarts_ns` are the moments at which the server began anew, with nothing cached.
    """

    requests: tuple[CacheRequest, ...]
    restarts_ns: tuple[int, ...] = ()


type Moment = tuple[int, int, Callable[[], None]]
"""When, what comes first at the same moment, and what then happens to the cache."""


class Replay(Protocol):
    """A cache in the course of time: whoever has the requests lets their moments happen, in order."""

    def starts(self, request: CacheRequest) -> Iterable[Moment]:
        """What happens when a request comes."""

    def ends(self, request: CacheRequest) -> Iterable[Moment]:
        """What happens when it is over; the request as it is known by then."""

    def restarts(self, at_ns: int) -> Iterable[Moment]:
        """What happens when the server begins anew."""

    def hit(self, request: CacheRequest) -> int | None:
        """The cached tokens that would be reported for it; None: it has not run."""


def in_order(moments: Iterable[Moment]) -> None:
    """Let all of it happen."""
    for _, _, happens in sorted(moments, key=lambda moment: moment[:2]):
        happens()


class Simulated(Protocol):
    """The cache of a server that works on some requests at a time and lets the others wait."""

    def can_ever_fit(self, request: CacheRequest) -> bool:
        """Whether it takes this prompt when nothing else runs."""

    def start(self, request: CacheRequest) -> int | None:
        """Begin a request; returns the tokens it reuses, None where it must wait."""

    def end(self, request: CacheRequest) -> None:
        """End one that began."""


_END, _START, _END_AT_ONCE = range(3)
"""At the same moment ends come first, so that what they free is there for whoever starts; but no end comes
before its own start."""


class FirstCome:
    """A `Replay` of a cache that serves whoever came first."""

    def __init__(self, cache: Simulated) -> None:
        self._cache = cache
        self._waiting: dict[str, CacheRequest] = {}
        self.hits: dict[str, int | None] = {}

    def starts(self, request: CacheRequest) -> Iterable[Moment]:
        """See `Replay.starts`."""
        yield request.started_ns, _START, partial(self._start, request)

    def ends(self, request: CacheRequest) -> Iterable[Moment]:
        """See `Replay.ends`. An end that nobody saw is that of a proxy that was killed, and its request
        with it: it comes at once."""
        ended = request.started_ns if request.ended_ns is None else request.ended_ns
        order = _END if ended > request.started_ns else _END_AT_ONCE
        yield max(request.started_ns, ended), order, partial(self._end, request)

    def restarts(self, at_ns: int) -> Iterable[Moment]:
        """See `Replay.restarts`: they are not followed."""
        return ()

    def hit(self, request: CacheRequest) -> int | None:
        """See `Replay.hit`."""
        return self.hits.get(request.key)

    def _start(self, request: CacheRequest) -> None:
        self.hits[request.key] = None
        if self._cache.can_ever_fit(request):
            self._waiting[request.key] = request
        self._admit()

    def _end(self, request: CacheRequest) -> None:
        if self._waiting.pop(request.key, None) is None and self._cache.can_ever_fit(request):
            self._cache.end(request)
        self._admit()

    def _admit(self) -> None:
        for other in list(self._waiting.values()):
            if (hit := self._cache.start(other)) is None:
                break
            self.hits[other.key] = hit
            del self._waiting[other.key]


def first_come_first_served(traffic: Traffic, cache: Simulated) -> dict[str, int | None]:
    """Reused tokens of each request by its key; None where it never fits, or still waited when it ended."""
    replay = FirstCome(cache)
    in_order(
        moment for request in traffic.requests for moment in (*replay.starts(request), *replay.ends(request))
    )
    return replay.hits


class Engine(EngineKind, Protocol):
    """One kind of server, and how it reuses what it has computed."""

    def serves(self, profile: ServerProfile) -> bool:
        """Whether the server described itself as one of this kind."""

    def predict(self, traffic: Traffic, server: Server) -> Mapping[str, int | None]:
        """Cached tokens that the server would report for each request, by its key; None: it never ran.

        Where there are several answers to one prompt, an engine that looks up each adds its own count under
        its `part`.
        """

    def replay(self, server: Server) -> Replay:
        """The same cache for requests that come one after another, empty to begin with."""
