"""The history was replaced by a summary: one large loss, after which turns append again.

It is the price of a shorter prompt, and reported as expected.
"""

from __future__ import annotations

from analyzer.causes import Example, Found
from analyzer.causes._chats import NEXT, assistant, chat, user
from analyzer.causes._heads import SYSTEM
from analyzer.causes._wholes import LONG, is_summary, kept_share, messages_in
from analyzer.change import Change
from analyzer.gaps import Gap, exchanged, gap_of
from analyzer.pieces import Piece

_LONG = (user("Read a.txt."), assistant("It holds x."), user("And b.txt?"), assistant("That holds y."))


class HistoryCompacted:
    """The history was replaced by a summary"""

    name = "history.compacted"
    rank = 105
    example = Example(
        before=chat(*_LONG), after=chat(user("Summary so far: a.txt holds x, b.txt holds y."), NEXT)
    )

    def find(self, change: Change) -> Found | None:
        """Most of the parent's messages gone, a text like a summary in their place, and fewer messages."""
        gap = gap_of(change)
        if gap is None or not _is_compacted(gap):
            return None
        return Found(
            evidence=f"{messages_in(gap.gone)} messages were replaced by a summary",
            advice=f"expected once; compact seldom and leave what is in front of {gap.come[0].path}",
            expected=True,
            restore=exchanged(change, gap),
        )


def _is_compacted(gap: Gap) -> bool:
    if not gap.come or messages_in(gap.after) >= messages_in(gap.before) or kept_share(gap) > 0.5:
        return False
    gone = messages_in(gap.gone)
    texts = [piece for piece in gap.come if piece.kind == "text"]
    if gone > 1 and any(is_summary(_new_text(gap, piece)) for piece in texts[:3]):
        return True
    # Without a word of it: one long text for many messages, that is no new wording of the first of them.
    long = bool(texts) and len(texts[0].text) > max(LONG, 2 * len(gap.gone[0].text))
    return gone > 3 and long and texts[0].role not in SYSTEM


def _new_text(gap: Gap, piece: Piece) -> str:
    """What a text says that the parent's first text here did not: a summary may stand behind it."""
    known = gap.gone[0].text if gap.gone else ""
    return piece.text[len(known) :] if known and piece.text.startswith(known) else _if_spoken(piece)


def _if_spoken(piece: Piece) -> str:
    return "" if piece.role in SYSTEM and piece.item in (None, 0) else piece.text


CAUSE = HistoryCompacted()
