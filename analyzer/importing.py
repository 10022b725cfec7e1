"""Makes a capture of what others recorded: what `import` does.

Every exchange passes the store's door as one from the proxy does. What a file does not tell is left out;
times, which a capture cannot be without, are made from the order, and that is kept with the capture.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import click

from analyzer.find_tokenizer import find_tokenizer
from analyzer.imports import FACT_PATH, UNTIMED, ImportForm, Read, Source
from analyzer.pipeline import Options
from analyzer.registry import plugins
from analyzer.reporting import DONE, FAILED
from analyzer.seal import seal_capture
from analyzer.seal_key import seal_key
from analyzer.servers import ServerProfile
from analyzer.tokens import start_loading
from store.db import Capture
from store.engine import shown, sqlite_path
from store.errors import CaptureError
from store.records import RequestSeen, ServerFact
from store.sealed import POLICY as SEALED

MADE_UP_TIMES, TIMES_OF_THE_FILE = "made from the order", "the file's"

_STEP_NS = 1_000_000
_MOST_TOLD = 5


@dataclass(slots=True)
class _Tally:
    """What became of a file's parts."""

    kept: int = 0
    others: int = 0
    untimed: int = 0
    unanswered: int = 0
    unread: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealing:
    """What a sealed capture is made with: the served model's tokenizer, and where its key is to be kept."""

    tokenizer: str
    key_file: Path | None = None


def run_import(source: Source, target: str, *, form: str, sealing: Sealing | None = None) -> int:
    """Import one file into a new capture; returns the exit status: 1 where a part of it could not be read.

    With `sealing` no text of it is written. Raises click.UsageError for a format that is none, CaptureError
    where the capture is there already, TokenizerError where `sealing` has none that can be used.
    """
    chosen = _form(form)
    path = sqlite_path(target)
    if path is not None and path.exists():
        raise CaptureError(f"{path} is there already; choose another path, or remove it first")
    key = b""
    if sealing is not None:  # whatever fails of it fails before there is a capture
        start_loading(find_tokenizer(sealing.tokenizer, ServerProfile())).result()
        key = seal_key(sealing.key_file)
    tally = _Tally()
    with Capture.create_or_open(target, redaction="secrets" if sealing is None else SEALED) as capture:
        if capture.counts().exchanges:
            raise CaptureError(f"{shown(target)} holds exchanges already; choose another target")
        if sealing is None:
            _read_all(capture, chosen, source, tally)
        else:
            with Capture.in_memory() as said:
                _read_all(said, chosen, source, tally)
                options = Options(tokenizer=sealing.tokenizer)
                seal_capture(said, capture, options, key)
    if not tally.kept and path is not None:
        path.unlink()
    for line in _told(target, tally):
        print(f"locality: {line}", file=sys.stderr)
    return FAILED if tally.unread or not tally.kept else DONE


def _read_all(capture: Capture, form: ImportForm, source: Source, tally: _Tally) -> None:
    try:
        _keep(capture, form, source, tally)
    except ValueError as error:
        tally.unread.append(f"{source.path}: {error}")
    if tally.kept:
        capture.save_facts([_fact(form.name, tally)])


def source(path: Path, dialect: str | None, read_flows: Callable[[Path], Read]) -> Source:
    """What a format is given. Raises click.UsageError for a dialect that is none."""
    endpoints = {name: item.path for name, item in plugins("dialects").items()}
    if dialect is not None and dialect not in endpoints:
        raise click.UsageError(f"--dialect {dialect}: there are {', '.join(endpoints)}")
    return Source(
        path=path, dialect_path=None if dialect is None else endpoints[dialect], read_flows=read_flows
    )


def how_imported(facts: Sequence[ServerFact]) -> str | None:
    """Where the times of an imported capture come from; None for one that was not imported."""
    told = next((fact.body for fact in facts if fact.path == FACT_PATH), None)
    return None if told is None else str(json.loads(told).get("times"))


def _keep(capture: Capture, form: ImportForm, source: Source, tally: _Tally) -> None:
    endpoints = [dialect.path for dialect in plugins("dialects").values()]
    last_ns = source.path.stat().st_mtime_ns
    for where, found in form.read(source):
        if isinstance(found, str):
            tally.unread.append(f"{where}: {found}")
            continue
        request, response = found
        endpoint = _endpoint(request, endpoints)
        if endpoint is None:
            tally.others += 1
            continue
        if not request.body:
            tally.unread.append(f"{where}: the request's body is not in the file")
            continue
        if request.started_at_ns == UNTIMED:
            tally.untimed += 1
            request = replace(request, started_at_ns=last_ns + _STEP_NS)
        last_ns = request.started_at_ns
        capture.save_request(replace(request, path=endpoint))
        if response is not None:
            capture.save_response(response)
        tally.unanswered += response is None or not (response.body or response.error)
        tally.kept += 1


def _endpoint(request: RequestSeen, endpoints: Iterable[str]) -> str | None:
    """The endpoint a request went to, under whatever prefix its server lives."""
    path = request.path.rstrip("/")
    return next((item for item in endpoints if request.method == "POST" and path.endswith(item)), None)


def _form(name: str) -> ImportForm:
    forms = plugins("imports")
    if name not in forms:
        raise click.UsageError(f"--format {name}: there are {', '.join(forms)}")
    form: ImportForm = forms[name]
    return form


def _fact(form: str, tally: _Tally) -> ServerFact:
    times = MADE_UP_TIMES if tally.untimed else TIMES_OF_THE_FILE
    body = json.dumps({"format": form, "times": times, "untimed": tally.untimed})
    return ServerFact(at_ns=time.time_ns(), path=FACT_PATH, status=200, body=body.encode())


def _told(target: str, tally: _Tally) -> Iterator[str]:
    yield from tally.unread[:_MOST_TOLD]
    if (more := len(tally.unread) - _MOST_TOLD) > 0:
        yield f"and {more} more that could not be read"
    if tally.others:
        yield f"{tally.others} requests to other endpoints are left out"
    if tally.unanswered:
        yield f"{tally.unanswered} exchanges are without an answer: it is not in the file"
    if tally.untimed:
        yield f"{tally.untimed} times are made from the order: the file has none"
    yield f"{shown(target)}: {tally.kept} exchanges imported, {len(tally.unread)} not read"
