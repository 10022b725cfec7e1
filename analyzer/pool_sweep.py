"""How many blocks a traffic would hit at any size of the pool, from one pass over it.

It knows block keys only; `analyzer.sweeping` turns a capture's requests into them. The method is Mattson's
stack algorithm (R. L. Mattson et al., "Evaluation techniques for storage hierarchies", IBM Systems Journal
9(2), 1970): under least-recently-used replacement a cache of C blocks holds the C topmost of one stack that
is the same for all C, so that a block's depth is the smallest cache that still has it. The rules whose
stack this is are those of `analyzer.pool` (vLLM 0.32 `v1/core/block_pool.py`):

- A request's blocks are freed from its last to its first (:774), so that a chain's start lies above its
  end, and the blocks with a depth of at most C are a prefix of the request: what it hits.
- It holds all its blocks at once, and evicts none of them: they come to the top together.
- What it held without content (a partial block, generated tokens nobody knows) leaves empty slots that the
  next request fills before it evicts anything (:795). In the stack these are holes: a new block is put on
  top and the topmost hole closes, so that nothing below it moves.

- A block that is computed again although it is there (a prompt's last one, an answer given twice) is kept
  twice: the earlier one stays where it is until it is evicted (:69).

Where the two part: if such a block is hit, vLLM takes the one that had the content first, wherever it lies;
here it is the later one, since which blocks a small pool still has twice is not the same for every size. With
at most D duplicates, a pool of C blocks hits no more than here at C and no less than here at C - D.
"""

from __future__ import annotations

import heapq
from array import array
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from analyzer.blocks import BlockKeys

_NOWHERE = -1


class _Weights:
    """Weights in a row that grows at its end, with sums in logarithmic time (a Fenwick tree)."""

    __slots__ = ("_total", "_tree")

    def __init__(self) -> None:
        self._tree = [0]
        self._total = 0

    def append(self, weight: int) -> int:
        """Put one more at the end; returns its place."""
        tree = self._tree
        place = len(tree)
        self._total += weight
        below, child = place - (place & -place), place - 1
        while child > below:
            weight += tree[child]
            child -= child & -child
        tree.append(weight)
        return place

    def lower(self, place: int, by: int) -> None:
        """Make one lighter."""
        tree = self._tree
        self._total -= by
        while place < len(tree):
            tree[place] -= by
            place += place & -place

    def after(self, place: int) -> int:
        """What all later ones weigh."""
        tree, weight = self._tree, self._total
        while place:
            weight -= tree[place]
            place -= place & -place
        return weight


@dataclass(frozen=True, slots=True, kw_only=True)
class HitCurve:
    """Hits at every size. `smallest` is the pool in which the largest request fits, `saturated` the one
    beyond which nothing is gained; both in blocks.

    The two arrays hold where runs of depths begin and end, sorted.
    """

    smallest: int
    saturated: int
    depth_starts: NDArray[np.int64]
    depth_ends: NDArray[np.int64]

    def hits(self, capacity: int | None) -> int | None:
        """Blocks hit in a pool of `capacity` blocks, or one without limit; None where it is too small."""
        if capacity is None:
            capacity = self.saturated
        elif capacity < self.smallest:
            return None
        return _reached(self.depth_starts, capacity) - _reached(self.depth_ends, capacity)


def _reached(depths: NDArray[np.int64], capacity: int) -> int:
    """How many depths up to `capacity` lie at or behind the given ones, summed over them."""
    count = int(np.searchsorted(depths, capacity, side="right"))
    return count * (capacity + 1) - int(depths[:count].sum())


class ReuseDistances:
    """The stack. Requests are given one after another: each ends before the next begins.

    A request's keys come to lie in one run, start on top. A later one takes the starts of some runs and
    makes a run of its own, so that the stack is counted in runs and not in blocks: n requests of any length
    cost O(n log n), beside the looking up of their keys.
    """

    def __init__(self) -> None:
        self._runs = _Weights()  # newest last; a run's weight is all that it has in the stack
        self._holes = [0]  # by run
        self._above = [0]  # by run: what of its weight lies above its blocks: holes, and their duplicates
        self._with_holes: list[int] = []  # negative, so that the heap's first is the newest
        self._run_of = np.full(1024, _NOWHERE, dtype=np.int32)  # by key
        self._starts, self._ends = array("q"), array("q")
        self._smallest = 1

    def add(self, keys: BlockKeys, *, lookup_blocks: int, blocks: int) -> int:
        """One request; returns how many blocks it would hit in a pool without limit.

        `keys` are those of all blocks it fills, in order, `blocks` how many it holds at its end, and
        `lookup_blocks` how many of its first ones may be hits.
        """
        if blocks < len(keys):
            raise ValueError(f"{len(keys)} blocks with content do not fit in {blocks}")
        self._smallest = max(self._smallest, blocks)
        hits = self._take(keys, lookup_blocks)
        self._close_holes(blocks)
        without_content = blocks - len(keys)
        self._open_holes(self._new_run(without_content), without_content)
        self._run_of[keys] = self._new_run(len(keys))
        return hits

    def curve(self) -> HitCurve:
        """The hits of all requests so far, at every size."""
        starts, ends = (np.sort(np.array(depths, dtype=np.int64)) for depths in (self._starts, self._ends))
        deepest = int(ends[-1]) - 1 if len(ends) else 0
        return HitCurve(
            smallest=self._smallest,
            saturated=max(self._smallest, deepest),
            depth_starts=starts,
            depth_ends=ends,
        )

    def _take(self, keys: BlockKeys, lookup_blocks: int) -> int:
        """Take the blocks that are there out of the stack, and note their depths."""
        self._make_room(int(keys.max(initial=0)))
        runs = self._run_of[keys]
        found = int(np.count_nonzero(runs != _NOWHERE))  # the first ones: a chain has no gaps
        edges = [0, *(np.flatnonzero(runs[1:found] != runs[: max(found - 1, 0)]) + 1).tolist(), found]
        for first, end in pairwise(edges):
            if first == end:
                break
            run = int(runs[first])
            depth = self._runs.after(run) + self._above[run] + 1
            looked_up = max(0, min(end, lookup_blocks) - first)
            if looked_up:
                self._starts.append(depth)
                self._ends.append(depth + looked_up)
            self._above[run] += end - first
            self._open_holes(run, looked_up)
        return min(found, lookup_blocks)

    def _open_holes(self, run: int, count: int) -> None:
        if count and not self._holes[run]:
            heapq.heappush(self._with_holes, -run)
        self._holes[run] += count

    def _close_holes(self, count: int) -> None:
        """Close the topmost `count` holes, as many as there are."""
        while count and self._with_holes:
            run = -self._with_holes[0]
            closed = min(count, self._holes[run])
            self._holes[run] -= closed
            self._above[run] -= closed
            self._runs.lower(run, closed)
            count -= closed
            if not self._holes[run]:
                heapq.heappop(self._with_holes)

    def _new_run(self, weight: int) -> int:
        self._holes.append(0)
        self._above.append(0)
        return self._runs.append(weight)

    def _make_room(self, key: int) -> None:
        if key >= len(self._run_of):
            more = np.full(max(key + 1 - len(self._run_of), len(self._run_of)), _NOWHERE, dtype=np.int32)
            self._run_of = np.concatenate([self._run_of, more])
