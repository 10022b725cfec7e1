"""Where two texts part, and which field holds that place."""

from __future__ import annotations

from itertools import takewhile

from hypothesis import given
from hypothesis import strategies as st

from analyzer.compare import TEMPLATE, FieldPlace, Side, common_chars, excerpt, field_at
from analyzer.core import Span

short = st.text(alphabet="ab", max_size=40)


@given(short, short, short)
def test_common_characters_are_those_that_agree_one_by_one(head: str, a: str, b: str) -> None:
    pairs = zip(head + a, head + b, strict=False)
    agreeing = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    assert common_chars(head + a, head + b) == agreeing


def side(text: str, *spans: tuple[int, int, str, int]) -> Side:
    return Side(
        text=text,
        spans=[
            Span(char_start=start, char_end=end, path=path, path_char=at) for start, end, path, at in spans
        ],
    )


def test_the_childs_field_is_named_with_its_own_character() -> None:
    parent = side("<u>old text</u>", (3, 11, "messages[0].content", 0))
    child = side("<u>old test</u>", (3, 11, "messages[0].content", 0))
    assert field_at(parent, child, 9) == FieldPlace(path="messages[0].content", char=6)


def test_a_field_that_was_cut_short_is_named_from_the_parents_side() -> None:
    parent = side("<u>abcdef</u>", (3, 9, "messages[0].content", 0))
    child = side("<u>abc</u>", (3, 6, "messages[0].content", 0))
    assert field_at(parent, child, 6) == FieldPlace(path="messages[0].content", char=3)


def test_text_that_no_field_holds_is_the_templates() -> None:
    assert field_at(side("<a>x"), side("<b>x"), 1) == TEMPLATE


def test_a_run_that_cannot_be_counted_off_has_no_character() -> None:
    span = Span(char_start=0, char_end=5, path="tools[0]", path_char=0, exact=False)
    assert field_at(side(""), Side(text="abcde", spans=[span]), 2) == FieldPlace(path="tools[0]", char=None)


def test_a_long_excerpt_says_that_it_was_cut() -> None:
    assert excerpt("x" * 500, 10).endswith("…")
    assert excerpt("abc", 1) == "bc"
