"""What the formats of blocks have in common: which rows they take, and what they say of the rest.

It knows no format's fields.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from analyzer.exports import Row


def take(rows: Sequence[Row], fits: Callable[[Row], bool], why: str, notes: list[str]) -> list[Row]:
    """The rows that fit; the others are counted among the notes, with the reason."""
    kept = [row for row in rows if fits(row)]
    if left_out := len(rows) - len(kept):
        notes.append(f"{left_out} of {len(rows)} prompts left out: {why}")
    return kept


def rendered(rows: Sequence[Row], notes: list[str]) -> list[Row]:
    """The rows whose tokens are known, and tell their blocks apart."""
    known = take(
        rows, lambda row: row.token_ids is not None, "not rendered, so their tokens are not known", notes
    )
    return take(
        known, lambda row: not row.media, "images or sounds are in them, which no block number shows", notes
    )


def answered(rows: Sequence[Row], notes: list[str]) -> list[Row]:
    """The rows whose answer was counted."""
    why = "nobody counted the tokens of their answers, which this format requires"
    return take(rows, lambda row: row.output_tokens is not None, why, notes)


def seconds(row: Row, start_ns: int) -> float:
    """When it began, in seconds after `start_ns`, to the microsecond."""
    return round((row.turn.started_at_ns - start_ns) / 1e9, 6)


def line(shape: dict[str, Any]) -> str:
    """A JSON object on one line, in ASCII."""
    return json.dumps(shape, separators=(", ", ": "))


def ancestors(row: Row, by_key: dict[tuple[int, int], Row]) -> Iterator[Row]:
    """A row's parent, its parent's parent, and so on."""
    while row.parent is not None and row.parent in by_key:
        row = by_key[row.parent]
        yield row
