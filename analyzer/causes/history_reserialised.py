"""An earlier message says the same in another spelling: spaces, the JSON of its arguments, its division.

That the template prints a list of parts otherwise than a string is the template's cause.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

from analyzer.body_paths import Edit
from analyzer.causes import Example, Found
from analyzer.causes._chats import NEXT, assistant, chat, user
from analyzer.change import Change
from analyzer.gaps import Gap, aligned, divided_otherwise, exchanged, gap_of, given_back
from analyzer.pieces import Piece

type Spelling = Literal["whitespace", "tool_args", "shape"]

_TOLD: dict[Spelling, str] = {
    "whitespace": "differs in spaces or line breaks alone",
    "tool_args": "holds the same arguments, written otherwise",
    "shape": "says the same, divided otherwise",
}


class HistoryReserialised:
    """An earlier message says the same in another spelling"""

    name = "history.reserialised"
    rank = 95
    example = Example(
        before=chat(user("<note>x</note>\n"), assistant("Yes.")),
        after=chat(user("<note>x</note>"), assistant("Yes."), NEXT),
    )

    def find(self, change: Change) -> Found | None:
        """Pieces that are equal once spaces and JSON are normalised, or once they are joined."""
        gap = gap_of(change)
        if gap is None:
            divided = divided_otherwise(change)
            return divided and _found(divided[0], "shape", restore=(divided[1],), count=1)
        if gap.one is None:
            return self._divided(change, gap)
        kind = _spelling(*gap.one)
        if kind is None:
            return self._divided(change, gap)
        alike = [(one, other) for one, other in aligned(gap) if _spelling(one, other) == kind]
        restore = tuple(given_back(change, one, other) for one, other in alike)
        return _found(gap.one[1].path, kind, restore=restore, count=len(alike))

    def _divided(self, change: Change, gap: Gap) -> Found | None:
        """The same words in other pieces; within one message only where they changed their kind."""
        if not gap.gone or not gap.come or _words(gap.gone) != _words(gap.come):
            return None
        kinds = [{(piece.kind, piece.role) for piece in side} for side in (gap.gone, gap.come)]
        items = [{piece.item for piece in side} for side in (gap.gone, gap.come)]
        if kinds[0] == kinds[1] and len(items[0]) == len(items[1]):
            return None
        return _found(gap.come[0].path, "shape", restore=exchanged(change, gap), count=1)


def _found(path: str, kind: Spelling, *, restore: tuple[Edit, ...], count: int) -> Found:
    many = f", as do {count - 1} more behind it" if count > 1 else ""
    return Found(
        evidence=f"{path} {_TOLD[kind]}{many}",
        advice=f"keep the bytes of {path} as they were first sent, and send those again",
        kind=kind,
        restore=restore,
    )


def _spelling(one: Piece, other: Piece) -> Spelling | None:
    if one.exact == other.exact or one.kind == "media":
        return None
    if one.kind == "call":
        return "tool_args" if _same_arguments(one.text, other.text) else None
    if "".join(one.text.split()) == "".join(other.text.split()):
        return "whitespace"
    return "shape" if one.essence == other.essence else None


def _same_arguments(one: str, other: str) -> bool:
    try:
        return bool(json.loads(one) == json.loads(other))
    except (ValueError, RecursionError):
        return "".join(one.split()) == "".join(other.split())


def _words(pieces: Sequence[Piece]) -> str:
    texts = (piece.text.replace("<think>", "").replace("</think>", "") for piece in pieces)
    return "".join("".join(text.split()) for text in texts)


CAUSE = HistoryReserialised()
