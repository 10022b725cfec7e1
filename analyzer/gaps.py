"""Where two histories part: which pieces of the parent's are gone, which came instead, and what goes on.

It starts from the rendered divergence and looks behind it only; bodies that differ elsewhere are not seen.
It puts no label on what it finds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from analyzer.body_paths import Edit, parse_path, restored, value_at
from analyzer.change import Change, View
from analyzer.first_run import first_run
from analyzer.pieces import Piece, items_key, pieces_of

type Find = Callable[[str | None], int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """The first difference of two histories at or behind the divergence, in pieces.

    [start_before, end_before) of the pieces `before` are gone, [start_after, end_after) of `after` came.
    `resumes` says that the parent's pieces go on behind it, to their end.
    """

    before: Sequence[Piece]
    after: Sequence[Piece]
    start_before: int
    end_before: int
    start_after: int
    end_after: int
    resumes: bool

    @property
    def gone(self) -> Sequence[Piece]:
        """The parent's pieces that are not there any more."""
        return self.before[self.start_before : self.end_before]

    @property
    def come(self) -> Sequence[Piece]:
        """The child's pieces in their place."""
        return self.after[self.start_after : self.end_after]

    @property
    def one(self) -> tuple[Piece, Piece] | None:
        """The piece that is gone and the one in its place, where it is one of the same kind for one."""
        if not self.gone or not self.come:
            return None
        before, after = self.gone[0], self.come[0]
        same = before.kind == after.kind and before.role == after.role and before.name == after.name
        alone = len(self.gone) == len(self.come) == 1
        return (before, after) if same and alone else None


@lru_cache(maxsize=1)
def gap_of(change: Change) -> Gap | None:
    """The gap of a change; None where the child's history goes on from all of the parent's."""
    if change.in_generation_prompt:
        return None
    before, after = pieces_of(change.before.body), pieces_of(change.after.body)
    starts = _ended(change, before, after) or _starts(change, before, after)
    return None if starts is None else _gap(before, after, *starts)


def pieces_at(change: Change) -> Iterator[tuple[Piece, Piece]]:
    """Pairs of pieces from the divergence on, as `aligned` gives them; they may differ in nothing but ids."""
    before, after = pieces_of(change.before.body), pieces_of(change.after.body)
    starts = _starts(change, before, after)
    if starts is not None:
        yield from _alike(before[starts[0] :], after[starts[1] :])


def aligned(gap: Gap) -> Iterator[tuple[Piece, Piece]]:
    """Pairs of pieces from the gap on that are each other's, as long as the histories run alike."""
    yield from _alike(gap.before[gap.start_before :], gap.after[gap.start_after :])


def _alike(before: Sequence[Piece], after: Sequence[Piece]) -> Iterator[tuple[Piece, Piece]]:
    for one, other in zip(before, after, strict=False):
        if (one.kind, one.role, one.name) != (other.kind, other.role, other.name):
            return
        yield one, other


def divided_otherwise(change: Change) -> tuple[str, Edit] | None:
    """Where the same pieces stand in other messages, and the edit that puts them back into the parent's."""
    before, after = pieces_of(change.before.body), pieces_of(change.after.body)
    theirs = after[: len(before)]
    if change.in_generation_prompt or [p.exact for p in before] != [p.exact for p in theirs]:
        return None
    first = next((at for at in range(1, len(before)) if _begins(before, at) != _begins(theirs, at)), None)
    key = items_key(change.after.body)
    earlier, later = change.before.body.get(key), change.after.body.get(key)
    if first is None or not isinstance(earlier, list) or not isinstance(later, list):
        return None
    last = theirs[-1].item
    rest = [] if last is None else later[last + 1 :]
    return theirs[first].path, Edit(kind="set", path=key, value=[*earlier, *rest])


def _begins(pieces: Sequence[Piece], at: int) -> bool:
    return pieces[at].item != pieces[at - 1].item


def exchanged(change: Change, gap: Gap) -> tuple[Edit, ...]:
    """The edits that put the gap's messages or items back as the parent had them."""
    edits: list[Edit] = []
    for piece in (*gap.gone, *gap.come):
        if piece.item is None and not any(edit.path == _top(piece.path) for edit in edits):
            edits.append(restored(_top(piece.path), change.before.body))
    if any(piece.item is not None for piece in (*gap.gone, *gap.come)):
        edits.append(_items_edit(change, gap))
    return tuple(edits)


def given_back(change: Change, one: Piece, other: Piece) -> Edit:
    """The edit that gives a piece of the child the parent's value."""
    return Edit(kind="set", path=other.path, value=value_at(change.before.body, one.path))


def _top(path: str) -> str:
    return str(parse_path(path)[0])


def _items_edit(change: Change, gap: Gap) -> Edit:
    key = items_key(change.after.body)
    earlier, later = change.before.body.get(key), change.after.body.get(key)
    if not isinstance(earlier, list) or not isinstance(later, list):
        return restored(key, change.before.body)
    first_before, end_before = _item_range(gap.before, gap.start_before, gap.end_before, len(earlier))
    first_after, end_after = _item_range(gap.after, gap.start_after, gap.end_after, len(later))
    if _cuts_an_item(gap):  # part of a message came or went: the messages around it are exchanged whole
        first = min(first_before, first_after)
        first_before, first_after = first, first
        end_before, end_after = max(end_before, first + 1), max(end_after, first + 1)
    items = [*later[:first_after], *earlier[first_before:end_before], *later[end_after:]]
    return Edit(kind="set", path=key, value=items)


