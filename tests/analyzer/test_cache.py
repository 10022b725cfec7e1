from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.blocks import Namespace, cached_tokens_after
from analyzer.cache import Hit, PrefixCache
from analyzer.core import TokenIds
from analyzer.kv_layout import full_attention
from analyzer.replay import Event, Finish, Restart, Start, TokenCache, simulate

GOLDEN = Path(__file__).parents[1] / "golden" / "cache_small_pool.json"


def ids(first: int, count: int) -> TokenIds:
    return np.arange(first, first + count, dtype=np.int32)


def run(cache: TokenCache, token_ids: TokenIds, generated: list[int] | int = 1, **options: Any) -> int:
    hit = cache.admit("r", token_ids, **options)
    assert hit is not None
    cache.cache.check_integrity()
    cache.finish("r", generated)
    cache.cache.check_integrity()
    return hit.tokens


class Obvious:
    """The same rules on plain lists: one free list of [block, content], searched from end to end."""

    def __init__(self, size: int, blocks: int) -> None:
        self.size = size
        self.free = [[n, None] for n in range(blocks)]
        self.known: list[list[Any]] = []  # blocks with content, in the order in which they got it
        self.held: dict[str, tuple[list[int], list[list[Any]]]] = {}

    def fill(self, block: list[Any], prefix: list[int]) -> None:
        block[1] = tuple(prefix)
        self.known.append(block)

    def take(self) -> list[Any]:
        block: list[Any] = self.free.pop(0)
        self.known = [other for other in self.known if other is not block]
        block[1] = None
        return block

    def admit(self, name: str, prompt: list[int], skip: bool) -> int | None:
        hits: list[list[Any]] = []
        while not skip and (len(hits) + 1) * self.size < len(prompt):
            wanted = tuple(prompt[: (len(hits) + 1) * self.size])
            same = [block for block in self.known if block[1] == wanted]
            if not same:
                break
            hits.append(same[0])
        needed = -(-len(prompt) // self.size) - len(hits)
        rest = [block for block in self.free if not any(block is hit for hit in hits)]
        if needed > len(rest):
            return None
        self.free = rest
        blocks = hits + [self.take() for _ in range(needed)]
        for i in range(len(hits), len(prompt) // self.size):
            self.fill(blocks[i], prompt[: (i + 1) * self.size])
        self.held[name] = (prompt, blocks)
        return len(hits) * self.size

    def finish(self, name: str, generated: list[int]) -> None:
        prompt, blocks = self.held[name]
        computed = prompt + generated[:-1]
        while len(blocks) * self.size < len(computed):
            blocks.append(self.take())
        for i in range(len(prompt) // self.size, len(computed) // self.size):
            self.fill(blocks[i], computed[: (i + 1) * self.size])
        del self.held[name]
        for block in blocks[::-1]:
            shared = any(block is other for _, others in self.held.values() for other in others)
            if block[1] is not None and not shared:
                self.free.append(block)
        empty = [block for block in blocks[::-1] if block[1] is None]
        self.free = empty + self.free

    def room(self) -> int:
        return len(self.free)


token_lists = st.lists(st.integers(0, 1), min_size=1, max_size=14)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("admit"), token_lists, st.sampled_from([False, False, False, True])),
        st.tuples(st.just("finish"), token_lists, st.integers(0, 9)),
    ),
    max_size=40,
)


@settings(max_examples=400, deadline=None)
@given(steps, st.integers(8, 24), st.integers(1, 3))
def test_any_traffic_hits_what_the_obvious_implementation_hits(
    traffic: list[tuple[str, list[int], int]], blocks: int, size: int
) -> None:
    cache, obvious = TokenCache(size, blocks), Obvious(size, blocks)
    for number, (step, tokens, choice) in enumerate(traffic):
        if step == "admit":
            hit = cache.admit(str(number), np.array(tokens, dtype=np.int32), skip_reading=bool(choice))
            assert (None if hit is None else hit.tokens) == obvious.admit(str(number), tokens, bool(choice))
        elif obvious.held:
            name = list(obvious.held)[choice % len(obvious.held)]
            generated = tokens[: 1 + obvious.room() * size]  # never so many that others are preempted
            cache.finish(name, generated)
            obvious.finish(name, generated)
        cache.cache.check_integrity()
        assert cache.cache.pool.free == obvious.room()


def test_recorded_traffic_of_a_server_that_evicts_is_predicted_to_the_token() -> None:
    record = json.loads(GOLDEN.read_text())
    cache = TokenCache(record["block_size"], record["num_gpu_blocks"] - 1)
    for number, row in enumerate(record["requests"]):
        prompt, namespace = np.array(row["prompt"], dtype=np.int32), Namespace(cache_salt=row.get("salt"))
        hit = cache.admit(str(number), prompt, namespace, skip_reading=row.get("skip_reading", False))
        assert hit is not None
        assert (number, hit.tokens) == (number, row["cached_tokens"])
        cache.finish(str(number), row["generated"], ahead_tokens=row.get("ahead_tokens", 0))
        cache.cache.check_integrity()
    assert cache.cache.pool.evicted > 100


def test_a_fully_cached_prompt_of_whole_blocks_loses_its_last_block() -> None:
    # v1/core/kv_cache_manager.py:295
    cache = TokenCache(16)
    assert [run(cache, ids(0, 64)) for _ in range(2)] == [0, 48]
    assert run(cache, ids(0, 65)) == 64


def test_a_drafter_gives_up_the_last_block_of_a_hit() -> None:
    # v1/core/single_type_kv_cache_manager.py:819
    cache = TokenCache(16, layout=full_attention(16, drops_last_block=True))
    assert [run(cache, ids(0, count)) for count in (70, 70, 17, 16)] == [0, 48, 0, 0]


