"""One turn in depth: both token sequences around the place where it leaves its parent's prompt.

It takes what an analysis has found; it renders and judges nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from analyzer.core import TokenIds
from analyzer.pipeline import Analysis
from analyzer.prompts import Prompt
from analyzer.report import Report, Turn
from analyzer.token_text import TokenText
from analyzer.turns import Placed

TOKENS_BEFORE, TOKENS_AFTER = 6, 12
"""Tokens that are shown of both prompts, before the divergence and from it on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One token; `text` is None where there is no tokenizer to ask."""

    id: int
    text: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRow:
    """What both prompts hold at one token index; None behind a prompt's end."""

    index: int
    parent: Token | None
    child: Token | None

    @property
    def mark(self) -> Literal["=", "≠", "+", "-"]:
        """Whether both hold the same token, another, or one of them alone: `+` the child, `-` the parent."""
        if self.parent is None or self.child is None:
            return "+" if self.parent is None else "-"
        return "=" if self.parent.id == self.child.id else "≠"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnDetail:
    """A turn with its parent, and the tokens of both around `parts_at`, the first that differs.

    `rows` are empty and `parts_at` is None where there is no parent, or nothing was rendered.
    """

    report: Report
    turn: Turn
    parent: Turn | None
    parts_at: int | None
    rows: tuple[TokenRow, ...]


def turn_detail(analysis: Analysis, exchange_id: int, prompt_index: int) -> TurnDetail:
    """The detail of one row. Raises LookupError, saying which there are, where it is none."""
    pairs = zip(analysis.report.turns, analysis.placed, strict=True)
    found = [(turn, placed) for turn, placed in pairs if turn.id == exchange_id]
    chosen = next((pair for pair in found if pair[0].prompt_index == prompt_index), None)
    if chosen is None:
        raise LookupError(_missing(analysis.report, exchange_id, prompt_index, [turn for turn, _ in found]))
    turn, placed = chosen
    if placed.relation is None:
        return TurnDetail(report=analysis.report, turn=turn, parent=None, parts_at=None, rows=())
    parent = placed.relation.parent
    return TurnDetail(
        report=analysis.report,
        turn=turn,
        parent=next(row for row in analysis.report.turns if (row.id, row.prompt_index) == parent.key),
        parts_at=placed.relation.common_tokens,
        rows=tuple(_rows(placed, parent, _decoder(analysis))),
    )


def _missing(report: Report, exchange_id: int, prompt_index: int, rows: Sequence[Turn]) -> str:
    if rows:
        return f"exchange {exchange_id} has no prompt {prompt_index}; it has {len(rows)}, from 0 on"
    if not report.turns:
        return f"the capture has no exchange {exchange_id}: it is empty"
    ids = [turn.id for turn in report.turns]
    listed = f"`locality report` lists those from {min(ids)} to {max(ids)}"
    return f"the capture has no exchange {exchange_id}; {listed}"


def _decoder(analysis: Analysis) -> Callable[[int], str | None]:
    """What gives a token's text; always None where the tokenizer keeps none in tokenizer.json."""
    tokenizer = analysis.tokenizer
    if tokenizer is None or not (tokenizer.directory / "tokenizer.json").is_file():
        return lambda token_id: None
    texts = TokenText(tokenizer.directory)
    return lambda token_id: texts.decode([token_id])


def _rows(placed: Placed, parent: Prompt, text_of: Callable[[int], str | None]) -> Iterator[TokenRow]:
    assert placed.relation is not None
    ours, theirs = _ids(placed.prompt), _ids(parent)
    parts_at = placed.relation.common_tokens

    def token(ids: TokenIds, index: int) -> Token | None:
        return Token(id=int(ids[index]), text=text_of(int(ids[index]))) if index < len(ids) else None

    end = min(max(len(ours), len(theirs)), parts_at + TOKENS_AFTER)
    for index in range(max(0, parts_at - TOKENS_BEFORE), end):
        yield TokenRow(index=index, parent=token(theirs, index), child=token(ours, index))


def _ids(prompt: Prompt) -> TokenIds:
    assert prompt.rendering is not None
    return prompt.rendering.token_ids
