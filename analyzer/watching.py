"""Prints a line for each turn of a capture while it is written: what `watch` does.

Lines go to stdout; hints, complaints and the summary at the end go to stderr.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from analyzer.find_tokenizer import find_tokenizer
from analyzer.live_capture import LiveCapture, Update
from analyzer.pipeline import Options
from analyzer.reporting import DONE, check_usage
from analyzer.servers import ServerProfile
from analyzer.watch_text import HEADING, lines_of, summary_line
from analyzer.wording import counted, one_line
from store.db import Capture
from store.engine import OpenedFile, sqlite_path
from store.errors import CaptureError

POLL_SECONDS = 0.1
NEW_FILE_SECONDS = 5.0
"""How long a file that has just been made may be no capture yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How to watch. `form` is text or jsonl; `only_new` leaves out what is there; `once` ends with it;
    `until_idle` ends where nothing came for so many seconds."""

    form: str = "text"
    only_new: bool = False
    once: bool = False
    until_idle: float | None = None


def run_watch(target: str, options: Options, manner: Manner) -> int:
    """Watch until told to stop; returns the exit status.

    Raises click.UsageError for options that are none, and what an analysis raises.
    """
    check_usage(options)
    if options.tokenizer is not None:
        find_tokenizer(options.tokenizer, ServerProfile())  # now: the first row may be hours away
    watching = _Watching(target, options, manner)
    with _interrupts(watching):
        watching.run()
    return DONE


@contextmanager
def _interrupts(watching: _Watching) -> Iterator[None]:
    """Let Ctrl-C end it between two exchanges; a second one at once."""

    def stop(number: int, frame: object) -> None:
        if watching.stopped:
            raise KeyboardInterrupt
        watching.stopped = True

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class _Watching:
    def __init__(self, target: str, options: Options, manner: Manner) -> None:
        self._target = target
        self._path = sqlite_path(target)
        self._options = options
        self._manner = manner
        self._changed_at = time.monotonic()
        self._silent = manner.only_new
        self.stopped = False

    def run(self) -> None:
        """From one capture to the next under this name."""
        if self._manner.form == "text":
            print(HEADING, flush=True)
        while not self._over():
            capture = Capture.open(self._target) if self._manner.once else self._opened()
            if capture is None:
                return
            with capture:
                self._follow(LiveCapture(capture, self._options))
            if self._manner.once:
                return

    def _over(self) -> bool:
        idle = self._manner.until_idle
        return self.stopped or (idle is not None and time.monotonic() - self._changed_at > idle)

    def _opened(self) -> Capture | None:
        """The capture, as soon as there is one; None where nobody waits any more."""
        hinted, there_since = False, None
        while not self._over():
            if self._path is None or self._path.exists():
                there_since = there_since or time.monotonic()
                try:
                    return Capture.open(self._target)
                except CaptureError:
                    if time.monotonic() - there_since > NEW_FILE_SECONDS or self._path is None:
                        raise
            elif not hinted:
                hinted, there_since, self._silent = True, None, False
                _say(f"waiting for {self._target}; `locality proxy --capture {self._target}` makes it")
            time.sleep(POLL_SECONDS)
        return None

    def _follow(self, live: LiveCapture) -> None:
        file = None if self._path is None else OpenedFile.at(self._path)
        while not (ending := self._manner.once or self._over()):
            if file is not None and _is_gone(file):
                _say(f"{self._target} was deleted or replaced: what follows is of the next one")
                break
            self._print(live.updates())
            if self._silent:
                ids = {turn.id for turn in live.turns()}
                _say(f"there already: {counted(len(ids), 'exchange')}")
            self._silent = False
            time.sleep(POLL_SECONDS)
        if ending and not self.stopped:
            self._print(live.updates(last=self._manner.once or self._manner.until_idle is not None))
        print(f"locality: {one_line(summary_line(live.turns(), live.in_flight))}", file=sys.stderr)

    def _print(self, updates: Iterator[Update]) -> None:
        for update in updates:
            self._changed_at = time.monotonic()
            if update.problem is not None:
                _say(f"exchange {update.exchange_id} cannot be read: {update.problem}")
            for line in lines_of(update, form=self._manner.form):
                if not self._silent:
                    print(line, flush=True)
            if self.stopped:
                return


def _is_gone(file: OpenedFile) -> bool:
    try:
        file.check()
    except CaptureError:
        return True
    return False


def _say(text: str) -> None:
    print(one_line(f"locality: {text}"), file=sys.stderr, flush=True)
