"""Verifies a capture and says in a few lines what held: what `verify` does.

The summary goes to stdout; progress and complaints go to stderr.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator

import click

from analyzer.open_capture import open_capture
from analyzer.pipeline import Options, make_reader
from analyzer.rendering import FROM_SERVER
from analyzer.reporting import CHECK_DID_NOT_HOLD, DONE, FAILED, ProgressBar, check_usage
from analyzer.sealed_reading import is_sealed, read_placed
from analyzer.servers import read_profile, read_settings
from analyzer.verification import Difference, Verification, verify
from analyzer.wording import one_line
from store.db import Capture

SHOWN = 20
"""Differences that are printed; their number is told in any case."""


def run_verify(target: str, options: Options) -> int:
    """Verify one capture; returns the exit status.

    0: all that was compared agrees; 3: a check did not hold; 1: a server was named, and not everything
    could be compared with it. Raises click.UsageError as `check_usage` does, and for the server itself.
    Of a sealed capture only the store and the counts of its sealing are verified.
    """
    if options.renderer in FROM_SERVER - {"tokenize"}:
        raise click.UsageError(f"--renderer {options.renderer} is what renderings are compared with")
    check_usage(options)
    with open_capture(target) as capture, ProgressBar() as progress:
        found, missing = Verification(damages=tuple(capture.verify())), None
        if not found.damages and is_sealed(capture):
            return _sealed(capture, asked=options.server)
        if not found.damages:
            facts = capture.facts()
            settings = read_settings(facts, options.serve_command)
            reader, missing = make_reader(options, read_profile(facts), settings)
            found = verify(capture, reader, options.renderer, progress)
    for line in summary(found):
        print(one_line(line))
    for line in _complaints(found, missing, asked=options.server):
        print(one_line(f"locality: {line}"), file=sys.stderr)
    if not found.holds:
        return CHECK_DID_NOT_HOLD
    return FAILED if options.server is not None and found.undone else DONE


def _sealed(capture: Capture, *, asked: str | None) -> int:
    """What can be verified without text: that rows read, and the server's counts as they were held then."""
    verdicts = Counter(item.prompt.verdict for item in read_placed(capture, 1) if item.prompt.rendering)
    print("store: whole")
    print(f"counts: {verdicts['exact']} prompts agreed when they were sealed, {verdicts['mismatch']} did not")
    print("locality: the capture is sealed: there is no text left to render again", file=sys.stderr)
    if verdicts["mismatch"]:
        return CHECK_DID_NOT_HOLD
    return DONE if asked is None else FAILED


def summary(found: Verification) -> Iterator[str]:
    """What held and what did not, a line each."""
    if found.damages:
        yield f"store: damaged, {len(found.damages)} stored pieces do not read back; renderings not compared"
        for damage in found.damages[:SHOWN]:
            users = [f"exchange {item}" for item in damage.exchange_ids]
            users += [f"fact {item}" for item in damage.fact_ids]
            yield f"  piece {damage.blob_id} ({', '.join(users) or 'nothing refers to it'}): {damage.reason}"
        return
    yield "store: whole"
    for other, where in (("server", "the server's /render"), ("wire", "the ids in the response")):
        differ = [item for item in found.differences if item.other == other]
        if differ or found.equal[other]:
            compared = len(differ) + found.equal[other]
            yield f"{where}: {found.equal[other]} of {compared} prompts equal"
        for item in differ[:SHOWN]:
            yield from _told(item)
    yield f"counts: {found.counted} prompts agree, {len(found.miscounts)} exchanges do not"
    for miscount in found.miscounts[:SHOWN]:
        yield (
            f"  exchange {miscount.exchange_id}: {miscount.rendered} tokens rendered,"
            f" {miscount.reported} reported"
        )
    for reason, prompts in found.left_out.items():
        yield f"not compared: {prompts} of {found.prompts} prompts: {reason}"


def _told(item: Difference) -> Iterator[str]:
    name = f"exchange {item.exchange_id}" + (f"#{item.prompt_index}" if item.prompt_index else "")
    place = ""
    if item.place is not None:
        char = "" if item.place.char is None else f" char {item.place.char}"
        place = f", {item.place.path}{char}"
    yield f"  {name}: {item.source} differs at token {item.token}{place}"
    yield f"    ours   {_side(item.our_id, item.before, item.ours)}"
    yield f"    theirs {_side(item.their_id, item.before, item.theirs)}"


def _side(token_id: int | None, before: str | None, text: str | None) -> str:
    said = "(end)" if token_id is None else str(token_id)
    if before is None or text is None:
        return said
    return f"{said}  …{_visible(before)} | {_visible(text)}…"


def _visible(text: str) -> str:
    return text.encode("unicode_escape").decode()


def _complaints(found: Verification, missing: str | None, *, asked: str | None) -> Iterator[str]:
    if missing and found.undone:
        yield missing
    for reason, prompts in found.undone.items():
        yield f"{prompts} of {found.prompts} prompts could not be compared: {reason}"
    if asked is None and not found.damages:
        yield "no server was asked for its renderings; --server URL asks one"
