"""One turn in depth, for a person: the row in words, both token sequences, and cause after cause.

It finds nothing out and hides nothing; that is done to the detail that it is given.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import set_cell_size
from rich.console import Console
from rich.padding import Padding

from analyzer.core import Finding
from analyzer.finding_words import field, label, rate_line, told
from analyzer.layout import console_of, labelled, printed
from analyzer.report import Turn
from analyzer.turn_detail import Token, TokenRow, TurnDetail
from analyzer.wording import (
    UNKNOWN,
    counted,
    counted_or_unknown,
    differing,
    duration,
    known,
    one_line,
    quoted,
    side,
)

_EXCERPT = 60
_INDEX, _ID, _WIDEST_TEXT = 7, 7, 32
_RENDERINGS = {
    "exact": "as the server counted",
    "mismatch": "not as the server counted",
    "unchecked": "the server gave no count",
}
_CACHES = {
    "exact": "exact",
    "server_less": "the server hit less",
    "server_more": "the server hit more",
    "not_reported": "the server reports none",
}


def turn_text(detail: TurnDetail, *, width: int | None, color: bool) -> str:
    """All of it as text."""
    console = console_of(width, color=color)
    turn = detail.turn
    console.print(one_line(_heading(turn)), style="bold")
    console.print(labelled(list(_facts(detail))))
    if detail.rows:
        _print_tokens(console, detail)
    if detail.parent is not None:
        _print_chain(console, detail)
    return printed(console)


def _heading(turn: Turn) -> str:
    number = f"{turn.id}" if turn.prompt_index == 0 else f"{turn.id}#{turn.prompt_index}"
    place = "" if turn.conversation is None else f", turn {turn.turn} of conversation {turn.conversation}"
    return (
        f"exchange {number}{place}: {turn.dialect}, model {known(turn.model)},"
        f" status {known(turn.status)}, {turn.outcome}"
    )


def _facts(detail: TurnDetail) -> Iterator[tuple[str, str]]:
    turn, size = detail.turn, detail.report.server.block_size
    if turn.problem:
        yield "problem", turn.problem
    yield "parent", _parent(turn, detail.parent)
    checked = _RENDERINGS.get(turn.rendering or "", "not rendered")
    source = f", ids from {turn.token_source}" if turn.token_source else ""
    yield "prompt", f"{counted_or_unknown(turn.prompt_tokens, 'token')}{source}; {checked}"
    if turn.reported_prompt_tokens is not None and turn.rendering == "mismatch":
        yield "reported", counted(turn.reported_prompt_tokens, "token")
    if detail.parent is not None:
        yield (
            "reuse",
            f"{known(turn.reusable_tokens)} tokens ({known(turn.reusable_prefix_pct)} %),"
            f" {known(turn.reusable_blocks)} of {known(turn.prompt_blocks)} blocks of {size};"
            f" {counted_or_unknown(turn.invalidated_blocks, 'block')} of the parent lost",
        )
    verdict = _CACHES.get(turn.cache or "", "nothing predicted")
    yield (
        "cached",
        f"{known(turn.predicted_cached_tokens)} tokens predicted,"
        f" {known(turn.reported_cached_tokens)} reported: {verdict}",
    )
    if turn.first_token_ns is not None:
        yield "first token", f"after {duration(turn.first_token_ns / 1e9)}"
    yield from _parting(detail)


def _parent(turn: Turn, parent: Turn | None) -> str:
    if parent is None:
        first = turn.conversation is not None
        return "none: the first of its conversation" if first else "none: nothing was rendered to compare"
    return f"exchange {parent.id}, {counted_or_unknown(parent.prompt_tokens, 'token')}"


def _parting(detail: TurnDetail) -> Iterator[tuple[str, str]]:
    turn, divergence, size = detail.turn, detail.turn.divergence, detail.report.server.block_size
    if detail.parts_at is None:
        return
    if divergence is None:
        yield "append", f"it begins with all of the parent's prompt, up to token {detail.parts_at}"
        return
    char = "" if divergence.char is None else f" char {divergence.char}"
    inside = counted(divergence.token % size, "token")
    yield (
        "append at" if turn.append else "leaves at",
        f"token {divergence.token}, {inside} into block {divergence.block}; {known(divergence.path)}{char}",
    )
    if not turn.findings and divergence.before is not None and divergence.after is not None:
        before, after = differing(divergence.before, divergence.after)
        yield "before", side(before, _EXCERPT)
        yield "after", side(after, _EXCERPT)


def _print_tokens(console: Console, detail: TurnDetail) -> None:
    assert detail.parent is not None
    size, limit = detail.report.server.block_size, _text_width(console)
    column = _ID + 1 + limit
    console.print()
    console.print(
        "tokens of both: = equal, ≠ different, + only in this one, - only in the parent", style="bold"
    )
    heads = f"parent {detail.parent.id}", f"exchange {detail.turn.id}"
    console.print(
        f"{' ' * (_INDEX + 3)}{_cell(heads[0], column)} {_cell(heads[1], column)}".rstrip(), style="dim"
    )
    for at, row in enumerate(detail.rows):
        if row.index % size == 0 or at == 0:
            goes_on = "" if row.index % size == 0 else f" (from token {row.index // size * size})"
            console.print(f"-- block {row.index // size}{goes_on}", style="dim")
        console.print(_token_line(row, limit), soft_wrap=True)


def _text_width(console: Console) -> int:
    """Columns for the text of a token, which stands on the line twice."""
    return min(_WIDEST_TEXT, (console.width - _INDEX - 3 - 2 * (_ID + 1) - 1) // 2)


def _token_line(row: TokenRow, limit: int) -> str:
    both = " ".join(_token_cell(token, limit) for token in (row.parent, row.child))
    return f"{row.index:>{_INDEX}} {row.mark} {both}".rstrip()


def _token_cell(token: Token | None, limit: int) -> str:
    if token is None:
        return _cell("", _ID + 1 + limit)
    text = UNKNOWN if token.text is None else quoted(token.text, limit - 2)
    return f"{token.id:>{_ID}} {_cell(text, limit)}"


def _cell(text: str, width: int) -> str:
    return set_cell_size(text, width)


def _print_chain(console: Console, detail: TurnDetail) -> None:
    findings = detail.turn.findings
    console.print()
    if not findings:
        console.print(_no_finding(detail.turn))
        return
    console.print(
        f"why, and what each costs alone ({rate_line(detail.report.summary.prefill_rate)}):", style="bold"
    )
    for number, finding in enumerate(findings, start=1):
        console.print(f"{number}. {label(finding)}: {_step(finding)}")
        rows = [("field", field(finding)), *told(finding, _gain(finding))]
        console.print(Padding(labelled(rows), (0, 0, 0, 3)))


def _no_finding(turn: Turn) -> str:
    if turn.append:
        return "no findings: nothing that was sent before was changed"
    return "no findings: only token ids are known here, or finding out why failed"


def _step(finding: Finding) -> str:
    """How far restoring this one, after those before it, brings the prompt along its parent's."""
    if finding.tokens is None:
        return f"leaves at token {finding.token}; restoring it could not be tried"
    return (
        f"leaves at token {finding.token}; restored, both agree up to token {finding.token + finding.tokens}:"
        f" {counted(finding.tokens, 'token')}, {counted_or_unknown(finding.blocks, 'block')},"
        f" {duration(finding.seconds)}"
    )


def _gain(finding: Finding) -> str | None:
    if not finding.tokens or finding.expected:
        return None
    return f"fix this and keep {counted(finding.tokens, 'more token')}"
