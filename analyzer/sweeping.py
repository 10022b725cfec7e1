"""A capture's hits at any size of the pool: requests as references to blocks, and the sizes worth showing.

No rules of its own: the stack is `analyzer.pool_sweep`'s, the keys are `analyzer.blocks`'.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from analyzer.blocks import BlockKeys, BlockTable, Namespace, common_prefix, hit_tokens
from analyzer.core import TokenIds
from analyzer.engines import CacheRequest, Traffic
from analyzer.kv_layout import KVLayout
from analyzer.pool_sweep import HitCurve, ReuseDistances
from analyzer.report import PoolSize, PoolSweep, Server
from analyzer.servers import EngineKind
from analyzer.unknown_ids import UnknownIds

_STEPS = 4
"""How often the pool is halved and doubled in the table."""

_NULL_BLOCK = 1
"""One block of a server's pool holds nothing (vLLM 0.32 v1/core/block_pool.py:187)."""

_ASSUMED = (
    "requests ran one after the other, in the order of their start",
    "this capture alone, on a server that had nothing cached before it",
    "every layer attends to the whole prompt, and no drafter takes the last block of a hit",
)


def no_sweep(engine: EngineKind, layout: KVLayout | None) -> str | None:
    """Why there is nothing to sweep, or None."""
    if layout is not None and not (layout.caching and layout.only_full_attention):
        return "--pool-sweep: only for models whose layers all attend to the whole prompt, cached"
    if engine.block_pool:
        return None
    return (
        f"--pool-sweep: {engine.title}'s cache is not one pool of blocks of which the least recently used"
        " goes first, so that its hits at other sizes cannot be told from one pass"
    )


def sweep_pool(traffic: Traffic, server: Server, parent_tokens: Mapping[str, int]) -> PoolSweep:
    """Sweep the pool; `parent_tokens` is the length of each request's parent, by key, where it has one."""
    stack, prompt_tokens, append = _Requests(server), 0, 0
    for request in sorted(traffic.requests, key=lambda request: request.started_ns):
        tokens = len(request.token_ids)
        prompt_tokens += tokens
        found = stack.add(request)
        if not request.skip_reading:
            found = max(found, hit_tokens(parent_tokens.get(request.key, 0), tokens, server.block_size))
        append += found
    curve = stack.distances.curve()
    unlimited = (curve.hits(None) or 0) * server.block_size
    return PoolSweep(
        sizes=tuple(
            _size(blocks, curve, server.block_size, prompt_tokens)
            for blocks in sorted(set(_sizes(curve, server.pool_blocks)))
        ),
        prompt_tokens=prompt_tokens,
        smallest_pool_blocks=curve.smallest + _NULL_BLOCK,
        saturated_pool_blocks=curve.saturated + _NULL_BLOCK,
        unlimited_hit_tokens=unlimited,
        unlimited_hit_pct=_percent(unlimited, prompt_tokens),
        append_hit_tokens=append,
        append_hit_pct=_percent(append, prompt_tokens),
        assumed=_ASSUMED,
    )


class _Requests:
    """Requests as the stack takes them."""

    def __init__(self, server: Server) -> None:
        self.distances = ReuseDistances()
        self._size = server.block_size
        self._table = BlockTable(server.block_size)
        self._newest: dict[Namespace, tuple[TokenIds, BlockKeys]] = {}
        self._unknown = UnknownIds()
        pool = server.pool_blocks
        self._most_tokens = None if pool is None else (pool - _NULL_BLOCK) * server.block_size

    def add(self, request: CacheRequest) -> int:
        """Tokens that it hits in a pool without limit."""
        content, computed = self._content(request)
        lookup = 0 if request.skip_reading else (len(request.token_ids) - 1) // self._size
        keys = self._keys(content, request.namespace)
        held = -(-computed // self._size)
        return self.distances.add(keys, lookup_blocks=lookup, blocks=held) * self._size

    def _content(self, request: CacheRequest) -> tuple[TokenIds, int]:
        """The tokens whose blocks have keys, and how many are computed: all but the one sampled last."""
        prompt, generated = request.token_ids, request.generated
        count = generated if isinstance(generated, int) else len(generated)
        if self._most_tokens is not None and len(prompt) + count > self._most_tokens:
            return prompt, len(prompt)  # the count cannot be right
        computed = len(prompt) + max(0, count - 1)
        if isinstance(generated, int):
            return prompt, computed
        return np.concatenate([prompt, self._unknown.fill(generated[:-1])]), computed

    def _keys(self, content: TokenIds, namespace: Namespace) -> BlockKeys:
        if (newest := self._newest.get(namespace)) is None:
            keys = self._table.keys(content, namespace)
        else:
            keys = self._table.keys_after(newest[1], common_prefix(newest[0], content), content, namespace)
        self._newest[namespace] = content, keys
        return keys


def _sizes(curve: HitCurve, pool_blocks: int | None) -> Iterator[int]:
    """Sizes to show: today's, its halves and doubles as far as they differ, and the two ends."""
    smallest, saturated = curve.smallest + _NULL_BLOCK, curve.saturated + _NULL_BLOCK
    yield from (smallest, saturated)
    if pool_blocks is not None:
        yield pool_blocks
    middle = min(pool_blocks or saturated, saturated)
    for step in range(1, _STEPS + 1):
        yield from (size for size in (middle >> step, middle << step) if smallest < size < saturated)


def _size(blocks: int, curve: HitCurve, block_size: int, prompt_tokens: int) -> PoolSize:
    hits = curve.hits(blocks - _NULL_BLOCK)
    tokens = None if hits is None else hits * block_size
    return PoolSize(
        pool_blocks=blocks,
        hit_tokens=tokens,
        hit_pct=None if tokens is None else _percent(tokens, prompt_tokens),
    )


def _percent(part: int, whole: int) -> float | None:
    return round(100 * part / whole, 1) if whole else None
