"""Takes differences out of a prompt without rendering it: its text is joined to its parent's behind each.

Up to a join all text is the parent's, from there on the child's own: a join is a character of each.
Right only where both bodies hold the same there, which is for the caller to know.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter

from analyzer.compare import Side, common_chars
from analyzer.core import Span
from analyzer.sourced import concat, plain

type Joint = tuple[int, int]
"""A character of the parent's text, and the one of the child's that goes on from there."""

_end = attrgetter("char_end")


class Joiner:
    """Joins one child to one parent, as often as wanted."""

    def __init__(self, parent: Side, child: Side) -> None:
        self._parent, self._child = parent, child
        self._texts = plain(parent.text), plain(child.text)
        self._known: dict[str, list[Span]] = {}
        for span in parent.spans:
            if span.exact:
                self._known.setdefault(span.path, []).append(span)

    def parted(self, joint: Joint) -> Joint:
        """Where the two part next from a joint on."""
        before, after = joint
        common = common_chars(self._texts[0][before:], self._texts[1][after:])
        return before + common, after + common

    def joint(self, parted: Joint) -> Joint | None:
        """The next character of a field that both have at or behind the place where they part."""
        before, after = parted
        spans = self._child.spans
        for at in range(bisect_right(spans, after, key=_end), len(spans)):
            span = spans[at]
            others = self._known.get(span.path, []) if span.exact else []
            for other in others[bisect_right(others, before, key=_end) :]:
                found = _same_character(other, before, span, after)
                if found is not None:
                    return found if found[0] > before or self.parted(found) > found else None
        return None

    def text(self, joint: Joint) -> str:
        """The child's text, joined; it knows its fields."""
        return concat((self._parent.text[: joint[0]], self._child.text[joint[1] :]))


def _same_character(other: Span, before: int, span: Span, after: int) -> Joint | None:
    """The first character of a field that both show, the parent from `before` on, the child from `after`."""
    first = max(
        other.path_char + max(0, before - other.char_start), span.path_char + max(0, after - span.char_start)
    )
    if first >= min(each.path_char + each.char_end - each.char_start for each in (other, span)):
        return None
    return other.char_start + first - other.path_char, span.char_start + first - span.path_char
