"""Whether a capture holds all that its proxies saw, in numbers and in sentences that quote nothing.

What is missing cannot be brought back; it is only told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.imports import FACT_PATH as IMPORTED
from analyzer.report import Completeness
from analyzer.wording import counted
from store.db import Capture
from store.records import Run


def completeness(capture: Capture) -> Completeness:
    """What is missing of a capture, as far as it knows."""
    runs = capture.runs()
    counts = [run.lost for run in runs if not run.running]
    unknown = not counts or None in counts
    unfinished = capture.counts().open
    imported = any(fact.path == IMPORTED for fact in capture.facts())
    return Completeness(
        lost=None if unknown else sum(count or 0 for count in counts),
        unfinished=unfinished,
        sentences=tuple(_sentences(runs, unfinished, imported=imported)),
    )


def _sentences(runs: Sequence[Run], unfinished: int, *, imported: bool) -> Iterator[str]:
    ended = [run for run in runs if run.ended_at_ns is not None]
    killed = [run for run in runs if run.ended_at_ns is None and not run.running]
    if lost := sum(run.lost or 0 for run in ended):
        yield f"incomplete: {counted(lost, 'exchange')} could not be recorded, in whole or in part"
    if gone := sum(run.lost or 0 for run in killed):
        yield f"incomplete: the proxy was killed before {counted(gone, 'exchange')} could be written"
    if any(run.lost is None for run in killed):
        yield "incomplete: the proxy was killed, and how much it had not written yet is not known"
    if not unfinished:
        return
    many = counted(unfinished, "exchange")
    if any(run.running for run in runs):
        yield f"still being recorded: {many} without an end"
    elif imported:
        yield f"incomplete: {many} without an answer in the file that was imported"
    else:
        yield f"incomplete: {many} without an end: the proxy was killed, or could not write it"