@pytest.mark.parametrize(("generated", "expected"), [(12, 32), (13, 48)])
def test_generated_tokens_are_cached_but_for_the_last(generated: int, expected: int) -> None:
    # v1/core/sched/async_scheduler.py:75
    cache = TokenCache(16)
    run(cache, ids(0, 36), list(range(36, 36 + generated)))
    assert run(cache, ids(0, 100)) == expected == cached_tokens_after(36, generated, 16)


def test_generated_tokens_of_unknown_content_take_room_and_are_never_hit() -> None:
    cache = TokenCache(16, 6)
    run(cache, ids(0, 32))
    run(cache, ids(1000, 16), 60)  # five blocks of the six, one with content
    assert run(cache, ids(1000, 76)) == 16
    assert run(cache, ids(0, 33)) == 16


def test_a_request_that_skips_reading_hits_nothing_and_writes() -> None:
    # v1/core/kv_cache_manager.py:286
    cache = TokenCache(16)
    run(cache, ids(0, 40), skip_reading=True)
    assert run(cache, ids(0, 40), skip_reading=True) == 0
    assert run(cache, ids(0, 40)) == 32


def test_salts_and_adapters_keep_equal_prompts_apart() -> None:
    # v1/core/kv_cache_utils.py:646
    cache = TokenCache(16)
    spaces = [Namespace(), Namespace(cache_salt="a"), Namespace(adapter="a")]
    assert [run(cache, ids(0, 40), namespace=space) for space in spaces * 2] == [0, 0, 0, 32, 32, 32]


def test_the_second_of_two_choices_hits_the_first_ones_prompt_at_once() -> None:
    # v1/core/kv_cache_manager.py:612
    cache = TokenCache(16)
    assert cache.admit("r#0", ids(0, 40)) == Hit(tokens=0)
    assert cache.admit("r#1", ids(0, 40)) == Hit(tokens=32)
    assert cache.cache.pool.used == 4


def test_the_end_of_a_sequence_is_evicted_before_its_start() -> None:
    # v1/core/single_type_kv_cache_manager.py:589
    cache = TokenCache(16, 4)
    run(cache, ids(0, 64))
    assert cache.admit("other", ids(500, 20)) == Hit(tokens=0, evicted_blocks=2)
    cache.finish("other", 1)
    assert run(cache, ids(0, 64)) == 32


def test_blocks_of_a_running_request_are_not_evicted() -> None:
    cache = TokenCache(16, 4)
    cache.admit("long", ids(0, 48))
    run(cache, ids(500, 16))
    assert run(cache, ids(600, 16)) == 0
    assert cache.admit("too much", ids(700, 17)) is None
    cache.finish("long", 1)
    assert run(cache, ids(0, 48)) == 32


def test_a_slot_taken_ahead_may_evict_a_block() -> None:
    # v1/core/sched/scheduler.py:664
    for ahead, expected in ((0, 16), (1, 0)):
        cache = TokenCache(16, 3)
        run(cache, ids(0, 16))
        cache.admit("r", ids(500, 32))
        cache.finish("r", 1, ahead_tokens=ahead)
        assert run(cache, ids(0, 17)) == expected


def test_a_request_that_outgrows_the_pool_preempts_the_youngest_which_comes_back() -> None:
    # v1/core/sched/scheduler.py:802,1571
    cache = PrefixCache(16, 4)
    old, young = np.arange(2, dtype=np.int64), np.arange(10, 12, dtype=np.int64)
    cache.admit("old", old, 32)
    cache.admit("young", young, 32)
    cache.extend("old", 10)
    cache.check_integrity()
    assert cache.pool.used == 3
    assert cache.admit("new", young[:0], 1) is None
    cache.finish("old", 10)
    cache.check_integrity()
    assert cache.pool.used == 2
    cache.finish("young", 1)
    with pytest.raises(ValueError, match="alone needs more than 4 blocks"):
        cache.admit("huge", old, 32)
        cache.extend("huge", 100)


def test_requests_that_do_not_fit_wait_their_turn_and_a_restart_forgets_everything() -> None:
    events: list[Event] = [
        Start(request_id="a", token_ids=ids(0, 40)),
        Start(request_id="b", token_ids=ids(0, 50)),
        Start(request_id="c", token_ids=ids(900, 40)),
        Start(request_id="d", token_ids=ids(0, 8)),
        Finish(request_id="a", generated=2),
        Finish(request_id="d", generated=2),
        Finish(request_id="b", generated=2),
        Restart(),
        Finish(request_id="c", generated=2),
        Start(request_id="e", token_ids=ids(0, 40)),
    ]
    hits = simulate(events, TokenCache(16, 5))
    assert {name: hit and hit.tokens for name, hit in hits.items()} == {
        "a": 0,
        "b": 32,
        "c": 0,
        "d": None,
        "e": 0,
    }


def test_a_server_without_prefix_caching_hits_nothing() -> None:
    # v1/core/kv_cache_manager.py:284
    cache = TokenCache(16, layout=full_attention(16, caching=False))
    assert [run(cache, ids(0, 64)) for _ in range(3)] == [0, 0, 0]


def test_misuse_is_refused() -> None:
    cache = PrefixCache(16)
    keys = np.arange(2, dtype=np.int64)
    with pytest.raises(ValueError, match="do not belong"):
        cache.admit("r", keys, 31)
    cache.admit("r", keys, 32)
    with pytest.raises(ValueError, match="already in flight"):
        cache.admit("r", keys, 32)
    with pytest.raises(ValueError, match="not in flight"):
        cache.finish("s", 1)
