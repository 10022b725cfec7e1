"""Numbers that stand for tokens and tell nothing of them, but where two sequences part.

Sequences that begin alike form a tree; each of its nodes gets a number, counted up as they are first seen.
Two sequences of numbers share exactly as long a prefix as their tokens did, so that what compares prefixes
(`analyzer.blocks`) works on them unchanged. New tokens get numbers in a row: a sequence is a few ranges.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from analyzer.blocks import common_prefix
from analyzer.core import TokenIds

_STRIDE = 64
"""A known prefix is looked up every so many tokens."""

type Ranges = tuple[tuple[int, int], ...]
"""(first number, how many) in a row: a sequence of numbers."""


@dataclass(slots=True)
class _Known:
    token_ids: TokenIds
    numbers: TokenIds


@dataclass(slots=True)
class TokenTree:
    """Numbers the nodes of all sequences it is given, in the order in which it is given them."""

    _sequences: list[_Known] = field(default_factory=list)
    _by_prefix: dict[int, list[int]] = field(default_factory=dict)
    _chain: dict[tuple[int, bytes], int] = field(default_factory=dict)
    _next: int = 0

    def add(self, token_ids: TokenIds) -> TokenIds:
        """The numbers of a sequence, shape (tokens,)."""
        prefixes = self._prefixes(token_ids)
        known, common = self._longest(token_ids, prefixes)
        new = np.arange(self._next, self._next + len(token_ids) - common, dtype=np.int32)
        self._next += len(new)
        numbers = new if known is None else np.concatenate([known.numbers[:common], new])
        for prefix in prefixes:
            self._by_prefix.setdefault(prefix, []).append(len(self._sequences))
        self._sequences.append(_Known(token_ids, numbers))
        return numbers

    def _prefixes(self, token_ids: TokenIds) -> list[int]:
        """A number for each prefix whose length is a multiple of the stride, the empty one included."""
        found, parent = [-1], -1
        for start in range(0, len(token_ids) - _STRIDE + 1, _STRIDE):
            piece = token_ids[start : start + _STRIDE].tobytes()
            parent = self._chain.setdefault((parent, piece), len(self._chain))
            found.append(parent)
        return found

    def _longest(self, token_ids: TokenIds, prefixes: list[int]) -> tuple[_Known | None, int]:
        """The sequence that shares most tokens with this one, and how many."""
        deepest = next((prefix for prefix in reversed(prefixes) if prefix in self._by_prefix), None)
        if deepest is None:
            return None, 0
        best, common = None, 0
        for at in self._by_prefix[deepest]:
            known = self._sequences[at]
            shared = common_prefix(known.token_ids, token_ids)
            if best is None or shared > common:
                best, common = known, shared
        return best, common


def as_ranges(numbers: TokenIds) -> Ranges:
    """The same numbers as ranges."""
    if not len(numbers):
        return ()
    starts = np.flatnonzero(np.diff(numbers) != 1) + 1
    bounds = [0, *starts.tolist(), len(numbers)]
    return tuple((int(numbers[a]), b - a) for a, b in pairwise(bounds))


def from_ranges(ranges: Iterable[tuple[int, int]]) -> TokenIds:
    """The numbers that ranges stand for."""
    parts = [np.arange(first, first + count, dtype=np.int32) for first, count in ranges]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int32)
