"""The rows of a report for people: a row a turn, as a table where there is room, else a few lines each.

Long runs of turns that lost nothing are one row in a long report, so that what was lost can be seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from analyzer.core import Divergence
from analyzer.report import Turn
from analyzer.wording import UNKNOWN, counted, differing, known, one_line, side

TABLE_WIDTH = 72
"""Columns that the table needs to leave its last column readable."""

MOST_ROWS = 200
"""Rows up to which every turn has its own."""

_SHORTEST_RUN = 4
_EXCERPT = 28
_MARKS = {"exact": "=", "mismatch": "≠", "unchecked": "~"}
_CACHE_MARKS = {"exact": "=", "server_less": "<", "server_more": ">"}
_HEADINGS = ("id", "conv", "tokens", "reuse", "lost", "cached", "first divergence")
_INEXACT = " ≈"
_SAID = ("pair.first", "template.error")
"""Notes that the row's own words tell already."""

type Cells = tuple[str, str, str, str, str, str, str]
"""What stands in a row: exchange, conversation and turn, tokens, reuse, lost, cached, what happened."""


def print_rows(console: Console, turns: Sequence[Turn], *, exact: bool) -> None:
    """All rows, in the layout that fits the width; `exact` is whether hits are predicted exactly."""
    rows = [cells for cells, _ in rows_of(turns)]
    if console.width < TABLE_WIDTH:
        _print_stacked(console, rows)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in _HEADINGS:
        last = heading == _HEADINGS[-1]
        heading += _INEXACT if heading == "cached" and not exact else ""
        table.add_column(heading, justify="left" if last else "right", no_wrap=not last, overflow="fold")
    for cells in rows:
        table.add_row(*(Text(cell) for cell in cells))
    console.print(table)


def _print_stacked(console: Console, rows: Sequence[Cells]) -> None:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for number, place, tokens, reuse, lost, cached, story in rows:
        named = (
            ("tokens", tokens),
            ("reuse", reuse),
            ("lost", lost),
            ("cached", " ".join(cached.split())),
        )
        counts = " · ".join(f"{name} {value}" for name, value in named if value)
        table.add_row(Text(f"{number} ({place})"), Text(f"{counts}\n{story}"))
    console.print(table)


def rows_of(turns: Sequence[Turn]) -> Iterator[tuple[Cells, Turn]]:
    """Each row with its turn; with the last of its turns where it stands for several."""
    if len(turns) <= MOST_ROWS:
        yield from ((cells(turn), turn) for turn in turns)
        return
    for (uneventful, _), run in groupby(turns, key=lambda turn: (_is_uneventful(turn), turn.conversation)):
        members = list(run)
        if uneventful and len(members) >= _SHORTEST_RUN:
            yield _folded(members), members[-1]
        else:
            yield from ((cells(turn), turn) for turn in members)


def _is_uneventful(turn: Turn) -> bool:
    """Whether nothing about a row is worth a look."""
    sound = turn.rendering != "mismatch" and turn.cache in ("exact", "not_reported") and not turn.problem
    return sound and turn.append is True and turn.divergence is None and turn.outcome == "done"


def _folded(turns: Sequence[Turn]) -> Cells:
    first, last = turns[0], turns[-1]
    place = f"{first.conversation}.{first.turn}–{last.turn}"
    story = f"{counted(len(turns), 'turn')} that append: nothing lost"
    tokens = f"–{known(last.prompt_tokens)}"
    return f"{first.id}–{last.id}", place, tokens, "", "0", "", story


def cells(turn: Turn) -> Cells:
    """What a row says: id, place, tokens, reuse, lost, cached, and what happened, in the fewest words."""
    place = UNKNOWN if turn.conversation is None else f"{turn.conversation}.{turn.turn}"
    if turn.conversation_rendering == "mismatch":
        place += "!"
    reuse = "" if turn.parent is None else f"{known(turn.reusable_prefix_pct)} %"
    lost = "" if turn.parent is None else known(turn.invalidated_blocks)
    mark = _MARKS.get(turn.rendering or "", "")
    return (
        f"{turn.id}" if turn.prompt_index == 0 else f"{turn.id}#{turn.prompt_index}",
        place,
        f"{known(turn.prompt_tokens)}{mark}",
        reuse,
        lost,
        _cached(turn),
        one_line(_story(turn)),
    )


def _cached(turn: Turn) -> str:
    if turn.reported_cached_tokens is None and turn.predicted_cached_tokens is None:
        return UNKNOWN
    mark = _CACHE_MARKS.get(turn.cache or "", " ")
    return f"{known(turn.reported_cached_tokens)} {mark} {known(turn.predicted_cached_tokens)}"


def _story(turn: Turn) -> str:
    """What happened at this turn, in the fewest words."""
    words = []
    if turn.problem:
        words.append(turn.problem)
    if turn.status is not None and turn.status >= 400:
        words.append(f"refused with {turn.status}")
    elif turn.outcome != "done":
        words.append(f"ended: {turn.outcome}")
    if turn.prompt_tokens is not None and (turn.rendering == "mismatch" or not turn.problem):
        words.append(_parting(turn))
    words += [note.label for note in turn.notes if note.label not in _SAID]
    if turn.residual is not None and turn.cache in ("server_less", "server_more"):
        words.append(f"hit: {turn.residual}")
    return "; ".join(words)


def _parting(turn: Turn) -> str:
    if turn.parent is None:
        return "first of its conversation"
    told = f" at {_where(turn.divergence)}" if turn.divergence else ""
    causes = [finding.cause for finding in turn.findings if finding.cause is not None]
    why = f" ({', '.join(dict.fromkeys(causes))})" if causes else ""
    return f"append{told}{why}" if turn.append else f"differs from {turn.parent}{told}{why}"


def _where(divergence: Divergence) -> str:
    char = "" if divergence.char is None else f" char {divergence.char}"
    place = f"token {divergence.token}, block {divergence.block}, {known(divergence.path)}{char}"
    if divergence.before is None or divergence.after is None:
        return place
    before, after = differing(divergence.before, divergence.after)
    return f"{place}: {side(before, _EXCERPT)} → {side(after, _EXCERPT)}"
