"""A message within the history is gone: a failed turn, or one that a layer in the middle had added.

Messages gone from the front are `history.front_truncated`'s.
"""

from __future__ import annotations

from analyzer.causes import Example, Found
from analyzer.causes._chats import NEXT, assistant, chat, user
from analyzer.causes._wholes import messages_in
from analyzer.change import Change
from analyzer.gaps import Gap, exchanged, gap_of, is_whole

_ASKED = (user("Read a.txt."), assistant("It holds x."))


class HistoryMessageDropped:
    """A message within the history is gone, and the rest is as it was"""

    name = "history.message_dropped"
    rank = 260
    example = Example(
        before=chat(*_ASKED, user("Keep going."), assistant("And b.txt holds y.")),
        after=chat(*_ASKED, assistant("And b.txt holds y."), NEXT),
    )

    def find(self, change: Change) -> Found | None:
        """Whole messages gone; or the parent's last, of a user, with an answer in its place."""
        gap = gap_of(change)
        if gap is None or not (_is_dropped(gap) or _is_nudge(gap)):
            return None
        path = (gap.gone or gap.before[gap.start_before :])[0].path
        return Found(
            evidence=f"{path} of the request before is gone, and what follows is still there",
            advice="compare what the client sends with what arrives here: something between them"
            f" may add {path}",
            restore=exchanged(change, gap),
        )


def _is_dropped(gap: Gap) -> bool:
    whole = is_whole(gap.before, gap.start_before, gap.end_before)
    return bool(gap.gone) and not gap.come and gap.resumes and whole and messages_in(gap.gone) > 0


def _is_nudge(gap: Gap) -> bool:
    """Whether the parent's last message is no model's, and the child has one of another role in its place."""
    last = gap.before[gap.start_before :]
    if not last or not gap.come or any(piece.role == "assistant" for piece in last):
        return False
    return messages_in(last) == 1 and gap.come[0].role != last[0].role


CAUSE = HistoryMessageDropped()
