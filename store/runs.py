"""The runs of the proxy that wrote a capture: when each began and ended, and how much of what it saw is kept.

A run that was killed has no end; what it had begun is then told by the file that it left (`tally`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, case, select

from store import migrations, tables
from store.records import Run, RunSeen
from store.tally import read_tally, tally_path

_run = tables.run


def save(connection: Connection, seen: RunSeen) -> None:
    """Enter a run that begins, or the end of one that began."""
    ended = {"ended_at_ns": seen.ended_at_ns, "lost": seen.lost}
    if connection.execute(_run.update().where(_run.c.key == seen.key).values(ended)).rowcount:
        return
    connection.execute(
        _run.insert().values(key=seen.key, started_at_ns=seen.started_at_ns, requests=0, **ended)
    )


def count_request(connection: Connection, key: str) -> None:
    """One request of the run is written, in the transaction that writes it.

    The writer outlives a proxy that is killed: what it still has in hand may have been counted as lost.
    """
    fewer = case((_run.c.lost > 0, _run.c.lost - 1), else_=_run.c.lost)
    one_more = {"requests": _run.c.requests + 1, "lost": fewer}
    connection.execute(_run.update().where(_run.c.key == key).values(one_more))


def copy(connection: Connection, runs: Sequence[Run]) -> None:
    """Enter the runs of another capture that are over."""
    for number, run in enumerate((run for run in runs if not run.running), start=1):
        connection.execute(
            _run.insert().values(
                key=f"copied-{number}",
                started_at_ns=run.started_at_ns,
                ended_at_ns=run.ended_at_ns,
                requests=run.requests,
                lost=run.lost,
            )
        )


def settle(connection: Connection, capture: Path) -> None:
    """Enter what killed runs have left beside the capture, and remove it."""
    for row in connection.execute(select(_run).where(_run.c.ended_at_ns.is_(None), _run.c.lost.is_(None))):
        path = tally_path(capture, row.key)
        left = read_tally(path)
        if left.running or left.begun is None:
            continue
        lost = max(0, left.begun - row.requests)
        connection.execute(_run.update().where(_run.c.id == row.id).values(lost=lost))
        path.unlink(missing_ok=True)


def read(connection: Connection, capture: Path | None) -> tuple[Run, ...]:
    """Every run in the order of their start; none for a capture of an earlier version."""
    if (migrations.version(connection) or 0) < migrations.WITH_RUNS:
        return ()
    rows = connection.execute(select(_run).order_by(_run.c.id)).all()
    return tuple(_read(row, capture) for row in rows)


def _read(row: Any, capture: Path | None) -> Run:
    lost, running = row.lost, False
    if row.ended_at_ns is None and lost is None and capture is not None:
        left = read_tally(tally_path(capture, row.key))
        running = left.running
        lost = None if left.begun is None or running else max(0, left.begun - row.requests)
    return Run(
        started_at_ns=row.started_at_ns,
        ended_at_ns=row.ended_at_ns,
        running=running,
        requests=row.requests,
        lost=lost,
    )
