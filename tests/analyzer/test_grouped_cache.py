from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.cache import PrefixCache
from analyzer.grouped_cache import GroupedCache, cache_for
from analyzer.kv_layout import KVGroup, KVLayout, full_attention
from analyzer.replay import TokenCache
from tests.oracle.compare_groups import replayed

GOLDEN = Path(__file__).parents[1] / "golden" / "cache_groups.jsonl"
CASES = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]

FULL = KVGroup(kind="full", block_size=4)
WINDOW = KVGroup(kind="sliding", block_size=4, window=9)
STATE = KVGroup(kind="mamba", block_size=4)


def run(cache: TokenCache, first: int, prompt: int, generated: int = 1, **options: Any) -> int:
    """One request of consecutive ids, from its admission to its end."""
    hit = cache.admit("r", np.arange(first, first + prompt, dtype=np.int32), **options)
    assert hit is not None
    cache.finish("r", list(range(first + prompt, first + prompt + generated)))
    cache.cache.check_integrity()
    return hit.tokens


def cache_of(*groups: KVGroup, capacity: int | None = None, **settings: Any) -> TokenCache:
    layout = KVLayout(groups=groups, **settings)
    return TokenCache(layout.hash_block_size, capacity, layout)


def split(cache: TokenCache, shared: int, own: int) -> int:
    """A prompt that shares so many tokens with others, and goes on alone from 1000 * `own`."""
    ids = np.array([*range(shared), *range(1000 * own, 1000 * own + 20)], dtype=np.int32)
    hit = cache.admit("r", ids)
    assert hit is not None
    cache.finish("r", 1)
    return hit.tokens


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"seed {case['seed']}")
def test_made_up_traffic_hits_what_it_hits_in_the_server_s_own_scheduler(case: dict[str, Any]) -> None:
    assert list(replayed(case)) == list(zip(case["cached"], case["contents"], strict=True))


