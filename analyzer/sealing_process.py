"""Seals a capture in a process of its own: what is rendered for it must not hold up the proxy.

How records get there is for `proxy.sink_process`; what is written of them for `analyzer.sealing`.
"""

from __future__ import annotations

import time
from multiprocessing.connection import Connection

from analyzer.pipeline import Options
from analyzer.sealing import SealedSink
from analyzer.tokens import TokenizerError
from proxy.sink_process import Failure, SinkProcess, serve_sink
from store.db import Capture
from store.errors import CaptureError
from store.sealed import POLICY

CLOSE_SECONDS = 600.0
"""How long the end may take: what was in flight is sealed then, and maybe all of it once more."""

_BUSY_SECONDS = 0.1


class SealingProcess(SinkProcess):
    """Seals in a process of its own. What it raises is what `SealedSink` raises there.

    Raises CaptureError where the capture cannot be used.
    """

    def __init__(self, target: str, options: Options, key: bytes) -> None:
        super().__init__(_work, target, options, key, name="locality-sealing", close_seconds=CLOSE_SECONDS)


def _work(pipe: Connection, target: str, options: Options, key: bytes) -> None:
    """Serve one proxy until it closes, or is gone."""

    def begin() -> SealedSink:
        return SealedSink(Capture.create_or_open(target, redaction=POLICY), options, key)

    serve_sink(pipe, begin, _closed, _bare)


def _closed(sink: SealedSink) -> Failure:
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
        sink.target.close()
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
