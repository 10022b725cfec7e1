"""The result of an earlier tool call was cleared, cut short or written anew in its place.

What differs in spaces alone is `history.reserialised`'s.
"""

from __future__ import annotations

from analyzer.causes import Example, Found
from analyzer.causes._chats import NEXT, assistant, call, chat, result, user
from analyzer.change import Change
from analyzer.compare import common_chars
from analyzer.gaps import aligned, exchanged, gap_of, given_back
from analyzer.pieces import Piece

_CALLED = (user("Read a.txt."), call('{"path": "a.txt"}'))


class HistoryToolResultEdited:
    """The result of an earlier tool call was cleared, cut short or changed"""

    name = "history.tool_result_edited"
    rank = 250
    example = Example(
        before=chat(*_CALLED, result("x " * 40)),
        after=chat(*_CALLED, result("[cleared]"), assistant("It holds x."), NEXT),
    )

    def find(self, change: Change) -> Found | None:
        """Results at the divergence on both sides, with another text."""
        gap = gap_of(change)
        if gap is None or not gap.gone or not gap.come:
            return None
        if gap.one is None:
            if not all(piece.kind == "result" for piece in (*gap.gone, *gap.come)) or not gap.resumes:
                return None
            restore, one, other, count = exchanged(change, gap), gap.gone[0], gap.come[0], 1
        elif gap.one[0].kind == "result":
            edited = [(one, other) for one, other in aligned(gap) if _is_edited(one, other)]
            restore = tuple(given_back(change, *pair) for pair in edited)
            (one, other), count = gap.one, len(edited)
        else:
            return None
        return Found(
            evidence=f"{other.path} had {len(one.text)} characters and now has {len(other.text)}"
            + (f"; {count} results changed" if count > 1 else ""),
            advice=f"leave {other.path} as it was sent; prune many results at a time, when the cache is cold"
            " or the history is compacted",
            kind=_kind(one.text, other.text),
            restore=restore,
        )


def _is_edited(one: Piece, other: Piece) -> bool:
    return one.kind == "result" and one.essence != other.essence


def _kind(before: str, after: str) -> str | None:
    if len(after) >= len(before):
        return None
    kept = common_chars(before, after)
    return "truncated" if kept >= 16 and 2 * kept >= len(after) else "placeholder"


CAUSE = HistoryToolResultEdited()
