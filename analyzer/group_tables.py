"""One request's blocks in one KV group: taken, dropped behind the window, and registered where worth it.

No lookup (`analyzer.group_lookup`) and no request's life (`analyzer.grouped_cache`). The rules are those of
the managers in vLLM 0.32 `v1/core/single_type_kv_cache_manager.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import override

from analyzer.kv_layout import KVGroup, KVLayout
from analyzer.pool import BlockPool

NO_BLOCK = -1
"""Stands in a table where there is no block: before the window, or between two states."""


class GroupTable:
    """The table of a group that keeps every block: full attention, and what the other kinds build on.

    `keys` are those of the group's own blocks in the pool, as far as the tokens are known; `cached` counts
    the blocks that were looked at for registering, whether or not they were worth it.
    """

    __slots__ = ("blocks", "cached", "group", "keys", "layout")

    def __init__(self, group: KVGroup, layout: KVLayout) -> None:
        self.group = group
        self.layout = layout
        self.keys: list[int] = []
        self.blocks: list[int] = []
        self.cached = 0

    def skipped(self, computed: int) -> int:
        """How many leading blocks are not needed once `computed` tokens are (:702)."""
        return 0

    def needed(self, pool: BlockPool, hits: Sequence[int], hit_tokens: int, tokens: int) -> int:
        """How many free blocks a request takes that starts from `hits` and goes up to `tokens` (:194)."""
        skipped = self.skipped(hit_tokens)
        new = max(0, self._required(tokens) - max(skipped, len(hits)))
        return new + _free(pool, hits[skipped:])

    def admission_need(self, pool: BlockPool, hits: Sequence[int], hit_tokens: int, tokens: int) -> int:
        """The same for the whole prompt, of which a window's group never holds all at once (:213)."""
        return self.needed(pool, hits, hit_tokens, tokens)

    def missing(self, tokens: int) -> int:
        """How many more blocks a running request takes to go up to `tokens`."""
        return max(0, self._required(tokens) - len(self.blocks))

    def adopt(self, pool: BlockPool, hits: Sequence[int], hit_tokens: int) -> None:
        """Start from cached blocks; those behind the window are left alone (:270)."""
        skipped = self.skipped(hit_tokens)
        used = list(hits[skipped:])
        pool.touch(block for block in used if block != NO_BLOCK)
        self.blocks = [NO_BLOCK] * skipped + used
        self.cached = len(self.blocks)

    def allocate(self, pool: BlockPool, tokens: int) -> None:
        """Take what `missing` says."""
        self.blocks += pool.allocate(self.missing(tokens))

    def drop(self, pool: BlockPool, computed: int) -> None:
        """Give back the blocks that no further token looks at (:672)."""
        last = min(self.skipped(computed), len(self.blocks))
        first = last
        while first > 0 and self.blocks[first - 1] != NO_BLOCK:
            first -= 1
        self._give_back(pool, first, last)

    def register(self, pool: BlockPool, tokens: int, boundaries: Sequence[int]) -> None:
        """Make the blocks that `tokens` fill findable, those that a later request can start from (:488)."""
        full = min(tokens // self.group.block_size, len(self.keys))
        if full <= self.cached:
            return
        kept = [at for at in self._kept(self.cached, full, boundaries) if self.blocks[at] != NO_BLOCK]
        pool.register([self.blocks[at] for at in kept], [self.keys[at] for at in kept])
        self.cached = full

    def release(self, pool: BlockPool) -> None:
        """Give back everything."""
        self._give_back(pool, 0, len(self.blocks))
        self.blocks, self.cached = [], 0

    def _required(self, tokens: int) -> int:
        return -(-tokens // self.group.block_size)

    def _kept(self, first: int, last: int, boundaries: Sequence[int]) -> Iterable[int]:
        return range(first, last)

    def _give_back(self, pool: BlockPool, first: int, last: int) -> None:
        given = [block for block in self.blocks[first:last] if block != NO_BLOCK]
        self.blocks[first:last] = [NO_BLOCK] * (last - first)
        pool.release(given)


class SlidingTable(GroupTable):
    """Keeps a window's worth of blocks, and registers windows where a prompt can be taken up again."""

    __slots__ = ()

    @override
    def skipped(self, computed: int) -> int:
        assert self.group.window is not None
        return max(0, computed - self.group.window + 1) // self.group.block_size

    @override
    def admission_need(self, pool: BlockPool, hits: Sequence[int], hit_tokens: int, tokens: int) -> int:
        most = self.layout.admission_blocks(self.group) * self.group.block_size
        return self.needed(pool, hits, hit_tokens, min(tokens, most))

    @override
    def _kept(self, first: int, last: int, boundaries: Sequence[int]) -> Iterable[int]:
        # A drafter looks one block past the boundary (:1103).
        need, past = self.group.blocks_of_a_hit, int(self.group.drops_last_block)
        size, interval = self.group.block_size, self.layout.retention_interval
        every = (self.layout.alignment if interval is None else interval) // size
        if every and need >= every:
            return range(first, last)
        kept = [
            at for at in range(first, last) if every and at >= past and (at - past) % every >= every - need
        ]
        if interval is None:
            return kept
        for boundary in boundaries:
            end = boundary // self.layout.alignment * self.layout.alignment // size + past
            kept += range(max(first, end - need), min(last, end))
        return sorted(set(kept))


class StateTable(GroupTable):
    """A state for each block, computed from the one before (mode `all`); the newest alone is needed."""

    __slots__ = ()

    @override
    def skipped(self, computed: int) -> int:
        return max(0, computed - 1) // self.group.block_size

    @override
    def _required(self, tokens: int) -> int:
        return -(-tokens // self.group.block_size) + self.layout.speculative_tokens

    @override
    def _kept(self, first: int, last: int, boundaries: Sequence[int]) -> Iterable[int]:
        size, interval = self.group.block_size, self.layout.retention_interval
        if interval is None or (interval and interval <= size):
            return range(first, last)
        every = interval // size
        kept = {at for at in range(first, last) if every and (at + 1) % every == 0}
        ends = {boundary // self.layout.alignment * self.layout.alignment // size for boundary in boundaries}
        return sorted(kept | {end - 1 for end in ends if first < end <= last})


class AlignedStateTable(StateTable):
    """Holds the newest state alone, in the block of the token it stands at (mode `align`).

    A step that ends in a later block takes one block there and leaves the ones between empty (:1780). The
    last `speculative_tokens` blocks are room for the states of drafts, and move along (:1908).
    """

    __slots__ = ("allocated", "retired")

    def __init__(self, group: KVGroup, layout: KVLayout) -> None:
        super().__init__(group, layout)
        self.allocated = False
        self.retired = 0

    @override
    def needed(self, pool: BlockPool, hits: Sequence[int], hit_tokens: int, tokens: int) -> int:
        new = max(0, self._required(tokens) - len(hits))
        return min(new, 1 + self.layout.speculative_tokens) + _free(pool, hits)

    @override
    def missing(self, tokens: int) -> int:
        most = 1 if self.allocated else 1 + self.layout.speculative_tokens
        return min(most, super().missing(tokens))

    @override
    def allocate(self, pool: BlockPool, tokens: int) -> None:
        required, before = self._required(tokens), len(self.blocks)
        if required > before:
            drafts = self.layout.speculative_tokens
            newest = required - drafts - 1
            self.blocks += [NO_BLOCK] * (newest - before)
            if self.allocated:
                for at in range(before - drafts, min(before, newest)):
                    self.blocks.append(self.blocks[at])
                    self.blocks[at] = NO_BLOCK
            self.blocks += pool.allocate(required - len(self.blocks))
        self.allocated = True

    @override
    def drop(self, pool: BlockPool, computed: int) -> None:
        last = min(self.skipped(computed), len(self.blocks))
        if self.retired < last:
            self._give_back(pool, self.retired, last)
            self.retired = last

    @override
    def release(self, pool: BlockPool) -> None:
        super().release(pool)
        self.allocated, self.retired = False, 0


def table_for(group: KVGroup, layout: KVLayout) -> GroupTable:
    """An empty table of the group's kind."""
    if group.kind == "full":
        return GroupTable(group, layout)
    if group.kind == "sliding":
        return SlidingTable(group, layout)
    return AlignedStateTable(group, layout) if layout.mamba_align else StateTable(group, layout)


def _free(pool: BlockPool, hits: Iterable[int]) -> int:
    """Hits that no running request holds: using one takes it from the free blocks, as a new one does."""
    return sum(1 for block in hits if block != NO_BLOCK and pool.is_free(block))
