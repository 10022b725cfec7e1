"""The oldest messages are gone and the rest goes on: a window that slides, at every turn if it is full.

A summary in their place is `history.compacted`'s.
"""

from __future__ import annotations

from analyzer.causes import Example, Found
from analyzer.causes._chats import NEXT, assistant, chat, user
from analyzer.causes._wholes import at_front, is_note, messages_in
from analyzer.change import Change
from analyzer.gaps import Gap, exchanged, gap_of, is_whole

_FIRST = (user("Read a.txt."), assistant("It holds x."))
_SECOND = (user("And b.txt?"), assistant("That holds y."))


class HistoryFrontTruncated:
    """The oldest messages are gone, and the rest goes on"""

    name = "history.front_truncated"
    rank = 100
    example = Example(before=chat(*_FIRST, *_SECOND), after=chat(*_SECOND, NEXT))

    def find(self, change: Change) -> Found | None:
        """Messages gone at the front, at most a short note in their place, and the others as they were."""
        gap = gap_of(change)
        if gap is None or not _is_truncated(gap):
            return None
        gone = messages_in(gap.gone)
        return Found(
            evidence=f"the {gone} oldest messages are gone, and the later ones are still there",
            advice="give the client a longer context, and let it drop more at a time"
            f" from {gap.gone[0].path} on",
            restore=exchanged(change, gap),
        )


def _is_truncated(gap: Gap) -> bool:
    if not gap.resumes or not gap.gone or not is_whole(gap.before, gap.start_before, gap.end_before):
        return False
    if all(piece.role in ("system", "developer") for piece in gap.gone) or not at_front(gap):
        return False
    if not gap.come:
        return True
    note = len(gap.come) == 1 and messages_in(gap.gone) > 1 and gap.come[0].kind == "text"
    return note and is_note(gap.come[0].text)


CAUSE = HistoryFrontTruncated()
