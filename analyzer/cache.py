"""vLLM's prefix cache for full attention: requests come and go, and each admission tells its hit.

No token ids and no clock: sequences are block keys (`analyzer.blocks`), and time is the order of the
calls; `analyzer.replay` takes token ids and events. The rules are those of vLLM 0.32
`v1/core/kv_cache_manager.py`, `single_type_kv_cache_manager.py` and `sched/scheduler.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from analyzer.blocks import BlockKeys
from analyzer.pool import BlockPool


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """What one admission did: tokens taken from the cache, and blocks of content evicted for the rest."""

    tokens: int
    evicted_blocks: int = 0


class Sequence:
    """One request's tokens as far as they are known, and its blocks while it runs."""

    __slots__ = ("blocks", "keys", "prompt_tokens", "registered", "skip_reading", "tokens")

    def __init__(self, keys: list[int], prompt_tokens: int, skip_reading: bool) -> None:
        self.keys = keys
        self.prompt_tokens = prompt_tokens
        self.tokens = prompt_tokens
        self.skip_reading = skip_reading
        self.blocks: list[int] = []
        self.registered = 0


class PrefixCache:
    """The cache of one server (one data-parallel rank): one pool of equal blocks, all layers alike.

    `drop_last_block`: drafters of the EAGLE family and MTP need the tokens before the generation point
    computed again, and give up the last block of a hit (`single_type_kv_cache_manager.py:819`).
    `analyzer.grouped_cache` is the same for models whose layers remember different things.

    `capacity` is `num_gpu_blocks - 1` (the null block is never handed out, `block_pool.py:187`), or None
    for a pool that never evicts. What is simplified: a prompt is scheduled whole at its admission,
    where a long one may come chunk by chunk among others' steps, and growth between two calls happens
    at the second. Draft tokens' slots, the watermark (off by default) and KV connectors are left out.
    """

    def __init__(
        self, block_size: int, capacity: int | None = None, *, drop_last_block: bool = False
    ) -> None:
        if block_size < 1:
            raise ValueError(f"block_size must be at least 1 token, not {block_size}")
        self.block_size = block_size
        self.pool = BlockPool(capacity)
        self.drop_last_block = drop_last_block
        # Both in the order in which the scheduler holds them: admission, and preemption.
        self._running: dict[str, Sequence] = {}
        self._preempted: dict[str, Sequence] = {}

    def admit(
        self, request_id: str, keys: BlockKeys, prompt_tokens: int, *, skip_reading: bool = False
    ) -> Hit | None:
        """Look up, allocate and register one prompt; None if the server would leave it waiting.

        `keys` are those of the prompt's full blocks. `skip_reading` is for requests that must compute
        every prompt token (prompt logprobs; `kv_cache_manager.py:286`): they hit nothing, and write.
        With `n` > 1 each choice is admitted for itself, one after the other.
        """
        if request_id in self._running or request_id in self._preempted:
            raise ValueError(f"request {request_id!r} is already in flight")
        if prompt_tokens < 1 or len(keys) != prompt_tokens // self.block_size:
            raise ValueError(f"{len(keys)} keys do not belong to a prompt of {prompt_tokens} tokens")
        self._resume_preempted()
        if self._preempted:  # they stand before every new request in the queue (scheduler.py:1613)
            return None
        return self._start(request_id, self._sequence(keys.tolist(), prompt_tokens, skip_reading))

    def extend(self, request_id: str, generated_tokens: int, keys: BlockKeys | None = None) -> None:
        """Tell that a running request has generated `generated_tokens` so far, in all.

        `keys` are those of prompt and generated tokens together, as far as known; without them the
        generated tokens occupy blocks that nobody can hit. The newest token has no slot yet: it gets one
        when it is fed back to compute the next.
        """
        sequence = self._resumed(request_id)
        tokens = sequence.prompt_tokens + max(0, generated_tokens - 1)
        if tokens < sequence.tokens:
            raise ValueError(f"request {request_id!r} had generated more than {generated_tokens} tokens")
        if keys is not None:
            self._set_keys(sequence, keys.tolist())
        self._advance(request_id, sequence, tokens)

    def finish(
        self,
        request_id: str,
        generated_tokens: int,
        keys: BlockKeys | None = None,
        *,
        ahead_tokens: int = 0,
    ) -> None:
        """End a request: what it filled stays until evicted, the rest is free.

        `ahead_tokens` are slots taken for steps already scheduled when the end was noticed: 1 for a stop
        token under vLLM's asynchronous scheduler, 0 at `max_tokens`, which it sees coming
        (`scheduler.py:664`). They hold nothing, and matter only where one starts a block.
        """
        self.extend(request_id, generated_tokens, keys)
        sequence = self._running[request_id]
        if ahead_tokens:
            self._grow(request_id, sequence, sequence.tokens + ahead_tokens)
        del self._running[request_id]
        self._release(sequence)
        self._resume_preempted()

    def preempt(self, request_id: str) -> None:
        """Take a running request's blocks away; it starts again, with a new lookup (`scheduler.py:1571`).

        Happens by itself when others need the room. Its content stays, and is mostly found again; a
        server does not report the second lookup (`scheduler.py:1074`).
        """
        sequence = self._running.pop(request_id)
        self._release(sequence)
        self._preempted[request_id] = sequence

    def reset(self) -> None:
        """The server was started anew: the cache is empty, and whatever ran is gone."""
        self.pool.clear()
        self._running.clear()
        self._preempted.clear()

    def check_integrity(self) -> None:
        """Raise AssertionError unless pool and requests agree; costs time, meant for tests."""
        self.pool.check_integrity([sequence.blocks for sequence in self._running.values()])
        for sequence in self._running.values():
            assert sequence.registered <= len(sequence.blocks)
            assert len(sequence.blocks) * self.block_size >= sequence.tokens
        assert not any(sequence.blocks for sequence in self._preempted.values())

    def _sequence(self, keys: list[int], prompt_tokens: int, skip_reading: bool) -> Sequence:
        return Sequence(keys, prompt_tokens, skip_reading)

    def _set_keys(self, sequence: Sequence, keys: list[int]) -> None:
        sequence.keys = keys

    def _start(self, request_id: str, sequence: Sequence) -> Hit | None:
        evicted_before = self.pool.evicted
        tokens = self._place(request_id, sequence)
        if tokens is None:
            return None
        self._running[request_id] = sequence
        return Hit(tokens=tokens, evicted_blocks=self.pool.evicted - evicted_before)

    def _place(self, request_id: str, sequence: Sequence) -> int | None:
        """Give a sequence its blocks; how many tokens of it were cached, or None if there is no room."""
        size, pool = self.block_size, self.pool
        hits: list[int] = []
        if not sequence.skip_reading:
            # The last token is computed whatever is cached (`kv_cache_manager.py:295`).
            hits = pool.find(sequence.keys[: (sequence.tokens - 1) // size])
            if self.drop_last_block and hits:
                hits.pop()
        new = -(-sequence.tokens // size) - len(hits)
        # A prompt must fit whole, even if it is to be computed in chunks (`kv_cache_manager.py:522`).
        if pool.shortfall(hits, new):
            return None
        pool.touch(hits)  # before allocating, lest a hit be evicted (`kv_cache_manager.py:585`)
        sequence.blocks = hits + pool.allocate(new)
        sequence.registered = len(hits)
        self._register(sequence)
        return len(hits) * size

    def _advance(self, request_id: str, sequence: Sequence, tokens: int) -> None:
        """Compute up to `tokens`: take the blocks, and register those that are full."""
        self._grow(request_id, sequence, tokens)
        sequence.tokens = tokens
        self._register(sequence)

    def _register(self, sequence: Sequence) -> None:
        # At schedule time, before anything is computed: a request admitted later in the same step hits
        # these blocks already (`kv_cache_manager.py:612`).
        full = min(sequence.tokens // self.block_size, len(sequence.keys))
        first = sequence.registered
        if first < full:
            self.pool.register(sequence.blocks[first:full], sequence.keys[first:full])
            sequence.registered = full

    def _grow(self, request_id: str, sequence: Sequence, tokens: int) -> None:
        new = -(-tokens // self.block_size) - len(sequence.blocks)
        if new <= 0:
            return
        while self.pool.shortfall((), new):
            self._make_room(request_id)
        sequence.blocks += self.pool.allocate(new)

    def _release(self, sequence: Sequence) -> None:
        self.pool.release(sequence.blocks)
        sequence.blocks = []

    def _make_room(self, request_id: str) -> None:
        # The youngest goes (`scheduler.py:802`). The server may pick this very request; it is known to
        # have gone on, so that here the next youngest goes instead.
        victim = next((other for other in reversed(self._running) if other != request_id), None)
        if victim is None:
            raise ValueError(f"request {request_id!r} alone needs more than {self.pool.capacity} blocks")
        self.preempt(victim)

    def _resume_preempted(self) -> None:
        # Each was put at the head of the queue (`scheduler.py:1613`): the last preempted comes first,
        # and one that does not fit holds up those behind it.
        for request_id in list(reversed(self._preempted)):
            if self._start(request_id, self._preempted[request_id]) is None:
                return
            del self._preempted[request_id]

    def _resumed(self, request_id: str) -> Sequence:
        """The running request; a preempted one that is known to go on gets its room now."""
        if request_id in self._preempted:
            sequence = self._preempted.pop(request_id)
            while self._start(request_id, sequence) is None:
                self._make_room(request_id)
        if request_id not in self._running:
            raise ValueError(f"request {request_id!r} is not in flight")
        return self._running[request_id]
