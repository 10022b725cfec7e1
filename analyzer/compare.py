"""Compares two renderings of one conversation: where they part, and which field holds that place.

It says where, not why; causes are another room's. Ranges: tokens of the rendering, characters of its
text, characters of a field's string are three different counts, and each name says which it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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


def field_at(parent: Side, child: Side, char: int) -> FieldPlace:
    """The field that holds the first differing character: the child's, or the parent's where it lacks one.

    Where the child's text goes on with template text but the parent's field went on there, the field
    was cut short, and it is the parent's that says where.
    """
    return place_of(child.spans, char) or place_of(parent.spans, char) or TEMPLATE


def place_of(spans: Sequence[Span], char: int) -> FieldPlace | None:
    """Which field a character of the text came from, or None where it is the template's own."""
    for span in spans:
        if span.char_start <= char < span.char_end:
            inside = span.path_char + (char - span.char_start) if span.exact else None
            return FieldPlace(path=span.path, char=inside)
    return None


def excerpt(text: str, char: int) -> str:
    """The text from a place on, cut short for a report."""
    cut = text[char : char + EXCERPT_CHARS]
    return cut if len(text) <= char + EXCERPT_CHARS else cut + "…"
