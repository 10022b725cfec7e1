"""Runs the writer of a sealed capture in a process of its own: what it renders must not hold up the proxy.

Records go to it through a pipe, one at a time, and are answered when they are kept. Nothing else crosses, and
nothing is decided here.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import time
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Any

from analyzer.pipeline import Options
from analyzer.sealing import SealedSink
from analyzer.tokens import TokenizerError
from store.db import Capture
from store.errors import CaptureError
from store.records import RequestSeen, ResponseSeen, RunSeen, ServerFact
from store.sealed import POLICY

CLOSE_SECONDS = 600.0
"""How long the end may take: what was in flight is sealed then, and maybe all of it once more."""

_BUSY_SECONDS = 0.1

type Failure = Exception | None


class SealingProcess:
    """A `proxy.recorder.Sink`; close it. What it raises is what `SealedSink` raises there.

    Raises CaptureError where the capture cannot be used.
    """

    def __init__(self, target: str, options: Options, key: bytes) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would take the proxy's threads half along
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_work, args=(theirs, target, options, key), name="locality-sealing", daemon=True
        )
        self._process.start()
        theirs.close()
        self._answer()

    def save_request(self, seen: RequestSeen) -> None:
        """See `SealedSink.save_request`."""
        self._ask("save_request", seen)

    def save_response(self, seen: ResponseSeen) -> None:
        """See `SealedSink.save_response`."""
        self._ask("save_response", seen)

    def save_facts(self, facts: Sequence[ServerFact]) -> None:
        """See `SealedSink.save_facts`."""
        self._ask("save_facts", facts)

    def save_run(self, seen: RunSeen) -> None:
        """See `SealedSink.save_run`."""
        self._ask("save_run", seen)

    def close(self) -> None:
        """Seal what is left, and end the process."""
        try:
            self._ask("close", None)
        finally:
            self._pipe.close()
            self._process.join(CLOSE_SECONDS)

    def _ask(self, what: str, record: Any) -> None:
        try:
            self._pipe.send((what, record))
        except OSError as error:
            raise CaptureError("the process that seals has ended") from error
        self._answer()

    def _answer(self) -> None:
        try:
            failure: Failure = self._pipe.recv()
        except EOFError as error:
            raise CaptureError("the process that seals has ended") from error
        if failure is not None:
            raise failure


def _work(pipe: Connection, target: str, options: Options, key: bytes) -> None:
    """Serve one proxy until it closes, or is gone."""
    for number in (signal.SIGINT, signal.SIGTERM):  # the proxy has them too, and says when it is over
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(BrokenPipeError), pipe:
        try:
            capture = Capture.create_or_open(target, redaction=POLICY)
            sink = SealedSink(capture, options, key)
        except Exception as error:
            pipe.send(_bare(error))
            return
        pipe.send(None)
        try:
            for what, record in _asked(pipe):
                pipe.send(_done(sink, what, record))
        finally:
            failure = _closed(sink, capture)
            pipe.send(failure)


def _asked(pipe: Connection) -> Iterator[tuple[str, Any]]:
    """What the proxy asks for, up to its end."""
    with contextlib.suppress(EOFError, ConnectionResetError):
        while True:
            what, record = pipe.recv()
            if what == "close":
                return
            yield what, record


def _done(sink: SealedSink, what: str, record: Any) -> Failure:
    try:
        getattr(sink, what)(record)
    except Exception as error:
        return _bare(error)
    return None


def _closed(sink: SealedSink, capture: Capture) -> Failure:
    """Close both; another process that holds the capture may let go of it."""
    failure: Failure = None
    give_up_at = time.monotonic() + CLOSE_SECONDS
    try:
        failed = sink.seal_rest()
        while not _written(sink, last_try=time.monotonic() > give_up_at):
            time.sleep(_BUSY_SECONDS)
        if failed:
            failure = CaptureError(f"{failed} exchanges could not be sealed: only their times are kept")
    except Exception as error:
        failure = _bare(error)
    finally:
        sink.forget()
    try:
        capture.close()
    except CaptureError as error:
        failure = failure or error
    return failure


def _written(sink: SealedSink, *, last_try: bool) -> bool:
    try:
        sink.write()
    except TimeoutError:
        if last_try:
            raise
        return False
    return True


def _bare(error: Exception) -> Exception:
    """The error as it may cross to the proxy, which prints it: its own words where they are ours."""
    if isinstance(error, TimeoutError | CaptureError | TokenizerError):
        return type(error)(str(error))
    return RuntimeError(f"{type(error).__name__} in the process that seals; its words are withheld")