class Obvious:
    """The same rules for a pool without end, on sets of prefixes: no blocks, no tables, no search order."""

    def __init__(self, layout: KVLayout) -> None:
        self.layout = layout
        self.kept: list[set[tuple[int, ...]]] = [set() for _ in layout.groups]

    def usable(self, group: int, prompt: list[int], tokens: int) -> bool:
        """Whether the group can go on after the first `tokens` of the prompt."""
        shape = self.layout.groups[group]
        first = 0 if shape.kind == "full" else max(0, tokens - shape.blocks_of_a_hit * shape.block_size)
        ends = range(first + shape.block_size, tokens + 1, shape.block_size)
        return all(tuple(prompt[:end]) in self.kept[group] for end in ends)

    def longest(self, groups: list[int], prompt: list[int]) -> int:
        size = self.layout.alignment
        ends = range((len(prompt) - 1) // size * size, 0, -size)
        return next((end for end in ends if all(self.usable(at, prompt, end) for at in groups)), 0)

    def request(self, prompt: list[int], generated: list[int]) -> int:
        everything = list(range(len(self.layout.groups)))
        hit = self.longest(everything, prompt)
        size = self.layout.alignment
        full = [at for at in everything if self.layout.groups[at].kind == "full"]
        junction = max(self.longest([at], prompt) for at in full) if full else 0
        computed = [*prompt, *generated[:-1]]
        for at, group in enumerate(self.layout.groups):
            for end in range(group.block_size, len(computed) // size * size + 1, group.block_size):
                need = group.blocks_of_a_hit * group.block_size
                ends = {(len(prompt) - 1) // size * size} | ({junction} if junction > hit else set())
                if group.kind == "full" or any(stop - need < end <= stop for stop in ends):
                    self.kept[at].add(tuple(computed[:end]))
        return hit


tokens = st.lists(st.integers(0, 1), min_size=1, max_size=40)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(tokens, tokens, st.integers(0, 40)), min_size=1, max_size=12),
    st.sampled_from([(WINDOW, FULL), (WINDOW, WINDOW, FULL), (STATE, FULL), (STATE, STATE, FULL), (WINDOW,)]),
)
def test_any_traffic_hits_what_the_obvious_implementation_hits(
    traffic: list[tuple[list[int], list[int], int]], groups: tuple[KVGroup, ...]
) -> None:
    layout = KVLayout(groups=groups)
    cache, obvious = TokenCache(4, None, layout), Obvious(layout)
    before: list[int] = []
    for prompt, generated, shared in traffic:
        whole = [*before[:shared], *prompt]
        hit = cache.admit("r", np.array(whole, dtype=np.int32))
        cache.cache.check_integrity()
        cache.finish("r", generated)
        cache.cache.check_integrity()
        assert hit is not None
        assert hit.tokens == obvious.request(whole, generated)
        before = [*whole, *generated]


@pytest.mark.parametrize("sparse", [WINDOW, STATE])
def test_the_next_turn_hits_the_prompt_before_it_and_not_its_answer(sparse: KVGroup) -> None:
    # v1/core/kv_cache_coordinator.py:65
    cache = cache_of(sparse, FULL)
    assert run(cache, 0, 50, generated=30) == 0
    assert run(cache, 0, 90) == 48
    assert run(cache, 0, 90) == 88


@pytest.mark.parametrize("sparse", [WINDOW, STATE])
def test_of_siblings_the_second_finds_the_junction_and_the_third_uses_it(sparse: KVGroup) -> None:
    # v1/core/kv_cache_coordinator.py:921
    cache = cache_of(sparse, FULL)
    assert [split(cache, 40, own) for own in (1, 2, 3, 4)] == [0, 0, 40, 40]


def test_a_model_of_windows_alone_has_no_junctions() -> None:
    # v1/core/kv_cache_coordinator.py:597
    cache = cache_of(WINDOW)
    assert [split(cache, 40, own) for own in (1, 2, 3)] == [0, 0, 0]
    assert split(cache, 40, 3) == 56


@pytest.mark.parametrize("sparse", [WINDOW, STATE])
def test_without_retention_rules_everything_is_kept(sparse: KVGroup) -> None:
    # config/cache.py:159
    cache = cache_of(sparse, FULL, retention_interval=None, batch_tokens=4)
    assert [split(cache, 40, own) for own in (1, 2, 3)] == [0, 40, 40]


def test_an_interval_keeps_a_window_at_each_of_its_multiples() -> None:
    # v1/core/single_type_kv_cache_manager.py:1113
    cache = cache_of(WINDOW, FULL, retention_interval=16)
    assert [split(cache, 40, own) for own in (1, 2)] == [0, 32]


def test_hits_end_where_blocks_of_all_sizes_end() -> None:
    # v1/core/kv_cache_utils.py:845
    cache = cache_of(KVGroup(kind="sliding", block_size=8, window=9), KVGroup(kind="full", block_size=12))
    assert cache.cache.block_size == 4
    assert [run(cache, 0, 60) for _ in range(2)] == [0, 48]


def test_a_drafter_gives_up_a_block_and_its_prompt_is_kept_a_block_earlier() -> None:
    # v1/core/kv_cache_coordinator.py:83
    drafter = KVGroup(kind="full", block_size=4, drops_last_block=True)
    cache = cache_of(STATE, drafter)
    assert [run(cache, 0, 42) for _ in range(2)] == [0, 36]
    assert run(cache, 0, 60) == 36


def test_every_group_takes_blocks_of_its_own_and_gives_back_those_behind_the_window() -> None:
    cache = cache_of(WINDOW, WINDOW, FULL, batch_tokens=16, capacity=100)
    cache.admit("r", np.arange(64, dtype=np.int32))
    # The full group holds 16; each window the last step's 4, and the 2 before that its first token sees.
    assert cache.cache.pool.used == 16 + 2 * (4 + 2)
    cache.finish("r", 1)
    assert cache.cache.pool.used == 0


def test_a_state_group_holds_one_state_of_a_running_request() -> None:
    # v1/core/single_type_kv_cache_manager.py:1780
    cache = cache_of(STATE, FULL, capacity=100)
    cache.admit("r", np.arange(63, dtype=np.int32))
    assert cache.cache.pool.used == 16 + 2
    cache.finish("r", list(range(1000, 1050)))
    assert run(cache, 0, 63) == 60


def test_states_are_missing_where_a_server_on_the_cpu_cuts_prompts_elsewhere() -> None:
    # v1/engine/core.py:1311: a real server of blocks of 1,152 tokens that cuts at 128 hit 0 of 2,298
    # tokens sent again, and 2,304 of 3,456 that two prompts shared.
    state, full = KVGroup(kind="mamba", block_size=1152), KVGroup(kind="full", block_size=1152)
    for cut, again in ((None, [0, 1152]), (128, [0, 0])):
        cache = cache_of(state, full, cut_tokens=cut)
        assert [run(cache, 0, 2298) for _ in range(2)] == again


def test_a_request_that_skips_reading_hits_nothing_and_writes() -> None:
    cache = cache_of(WINDOW, FULL)
    assert [run(cache, 0, 41, skip_reading=skips) for skips in (True, True, False)] == [0, 0, 40]


def test_requests_wait_for_room_and_the_youngest_makes_room_for_others() -> None:
    # v1/core/sched/scheduler.py:802
    cache = cache_of(WINDOW, FULL, capacity=16, batch_tokens=8)
    ids = np.arange(24, dtype=np.int32)
    assert cache.admit("old", ids) is not None
    assert cache.admit("young", ids + 100) is None
    assert cache.admit("small", ids[:4] + 100) is not None
    cache.finish("old", 20)  # for its last blocks "small" has to go, and comes back
    cache.cache.check_integrity()
    cache.finish("small", 1)
    assert cache.cache.pool.used == 0
    assert cache.admit("too much", np.arange(80, dtype=np.int32)) is None


def test_the_layout_decides_which_cache_it_takes() -> None:
    assert type(cache_for(full_attention(16))) is PrefixCache
    assert type(cache_for(KVLayout(groups=(WINDOW, FULL)))) is GroupedCache
    with pytest.raises(ValueError, match="keys of 16 tokens"):
        TokenCache(16, None, full_attention(32))
    with pytest.raises(ValueError, match="does not go with"):
        KVGroup(kind="full", block_size=16, window=9)
    with pytest.raises(ValueError, match="at least one group"):
        KVLayout(groups=())
