"""Runs a capture from start to counts: what the commands `proxy` and `run` do.

The only place where the analyzer's command line starts the proxy.
"""

from __future__ import annotations

import contextlib
import secrets
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

import click

from analyzer.find_tokenizer import find_tokenizer
from analyzer.no_traffic import nothing_recorded, waiting_hint
from analyzer.pipeline import Options
from analyzer.reporting import print_summary
from analyzer.seal_key import seal_key
from analyzer.sealing_process import SealingProcess
from analyzer.servers import read_profile, read_settings
from analyzer.settings import FACT_PATH, note_on_ignored, parse_settings, worth_keeping
from analyzer.tokens import TokenizerError
from proxy.access import ANYBODY_HERE, Access
from proxy.probe import probe
from proxy.recorder import Sink
from proxy.serve import Counts, Hint, Session, serve
from proxy.sessions import NOT_STARTED, CommandSession, until_signal
from proxy.silence import SILENCE_SECONDS
from proxy.sink_process import SinkProcess, write_capture
from proxy.upstream import Upstream
from store.engine import shown, sqlite_path
from store.errors import CaptureError
from store.records import RunSeen, ServerFact
from store.sealed import POLICY as SEALED
from store.tally import Tally, tally_path


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """Where to record and how: a capture, its redaction, and the server's start line where it was given.

    A sealed capture needs the served model's tokenizer; `key_file` keeps the key of its fingerprints.
    """

    target: str
    redaction: str
    serve_command: str | None = None
    tokenizer: str | None = None
    key_file: Path | None = None


def run_proxy(upstream: Upstream, listen: tuple[str, int], access: Access, recording: Recording) -> int:
    """Serve until a signal comes. Returns the exit status: 1 where a record or the file was lost.

    Raises click.UsageError for a start line that is none.
    """

    def hint(url: str) -> str:
        return waiting_hint(url, SILENCE_SECONDS)

    session = partial(until_signal, told=access.told)
    kept, _ = _capture(upstream, recording, session, listen=listen, access=access, hint=hint)
    return 0 if kept else 1


def run_command(upstream: Upstream, recording: Recording, command: Sequence[str], options: Options) -> int:
    """Run a command behind the proxy, then print the summary of its capture; returns the command's status.

    Raises click.UsageError for a start line that is none.
    """
    session = CommandSession(command)
    _, counts = _capture(upstream, recording, session)
    if not counts.recorded and not counts.lost and session.status != NOT_STARTED:
        print(nothing_recorded(counts.requests), file=sys.stderr)
    print_summary(recording.target, options)
    return session.status


def _capture(
    upstream: Upstream,
    recording: Recording,
    session: Session,
    *,
    listen: tuple[str, int] = ("127.0.0.1", 0),
    access: Access = ANYBODY_HERE,
    hint: Hint | None = None,
) -> tuple[bool, Counts]:
    """One run of the proxy: whether all is kept. Refuses to start where the capture cannot be written."""
    facts = _told(recording.serve_command)
    run = RunSeen(key=secrets.token_hex(4), started_at_ns=time.time_ns())
    sink = _sink(upstream, recording, facts)
    if access.token is not None:
        sink.learn(access.token)  # agents put their base URL into prompts
    tally, ended = None, None
    try:
        sink.save_facts(facts)
        sink.save_run(run)
        tally = _tally(recording.target, run.key)
        counts = serve(upstream, sink, listen=listen, session=session, access=access, tally=tally, hint=hint)
        ended = replace(run, ended_at_ns=time.time_ns(), lost=counts.lost)
    finally:
        told = ended is not None and _done(lambda: sink.save_run(ended))
        closed = _done(sink.close)
        if tally is not None:
            tally.close(keep=not told)
    print(
        f"{shown(recording.target)}: {counts.recorded} exchanges recorded, {counts.lost} lost",
        file=sys.stderr,
    )
    return told and closed and not counts.lost and not counts.lost_facts, counts


def _tally(target: str, key: str) -> Tally | None:
    """What counts exchanges beside a capture that is a file; it is no reason not to start."""
    path = sqlite_path(target)
    with contextlib.suppress(OSError):
        return None if path is None else Tally(tally_path(path, key))
    return None


class _Closing(Sink, Protocol):
    def save_run(self, seen: RunSeen) -> object: ...

    def learn(self, secret: str) -> object: ...

    def close(self) -> None: ...


def _sink(upstream: Upstream, recording: Recording, told: Sequence[ServerFact]) -> _Closing:
    """Where records go. Raises CaptureError, and for a sealed capture TokenizerError: it needs one."""
    if recording.redaction != SEALED:
        return SinkProcess(write_capture, recording.target, recording.redaction, name="locality-writer")
    facts = (*told, *probe(upstream.url, trust=upstream.trust()))
    settings = read_settings(facts, None)
    try:
        tokenizer = find_tokenizer(recording.tokenizer, read_profile(facts), settings)
    except TokenizerError as error:
        raise TokenizerError(f"--redact sealed counts tokens before anything is written: {error}") from error
    options = Options(tokenizer=str(tokenizer))
    return SealingProcess(recording.target, options, seal_key(recording.key_file))


def _done(step: Callable[[], object]) -> bool:
    """Take one of the last steps; where it fails say why, since the counts are still to be printed."""
    try:
        step()
    except (CaptureError, TimeoutError, RuntimeError) as error:
        print(f"locality: {error}", file=sys.stderr)
        return False
    return True


def _told(serve_command: str | None) -> tuple[ServerFact, ...]:
    """What the user told of the server, in the shape of what it tells itself."""
    if serve_command is None:
        return ()
    try:
        note, kept = note_on_ignored(parse_settings(serve_command)), worth_keeping(serve_command)
    except ValueError as error:
        raise click.UsageError(f"--serve-command: {error}") from error
    if note:
        print(note, file=sys.stderr)
    return (ServerFact(at_ns=time.time_ns(), path=FACT_PATH, status=200, body=kept.encode()),)
