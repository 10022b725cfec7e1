"""Keeps the rows of a capture up to date with what is written to it.

It waits for nothing and prints nothing: it is asked, again and again, for the rows that have come.
"""

from __future__ import annotations

import time
from bisect import insort
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from analyzer.counters import Look, looks, restarts_ns
from analyzer.ledger import engine_of
from analyzer.live import Live, Places, RenderedPlaces, Row, SealedPlaces
from analyzer.live_ledger import LiveLedger
from analyzer.pipeline import Options, make_placer, make_reader
from analyzer.report import Server, Turn
from analyzer.sealed_reading import PROMPT, is_sealed, read_tokenizer
from analyzer.servers import read_profile, read_settings, settle
from analyzer.tokens import TokenizerError
from store.db import Capture
from store.following import Following, Mark
from store.records import Exchange

_PATIENCE = 10
"""How many times as long as making all rows anew took must pass before it is done once more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Rows of an exchange, or why there are none. `corrects`: it was told otherwise before."""

    exchange_id: int
    rows: tuple[Row, ...] = ()
    corrects: bool = False
    problem: str | None = None


class LiveCapture:
    """The rows of an open capture. Methods raise as `pipeline.analyze` does, and TokenizerError where none
    can be rendered."""

    def __init__(self, capture: Capture, options: Options) -> None:
        self._capture = capture
        self._options = options
        self._following = Following(capture)
        self._marks: dict[int, Mark] = {}
        self._unplaced: list[Mark] = []
        self._due: list[Mark] = []
        self._told: dict[int, tuple[Turn, ...]] = {}
        self._written: Any = None
        self._looks: tuple[Look, ...] = ()
        self._restarts: tuple[int, ...] = ()
        self._basis: Any = None
        self._live: Live | None = None
        self._server: Server | None = None
        self._introduced = False
        self._outdated = False
        self._not_before = 0.0
        self._alive_since_ns = -1

    @property
    def server(self) -> Server | None:
        """What is known of the server; None before the first row."""
        return self._server

    @property
    def in_flight(self) -> int:
        """Exchanges that are not over."""
        return sum(not self._is_over(mark) for mark in self._marks.values())

    def turns(self) -> list[Turn]:
        """All rows that were told."""
        return [turn for told in self._told.values() for turn in told]

    def updates(self, *, last: bool = False) -> Iterator[Update]:
        """What has come since; with `last`, also what would have come later, and all corrections."""
        if self._following.changed():
            self._look()
        if last:
            self._alive_since_ns = max((mark.started_at_ns for mark in self._marks.values()), default=0) + 1
        if self._needs_correction() and (last or time.monotonic() >= self._not_before):
            yield from self._corrections()
        self._due += [mark for mark in self._unplaced if self._is_over(mark) and mark not in self._due]
        if self._live is None and (self._due or self._introduced):
            self._live = self._made()
        for mark in sorted(self._due):
            if self._live is not None and (last or self._live.places.ready(mark.id)):
                self._due.remove(mark)
                yield self._update(self._live, mark)
        if last and self._needs_correction():
            yield from self._corrections()

    def _look(self) -> None:
        for mark in self._following.news():
            self._marks[mark.id] = mark
            if self._live is not None and mark.id in self._live:
                self._due.append(mark)
            else:
                self._unplaced = [other for other in self._unplaced if other.id != mark.id]
                insort(self._unplaced, mark)
        written = self._following.facts_written(), self._sealed_written()
        if written != self._written:
            self._written = written
            facts = self._capture.facts()
            self._looks = looks(facts)
            self._introduced = read_profile(facts).model is not None
            began_ns = max((fact.at_ns for fact in facts if fact.path == "/version"), default=-1)
            changed = began_ns != self._alive_since_ns or self._read_basis() != self._basis
            self._alive_since_ns = began_ns
            self._outdated = self._outdated or (self._live is not None and changed)

    def _sealed_written(self) -> int:
        return self._following.sealed_written(PROMPT) if is_sealed(self._capture) else 0

    def _is_over(self, mark: Mark) -> bool:
        """Whether nothing more comes of an exchange: it ended, or the proxy that saw it is gone."""
        return mark.over or mark.started_at_ns < self._alive_since_ns

    def _update(self, live: Live, mark: Mark) -> Update:
        try:
            if mark.id in live:
                live.complete(self._capture.exchange(mark.id))
            else:
                self._place_up_to(live, mark)
            rows = tuple(live.rows(mark.id))
        except ValueError as error:  # a body that cannot be read back
            return Update(exchange_id=mark.id, problem=str(error))
        self._told[mark.id] = tuple(row.turn for row in rows)
        return Update(exchange_id=mark.id, rows=rows)

    def _place_up_to(self, live: Live, mark: Mark) -> None:
        for earlier in [other for other in self._unplaced if other <= mark]:
            if live.places.ready(earlier.id) or earlier.id == mark.id:
                self._unplaced.remove(earlier)
                live.add(self._capture.exchange(earlier.id), over=self._is_over(earlier))

    def _needs_correction(self) -> bool:
        return self._live is not None and (
            self._outdated or self._live.stale or self._restarts != self._restarts_by(self._live)
        )

    def _restarts_by(self, live: Live | None) -> tuple[int, ...]:
        """When the server began anew, as the report finds it: it did not while it was answering."""
        return restarts_ns(self._looks, () if live is None else live.busy())

    def _corrections(self) -> Iterator[Update]:
        """All rows made anew; those that differ from what was told."""
        began = time.monotonic()
        self._live = live = self._made()
        self._outdated = False
        known = sorted(mark for mark in self._marks.values() if mark not in self._unplaced)
        for mark in known:
            with suppress(ValueError):  # it was said before that this one cannot be read
                live.add(self._capture.exchange(mark.id), over=self._is_over(mark))
        for mark in known:
            if mark.id not in live or not self._is_over(mark):
                continue
            rows, before = tuple(live.rows(mark.id)), self._told.get(mark.id)
            if (turns := tuple(row.turn for row in rows)) != before:
                self._told[mark.id] = turns
                yield Update(exchange_id=mark.id, rows=rows, corrects=before is not None)
        self._not_before = time.monotonic() + _PATIENCE * (time.monotonic() - began)

    def _read_basis(self) -> tuple[Any, ...]:
        """What the rows rest on beside exchanges and restarts, in a form that can be compared."""
        facts = self._capture.facts()
        settings = read_settings(facts, self._options.serve_command)
        told = read_tokenizer(self._capture) if is_sealed(self._capture) else None
        return read_profile(facts), settings, told, self._sealed_written()

    def _made(self) -> Live:
        self._basis = profile, settings, told, _ = self._read_basis()
        self._restarts = self._restarts_by(self._live)
        engine = engine_of(profile, self._options.engine)
        reader = None
        if not is_sealed(self._capture):
            reader, missing = make_reader(self._options, profile, settings)
            if missing is not None and self._options.renderer == "auto":
                raise TokenizerError(missing)
        self._server = server = settle(
            profile,
            settings,
            block_size=self._options.block_size,
            pool_blocks=self._options.pool_blocks,
            tokenizer=told if reader is None else reader.tokenizer,
            engine=engine,
        )
        places: Places = SealedPlaces(self._following, server.block_size)
        if reader is not None:
            placer = make_placer(self._fetch, reader, server.block_size, explain=self._options.explain)
            places = RenderedPlaces(reader, placer)
        return Live(
            places,
            LiveLedger(engine, server, self._restarts),
            block_size=server.block_size,
            adapters=profile.adapters | set(settings.lora_modules),
        )

    def _fetch(self, exchange_id: int) -> Exchange:
        return self._capture.exchange(exchange_id)
