from __future__ import annotations

import pytest

from analyzer.pool import BlockPool


def test_a_new_pool_hands_out_its_blocks_in_order() -> None:
    # v1/core/kv_cache_utils.py:261
    pool = BlockPool(4)
    assert pool.allocate(3) == [0, 1, 2]
    assert (pool.free, pool.used) == (1, 3)


def test_blocks_without_content_are_reused_first_and_the_rest_least_recently_freed_first() -> None:
    # v1/core/block_pool.py:795-803
    pool = BlockPool(6)
    first = pool.allocate(3)
    pool.register(first[:2], [10, 11])
    pool.release(first)
    # The empty block, then the never used ones, then the end of the sequence before its start.
    assert pool.allocate(6) == [2, 3, 4, 5, 1, 0]
    assert pool.evicted == 2


def test_several_blocks_without_content_come_back_from_the_last_to_the_first() -> None:
    # v1/core/kv_cache_utils.py:426: a group keeps its order when it is put to the front
    pool = BlockPool(3)
    pool.release(pool.allocate(3))
    assert pool.allocate(3) == [2, 1, 0]


def test_a_hit_saves_a_block_from_eviction() -> None:
    # v1/core/block_pool.py:752
    pool = BlockPool(2)
    blocks = pool.allocate(2)
    pool.register(blocks, [7, 8])
    pool.release(blocks)
    pool.touch(pool.find([7, 8]))
    pool.release([1])
    assert pool.allocate(1) == [1]
    assert pool.find([7, 8]) == [0]


def test_the_first_of_two_equal_blocks_serves_until_it_is_evicted() -> None:
    # v1/core/block_pool.py:69,119
    pool = BlockPool(2)
    blocks = pool.allocate(2)
    pool.register(blocks, [7, 7])
    assert pool.find([7]) == [0]
    pool.release([0])
    pool.allocate(1)
    assert pool.find([7]) == [1]


def test_a_gap_ends_the_run_of_present_blocks() -> None:
    pool = BlockPool(None)
    pool.register(pool.allocate(2), [1, 3])
    assert pool.find([1, 2, 3]) == [0]


def test_hits_on_free_blocks_count_against_the_free_ones() -> None:
    pool = BlockPool(3)
    blocks = pool.allocate(2)
    pool.register(blocks, [1, 2])
    pool.release(blocks)
    assert pool.shortfall([0, 1], 1) == 0
    assert pool.shortfall([0, 1], 2) == 1


def test_asking_for_more_than_is_free_is_an_error() -> None:
    with pytest.raises(ValueError, match="3 blocks wanted, 2 free"):
        BlockPool(2).allocate(3)
    with pytest.raises(ValueError, match="at least 1 block"):
        BlockPool(0)


def test_books_that_do_not_balance_are_noticed() -> None:
    pool = BlockPool(2)
    blocks = pool.allocate(1)
    pool.check_integrity([blocks])
    with pytest.raises(AssertionError, match="reference counts"):
        pool.check_integrity([])
