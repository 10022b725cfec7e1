"""What the simulated cache would hit, told while the traffic goes on: the ledger, a request at a time.

No rules of its own: the cache is the engine's. What comes too late to be put in its place in time is noticed,
and not repaired.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence

from analyzer.engines import CacheRequest, Engine, Moment
from analyzer.report import Server

_EARLIEST = (-1, 0)


class LiveLedger:
    """Predicts each request as soon as those before it are known.

    `late` says that something belonged before what had happened already: the predictions since may not be
    those of the whole capture.
    """

    def __init__(self, engine: Engine, server: Server, restarts_ns: Sequence[int] = ()) -> None:
        self._replay = engine.replay(server)
        self._requests: dict[str, CacheRequest] = {}
        self._pending: list[Moment] = []
        self._reached = _EARLIEST
        self.late = False
        for at_ns in restarts_ns:
            self._put(self._replay.restarts(at_ns))

    @property
    def requests(self) -> Iterable[CacheRequest]:
        """All that came, each as it is known by now."""
        return self._requests.values()

    def begin(self, request: CacheRequest) -> None:
        """A request came, be it over by now or not."""
        self._requests[request.key] = request
        self._put(self._replay.starts(request))

    def end(self, request: CacheRequest) -> None:
        """A request that came is over."""
        began = self._requests[request.key]
        if began is not request and self._begin_of(began) != self._begin_of(request):
            self.late = True  # its answer says that its beginning was another
        self._requests[request.key] = request
        self._put(self._replay.ends(request))

    def predicted(self, key: str) -> int | None:
        """Cached tokens of a request that came; None where it cannot have run by now, or never came."""
        request = self._requests.get(key)
        if request is None:
            return None
        self._go_on((request.started_ns, _LAST))
        if self._replay.hit(request) is None and request.ended_ns is not None:
            self._go_on((request.ended_ns, _LAST))  # it waited for others to end
        return self._replay.hit(request)

    def _begin_of(self, request: CacheRequest) -> list[tuple[int, int]]:
        return [_when(moment) for moment in self._replay.starts(request)]

    def _put(self, moments: Iterable[Moment]) -> None:
        for moment in moments:
            self.late = self.late or moment[:2] < self._reached
            insort(self._pending, moment, key=_when)

    def _go_on(self, until: tuple[int, int]) -> None:
        while self._pending and _when(self._pending[0]) <= until:
            moment = self._pending.pop(0)
            self._reached = max(self._reached, _when(moment))
            moment[2]()


_LAST = 99
"""After all that happens at a moment."""


def _when(moment: Moment) -> tuple[int, int]:
    return moment[:2]
