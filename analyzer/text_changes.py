"""The places in which two texts differ, line by line and then word by word, and a text with some put back.

It does not say what a difference means.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate

_WORD = re.compile(r"\w+|\s+|[^\w\s]")
_MOST_WORDS = 400
"""Lines longer than this are not compared word by word, only cut to where they differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextChange:
    """One difference: [before_start, before_end) of one text became [after_start, after_end) of the other."""

    before_start: int
    before_end: int
    after_start: int
    after_end: int


def text_changes(before: str, after: str) -> list[TextChange]:
    """All differences, in order."""
    return list(_changes(before, after))


def first_change(before: str, after: str) -> TextChange | None:
    """The first difference, without what is equal at its ends; None where the texts are equal."""
    change = next(_changes(before, after), None)
    return None if change is None else trimmed(before, after, change)


def trimmed(before: str, after: str, change: TextChange) -> TextChange:
    """A difference without the characters that are equal at its start, then at its end."""
    ours = before[change.before_start : change.before_end]
    theirs = after[change.after_start : change.after_end]
    head = _shared(ours, theirs)
    tail = _shared(ours[head:][::-1], theirs[head:][::-1])
    return TextChange(
        before_start=change.before_start + head,
        before_end=change.before_end - tail,
        after_start=change.after_start + head,
        after_end=change.after_end - tail,
    )


def patched(before: str, after: str, changes: Iterable[TextChange]) -> str:
    """`after` with the text of `before` at these differences."""
    for change in reversed(list(changes)):
        kept = before[change.before_start : change.before_end]
        after = after[: change.after_start] + kept + after[change.after_end :]
    return after


def line_around(text: str, start: int, end: int) -> str:
    """The whole lines that hold a range."""
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", max(start, end))
    return text[first : len(text) if last < 0 else last]


def _changes(before: str, after: str) -> Iterator[TextChange]:
    rows_before, rows_after = before.splitlines(keepends=True), after.splitlines(keepends=True)
    starts_before, starts_after = _starts(rows_before), _starts(rows_after)
    for tag, i1, i2, j1, j2 in _opcodes(rows_before, rows_after):
        if tag == "equal":
            continue
        if i2 - i1 == j2 - j1:
            for i, j in zip(range(i1, i2), range(j1, j2), strict=True):
                yield from _in_line(rows_before[i], rows_after[j], starts_before[i], starts_after[j])
        else:
            yield TextChange(
                before_start=starts_before[i1],
                before_end=starts_before[i2],
                after_start=starts_after[j1],
                after_end=starts_after[j2],
            )


def _in_line(before: str, after: str, at_before: int, at_after: int) -> Iterator[TextChange]:
    words_before, words_after = _WORD.findall(before), _WORD.findall(after)
    starts_before, starts_after = _starts(words_before), _starts(words_after)
    for tag, i1, i2, j1, j2 in _opcodes(words_before, words_after):
        if tag != "equal":
            yield TextChange(
                before_start=at_before + starts_before[i1],
                before_end=at_before + starts_before[i2],
                after_start=at_after + starts_after[j1],
                after_end=at_after + starts_after[j2],
            )


def _opcodes(before: list[str], after: list[str]) -> Iterator[tuple[str, int, int, int, int]]:
    """SequenceMatcher's, with what is equal at both ends cut off first: it takes quadratic time."""
    head = _shared(before, after)
    tail = min(_shared(before[::-1], after[::-1]), min(len(before), len(after)) - head)
    middle = before[head : len(before) - tail], after[head : len(after) - tail]
    if not middle[0] and not middle[1]:
        return
    if max(map(len, middle)) > _MOST_WORDS:
        yield "replace", head, head + len(middle[0]), head, head + len(middle[1])
        return
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, *middle, autojunk=False).get_opcodes():
        yield tag, head + i1, head + i2, head + j1, head + j2


def _shared(before: Sequence[str], after: Sequence[str]) -> int:
    count = 0
    for one, other in zip(before, after, strict=False):
        if one != other:
            break
        count += 1
    return count


def _starts(pieces: list[str]) -> list[int]:
    return list(accumulate(map(len, pieces), initial=0))
