"""The client no longer sends the reasoning of an earlier answer, which it sent before.

Reasoning that is sent and not printed is the template's cause; that of a response alone is not known here.
"""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.body_paths import Edit, parse_path, value_at
from analyzer.causes import Example, Found
from analyzer.causes._chats import NEXT, assistant, chat, user
from analyzer.change import Change
from analyzer.gaps import Gap, gap_of
from analyzer.pieces import Piece

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
