"""The client no longer sends the reasoning of an earlier answer, which it sent before.

Reasoning that is sent and not printed is the template's cause; that of a response alone is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from analyzer.body_paths import Edit, parse_path, value_at
from analyzer.causes import Example, Found
from analyzer.causes._chats import NEXT, assistant, chat, user
from analyzer.change import Change
from analyzer.gaps import Gap, aligned, gap_of, given_back
from analyzer.pieces import Piece

_THOUGHTS = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_ASKED = user("How many files?")


class HistoryReasoningDropped:
    """The client no longer sends the reasoning of an earlier answer"""

    name = "history.reasoning_dropped"
    rank = 210
    example = Example(
        before=chat(_ASKED, assistant("Two.", reasoning="I counted them.")),
        after=chat(_ASKED, assistant("Two."), NEXT),
    )

    def find(self, change: Change) -> Found | None:
        """Reasoning at the divergence in the parent's body that the child's lacks."""
        gap = gap_of(change)
        if gap is not None and gap.one is not None:
            return _cut_out(change, gap)
        if gap is None or not gap.gone or gap.come or any(piece.kind != "reasoning" for piece in gap.gone):
            return None
        dropped = list(_dropped(gap))
        path = dropped[0].path if dropped else gap.gone[0].path
        return Found(
            evidence=f"{path} was sent before and is not any more; {max(1, len(dropped))} in all",
            advice=f"send {path} again as the server gave it, under the name that the server reads",
            path=path,
            char=0,
            restore=tuple(_restored(change, gap, piece) for piece in dropped),
        )


def _cut_out(change: Change, gap: Gap) -> Found | None:
    """Reasoning that stood within the text of answers, in its tags."""
    cut = [(one, other) for one, other in aligned(gap) if _lacks_thoughts(one, other)]
    if not cut or cut[0] != gap.one:
        return None
    path = cut[0][1].path
    return Found(
        evidence=f"{path} was sent with reasoning before and is not any more; {len(cut)} in all",
        advice=f"send {path} again with the reasoning in it, or in the field that the server reads",
        restore=tuple(given_back(change, one, other) for one, other in cut),
    )


def _lacks_thoughts(one: Piece, other: Piece) -> bool:
    without = _THOUGHTS.sub("", one.text)
    return one.role == "assistant" and without != one.text and without.split() == other.text.split()


def _dropped(gap: Gap) -> Iterator[Piece]:
    """The reasoning that is missing from here on, as long as the histories otherwise run alike."""
    at = gap.start_after
    for piece in gap.before[gap.start_before :]:
        other = gap.after[at] if at < len(gap.after) else None
        if other is not None and (piece.kind, piece.role, piece.name) == (other.kind, other.role, other.name):
            at += 1
        elif piece.kind == "reasoning":
            yield piece
        else:
            return


def _restored(change: Change, gap: Gap, piece: Piece) -> Edit:
    """The edit that puts reasoning back: a field, or a block or item in its place."""
    steps = parse_path(piece.block)
    key, item, *rest = steps
    assert isinstance(item, int)
    path = f"{key}[{item + _shift(gap)}]"
    if not rest:
        return Edit(kind="insert", path=path, value=value_at(change.before.body, piece.block))
    field = str(rest[0])
    return Edit(
        kind="set", path=f"{path}.{field}", value=value_at(change.before.body, f"{key}[{item}].{field}")
    )


def _shift(gap: Gap) -> int:
    """By how much the child's items stand further on than the parent's in front of the gap."""
    if not gap.start_before or not gap.start_after:
        return 0
    before, after = gap.before[gap.start_before - 1].item, gap.after[gap.start_after - 1].item
    return 0 if before is None or after is None else after - before


CAUSE = HistoryReasoningDropped()
