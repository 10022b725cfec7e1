from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.blocks import (
    BlockTable,
    Namespace,
    common_prefix,
    full_blocks,
    hit_tokens,
    invalidated_blocks,
)
from analyzer.core import TokenIds

short_ids = st.lists(st.integers(0, 2), max_size=24)
namespaces = st.builds(
    Namespace, adapter=st.sampled_from([None, "", "x"]), cache_salt=st.sampled_from([None, "", "x"])
)


def ids(values: list[int] | range) -> TokenIds:
    return np.array(values, dtype=np.int32)


@given(short_ids, namespaces, short_ids, namespaces)
def test_two_keys_are_equal_exactly_when_namespace_and_whole_prefix_are(
    a: list[int], a_space: Namespace, b: list[int], b_space: Namespace
) -> None:
    table = BlockTable(3)
    a_keys, b_keys = table.keys(ids(a), a_space), table.keys(ids(b), b_space)
    same_space = [x or None for x in (a_space.adapter, a_space.cache_salt)] == [
        x or None for x in (b_space.adapter, b_space.cache_salt)
    ]
    for i, a_key in enumerate(a_keys):
        for j, b_key in enumerate(b_keys):
            same = i == j and same_space and a[: 3 * i + 3] == b[: 3 * j + 3]
            assert (a_key == b_key) == same


@given(short_ids, short_ids, namespaces)
def test_keys_after_a_shared_prefix_are_the_keys_made_from_scratch(
    a: list[int], b: list[int], namespace: Namespace
) -> None:
    table = BlockTable(3)
    previous = table.keys(ids(a), namespace)
    shared = table.keys_after(previous, common_prefix(ids(a), ids(b)), ids(b), namespace)
    assert shared.tolist() == table.keys(ids(b), namespace).tolist()
    assert shared.dtype == np.int64


def test_only_new_blocks_are_interned_after_a_shared_prefix() -> None:
    table = BlockTable(16)
    keys = table.keys(ids(range(160)))
    assert len(table) == 10
    table.keys_after(keys, 160, ids(range(200)))
    assert len(table) == 12


def test_the_tokens_of_a_partial_block_have_no_key() -> None:
    assert len(BlockTable(16).keys(ids(range(15)))) == 0
    assert len(BlockTable(16).keys(ids(range(33)))) == 2


def test_other_integer_types_and_strides_make_the_same_keys() -> None:
    table = BlockTable(4)
    wide = np.arange(32, dtype=np.int64)[::2]
    assert table.keys(wide.astype(np.int32)).tolist() == table.keys(wide).tolist()  # type: ignore[arg-type]


@given(short_ids, short_ids)
def test_the_common_prefix_ends_at_the_first_difference(a: list[int], b: list[int]) -> None:
    expected = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    assert common_prefix(ids(a), ids(b)) == expected


@pytest.mark.parametrize("place", [0, 255, 256, 257, 767, 768, 100_000, 239_999])
def test_a_difference_is_found_wherever_it_lies_in_a_long_prompt(place: int) -> None:
    a = ids(range(240_000))
    b = a.copy()
    b[place] += 1
    assert common_prefix(a, b) == place


@pytest.mark.parametrize(
    ("common", "prompt", "expected"),
    [(64, 64, 32), (64, 65, 64), (63, 200, 32), (31, 200, 0), (0, 1, 0), (96, 40, 32)],
)
def test_a_hit_is_whole_blocks_and_leaves_one_token_to_compute(
    common: int, prompt: int, expected: int
) -> None:
    assert hit_tokens(common, prompt, 32) == expected


def test_a_divergence_invalidates_the_block_it_lies_in_and_all_behind_it() -> None:
    assert full_blocks(100, 16) == 6
    assert invalidated_blocks(100, 47, 16) == 4
    assert invalidated_blocks(100, 100, 16) == 0


def test_a_block_size_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="block_size"):
        BlockTable(0)