def _item_range(pieces: Sequence[Piece], start: int, end: int, length: int) -> tuple[int, int]:
    items = [piece.item for piece in pieces[start:end] if piece.item is not None]
    if items:
        return items[0], items[-1] + 1
    following = next((piece.item for piece in pieces[start:] if piece.item is not None), length)
    return following, following


def _cuts_an_item(gap: Gap) -> bool:
    return any(
        not is_whole(pieces, start, end)
        for pieces, start, end in (
            (gap.before, gap.start_before, gap.end_before),
            (gap.after, gap.start_after, gap.end_after),
        )
    )


def is_whole(pieces: Sequence[Piece], start: int, end: int) -> bool:
    """Whether a run of pieces begins and ends with its messages or items."""
    if start == end:
        return start in (0, len(pieces)) or _differs(pieces[start - 1], pieces[start])
    begins = start == 0 or _differs(pieces[start - 1], pieces[start])
    ends = end == len(pieces) or _differs(pieces[end - 1], pieces[end])
    return begins and ends


def _differs(one: Piece, other: Piece) -> bool:
    return one.item is None or one.item != other.item


def _ended(change: Change, before: list[Piece], after: list[Piece]) -> tuple[int, int] | None:
    """The pieces that both prompts show last, where one goes on as the template does behind the other.

    So does a line break at the end of a text that a line break of the template follows.
    """
    at_before, at_after = (
        _Index(before).find(change.before.last_path),
        _Index(after).find(change.after.last_path),
    )
    if change.before.place or change.after.place or at_before is None or at_after is None:
        return None
    one, other = before[at_before], after[at_after]
    alike = one.exact != other.exact and one.essence == other.essence
    return (at_before, at_after) if alike else None


def _starts(change: Change, before: list[Piece], after: list[Piece]) -> tuple[int, int] | None:
    """The pieces at the divergence on both sides, that is at or behind the last that both have in common."""
    find_before, find_after = _Index(before).find, _Index(after).find
    at_before, at_after = _found(change.before, find_before), _found(change.after, find_after)
    at_before = len(before) if at_before is None else at_before
    at_after = len(after) if at_after is None else at_after
    offset = _offset(change, find_before, find_after)
    at_before = min(at_before, at_after - offset)
    at_after = min(at_after, at_before + offset)
    if at_before < 0 or at_after < 0:
        return None
    return at_before, at_after


def _offset(change: Change, find_before: Find, find_after: Find) -> int:
    """By how many pieces the child is ahead, told by the last field that both prompts show in full."""
    shown = {(span.char_start, span.char_end): span.path for span in change.after.spans}
    for span in reversed(change.before.spans):
        path = shown.get((span.char_start, span.char_end)) if span.char_end <= change.before.char else None
        at_before, at_after = (find_before(span.path), find_after(path)) if path else (None, None)
        if at_before is not None and at_after is not None:
            return at_after - at_before
    return 0


def _found(view: View, find: Find) -> int | None:
    """The piece at the divergence, or the next one."""
    found = (find(span.path) for span in view.spans if span.char_end > view.char)
    return next((at for at in found if at is not None), None)


class _Index:
    """Finds the piece that a path leads into; of a message's own fields (its role) the message's first."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._named: dict[str, int] = {}
        for at, piece in enumerate(pieces):
            for name in (piece.path, piece.id_path, piece.block, _item_path(piece)):
                if name:
                    self._named.setdefault(name, at)

    def find(self, path: str | None) -> int | None:
        """The piece's index, None where the path leads into none."""
        while path:
            if path in self._named:
                return self._named[path]
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return None


def _item_path(piece: Piece) -> str | None:
    return None if piece.item is None else piece.path[: piece.path.index("]") + 1]


def _gap(before: list[Piece], after: list[Piece], start_before: int, start_after: int) -> Gap | None:
    ours, theirs = before[start_before:], after[start_after:]
    if [piece.exact for piece in theirs[: len(ours)]] == [piece.exact for piece in ours]:
        return None
    if ours and theirs and ours[0].exact == theirs[0].exact:
        return None  # what differs lies further behind, and is not what parted the prompts here
    gone, come, resumes = first_run([p.essence for p in ours], [p.essence for p in theirs])
    alike = _run_alike(ours[:gone], theirs[:gone])
    if alike and (gone == come if resumes else ours[0].kind in ("result", "media")):
        gone = come = 1  # several edited in a row are told one by one
    return Gap(
        before=before,
        after=after,
        start_before=start_before,
        end_before=start_before + gone,
        start_after=start_after,
        end_after=start_after + come,
        resumes=resumes,
    )


def _run_alike(ours: Sequence[Piece], theirs: Sequence[Piece]) -> bool:
    """Whether piece for piece is of the same kind, by the same speaker."""
    return [(p.kind, p.role, p.name) for p in ours] == [(p.kind, p.role, p.name) for p in theirs]
