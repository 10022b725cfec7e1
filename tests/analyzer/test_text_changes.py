"""The differences of two texts: that they are all of it, and how many they are at most."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from analyzer.text_changes import patched, text_changes

texts = st.text(alphabet="ab \n", max_size=60)


@given(texts, texts)
def test_a_text_with_all_its_differences_put_back_is_the_other_one(before: str, after: str) -> None:
    assert patched(before, after, text_changes(before, after)) == before


def test_a_word_that_changed_in_each_of_two_lines_is_two_differences() -> None:
    found = text_changes("one two\nthree four\n", "one 2\nthree 4\n")
    assert [(change.before_start, change.before_end) for change in found] == [(4, 7), (14, 18)]


def test_behind_a_few_long_lines_each_line_is_one_difference() -> None:
    # Word by word a pair of these lines takes the better part of a second, and gives a hundred differences.
    before = "\n".join("x " + "a b " * 99 + str(number) for number in range(300))
    after = "\n".join("y " + "b c " * 99 + str(-number) for number in range(300))
    found = text_changes(before, after)
    assert patched(before, after, found) == before
    in_line = Counter(before.count("\n", 0, change.before_start) for change in found)
    assert len(in_line) == 300
    assert sum(count > 1 for count in in_line.values()) < 10
