"""An earlier message was changed in a way that has no better name.

Asked last, so that no change of the client's stays without one.
"""

from __future__ import annotations

from analyzer.body_paths import Edit
from analyzer.causes import Example, Found
from analyzer.causes._chats import NEXT, assistant, chat, user
from analyzer.causes._heads import short
from analyzer.change import Change
from analyzer.gaps import exchanged, gap_of, given_back

_REST = (assistant("It holds x."), user("And b.txt?"), assistant("That holds y."))


class HistoryEdited:
    """An earlier message was changed, added or cut in a way that has no better name"""

    name = "history.edited"
    rank = 900
    example = Example(
        before=chat(user("Read the file a.txt."), *_REST),
        after=chat(user("Show me the file a.txt."), *_REST, NEXT),
    )

    def find(self, change: Change) -> Found | None:
        """Any difference of what was sent that lies at the divergence."""
        gap = gap_of(change)
        if gap is None:
            return None
        if gap.one is not None:
            before, after = gap.one
            restore: tuple[Edit, ...] = (given_back(change, before, after),)
            told = f"{short(before.text)} became {short(after.text)}"
        else:
            restore = exchanged(change, gap)
            told = f"{len(gap.gone)} parts of the history are gone and {len(gap.come)} came in their place"
        path = (gap.come or gap.gone)[0].path
        return Found(
            evidence=told,
            advice=f"send {path} again as it was first sent",
            kind=None if gap.gone and gap.come else "inserted" if gap.come else "removed",
            restore=restore,
        )


CAUSE = HistoryEdited()
