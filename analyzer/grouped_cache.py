"""vLLM's prefix cache where layers remember different things: windows, states, or both beside everything.

No token ids and no clock, as in `analyzer.cache`, whose requests' life it shares. A prompt is computed in
steps here, because blocks behind the window come free between them. The rules are those of vLLM 0.32
`v1/core/kv_cache_manager.py:413`, `kv_cache_coordinator.py` and `sched/scheduler.py:443`.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer.cache import PrefixCache, Sequence
from analyzer.group_lookup import GroupHits, find_hits
from analyzer.group_tables import NO_BLOCK, GroupTable, table_for
from analyzer.kv_layout import KVLayout


class GroupedSequence(Sequence):
    """A request's tables, one a group. `previous_start` is where its step before began."""

    __slots__ = ("boundaries", "previous_start", "tables")

    def __init__(self, keys: list[int], prompt_tokens: int, skip_reading: bool, layout: KVLayout) -> None:
        super().__init__(keys, prompt_tokens, skip_reading)
        self.tables: list[GroupTable] = [table_for(group, layout) for group in layout.groups]
        self.boundaries: tuple[int, ...] = ()
        self.previous_start = 0

    def set_keys(self, keys: list[int], hash_block_size: int) -> None:
        """Give each table the keys of its own blocks: the last one inside stands for all before it."""
        self.keys = keys
        for number, table in enumerate(self.tables):
            stride = table.group.block_size // hash_block_size
            # The number of the group is part of a key (`kv_cache_utils.py:74`).
            table.keys = [key * len(self.tables) + number for key in keys[stride - 1 :: stride]]


