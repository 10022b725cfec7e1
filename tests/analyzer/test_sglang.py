"""SGLang's rules on traffics small enough for paper; each with the place in its source that has the rule."""

from __future__ import annotations

import numpy as np

from analyzer.blocks import Namespace
from analyzer.engines import CacheRequest, Traffic
from analyzer.engines.sglang import ENGINE, RadixCache
from analyzer.servers import ServerProfile, settle


def ids(first: int, count: int) -> list[int]:
    return list(range(first, first + count))


def hits(
    *prompts: list[int],
    page: int = 1,
    pages: int | None = None,
    generated: tuple[int, ...] | int = 1,
    spaces: list[Namespace] | None = None,
    skip: int | None = None,
) -> list[int | None]:
    """Hits of prompts that come one after the other."""
    requests = tuple(
        CacheRequest(
            key=str(number),
            started_ns=2 * number,
            ended_ns=2 * number + 1,
            token_ids=np.array(prompt, dtype=np.int32),
            namespace=spaces[number] if spaces else Namespace(),
            skip_reading=number == skip,
            generated=generated,
        )
        for number, prompt in enumerate(prompts)
    )
    server = settle(ServerProfile(), block_size=page, pool_blocks=pages, tokenizer=None, engine=ENGINE)
    return list(ENGINE.predict(Traffic(requests=requests), server).values())


def test_a_hit_ends_at_the_first_token_that_differs() -> None:
    # radix_cache.py _match_prefix_helper, _key_match_page_size1
    assert hits(ids(0, 10), [*ids(0, 7), 99, 98], [*ids(0, 3), 97]) == [0, 7, 3]


def test_at_most_all_tokens_but_the_last_are_a_hit() -> None:
    # schedule_batch.py Req._compute_max_prefix_len: input_len - 1
    assert hits(ids(0, 10), ids(0, 10), ids(0, 1)) == [0, 9, 0]


def test_larger_pages_cut_the_hit_to_whole_ones() -> None:
    # radix_cache.py match_prefix: page_aligned_len; the limit of input_len - 1 comes first
    assert hits(ids(0, 16), ids(0, 16), ids(0, 17), [*ids(0, 7), 99, 98], page=4) == [0, 12, 16, 4]


def test_a_page_that_is_not_full_is_not_kept() -> None:
    # radix_cache.py cache_finished_req: page_align_keys
    assert hits(ids(0, 10), ids(0, 20), page=4) == [0, 8]


def test_an_answer_is_kept_but_for_its_last_token() -> None:
    # radix_cache.py cache_finished_req: kv_committed_len
    assert hits(ids(0, 4), [0, 1, 2, 3, 50, 51, 52, 53], generated=(50, 51, 52)) == [0, 6]


def test_salts_and_adapters_are_trees_of_their_own() -> None:
    # radix_cache.py get_child_key: extra_key
    spaces = [Namespace(), Namespace(cache_salt="a"), Namespace(adapter="a")]
    assert hits(*[ids(0, 5)] * 6, spaces=spaces * 2) == [0, 0, 0, 4, 4, 4]


def test_prompt_logprobs_hit_nothing_and_write() -> None:
    # schedule_batch.py Req._compute_max_prefix_len: logprob_start_len
    assert hits(ids(0, 5), ids(0, 5), ids(0, 5), skip=1) == [0, 0, 4]


def test_the_leaf_used_longest_ago_goes_first_and_goes_whole() -> None:
    # radix_cache.py evict. 12 tokens hold the first two; the third lacks 4, asks for 4, and takes all 6.
    first, second, third = ids(0, 6), ids(100, 6), ids(200, 4)
    assert hits(first, second, third, second, first, pages=12) == [0, 0, 0, 5, 0]


def test_as_many_tokens_are_evicted_as_are_asked_for_not_as_are_missing() -> None:
    # common.py evict_from_tree_cache: 2 of 14 are free, 5 are asked for; a leaf of 4 is not enough.
    a, b, c, d = ids(0, 4), ids(100, 4), ids(200, 4), ids(300, 5)
    assert hits(a, b, c, d, c, pages=14)[-1] == 3
    assert hits(a, b, c, d, b, pages=14)[-1] == 0


def test_a_shared_start_outlives_its_branches() -> None:
    # radix_cache.py _split_node, evict: a parent is a leaf only after its children are gone.
    stem = ids(0, 4)
    one, two = [*stem, *ids(50, 4)], [*stem, *ids(60, 4)]
    # 12 tokens in the tree; the stranger's 4 take the branch of `one`, used before that of `two`.
    assert hits(one, two, ids(100, 4), two, pages=12) == [0, 4, 0, 7]
    assert hits(one, two, ids(100, 4), one, pages=12) == [0, 4, 0, 4]


def test_what_a_running_request_uses_is_not_evicted_and_a_prompt_that_does_not_fit_waits() -> None:
    # radix_cache.py inc_lock_ref
    cache = RadixCache(1, 10)
    first, second = (
        CacheRequest(
            key=key,
            started_ns=0,
            ended_ns=1,
            token_ids=np.array(prompt, dtype=np.int32),
            namespace=Namespace(),
            skip_reading=False,
            generated=1,
        )
        for key, prompt in (("a", ids(0, 6)), ("b", ids(100, 5)))
    )
    assert cache.start(first) == 0
    assert cache.start(second) is None
    cache.end("a")
    assert cache.start(second) == 0


def test_a_prompt_larger_than_the_pool_is_not_known_and_holds_nobody_up() -> None:
    assert hits(ids(0, 20), ids(0, 5), ids(0, 5), pages=10) == [None, 0, 4]
