"""The block pool: which blocks hold what, who uses them, and which one is given up next.

No requests and no tokens: `analyzer.cache` turns those into blocks. The rules are those of vLLM 0.32
`v1/core/block_pool.py` and the free list of `v1/core/kv_cache_utils.py:246`. A block is a number from 0;
vLLM's null block (`block_pool.py:187`) is left out, so that a server with `num_gpu_blocks` has a pool of
one less.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

NO_KEY = -1
"""The content of a block that no lookup can find: never filled, or filled with unknown tokens."""


class BlockPool:
    """Blocks with their content key and reference count, and vLLM's order of reuse.

    vLLM keeps one free list. Its front holds the blocks that were freed without content, last freed
    first (`block_pool.py:795,801`); then come the never used ones, in order (`kv_cache_utils.py:275`);
    then the ones with content, least recently freed first (`block_pool.py:798,803`). A block leaves the
    list from the front, to be allocated, or from the content part, when it is hit; so the three parts
    never mix, and are kept apart here as a stack, a counter and an ordered dict.

    `capacity` is in blocks; None is a pool that never needs to evict.
    """

    __slots__ = (
        "_by_key",
        "_contentless",
        "_evictable",
        "_fresh",
        "_key_of",
        "_users_of",
        "capacity",
        "evicted",
    )

    def __init__(self, capacity: int | None) -> None:
        if capacity is not None and capacity < 1:
            raise ValueError(f"a pool needs at least 1 block, not {capacity}")
        self.capacity = capacity
        self.evicted = 0
        self.clear()

    def clear(self) -> None:
        """Forget everything, as a restarted server does. `evicted` goes on counting."""
        self._key_of: list[int] = []
        self._users_of: list[int] = []
        self._fresh = 0
        self._contentless: list[int] = []
        self._evictable: OrderedDict[int, None] = OrderedDict()
        # A key that several blocks hold maps to all of them, first registered first: vLLM neither
        # merges duplicates nor takes any but the first (`block_pool.py:43,69,85`). Most keys have one
        # block, and an int for it saves a dict each.
        self._by_key: dict[int, int | dict[int, None]] = {}

    @property
    def free(self) -> int | None:
        """How many blocks can be allocated now, with or without eviction; None is no limit."""
        if self.capacity is None:
            return None
        return self.capacity - self._fresh + len(self._contentless) + len(self._evictable)

    @property
    def used(self) -> int:
        """How many blocks at least one running request holds."""
        return self._fresh - len(self._contentless) - len(self._evictable)

    @property
    def filled(self) -> int:
        """How many blocks hold content that can be found, in use or not."""
        return sum(key != NO_KEY for key in self._key_of)

    def find(self, keys: Sequence[int]) -> list[int]:
        """The blocks of the longest run of present `keys` from the start.

        A missing block ends it, even if later ones are present (`single_type_kv_cache_manager.py:784`).
        """
        holders = list(map(self._by_key.get, keys))
        if None in holders:
            del holders[holders.index(None) :]
        return [holder if type(holder) is int else next(iter(holder)) for holder in holders]  # type: ignore[arg-type]

    def holder(self, key: int) -> int | None:
        """The block that serves this key, the first registered of several (`block_pool.py:69`)."""
        holder = self._by_key.get(key)
        return holder if holder is None or isinstance(holder, int) else next(iter(holder))

    def is_free(self, block: int) -> bool:
        """Whether no running request holds the block."""
        return self._users_of[block] == 0

    def shortfall(self, hits: Iterable[int], new: int) -> int:
        """How many blocks are missing to use `hits` and allocate `new` more; 0 means that it fits.

        A hit on a free block takes one from the free count too (`single_type_kv_cache_manager.py:258`).
        """
        if self.free is None:
            return 0
        users = self._users_of
        return max(0, new + sum(1 for block in hits if users[block] == 0) - self.free)

    def touch(self, blocks: Iterable[int]) -> None:
        """One more user for each block; a free one leaves the list (`block_pool.py:752`)."""
        users, evictable = self._users_of, self._evictable
        for block in blocks:
            if users[block] == 0:
                del evictable[block]
            users[block] += 1

    def allocate(self, count: int) -> list[int]:
        """Take `count` blocks from the front, evicting their content (`block_pool.py:666,729`)."""
        if self.free is not None and count > self.free:
            raise ValueError(f"{count} blocks wanted, {self.free} free")
        contentless, evictable, users = self._contentless, self._evictable, self._users_of
        taken: list[int] = []
        for _ in range(count):
            if contentless:
                block = contentless.pop()
            elif self.capacity is None or self._fresh < self.capacity:
                block = self._fresh
                self._fresh += 1
                self._key_of.append(NO_KEY)
                users.append(0)
            else:
                block = evictable.popitem(last=False)[0]
                self._forget(block)
            users[block] = 1
            taken.append(block)
        return taken

    def register(self, blocks: Sequence[int], keys: Sequence[int]) -> None:
        """Give each block its content; it can be hit from now on (`block_pool.py:226`)."""
        by_key, key_of = self._by_key, self._key_of
        for block, key in zip(blocks, keys, strict=True):
            key_of[block] = key
            holder = by_key.get(key)
            if holder is None:
                by_key[key] = block
            elif isinstance(holder, int):
                by_key[key] = {holder: None, block: None}
            else:
                holder[block] = None

    def release(self, blocks: Sequence[int]) -> None:
        """One user less for each of a request's blocks, given in the order of its tokens.

        They are freed from the last to the first, so that the end of a sequence is evicted before its
        start (`single_type_kv_cache_manager.py:589`). The ones without content go to the front as a
        group, in that same order (`block_pool.py:795-803`).
        """
        users, key_of, evictable = self._users_of, self._key_of, self._evictable
        contentless: list[int] = []
        for block in reversed(blocks):
            users[block] -= 1
            if users[block] == 0:
                if key_of[block] == NO_KEY:
                    contentless.append(block)
                else:
                    evictable[block] = None
        self._contentless.extend(reversed(contentless))

    def _forget(self, block: int) -> None:
        """Evict one block's content (`block_pool.py:729`)."""
        key = self._key_of[block]
        self._key_of[block] = NO_KEY
        self.evicted += 1
        holder = self._by_key[key]
        if isinstance(holder, int):
            del self._by_key[key]
            return
        del holder[block]
        if not holder:
            del self._by_key[key]

    def check_integrity(self, users: Sequence[Sequence[int]]) -> None:
        """Raise AssertionError unless the books balance; `users` are the running requests' blocks."""
        counted = [0] * self._fresh
        for blocks in users:
            for block in blocks:
                counted[block] += 1
        assert counted == self._users_of, "reference counts are not those of the running requests"
        idle = [block for block, count in enumerate(counted) if count == 0]
        assert sorted([*self._contentless, *self._evictable]) == idle, "free blocks are not the unused ones"
        assert self.used + len(idle) == self._fresh == len(self._key_of)
        assert self.capacity is None or self._fresh <= self.capacity
        assert all(self._key_of[block] == NO_KEY for block in self._contentless)
        assert all(self._key_of[block] != NO_KEY for block in self._evictable)
        held = {(key, block) for block, key in enumerate(self._key_of) if key != NO_KEY}
        listed = {
            (key, block)
            for key, holder in self._by_key.items()
            for block in ([holder] if isinstance(holder, int) else holder)
        }
        assert listed == held, "the key table and the blocks disagree"
        assert all(holder != {} for holder in self._by_key.values())
