"""Makes a sealed copy of a capture, and lets it be proved before anybody gets it: what `share` does.

The figures go to stdout, complaints to stderr. A copy that does not hold is removed.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from analyzer.open_capture import open_capture
from analyzer.pipeline import Options, analyze
from analyzer.rendering import AUTO
from analyzer.report import Report
from analyzer.reporting import CHECK_DID_NOT_HOLD, DONE, ProgressBar, check_usage
from analyzer.seal import seal_capture
from analyzer.seal_key import seal_key
from analyzer.sealed_json import as_json
from analyzer.sealed_reading import is_sealed
from analyzer.share_page import page_of
from analyzer.share_proof import Proof
from analyzer.share_texts import texts_of
from analyzer.wording import counted, known
from store.db import Capture
from store.sealed import POLICY

_MODE = 0o600
_KNOWN = _SQLITE, _JSON, _HTML = ".sqlite", ".json", ".html"

type Content = Callable[[Capture], bytes]
"""What the file holds of a sealed capture."""


def run_share(target: str, output: Path, options: Options, *, key_file: Path | None) -> int:
    """Make and prove one copy; returns the exit status: 3, and no file, where a step does not hold.

    Raises click.UsageError for a file that is there or of no known kind, click.ClickException for a capture
    that is sealed already, and what an analysis raises.
    """
    _check_output(output)
    check_usage(options)
    with open_capture(target) as original:
        if is_sealed(original):
            raise click.ClickException(f"{target} is sealed already; copy the file")
        failures = ["the copy could not be made"]
        try:
            failures = list(_shared(original, output, options, seal_key(key_file)))
        finally:
            if failures:
                _remove(output)
    for failure in failures:
        print(f"locality: {failure}", file=sys.stderr)
    if failures:
        print(f"locality: nothing was shared, {output} is removed", file=sys.stderr)
    return CHECK_DID_NOT_HOLD if failures else DONE


def _check_output(output: Path) -> None:
    if output.suffix not in _KNOWN:
        raise click.UsageError(f"-o {output}: give a name that ends in {', '.join(_KNOWN)}")
    if output.exists():
        raise click.UsageError(f"-o {output} is there already; choose another name")


def _shared(original: Capture, output: Path, options: Options, key: bytes) -> Iterator[str]:
    """Make the copy, and yield what does not hold of it."""
    options = replace(options, pool_sweep=True)
    with ProgressBar() as progress:
        report = analyze(original, options, progress).report
    bare = replace(options, renderer=AUTO, tokenizer=None, server=None)
    content = partial(_content, output.suffix, bare)
    with _made(original, output, options, key, content) as copy:
        copied = analyze(copy, bare).report
        proof = Proof(
            original=report,
            copied=copied,
            sealed=copy,
            searched=(output.read_bytes(), *copy.stored()),
            texts=frozenset(texts_of(original)),
            key=key,
            options=options,
            content=content,
            as_page=output.suffix == _HTML,
        )
        failures = list(proof.failures())
        if not failures:
            print(*_leaving(copy, copied, output), sep="\n")
    yield from failures


def _content(suffix: str, bare: Options, sealed: Capture) -> bytes:
    """What a file of this kind holds of a sealed capture."""
    if suffix == _JSON:
        return as_json(sealed).encode()
    if suffix == _HTML:
        return page_of(analyze(sealed, bare).report).encode("utf-8", "backslashreplace")
    return sealed.bytes_in_memory()


def _made(original: Capture, output: Path, options: Options, key: bytes, content: Content) -> Capture:
    """The sealed capture, read back from the file where the file is one."""
    if output.suffix == _SQLITE:
        with Capture.create_or_open(str(output), redaction=POLICY) as copy:
            seal_capture(original, copy, options, key)
            copy.into_one_file()
        return Capture.open(str(output))
    copy = Capture.in_memory(POLICY)
    seal_capture(original, copy, options, key)
    _write(output, content(copy))
    if output.suffix == _HTML:
        return copy
    copy.close()
    return open_capture(str(output))


def _write(output: Path, content: bytes) -> None:
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def _remove(output: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            Path(f"{output}{suffix}").unlink()


def _leaving(sealed: Capture, report: Report, output: Path) -> Iterator[str]:
    """What somebody gets who gets the file."""
    yield f"what leaves this machine in {output}, {output.stat().st_size:,} bytes:"
    if output.suffix == _HTML:
        yield f"  a row for each of {counted(len(report.turns), 'prompt')}: its counts, how it ended, labels"
        yield "  findings and places, their paths in the endpoints' words, a client's keys as fingerprints"
        told = report.server
        yield f"  of the server: {told.engine_title} {known(told.version)}, model {known(told.model)}, sizes"
        return
    yield f"  {counted(sealed.counts().exchanges, 'exchange')}: when, how long, how large, and the status"
    kinds = Counter(part.kind for kind in _KINDS for part in sealed.sealed(kind))
    yield from (f"  {kinds[kind]} x {what}" for kind, what in _KINDS.items() if kinds[kind])
    for fact in sealed.facts():
        if fact.path != "/metrics":
            yield f"  what the server said at {fact.path}: {fact.body.decode(errors='replace')}"


_KINDS = {
    "prompt": "a prompt's place, counts, causes, paths, numbers for its tokens that show where it parts",
    "request": "a request's structure: lengths, token counts and keyed fingerprints of its strings",
    "response": "an answer's structure or, of a stream, its counts",
    "segments": "a map from fields to token ranges",
    "chain": "a keyed chain over the tokens",
    "basis": "the tokenizer's name and the sizes in the model's configuration",
}
