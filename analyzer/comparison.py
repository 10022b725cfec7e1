"""Two captures of the same task side by side: how much of their prompts is reusable, and what was in the way.

It compares totals, never texts; whether the task was the same is the reader's to know.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from analyzer.report import CauseTotal, Report

type Side = Literal["a", "b"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CausePair:
    """What one cause cost on either side; None where it did not occur."""

    cause: str | None
    a: CauseTotal | None
    b: CauseTotal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two reports. `better` is the side that reuses a larger share and computes less again.

    It is `neither` where they are equal or the two signs disagree, None where a share is not known.
    `cautions` say what makes them hard to compare.
    """

    a: Report
    b: Report
    causes: tuple[CausePair, ...]
    better: Side | Literal["neither"] | None
    cautions: tuple[str, ...]


def compare(a: Report, b: Report) -> Comparison:
    """Two reports side by side; causes are ordered by what they cost on both sides together."""
    causes = tuple(
        sorted(_pairs(a, b), key=lambda pair: (-_tokens(pair.a) - _tokens(pair.b), pair.cause or ""))
    )
    return Comparison(a=a, b=b, causes=causes, better=_better(a, b), cautions=tuple(_cautions(a, b)))


def _pairs(a: Report, b: Report) -> Iterator[CausePair]:
    of_a, of_b = ({total.cause: total for total in report.summary.causes} for report in (a, b))
    for cause in of_a | of_b:
        yield CausePair(cause=cause, a=of_a.get(cause), b=of_b.get(cause))


def _tokens(total: CauseTotal | None) -> int:
    return 0 if total is None else total.tokens


def _better(a: Report, b: Report) -> Side | Literal["neither"] | None:
    share_a, share_b = a.summary.reusable_prefix_pct, b.summary.reusable_prefix_pct
    again_a, again_b = a.summary.recomputed_tokens, b.summary.recomputed_tokens
    if share_a is None or share_b is None or again_a is None or again_b is None:
        return None
    gained, saved = share_b - share_a, again_a - again_b
    if gained >= 0 and saved >= 0 and (gained or saved):
        return "b"
    return "a" if gained <= 0 and saved <= 0 and (gained or saved) else "neither"


def _cautions(a: Report, b: Report) -> Iterator[str]:
    for what, of_a, of_b in (
        ("block sizes", a.server.block_size, b.server.block_size),
        ("pools", a.server.pool_blocks, b.server.pool_blocks),
        ("models", a.server.model, b.server.model),
        ("server versions", a.server.version, b.server.version),
        ("engines", a.server.engine, b.server.engine),
        ("numbers of turns", a.summary.turns, b.summary.turns),
    ):
        if of_a != of_b:
            yield f"{what} differ: {_told(of_a)} in A, {_told(of_b)} in B"
    for name, report in (("A", a), ("B", b)):
        if report.summary.rendering_mismatch:
            told = f"{report.summary.rendering_mismatch} of {report.summary.rendered}"
            yield f"{told} renderings of {name} are not the server's"


def _told(value: object) -> str:
    return "not known" if value is None else str(value)
