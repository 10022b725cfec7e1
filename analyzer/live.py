"""The rows of a report while its capture is still written: each as soon as its exchange is over.

It reads no capture and prints nothing. What a row says is what `report` says of it, but for what only the
whole capture tells (`WHOLE_CAPTURE`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from analyzer.counters import Span
from analyzer.engines import CacheRequest
from analyzer.ledger import busy_spans, request_of
from analyzer.live_ledger import LiveLedger
from analyzer.placing import Placer
from analyzer.prompts import Prompt, PromptReader
from analyzer.report import Turn
from analyzer.sealed_reading import PROMPT, not_sealed
from analyzer.sealed_rows import read_row
from analyzer.turns import Placed, make_turn
from store.following import Following
from store.records import Exchange

WHOLE_CAPTURE = ("conversation_rendering", "residual", "notes")
"""Fields of a row that a later exchange may change: they stand in no live row."""


class Places(Protocol):
    """Gives the prompts of exchanges their places, exchange after exchange, in the order of their start."""

    def ready(self, exchange_id: int) -> bool:
        """Whether what it takes to place it was written."""

    def place(self, exchange: Exchange) -> list[Placed]:
        """The places of an exchange's prompts, be it over or not."""

    def complete(self, placed: Sequence[Placed], exchange: Exchange) -> list[Placed] | None:
        """The same prompts now that it is over; None where they have other places."""


class RenderedPlaces:
    """Places of prompts that are rendered here."""

    def __init__(self, reader: PromptReader, placer: Placer) -> None:
        self._reader = reader
        self._placer = placer

    def ready(self, exchange_id: int) -> bool:
        """See `Places.ready`."""
        return True

    def place(self, exchange: Exchange) -> list[Placed]:
        """See `Places.place`."""
        return [self._placer.place(prompt) for prompt in self._reader.read(exchange)]

    def complete(self, placed: Sequence[Placed], exchange: Exchange) -> list[Placed] | None:
        """See `Places.complete`."""
        prompts: list[Prompt] = self._reader.read(exchange)
        if [item.prompt.key for item in placed] != [prompt.key for prompt in prompts]:
            return None
        found = [self._placer.complete(*pair) for pair in zip(placed, prompts, strict=True)]
        known = [item for item in found if item is not None]
        return known if len(known) == len(found) else None


class SealedPlaces:
    """Places of prompts as they were sealed: always of exchanges that are over."""

    def __init__(self, following: Following, block_size: int) -> None:
        self._following = following
        self._block_size = block_size
        self._parents: dict[tuple[int, int], Prompt] = {}

    def ready(self, exchange_id: int) -> bool:
        """See `Places.ready`."""
        return bool(self._following.sealed_of(exchange_id, PROMPT))

    def place(self, exchange: Exchange) -> list[Placed]:
        """See `Places.place`. Raises ValueError where a row is damaged."""
        placed = []
        for content in self._following.sealed_of(exchange.id, PROMPT):
            row = read_row(json.loads(content), exchange, self._parents, self._block_size)
            self._parents[row.prompt.key] = row.prompt
            placed.append(row)
        return placed or [not_sealed(exchange)]

    def complete(self, placed: Sequence[Placed], exchange: Exchange) -> list[Placed] | None:
        """See `Places.complete`."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row, and whether it will stay as it is: nothing that began before it is still going on."""

    turn: Turn
    settled: bool


class Live:
    """The rows of one capture. Exchanges are added in the order of their start.

    `stale` says that something came which belonged before what had its place by then: rows may be wrong, and
    all are to be made anew.
    """

    def __init__(
        self, places: Places, ledger: LiveLedger, *, block_size: int, adapters: frozenset[str]
    ) -> None:
        self.places = places
        self._ledger = ledger
        self._block_size = block_size
        self._adapters = adapters
        self._placed: dict[int, list[Placed]] = {}
        self._began: dict[int, tuple[int, int]] = {}
        self._going_on: set[int] = set()
        self._last = (-1, -1)
        self._misplaced = False

    @property
    def stale(self) -> bool:
        """See the class."""
        return self._misplaced or self._ledger.late

    def busy(self) -> Iterator[Span]:
        """When the server was answering, in no order."""
        return busy_spans(self._ledger.requests)

    def __contains__(self, exchange_id: int) -> bool:
        return exchange_id in self._placed

    def add(self, exchange: Exchange, *, over: bool) -> None:
        """The next exchange; one that goes on is added where a later one is, and `complete`d at its end."""
        at = exchange.started_at_ns, exchange.id
        self._misplaced = self._misplaced or at < self._last
        self._last = max(self._last, at)
        self._began[exchange.id] = at
        self._placed[exchange.id] = self.places.place(exchange)
        for request in self._requests(exchange.id):
            self._ledger.begin(request)
            if over:
                self._ledger.end(request)
        if not over:
            self._going_on.add(exchange.id)

    def complete(self, exchange: Exchange) -> None:
        """An exchange that was added is over."""
        if exchange.id not in self._going_on:
            self._misplaced = True  # it was taken for over
            return
        self._going_on.discard(exchange.id)
        placed = self.places.complete(self._placed[exchange.id], exchange)
        if placed is None:
            self._misplaced = True
            return
        self._placed[exchange.id] = placed
        for request in self._requests(exchange.id):
            self._ledger.end(request)

    def rows(self, exchange_id: int) -> list[Row]:
        """The rows of an exchange that was added."""
        return [
            Row(turn=self._turn(placed), settled=self._settled(exchange_id))
            for placed in self._placed[exchange_id]
        ]

    def turns(self) -> list[Turn]:
        """All rows."""
        return [self._turn(placed) for found in self._placed.values() for placed in found]

    def _turn(self, placed: Placed) -> Turn:
        return make_turn(placed, self._block_size, self._ledger.predicted(placed.prompt.name))

    def _settled(self, exchange_id: int) -> bool:
        at = self._began[exchange_id]
        return not self.stale and not any(self._began[other] < at for other in self._going_on)

    def _requests(self, exchange_id: int) -> Iterator[CacheRequest]:
        for placed in self._placed[exchange_id]:
            if placed.prompt.rendering is not None:
                yield request_of(placed.prompt, self._adapters)
