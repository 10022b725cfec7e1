"""How a kind of server reuses what it has computed, one a file; a file's ENGINE is found by the registry.

An engine is given the traffic of a capture and predicts; how it stands to what was reported is the ledger's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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


def in_time(traffic: Traffic) -> Iterator[tuple[CacheRequest, bool]]:
    """Each request twice, in order of time: at its start (True) and, where it was seen, its end (False).

    At the same moment ends come first, so that what they free is there for whoever starts; but no end comes
    before its own start.
    """
    moments: list[tuple[int, int, int]] = []
    for number, request in enumerate(traffic.requests):
        moments.append((request.started_ns, 1, number))
        if request.ended_ns is not None:
            at_once = request.ended_ns <= request.started_ns
            moments.append((max(request.started_ns, request.ended_ns), 2 if at_once else 0, number))
    moments.sort()
    for _, order, number in moments:
        yield traffic.requests[number], order == 1


class Engine(EngineKind, Protocol):
    """One kind of server, and how it reuses what it has computed."""

    def serves(self, profile: ServerProfile) -> bool:
        """Whether the server described itself as one of this kind."""

    def predict(self, traffic: Traffic, server: Server) -> Mapping[str, int | None]:
        """Cached tokens that the server would report for each request, by its key; None: it never ran.

        Where there are several answers to one prompt, an engine that looks up each adds its own count under
        its `part`.
        """
