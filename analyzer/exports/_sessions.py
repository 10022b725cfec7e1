"""Gathers conversations into sessions: a main one, and those that its sub-agents held.

A client that names its sessions is believed. Else a conversation is a sub-agent's where it began and ended
between an answer of another and that one's next request: whoever waits for a tool asks for nothing meanwhile.
It looks at times and names only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from analyzer.exports import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A main conversation, and those of its sub-agents, of which `guessed` were told by their times."""

    rows: tuple[Row, ...]
    children: tuple[tuple[Row, ...], ...]
    guessed: int


def end_ns(row: Row) -> int:
    """When its answer had ended, as far as that was seen."""
    return row.turn.started_at_ns + (row.turn.duration_ns or 0)


def sessions_of(rows: Sequence[Row]) -> list[Session]:
    """The sessions of a capture in the order of their start, each row in one of them."""
    groups: dict[int | None, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.turn.conversation, []).append(row)
    conversations = list(groups.values())
    told = _told(conversations)
    guessed = _guessed(conversations, told)
    parents = guessed | told
    children: dict[int, list[int]] = {}
    for child in parents:
        children.setdefault(_main(child, parents), []).append(child)
    return [
        Session(
            rows=tuple(conversations[at]),
            children=tuple(tuple(conversations[child]) for child in sorted(children.get(at, ()))),
            guessed=sum(child in guessed for child in children.get(at, ())),
        )
        for at in range(len(conversations))
        if at not in parents
    ]


def _told(conversations: Sequence[list[Row]]) -> dict[int, int]:
    """The conversations that name another's session as their parent, each with that other."""
    named: dict[str, int] = {}
    for at, rows in enumerate(conversations):
        for session in _names(row.session for row in rows):
            named.setdefault(session, at)
    found = {}
    for at, rows in enumerate(conversations):
        parents = [named[name] for name in _names(row.parent_session for row in rows) if name in named]
        # A parent began earlier: with that, no chain of parents is a circle.
        if parents and parents[0] < at:
            found[at] = parents[0]
    return found


def _guessed(conversations: Sequence[list[Row]], told: dict[int, int]) -> dict[int, int]:
    """The conversations that happened while another waited, each with the one that waited shortest."""
    found = {}
    for at, rows in enumerate(conversations):
        if at in told or any(row.session for row in rows):
            continue
        began, ended = rows[0].turn.started_at_ns, max(end_ns(row) for row in rows)
        waits = [
            (later.turn.started_at_ns - end_ns(earlier), other)
            for other in range(at)
            for earlier, later in zip(conversations[other], conversations[other][1:], strict=False)
            if end_ns(earlier) <= began and ended <= later.turn.started_at_ns
        ]
        if waits:
            found[at] = min(waits)[1]
    return found


def _main(child: int, parents: dict[int, int]) -> int:
    """The main conversation above a sub-agent's: the format nests them one deep."""
    while child in parents:
        child = parents[child]
    return child


def _names(values: Iterable[str | None]) -> list[str]:
    return [value for value in values if value]
