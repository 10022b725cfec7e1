"""Hits at every pool size from one pass, held against the simulator run once for each size."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.blocks import BlockKeys, BlockTable, Namespace
from analyzer.pool_sweep import ReuseDistances
from analyzer.replay import TokenCache

GOLDEN = Path(__file__).parents[1] / "golden" / "cache_small_pool.json"

type Request = tuple[list[int], list[int], int, bool]
"""Prompt, known generated ids, number of further generated tokens that nobody knows, skips reading."""


def keys_of(table: BlockTable, request: Request) -> tuple[int, int, BlockKeys]:
    """Blocks that may be hit, blocks held, keys: by hand from vLLM's rules (reference §3.4, §3.5)."""
    prompt, known, unknown, skips = request
    generated = len(known) + unknown
    computed = len(prompt) + max(0, generated - 1)
    content = (prompt + known)[:computed] if not unknown else prompt
    lookup = 0 if skips else (len(prompt) - 1) // table.block_size
    return lookup, -(-computed // table.block_size), table.keys(np.array(content, dtype=np.int32))


def simulated(traffic: list[Request], size: int, capacity: int) -> int:
    """Blocks hit in the simulator, one request after the other."""
    cache, hits = TokenCache(size, capacity), 0
    for prompt, known, unknown, skips in traffic:
        hit = cache.admit("r", np.array(prompt, dtype=np.int32), skip_reading=skips)
        assert hit is not None
        hits += hit.tokens // size
        cache.finish("r", known if not unknown else len(known) + unknown)
    return hits


def swept(traffic: list[Request], size: int) -> tuple[ReuseDistances, int]:
    """The stack, and how often content was computed that may have been there: duplicates, at most."""
    table, stack, duplicates = BlockTable(size), ReuseDistances(), 0
    for request in traffic:
        known_before = len(table)
        lookup, held, keys = keys_of(table, request)
        duplicates += max(0, int((keys < known_before).sum()) - lookup)
        stack.add(keys, lookup_blocks=lookup, blocks=held)
    return stack, duplicates


prompts = st.lists(st.integers(0, 1), min_size=1, max_size=14)
requests = st.tuples(
    prompts, st.lists(st.integers(0, 1), max_size=5), st.integers(0, 6), st.sampled_from([False] * 5 + [True])
)


@settings(max_examples=150, deadline=None)
@given(st.lists(requests, min_size=1, max_size=25), st.integers(1, 3))
def test_every_pool_size_hits_what_the_simulator_hits_but_for_duplicates(
    traffic: list[Request], size: int
) -> None:
    stack, duplicates = swept(traffic, size)
    curve = stack.curve()
    for capacity in range(curve.smallest, curve.saturated + 3):
        here, there = curve.hits(capacity), simulated(traffic, size, capacity)
        least = curve.hits(max(curve.smallest, capacity - duplicates))
        assert here is not None and least is not None
        if capacity - duplicates >= curve.smallest:
            assert least <= there
        assert there <= here


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(prompts, st.integers(0, 9)), min_size=1, max_size=30), st.integers(2, 4))
def test_without_duplicates_every_pool_size_is_exact(traffic: list[tuple[list[int], int]], size: int) -> None:
    # A prompt that ends within a block computes none twice; answers of unknown content fill none.
    cut: list[Request] = []
    for prompt, unknown in traffic:
        cut.append((prompt + [0] * (len(prompt) % size == 0), [], unknown, False))
    stack, duplicates = swept(cut, size)
    assert duplicates == 0
    curve = stack.curve()
    for capacity in range(curve.smallest, curve.saturated + 3):
        assert curve.hits(capacity) == simulated(cut, size, capacity)
    assert curve.hits(None) == simulated(cut, size, 10**6)


def test_a_real_servers_small_pool_hits_the_same_within_a_hundredth() -> None:
    # 200 requests to vLLM 0.32 with 39 usable blocks; see what the file says of itself.
    record = json.loads(GOLDEN.read_text(encoding="utf-8"))
    size, capacity = record["block_size"], record["num_gpu_blocks"] - 1
    table, stack = BlockTable(size), ReuseDistances()
    for row in record["requests"]:
        prompt, generated = row["prompt"], row["generated"]
        computed = [*prompt, *generated[:-1]]
        stack.add(
            table.keys(np.array(computed, dtype=np.int32), Namespace(cache_salt=row.get("salt"))),
            lookup_blocks=0 if row.get("skip_reading") else (len(prompt) - 1) // size,
            blocks=-(-(len(computed) + row.get("ahead_tokens", 0)) // size),
        )
    reported = sum(row["cached_tokens"] for row in record["requests"]) // size
    assert reported == 464
    here = stack.curve().hits(capacity)
    assert here is not None and reported <= here <= 1.01 * reported


def test_a_block_computed_again_is_kept_twice() -> None:
    # The prompt is four whole blocks: the last is computed at each request, and each one stays.
    prompt: Request = ([1] * 8, [], 0, False)
    stranger: Request = ([0] * 8, [], 0, False)
    traffic = [prompt, prompt, stranger, prompt]
    curve = swept(traffic, 2)[0].curve()
    for capacity in range(curve.smallest, 12):
        assert curve.hits(capacity) == simulated(traffic, 2, capacity)
    # At 5 the stranger's four blocks leave the prompt's first; at 7, the duplicate gone, its first three.
    assert [curve.hits(capacity) for capacity in (4, 5, 7)] == [3, 4, 6]


def test_a_cycle_hits_nothing_until_the_whole_cycle_fits() -> None:
    # The textbook case: three strangers in turn, two blocks each and one that is never full.
    three: list[Request] = [([n] * 5, [], 0, False) for n in range(3)]
    traffic = three * 4
    curve = swept(traffic, 2)[0].curve()
    assert curve.smallest == 3
    # Six blocks with content and one without need 7. At 6 each stranger has evicted the next one's end, and
    # nine of the twelve requests hit their start.
    assert [curve.hits(n) for n in (2, 3, 6, 7)] == [None, 0, 9, 18]
    assert curve.saturated == 7


def test_more_blocks_with_content_than_blocks_are_refused() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        ReuseDistances().add(np.arange(3, dtype=np.int64), lookup_blocks=2, blocks=2)


def test_no_request_has_nothing_to_hit() -> None:
    curve = ReuseDistances().curve()
    assert (curve.smallest, curve.saturated, curve.hits(1), curve.hits(None)) == (1, 1, 0, 0)
