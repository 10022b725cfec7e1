"""The bounded queue between the proxy's event loop and the one thread that writes.

It never blocks the caller and never raises into it: what cannot be kept is counted. It knows nothing of
SQLite; the sink it is given does.
"""

from __future__ import annotations

import contextlib
import math
import queue
import sys
import threading
import time
from collections.abc import Sequence
from typing import Protocol

from store.records import RequestSeen, ResponseSeen, ServerFact
from store.tally import Tally

QUEUE_ITEMS = 10_000
QUEUE_BYTES = 512 * 2**20
"""Half a gigabyte of bodies waiting for the disk; beyond that, records are dropped and counted."""

RETRY_SECONDS = 0.1
LAST_TRY_SECONDS = 15.0
"""How long a write that has begun may outlast the time for closing: SQLite itself waits up to 10 s."""

FACTS = "server facts"
"""What stands among the lost for all that is no exchange."""

type Record = RequestSeen | ResponseSeen | tuple[ServerFact, ...]


class Sink(Protocol):
    """Where records go: `proxy.sink_process.SinkProcess`, or a stand-in in tests.

    TimeoutError from it means that it is busy, and that the same record can be offered again.
    """

    def save_request(self, seen: RequestSeen) -> object:
        """Write a request in state `open`."""

    def save_response(self, seen: ResponseSeen) -> object:
        """Finish the exchange that the request opened."""

    def save_facts(self, facts: Sequence[ServerFact]) -> object:
        """Keep what the upstream said of itself."""


class Recorder:
    """Hands records to the writer thread, and counts what was recorded and what was lost."""

    def __init__(
        self, sink: Sink, tally: Tally | None = None, *, items: int = QUEUE_ITEMS, nbytes: int = QUEUE_BYTES
    ) -> None:
        self._sink = sink
        self._tally = tally
        self._queue: queue.Queue[Record | None] = queue.Queue(items)
        self._room = nbytes
        self._lock = threading.Lock()
        self._lost: set[str] = set()
        self._never_opened: set[str] = set()
        self.recorded = 0
        self._complained = False
        self._give_up_at = math.inf
        self._writing: Record | None = None
        self._thread = threading.Thread(target=self._write, name="locality-writer", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> int:
        """Exchanges of which at least a part could not be kept."""
        return len(self._lost - {FACTS})

    @property
    def lost_facts(self) -> bool:
        """Whether something that the upstream said of itself could not be kept."""
        return FACTS in self._lost

    def begun(self) -> None:
        """Count an exchange that begins, so that a kill cannot hide it."""
        if self._tally is not None:
            self._tally.add()

    @property
    def room(self) -> int:
        """Bytes that may still be queued."""
        return self._room

    def put(self, record: Record) -> None:
        """Queue a record; returns at once. A full queue or a dead writer loses it, and counts it."""
        size = _size(record)
        with self._lock:
            accepted = self._thread.is_alive() and self._room >= size
            self._room -= size if accepted else 0
        if not accepted:
            self._lose(record, "the writer is behind or has stopped")
            return
        try:
            self._queue.put_nowait(record)
        except Exception as error:  # a queue that is full, as a rule
            self._give_back(size)
            self._lose(record, f"the queue takes no more: {type(error).__name__}")

    def lose(self, key: str, why: str) -> None:
        """Count an exchange of which something did not become a record."""
        self._lost.add(key)
        self._complain(why)

    def close(self, timeout: float = 60.0) -> None:
        """Write what is queued and end the thread; whatever is left after `timeout` seconds is lost."""
        self._give_up_at = time.monotonic() + timeout
        if self._thread.is_alive():
            with contextlib.suppress(queue.Full):
                self._queue.put(None, timeout=timeout)
        while self._thread.is_alive() and time.monotonic() < self._give_up_at + LAST_TRY_SECONDS:
            self._thread.join(RETRY_SECONDS)
        left = [self._writing]  # by a thread that is still at it, or that died of it
        with contextlib.suppress(queue.Empty):
            while True:
                left.append(self._queue.get_nowait())
        for record in left:
            if record is not None:
                self._lose(record, "the proxy stopped before it could be written")

    def give_up(self) -> None:
        """End a `close` that waits for a busy sink: what is not written by now is lost."""
        self._give_up_at = min(self._give_up_at, time.monotonic())

    def _write(self) -> None:
        while (record := self._queue.get()) is not None:
            self._writing = record
            try:
                self._save_in_time(record)
            except BaseException as error:  # the thread must outlive any one record, whatever comes
                self._lose(record, f"{type(error).__name__}: {error}")
            finally:
                self._give_back(_size(record))
            self._writing = None

    def _save_in_time(self, record: Record) -> None:
        """Save, again and again while the sink is busy: the queue takes what comes meanwhile."""
        why = TimeoutError("the proxy stopped before it could be written")
        while time.monotonic() < self._give_up_at:
            try:
                self._save(record)
            except TimeoutError as error:
                why = error
                time.sleep(RETRY_SECONDS)
            else:
                return
        raise why

    def _save(self, record: Record) -> None:
        match record:
            case RequestSeen():
                self._sink.save_request(record)
            case ResponseSeen():
                if record.key in self._never_opened:  # its request is not there to be finished
                    self._never_opened.discard(record.key)
                    return
                self._sink.save_response(record)
                self.recorded += record.key not in self._lost
            case _:
                self._sink.save_facts(record)

    def _give_back(self, size: int) -> None:
        with self._lock:
            self._room += size

    def _lose(self, record: Record, why: str) -> None:
        if isinstance(record, RequestSeen):
            self._never_opened.add(record.key)
        self.lose(record.key if isinstance(record, RequestSeen | ResponseSeen) else FACTS, why)

    def _complain(self, why: str) -> None:
        if self._complained:
            return
        self._complained = True
        with contextlib.suppress(Exception):  # nobody may be reading it any more
            print(
                f"locality: a record was lost ({why}); traffic goes on, losses are counted", file=sys.stderr
            )


def _size(record: Record) -> int:
    if isinstance(record, RequestSeen | ResponseSeen):
        return len(record.body) + 1024
    return sum(len(fact.body) for fact in record)
