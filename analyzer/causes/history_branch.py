"""The conversation goes another way: the user edited a message, tried again, or went back.

It is what the user wanted, and reported as expected.
"""

from __future__ import annotations

from analyzer.causes import Example, Found
from analyzer.causes._chats import assistant, chat, user
from analyzer.change import Change
from analyzer.gaps import Gap, exchanged, gap_of

_ASKED = (user("Read a.txt."), assistant("It holds x."))


class HistoryBranch:
    """The conversation goes another way from an earlier message on"""

    name = "history.branch"
    rank = 280
    example = Example(
        before=chat(*_ASKED, user("And b.txt?"), assistant("That holds y."), user("Delete it.")),
        after=chat(*_ASKED, user("And c.txt?")),
    )

    def find(self, change: Change) -> Found | None:
        """Another message in the place of one, and none of those that followed it."""
        gap = gap_of(change)
        kind = None if gap is None else _kind(gap)
        if gap is None or kind is None:
            return None
        path = (gap.come or gap.gone)[0].path
        return Found(
            evidence=f"the conversation was {kind} at {path}",
            advice=f"expected: what was said behind {path} is another conversation now",
            kind=kind,
            expected=True,
            restore=exchanged(change, gap),
        )


def _kind(gap: Gap) -> str | None:
    if gap.resumes or not gap.gone:
        return None
    if not gap.come:
        return "rewound" if gap.end_after == len(gap.after) else None
    before, after = gap.gone[0], gap.come[0]
    if before.role == after.role == "user" and before.kind == after.kind == "text":
        return "edited"
    if before.role != "assistant":
        return None
    return {"assistant": "retried", "user": "rewound"}.get(after.role)


CAUSE = HistoryBranch()
