"""What a report for people says around its rows: what it adds up to, how far to trust it, and what to know.

It words; whoever prints lays out.
"""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.report import Report, Server, Summary
from analyzer.reports._ledger import ledger_lines
from analyzer.secret_counts import secret_lines
from analyzer.wording import counted, counted_or_unknown, known

LEGEND = (
    "reuse: share of the prompt that whole blocks of the parent's prompt cover · "
    "lost: blocks of the parent that cannot be used · "
    "cached: the server's count beside the predicted one (= equal, < less, > more) · "
    "tokens: = agrees with the server, ≠ does not, ~ not checked · "
    "!: the server contradicts a rendering of this conversation, on which its numbers rest · ? not known"
)


def opening(report: Report) -> Iterator[str]:
    """What it adds up to, how far to trust it, and the server."""
    summary, server = report.summary, report.server
    held = f"{counted(report.exchanges, 'exchange')}, {counted(summary.conversations, 'conversation')}"
    yield f"{held}: {reuse(summary)}"
    yield _calibration(summary)
    version = f"{server.engine_title} {server.version}" if server.version else "server version not known"
    yield f"{version}, model {known(server.model)}, {_cache(server)}"


def _cache(server: Server) -> str:
    if server.slots is not None:
        made_of = f"{counted(server.slots, 'slot')}, blocks are single tokens"
    elif server.block_size == 1:
        made_of = f"pool of {known(server.pool_blocks)} tokens, blocks are single tokens"
    else:
        made_of = f"blocks of {server.block_size} tokens, pool of {known(server.pool_blocks)} blocks"
    if server.engine_exact:
        return made_of
    return f"{made_of}; hits predicted by {server.engine_title}'s rules, less exactly (≈)"


def reuse(summary: Summary) -> str:
    """What turns reuse, and what that costs, in one sentence."""
    if not summary.rendered:
        return "nothing rendered to compare"
    if not summary.turns:
        return "no turn has a parent to compare with"
    turns = counted(summary.turns, "turn")
    lost = counted_or_unknown(summary.invalidated_blocks, "block")
    recomputed = counted_or_unknown(summary.recomputed_tokens, "token")
    return (
        f"{known(summary.reusable_prefix_pct)} % of the prompt tokens reusable over {turns} with a parent; "
        f"{recomputed} computed again, {lost} lost"
    )


def _calibration(summary: Summary) -> str:
    unchecked = summary.rendered - summary.rendering_exact - summary.rendering_mismatch
    contradicted = ""
    if summary.conversations_mismatch:
        of_all = f"{summary.conversations_mismatch} of {counted(summary.conversations, 'conversation')}"
        contradicted = f"; {of_all} resting on renderings that the server contradicts (!)"
    return (
        f"checked against the server: {summary.rendering_exact} of {counted(summary.rendered, 'rendering')} "
        f"exact, "
        f"{summary.rendering_mismatch} mismatched, {unchecked} unchecked; "
        f"{summary.cache_exact} of {counted(summary.cache_reported, 'reported cache hit')} predicted exactly"
        f"{contradicted}"
    )


def notes(report: Report) -> Iterator[str]:
    """What was assumed, what went wrong, and what the ledger and the secrets say."""
    for assumption in report.server.assumed:
        yield f"assumed: {assumption}"
    yield from report.problems
    yield from ledger_lines(report)
    yield from secret_lines(report.secrets or ())
