"""How two rows part: how much of the one is gone and how much of the other came, before they go on alike.

It compares whatever can be compared and hashed, and knows no messages.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from difflib import SequenceMatcher

_FULLY_COMPARED = 4000
"""More pieces than this behind a divergence are only compared in place: the comparison is quadratic."""


def first_run(ours: Sequence[Hashable], theirs: Sequence[Hashable]) -> tuple[int, int, bool]:
    """How many are gone and come at the start of both rows, and whether ours then go on.

    The rows do not begin alike, unless what they begin with differs in a way that the comparison ignores.
    """
    if not ours or not theirs:
        return len(ours), len(theirs), False
    if ours[0] == theirs[0]:  # spelt otherwise, no more
        return 1, 1, True
    if len(ours) > 1 and _goes_on(ours[1:], theirs[1:]):
        return 1, 1, True
    for size in range(1, len(ours)):
        if _goes_on(ours[size:], theirs):
            return size, 0, True
    for size in range(1, len(theirs)):
        if theirs[size : size + len(ours)] == ours:
            return 0, size, True
    return _by_matching(ours, theirs)


def _goes_on(ours: Sequence[Hashable], theirs: Sequence[Hashable]) -> bool:
    shared = min(len(ours), len(theirs))
    return shared > 0 and ours[:shared] == theirs[:shared]


def _by_matching(ours: Sequence[Hashable], theirs: Sequence[Hashable]) -> tuple[int, int, bool]:
    if max(len(ours), len(theirs)) > _FULLY_COMPARED:
        return len(ours), len(theirs), False
    blocks = SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks()
    first = blocks[0]
    matched = sum(block.size for block in blocks)
    if 2 * matched <= len(ours) - first.a:
        # A few that happen to be equal are no history that goes on.
        return len(ours), 1 if len(ours) == 1 else len(theirs), False
    return first.a, first.b, True