class GroupedCache(PrefixCache):
    """One pool, from which every group takes blocks of its own.

    `block_size` is that of the keys. What is simplified: a prompt's steps follow each other at once, where
    other requests' may come between, and none of them finds the batch filled by others; a state that a
    drafter's slots lie behind is at most one block off; hits inside a block (`--prefix-match-unit`), and
    states kept inside a step (`num_prefill_checkpoint_blocks`) are left out.
    """

    def __init__(self, layout: KVLayout, capacity: int | None = None) -> None:
        super().__init__(layout.hash_block_size, capacity)
        self.layout = layout
        self._rhythm = sorted(_rhythm(layout))

    def check_integrity(self) -> None:
        """Raise AssertionError unless pool and requests agree; costs time, meant for tests."""
        held = [table for sequence in self._running.values() for table in _tables(sequence)]
        self.pool.check_integrity([[block for block in table.blocks if block != NO_BLOCK] for table in held])
        for table in held:
            assert table.cached <= max(len(table.blocks), len(table.keys))
        for sequence in self._preempted.values():
            assert not any(table.blocks for table in _tables(sequence))

    def _sequence(self, keys: list[int], prompt_tokens: int, skip_reading: bool) -> Sequence:
        sequence = GroupedSequence(keys, prompt_tokens, skip_reading, self.layout)
        sequence.set_keys(keys, self.block_size)
        return sequence

    def _set_keys(self, sequence: Sequence, keys: list[int]) -> None:
        assert isinstance(sequence, GroupedSequence)
        sequence.set_keys(keys, self.block_size)

    def _place(self, request_id: str, sequence: Sequence) -> int | None:
        assert isinstance(sequence, GroupedSequence)
        tables, pool, tokens = sequence.tables, self.pool, sequence.tokens
        hits = GroupHits(blocks=tuple([] for _ in tables), tokens=0)
        if not sequence.skip_reading:
            hits = find_hits(pool, self.layout, [table.keys for table in tables], tokens - 1)
        if not self.layout.fits(tokens, pool.capacity):
            return None
        end = self._step_end(sequence, hits.tokens, hits.junction_tokens)
        pairs = list(zip(tables, hits.blocks, strict=True))
        prompt = sum(table.admission_need(pool, own, hits.tokens, tokens) for table, own in pairs)
        step = sum(table.needed(pool, own, hits.tokens, end) for table, own in pairs)
        if pool.free is not None and max(prompt, step) > pool.free:
            return None
        for table, own in pairs:  # all groups' before any allocates (`kv_cache_coordinator.py:286`)
            table.adopt(pool, own, hits.tokens)
        junction = (hits.junction_tokens,) if hits.junction_tokens else ()
        sequence.boundaries = (*self.layout.replay_boundaries(sequence.prompt_tokens), *junction)
        sequence.previous_start = hits.tokens
        start = hits.tokens
        while start < tokens:
            end = self._step_end(sequence, start, hits.junction_tokens)
            self._step(request_id, sequence, start, end)
            start = end
        return hits.tokens

    def _step_end(self, sequence: Sequence, start: int, junction: int) -> int:
        """Where a step over the prompt ends that begins at `start` (`scheduler.py:443`)."""
        tokens, layout = sequence.tokens, self.layout
        end = min(start + layout.batch_tokens, tokens)
        if not layout.aligned_prefill:
            return end
        size = layout.cut_tokens or min(group.block_size for group in layout.groups)
        if end < tokens and (end // size * size > start or size <= layout.batch_tokens):
            end = end // size * size
        drops = any(group.drops_last_block for group in layout.groups)
        last_state = tokens // size * size - size if drops else (tokens - 1) // size * size
        stops = [last_state]
        if start % size:
            stops.append((start // size + 1) * size)
        if start < junction < end:
            stops.append(start + (junction - start) // size * size)
        return min((stop for stop in stops if start < stop < end), default=end)

    def _step(
        self, request_id: str, sequence: GroupedSequence, start: int, end: int, *, register: bool = True
    ) -> None:
        # What a step that has not ended may still look at is kept (`kv_cache_manager.py:555`).
        done = sequence.previous_start if self.layout.steps_ahead else start
        for table in sequence.tables:
            table.drop(self.pool, done)
        while self.pool.shortfall((), sum(table.missing(end) for table in sequence.tables)):
            self._make_room(request_id)
        for table in sequence.tables:
            table.allocate(self.pool, end)
        if register:
            for table in sequence.tables:
                table.register(self.pool, self._cacheable(table, end), sequence.boundaries)
        sequence.previous_start = start

    def _cacheable(self, table: GroupTable, computed: int) -> int:
        """How far a table may be registered: no further than hits reach (`kv_cache_coordinator.py:779`)."""
        if len(self.layout.groups) == 1:
            return computed
        aligned = computed // self.layout.alignment * self.layout.alignment
        if table.group.drops_last_block and aligned:
            return min(computed, aligned + table.group.block_size)
        return aligned

    def _advance(self, request_id: str, sequence: Sequence, tokens: int) -> None:
        assert isinstance(sequence, GroupedSequence)
        for start in self._eventful(sequence.tokens, tokens):
            if start > sequence.tokens:
                sequence.previous_start = start - 1  # a step in which nothing happened
            self._step(request_id, sequence, start, start + 1)
        if tokens > sequence.tokens:
            sequence.previous_start = tokens - 1
        sequence.tokens = tokens

    def _grow(self, request_id: str, sequence: Sequence, tokens: int) -> None:
        assert isinstance(sequence, GroupedSequence)
        for start in range(sequence.tokens, tokens):
            self._step(request_id, sequence, start, start + 1, register=False)

    def _eventful(self, first: int, last: int) -> list[int]:
        """The steps of one token each, among first..last, in which a block is taken, filled or dropped."""
        steps = {first, first + 1} if self.layout.steps_ahead else {first}
        for size, offset in self._rhythm:
            steps |= set(range(first + (offset - first) % size, last, size))
        return sorted(step for step in steps if step < last)

    def _release(self, sequence: Sequence) -> None:
        for table in _tables(sequence):
            table.release(self.pool)


class NoPrefixCache(PrefixCache):
    """A server without prefix caching: it hits nothing, and its pool tells nothing."""

    def __init__(self, layout: KVLayout) -> None:
        super().__init__(layout.hash_block_size)

    def _sequence(self, keys: list[int], prompt_tokens: int, skip_reading: bool) -> Sequence:
        return super()._sequence(keys, prompt_tokens, skip_reading=True)


def cache_for(layout: KVLayout, capacity: int | None = None) -> PrefixCache:
    """The cache of a server with this layout and `capacity` blocks to give away; None never evicts."""
    if not layout.caching:
        return NoPrefixCache(layout)
    if layout.only_full_attention:
        group = layout.groups[0]
        return PrefixCache(group.block_size, capacity, drop_last_block=group.drops_last_block)
    return GroupedCache(layout, capacity)


def _tables(sequence: Sequence) -> list[GroupTable]:
    assert isinstance(sequence, GroupedSequence)
    return sequence.tables


def _rhythm(layout: KVLayout) -> Iterable[tuple[int, int]]:
    """(size, offset): at the steps that begin at `offset` modulo `size`, something happens to a table."""
    for group in layout.groups:
        size = group.block_size
        yield size, 0
        yield size, size - 1
        if group.kind != "full":
            kept = 1 if group.window is None else group.window - 1
            yield size, (kept + layout.steps_ahead) % size
