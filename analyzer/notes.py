"""What is worth knowing of a row besides its numbers: how it was paired, and what its template did with it.

A note blames nothing and costs nothing; what lost tokens is a finding (`analyzer.causes`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.report import Note
from analyzer.turns import Placed

RETRY_NS = 10 * 10**9
"""An equal request that begins so soon after the one before began or ended is another attempt at it."""


TEMPLATE_FAILED = "the chat template failed"
"""How the problem of a row begins whose template raised an error."""

TEMPLATE_ERROR = "template.error"


def notes_of(rows: Sequence[Placed]) -> list[tuple[Note, ...]]:
    """The notes of each row, in the order of the rows' starts."""
    last: dict[tuple[str, int, int], tuple[Placed, int]] = {}
    found = []
    for row in rows:
        source = row.prompt.source
        key = source.exchange.path, source.body_hash, row.prompt.index
        before, attempts = last.get(key, (None, 0))
        retries = before is not None and source.body_hash != 0 and _soon_after(before, row)
        last[key] = row, attempts + 1 if retries else 1
        found.append(tuple(_notes(row, before if retries else None, last[key][1])))
    return found


def _soon_after(before: Placed, row: Placed) -> bool:
    earlier = before.prompt.source.exchange
    end = earlier.started_at_ns + (earlier.duration_ns or 0)
    return row.prompt.source.exchange.started_at_ns <= end + RETRY_NS


def _notes(row: Placed, retried: Placed | None, attempt: int) -> Iterator[Note]:
    prompt = row.prompt
    if retried is not None:
        number = retried.prompt.source.exchange.id
        yield Note(label="pair.retry", text=f"attempt {attempt}: the same request as {number}, seconds later")
    elif row.place is not None and row.place.parent is None:
        yield Note(label="pair.first", text="the first of its conversation; there is nothing to compare with")
    if prompt.source.redacted and prompt.rendering is not None:
        yield Note(
            label="capture.redacted",
            text="secrets in the body were replaced before it was written:"
            " these are not the tokens that the server was sent",
        )
    if prompt.problem is not None and prompt.problem.startswith(TEMPLATE_FAILED):
        told = "the arguments of tool calls were given to it parsed, as the server does"
        yield Note(label=TEMPLATE_ERROR, text=f"{prompt.problem}; {told}")
    elif prompt.rendering is not None and prompt.traits.inline_system:
        yield Note(
            label="template.system_inline",
            text="a system message within the conversation is rendered in its place, which keeps the cache"
            " and is new to some models",
        )
