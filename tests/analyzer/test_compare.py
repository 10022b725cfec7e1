"""Where two texts part, and which field holds that place."""

from __future__ import annotations

from itertools import takewhile

from hypothesis import given
from hypothesis import strategies as st

from analyzer.compare import common_chars, excerpt

short = st.text(alphabet="ab", max_size=40)


@given(short, short, short)
def test_common_characters_are_those_that_agree_one_by_one(head: str, a: str, b: str) -> None:
    pairs = zip(head + a, head + b, strict=False)
    agreeing = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    assert common_chars(head + a, head + b) == agreeing


def test_a_long_excerpt_says_that_it_was_cut() -> None:
    assert excerpt("x" * 500, 10).endswith("…")
    assert excerpt("abc", 1) == "bc"
