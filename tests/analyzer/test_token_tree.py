"""Numbers for tokens: they part exactly where the tokens part, and a session of them is small."""

from __future__ import annotations

import random
from itertools import combinations

import numpy as np

from analyzer.blocks import common_prefix
from analyzer.core import TokenIds
from analyzer.token_tree import TokenTree, as_ranges, from_ranges


def session(dice: random.Random, turns: int) -> list[TokenIds]:
    """Sequences that grow, branch, start anew and are sent again."""
    made = [np.array([dice.randrange(5) for _ in range(dice.randrange(1, 400))], dtype=np.int32)]
    for _ in range(turns):
        kept = dice.choice(made)
        kept = kept[: dice.choice((len(kept), dice.randrange(len(kept) + 1)))]
        new = [dice.randrange(5) for _ in range(dice.choice((0, 1, 3, 64, 200)))]
        made.append(np.concatenate([kept, np.array(new, dtype=np.int32)]))
    return made


def test_two_sequences_of_numbers_share_the_prefix_that_their_tokens_share() -> None:
    for seed in range(20):
        dice = random.Random(seed)
        tokens, tree = session(dice, 30), TokenTree()
        numbers = [tree.add(ids) for ids in tokens]
        for a, b in combinations(range(len(tokens)), 2):
            assert common_prefix(numbers[a], numbers[b]) == common_prefix(tokens[a], tokens[b])


def test_ranges_give_the_numbers_back() -> None:
    tree = TokenTree()
    for ids in session(random.Random(1), 40):
        numbers = tree.add(ids)
        assert np.array_equal(from_ranges(as_ranges(numbers)), numbers)
        assert len(from_ranges(as_ranges(numbers))) == len(ids)


def test_a_growing_session_takes_a_range_a_turn() -> None:
    dice, tree = random.Random(2), TokenTree()
    ids = np.empty(0, dtype=np.int32)
    for turn in range(1, 30):
        ids = np.concatenate([ids, np.array([dice.randrange(9) for _ in range(100)], dtype=np.int32)])
        assert len(as_ranges(tree.add(ids))) <= turn
