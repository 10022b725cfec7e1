"""Runs what keeps the records in a process of its own: it must not take the interpreter from the traffic.

Records go to it through a pipe, one at a time, and are answered when they are kept. Nothing else crosses, and
nothing is decided here.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Any

from store.db import Capture
from store.errors import CaptureError
from store.records import RequestSeen, ResponseSeen, RunSeen, ServerFact

CLOSE_SECONDS = 60.0
"""How long the end may take: the log is moved into the file then."""

NICENESS = 3
"""A third of a processor that one other wants whole: the queue is long, and must not grow for ever."""

_ENDED = "the process that writes the capture has ended"

type Failure = Exception | None


class SinkProcess:
    """A `proxy.recorder.Sink`; close it. What it raises is what the sink raises there.

    `work` serves the other end of a pipe with `serve_sink`. Raises what that cannot begin for.
    """

    def __init__(
        self, work: Callable[..., None], *given: Any, name: str, close_seconds: float = CLOSE_SECONDS
    ) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would take the proxy's threads half along
        self._close_seconds = close_seconds
        # Where the recorder gives a record up, its thread may still wait for the answer to it.
        self._one_at_a_time = threading.Lock()
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=work, args=(theirs, *given), name=name, daemon=True)
        self._process.start()
        theirs.close()
        self._answer()

    def save_request(self, seen: RequestSeen) -> None:
        """See `Capture.save_request`."""
        self._ask("save_request", seen)

    def save_response(self, seen: ResponseSeen) -> None:
        """See `Capture.save_response`."""
        self._ask("save_response", seen)

    def save_facts(self, facts: Sequence[ServerFact]) -> None:
        """See `Capture.save_facts`."""
        self._ask("save_facts", facts)

    def save_run(self, seen: RunSeen) -> None:
        """See `Capture.save_run`."""
        self._ask("save_run", seen)

    def learn(self, secret: str) -> None:
        """See `Capture.learn`."""
        self._ask("learn", secret)

    def close(self) -> None:
        """Have everything written, and end the process."""
        try:
            self._ask("close", None)
        finally:
            self._pipe.close()
            self._process.join(self._close_seconds)

    def _ask(self, what: str, record: Any) -> None:
        with self._one_at_a_time:
            try:
                self._pipe.send((what, record))
            except OSError as error:
                raise CaptureError(_ENDED) from error
            self._answer()

    def _answer(self) -> None:
        try:
            failure: Failure = self._pipe.recv()
        except (EOFError, OSError) as error:
            raise CaptureError(_ENDED) from error
        if failure is not None:
            raise failure


def serve_sink(
    pipe: Connection,
    begin: Callable[[], Any],
    end: Callable[[Any], Failure],
    told: Callable[[Exception], Exception],
) -> None:
    """Be the other process: keep records with the sink that `begin` makes, up to the proxy's end or death.

    `end` closes the sink, and `told` is an error as it may cross to the proxy.
    """
    _step_back()
    with contextlib.suppress(BrokenPipeError), pipe:
        try:
            sink = begin()
        except Exception as error:
            pipe.send(told(error))
            return
        pipe.send(None)
        broken: Failure = None
        try:
            for what, record in _asked(pipe):
                pipe.send(_done(sink, what, record, told))
        except BaseException as error:  # no answer was given: this is it, and there is none after it
            broken = RuntimeError(f"{type(error).__name__} in the process that writes the capture")
        pipe.send(end(sink) or broken)


def write_capture(pipe: Connection, target: str, redaction: str) -> None:
    """The work of a process that writes an open capture."""
    serve_sink(pipe, lambda: Capture.create_or_open(target, redaction=redaction), _closed, _told)


def _step_back() -> None:
    """Leave the signals to the proxy, which says when it is over, and the processor to all who wait for it.

    A record that is written at once, on a machine that is busy, is an answer that comes later.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    os.nice(NICENESS)


def _asked(pipe: Connection) -> Iterator[tuple[str, Any]]:
    with contextlib.suppress(EOFError, OSError):
        while True:
            what, record = pipe.recv()
            if what == "close":
                return
            yield what, record


def _done(sink: Any, what: str, record: Any, told: Callable[[Exception], Exception]) -> Failure:
    try:
        getattr(sink, what)(record)
    except Exception as error:
        return told(error)
    return None


def _closed(capture: Capture) -> Failure:
    try:
        capture.close()
    except Exception as error:
        return _told(error)
    return None


def _told(error: Exception) -> Exception:
    """The error as it may cross: not every one can be copied into another process."""
    if isinstance(error, TimeoutError | CaptureError | ValueError | KeyError):
        return type(error)(str(error))
    return RuntimeError(f"{type(error).__name__}: {error}")
