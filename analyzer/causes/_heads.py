"""For causes in the head of a prompt: the two system texts, and one kind of their differences put back.

Which difference is of which kind is each cause's own to say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from analyzer.body_paths import Edit
from analyzer.causes import Found
from analyzer.change import Change
from analyzer.gaps import exchanged, gap_of
from analyzer.moments import Moment, ticked
from analyzer.pieces import Piece
from analyzer.text_changes import TextChange, first_change, line_around, patched
from analyzer.volatile_shapes import heading_above, is_snapshot, nonces

SYSTEM = ("system", "developer")
_HEAD = (*SYSTEM, "prompt")
_MOST_PLACES = 40
"""A text that differs in more places than this is compared no further."""

type Judge = Callable[[str, str, TextChange], TextChange | None]
"""The range that a difference of one kind covers, None where it is of another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The system text before and after; `path` is its one field, None where parts of it came or went.

    Where `raw`, it is no system text but a prompt without messages.
    """

    before: str
    after: str
    path: str | None
    restore: tuple[Edit, ...]
    raw: bool = False

    @property
    def first(self) -> TextChange:
        """The first difference."""
        found = first_change(self.before, self.after)
        assert found is not None, "the texts part"
        return found

    def put_back(self, judge: Judge) -> tuple[Edit, ...]:
        """The edits that undo the first difference, and those behind it that are of the same kind."""
        if self.path is None:
            return self.restore
        after = self.after
        for _ in range(_MOST_PLACES):
            change = first_change(self.before, after)
            covered = None if change is None else judge(self.before, after, change)
            if covered is None:
                break
            after = patched(self.before, after, [covered])
        return (Edit(kind="set", path=self.path, value=after),)

    def told(self, covered: TextChange) -> str:
        """Both sides of a difference, for evidence."""
        ours = self.before[covered.before_start : covered.before_end]
        theirs = self.after[covered.after_start : covered.after_end]
        return f"{short(ours)} became {short(theirs)}"


def head_of(change: Change) -> Head | None:
    """The system texts that part at the divergence; None where it lies elsewhere."""
    gap = gap_of(change)
    if gap is None or not _all_system([*gap.gone[:1], *gap.come[:1]]):
        return None
    if gap.gone and gap.come and len(gap.gone) == len(gap.come):
        before, after = gap.gone[0], gap.come[0]
        return _of_one(before, after)
    if not _all_system([*gap.gone, *gap.come]):
        return _of_one(gap.gone[0], gap.come[0]) if gap.gone and gap.come else None
    return Head(
        before=_joined(gap.before), after=_joined(gap.after), path=None, restore=exchanged(change, gap)
    )


def _of_one(before: Piece, after: Piece) -> Head | None:
    if before.text == after.text:
        return None
    return Head(before=before.text, after=after.text, path=after.path, restore=(), raw=after.role == "prompt")


def _all_system(pieces: Sequence[Piece]) -> bool:
    return all(piece.role in _HEAD and piece.kind == "text" for piece in pieces)


def _joined(pieces: Sequence[Piece]) -> str:
    return "\n".join(piece.text for piece in pieces if piece.role in _HEAD and piece.kind == "text")


def short(text: str, most: int = 60) -> str:
    """A text in quotation marks, cut short."""
    text = " ".join(text.split())
    return f'"{text[:most]}…"' if len(text) > most else f'"{text}"'


def clock_at(before: str, after: str, change: TextChange) -> tuple[Moment, Moment] | None:
    """The two readings of a clock at a difference."""
    return ticked(before, after, change.before_start, change.after_start)


def clocks(before: str, after: str, change: TextChange) -> TextChange | None:
    """Judges a clock that went on."""
    found = clock_at(before, after, change)
    if found is None:
        return None
    one, other = found
    return TextChange(
        before_start=one.start, before_end=one.end, after_start=other.start, after_end=other.end
    )


def ids_made_anew(before: str, after: str, change: TextChange) -> TextChange | None:
    """Judges an id that is another one."""
    found = nonces(before, after, change.before_start, change.after_start)
    if found is None:
        return None
    start_before, end_before, start_after, end_after = found
    if "\n" in before[end_before : change.before_end] + after[end_after : change.after_end]:
        return None  # whole lines came or went, of which an id is only a part
    return TextChange(
        before_start=start_before, before_end=end_before, after_start=start_after, after_end=end_after
    )


def snapshots(before: str, after: str, change: TextChange) -> TextChange | None:
    """Judges lines that describe the surroundings."""
    ours = _lines(before, change.before_start, change.before_end)
    theirs = _lines(after, change.after_start, change.after_end)
    heading = heading_above(before, change.before_start)
    return _whole_lines(before, after, change) if is_snapshot(ours, theirs, heading) else None


def _lines(text: str, start: int, end: int) -> str:
    """The lines that a difference touches; none where it lies between two."""
    if start == end and (start == len(text) or text[start - 1 : start] in ("", "\n")):
        return ""
    return line_around(text, start, end)


def _whole_lines(before: str, after: str, change: TextChange) -> TextChange:
    """The difference up to the ends of its lines, so that a line is put back at once."""
    if change.before_start == change.before_end or change.after_start == change.after_end:
        return change
    return TextChange(
        before_start=change.before_start,
        before_end=_line_end(before, change.before_end),
        after_start=change.after_start,
        after_end=_line_end(after, change.after_end),
    )


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def anything_else(before: str, after: str, change: TextChange) -> TextChange | None:
    """Judges what none of the other kinds is."""
    claimed = any(judge(before, after, change) for judge in (clocks, ids_made_anew, snapshots))
    return None if claimed else _whole_lines(before, after, change)


def found_by(change: Change, judge: Judge, advice: str, *, kind: str | None = None) -> Found | None:
    """What a cause whose kind of difference `judge` knows says of a change; `advice` holds a `{path}`."""
    head = head_of(change)
    covered = None if head is None else judge(head.before, head.after, head.first)
    if head is None or covered is None:
        return None
    path = head.path or change.after.next_path or "system"
    return Found(
        evidence=f"in the system text {head.told(covered)}",
        advice=advice.format(path=path),
        kind=kind,
        restore=head.put_back(judge),
    )
