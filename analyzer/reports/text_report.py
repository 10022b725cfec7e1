"""The report for people: what it adds up to, how far to trust it, a row a turn, and what was in the way.

Laid out with rich; colour only repeats what a word or sign says already.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from analyzer.core import Divergence
from analyzer.report import Counters, PoolSweep, Report, Server, Summary, Turn
from analyzer.reports._findings import finding_lines
from analyzer.residuals import LABELS

PLAIN_WIDTH = 120
"""Columns where there is no terminal to ask."""

_NARROWEST = 60
"""Columns below which no cell could be read; lines then run over."""

UNKNOWN = "?"
_MARKS = {"exact": "=", "mismatch": "≠", "unchecked": "~"}
_CACHE_MARKS = {"exact": "=", "server_less": "<", "server_more": ">"}
_LEGEND = (
    "reuse: share of the prompt that whole blocks of the parent's prompt cover · "
    "lost: blocks of the parent that cannot be used · "
    "cached: the server's count beside the predicted one (= equal, < less, > more) · "
    "tokens: = agrees with the server, ≠ does not, ~ not checked · "
    "!: the server contradicts a rendering of this conversation, on which its numbers rest · ? not known"
)


class TextReport:
    """A table for people."""

    name = "text"

    def format(self, report: Report, *, width: int | None, color: bool) -> str:
        """Summary, calibration, a row a turn, then notes."""
        console = Console(
            file=io.StringIO(),
            width=max(width or PLAIN_WIDTH, _NARROWEST),
            force_terminal=color,
            no_color=not color,
            highlight=False,
            legacy_windows=False,
        )
        for line in _opening(report):
            console.print(escape(line), soft_wrap=True)  # a line each, whoever reads them
        if report.turns:
            console.print(_table(report))
            console.print(_LEGEND, style="dim")
        for line in finding_lines(report):
            console.print(escape(line))
        if report.pool_sweep:
            console.print(_sweep_table(report.pool_sweep, report.server.pool_blocks))
            console.print(escape(_sweep_story(report.pool_sweep, report.server.pool_blocks)))
        for line in _notes(report):
            console.print(escape(line))
        text = console.file.getvalue()  # type: ignore[attr-defined]
        return "\n".join(line.rstrip() for line in text.split("\n"))


def _opening(report: Report) -> Iterator[str]:
    summary, server = report.summary, report.server
    held = f"{_counted(report.exchanges, 'exchange')}, {_counted(summary.conversations, 'conversation')}"
    yield f"{held}: {_reuse(summary)}"
    yield _calibration(summary)
    version = f"{server.engine_title} {server.version}" if server.version else "server version not known"
    yield f"{version}, model {_known(server.model)}, {_cache(server)}"


def _cache(server: Server) -> str:
    if server.slots is not None:
        made_of = f"{_counted(server.slots, 'slot')}, blocks are single tokens"
    elif server.block_size == 1:
        made_of = f"pool of {_known(server.pool_blocks)} tokens, blocks are single tokens"
    else:
        made_of = f"blocks of {server.block_size} tokens, pool of {_known(server.pool_blocks)} blocks"
    return (
        made_of
        if server.engine_exact
        else f"{made_of}; hits predicted by {server.engine_title}'s rules, less exactly (≈)"
    )


def _reuse(summary: Summary) -> str:
    if not summary.rendered:
        return "nothing rendered to compare"
    if not summary.turns:
        return "no turn has a parent to compare with"
    turns = _counted(summary.turns, "turn")
    lost = UNKNOWN if summary.invalidated_blocks is None else _counted(summary.invalidated_blocks, "block")
    recomputed = (
        UNKNOWN if summary.recomputed_tokens is None else _counted(summary.recomputed_tokens, "token")
    )
    return (
        f"{_known(summary.reusable_prefix_pct)} % of the prompt tokens reusable over {turns} with a parent; "
        f"{recomputed} computed again, {lost} lost"
    )


def _calibration(summary: Summary) -> str:
    unchecked = summary.rendered - summary.rendering_exact - summary.rendering_mismatch
    contradicted = ""
    if summary.conversations_mismatch:
        of_all = f"{summary.conversations_mismatch} of {_counted(summary.conversations, 'conversation')}"
        contradicted = f"; {of_all} resting on renderings that the server contradicts (!)"
    return (
        f"checked against the server: {summary.rendering_exact} of {_counted(summary.rendered, 'rendering')} "
        f"exact, "
        f"{summary.rendering_mismatch} mismatched, {unchecked} unchecked; "
        f"{summary.cache_exact} of {_counted(summary.cache_reported, 'reported cache hit')} predicted exactly"
        f"{contradicted}"
    )


def _table(report: Report) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading, justify in (
        ("id", "right"),
        ("conv", "right"),
        ("tokens", "right"),
        ("reuse", "right"),
        ("lost", "right"),
        ("cached" if report.server.engine_exact else "cached ≈", "right"),
        ("first divergence", "left"),
    ):
        last = heading == "first divergence"
        table.add_column(heading, justify=justify, no_wrap=not last, overflow="fold")  # type: ignore[arg-type]
    for turn in report.turns:
        table.add_row(*(escape(_one_line(cell)) for cell in _cells(turn)))
    return table


def _cells(turn: Turn) -> tuple[str, ...]:
    place = UNKNOWN if turn.conversation is None else f"{turn.conversation}.{turn.turn}"
    if turn.conversation_rendering == "mismatch":
        place += "!"
    reuse = "" if turn.parent is None else f"{_known(turn.reusable_prefix_pct)} %"
    lost = "" if turn.parent is None else _known(turn.invalidated_blocks)
    mark = _MARKS.get(turn.rendering or "", "")
    return (
        f"{turn.id}" if turn.prompt_index == 0 else f"{turn.id}#{turn.prompt_index}",
        place,
        f"{_known(turn.prompt_tokens)}{mark}",
        reuse,
        lost,
        _cached(turn),
        _story(turn),
    )


def _cached(turn: Turn) -> str:
    if turn.reported_cached_tokens is None and turn.predicted_cached_tokens is None:
        return UNKNOWN
    mark = _CACHE_MARKS.get(turn.cache or "", " ")
    return f"{_known(turn.reported_cached_tokens)} {mark} {_known(turn.predicted_cached_tokens)}"


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
    if turn.residual is not None and turn.cache in ("server_less", "server_more"):
        words.append(f"hit: {turn.residual}")
    return "; ".join(words)


def _parting(turn: Turn) -> str:
    if turn.parent is None:
        return "first of its conversation"
    told = f" at {_where(turn.divergence)}" if turn.divergence else ""
    return f"append{told}" if turn.append else f"differs from {turn.parent}{told}"


def _where(divergence: Divergence) -> str:
    char = "" if divergence.char is None else f" char {divergence.char}"
    place = f"token {divergence.token}, block {divergence.block}, {_known(divergence.path)}{char}"
    if divergence.before is None or divergence.after is None:
        return place
    return f"{place}: {_shown(divergence.before)} → {_shown(divergence.after)}"


def _shown(text: str) -> str:
    """One line of a text, control characters made visible."""
    return '"' + text[:28].encode("unicode_escape").decode().encode("ascii", "replace").decode() + '"'


def _sweep_table(sweep: PoolSweep, today: int | None) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("pool blocks", "hit tokens", "hit rate"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("")
    for size in sweep.sizes:
        told = {
            "today": size.pool_blocks == today,
            "too small for the largest request": size.pool_blocks < sweep.smallest_pool_blocks,
            "the largest request just fits": size.pool_blocks == sweep.smallest_pool_blocks,
            "a larger pool gains nothing": size.pool_blocks == sweep.saturated_pool_blocks,
        }
        meaning = "; ".join(words for words, applies in told.items() if applies)
        rate = f"{_known(size.hit_pct)} %"
        table.add_row(str(size.pool_blocks), _known(size.hit_tokens), rate, meaning)
    return table


def _sweep_story(sweep: PoolSweep, today: int | None) -> str:
    now = next((size.hit_pct for size in sweep.sizes if size.pool_blocks == today), None)
    larger = _points(now, sweep.unlimited_hit_pct)
    better = _points(sweep.unlimited_hit_pct, sweep.append_hit_pct)
    return (
        f"hit rate, of {_counted(sweep.prompt_tokens, 'prompt token')}: {_known(now)} % today · "
        f"{_known(sweep.unlimited_hit_pct)} % in a pool without limit ({larger} by a larger pool, at most) · "
        f"{_known(sweep.append_hit_pct)} % in one if every turn kept all of its parent's prompt "
        f"({better} by better prompts, at most)"
    )


def _points(before: float | None, after: float | None) -> str:
    return UNKNOWN if before is None or after is None else f"+{after - before:.1f} points"


def _notes(report: Report) -> Iterator[str]:
    for assumption in report.server.assumed:
        yield f"assumed: {assumption}"
    for assumption in report.pool_sweep.assumed if report.pool_sweep else ():
        yield f"pool sizes assume: {assumption}"
    yield from report.problems
    if report.server.metrics is not None:
        yield from _counters(report.server.metrics)
    found = Counter(turn.residual for turn in report.turns if turn.cache in ("server_less", "server_more"))
    for name, count in sorted((name, count) for name, count in found.items() if name is not None):
        yield f"{name}: {_counted(count, 'hit')} unlike the prediction; {LABELS[name]}"


def _counters(counters: Counters) -> Iterator[str]:
    """What the server counted itself, where that can be said of this capture."""
    if counters.restarts:
        yield f"the server was started anew {_counted(counters.restarts, 'time')} in this capture"
    if counters.cached_before:
        yield "the server had served other prompts before this capture began: it may hit more than predicted"
    own = f"the server counted {_known(counters.hits)} of {_known(counters.queries)} prompt tokens as cached"
    here = f"{_known(counters.predicted_hits)} of {_known(counters.captured_queries)} by this capture"
    match counters.verdict:
        case "agree":
            yield f"{own}, as predicted"
        case "other_traffic":
            yield f"{own}, {here}: other traffic was there"
        case "differ":
            yield f"{own}, {here}"
        case None:
            pass


def _one_line(text: str) -> str:
    """A text of whoever wrote it, without what would move the cursor or end the line."""
    return "".join(char if char.isprintable() else " " for char in text)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _known(value: object) -> str:
    return UNKNOWN if value is None else str(value)


REPORT = TextReport()
