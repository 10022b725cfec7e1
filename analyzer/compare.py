"""Compares two renderings of one conversation: where they part, and which field holds that place.

It says where, not why; causes are another room's. Ranges: tokens of the rendering, characters of its
text, characters of a field's string are three different counts, and each name says which it is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from analyzer.core import Span

EXCERPT_CHARS = 80
_FIRST_STEP = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of two texts being compared, with the fields its characters came from."""

    text: str
    spans: Sequence[Span]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldPlace:
    """A character of a field: `char` is None where it cannot be counted off."""

    path: str
    char: int | None


TEMPLATE = FieldPlace(path="template", char=None)


def common_chars(a: str, b: str, start: int = 0) -> int:
    """How many characters `a` and `b` share from the start, given that they share the first `start`."""
    if b.startswith(a):  # the commonest case, in which nothing is cut out and copied
        return len(a)
    end, step = min(len(a), len(b)), _FIRST_STEP
    low, high = start, min(start + step, end)
    while a.startswith(b[low:high], low):  # growing steps: texts that part early cost little
        if high == end:
            return high
        step *= 2
        low, high = high, min(high + step, end)
    while high - low > 1:  # halving compares memory, which is far faster than characters in Python
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low


def place_of(spans: Sequence[Span], char: int) -> FieldPlace | None:
    """Which field a character of the text came from, or None where it is the template's own."""
    span = next_span(spans, char)
    if span is None or span.char_start > char:
        return None
    inside = span.path_char + (char - span.char_start) if span.exact else None
    return FieldPlace(path=span.path, char=inside)


def next_span(spans: Sequence[Span], char: int) -> Span | None:
    """The run that holds a character of the text, or the first one behind it."""
    at = bisect_right(spans, char, key=attrgetter("char_end"))
    return spans[at] if at < len(spans) else None


def excerpt(text: str, char: int) -> str:
    """The text from a place on, cut short for a report."""
    cut = text[char : char + EXCERPT_CHARS]
    return cut if len(text) <= char + EXCERPT_CHARS else cut + "…"
