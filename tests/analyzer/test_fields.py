"""Two places and two bodies: which field is named, and which of its characters."""

from __future__ import annotations

from typing import Any

import pytest

from analyzer.compare import TEMPLATE, FieldPlace, place_of
from analyzer.core import Span
from analyzer.fields import differing_field, shifted_field

ONE, TWO, ARGUMENTS = "system[0].text", "system[1].text", "messages[0].arguments"


def at(path: str, char: int | None) -> FieldPlace:
    return FieldPlace(path=path, char=char)


def system(*texts: str) -> dict[str, Any]:
    return {"system": [{"text": text} for text in texts]}


def arguments(text: str) -> dict[str, Any]:
    return {"messages": [{"arguments": text}]}


@pytest.mark.parametrize(
    ("before", "after", "bodies", "named"),
    [
        # The child's own character, and the parent's where the child's field has ended.
        (at(ONE, 6), at(ONE, 6), (system("old text"), system("old test")), at(ONE, 6)),
        (at(ONE, 3), None, (system("abcdef"), system("abc")), at(ONE, 3)),
        (None, None, (system("a"), system("a")), TEMPLATE),
        # The child goes on with a field that is the same in both: the one before it was cut short.
        (at(ONE, 3), at(TWO, 0), (system("abcd", "x"), system("abc", "x")), at(ONE, 3)),
        (at(TWO, 0), at(ONE, 3), (system("abc", "x"), system("abcd", "x")), at(ONE, 3)),
        # JSON that was written anew has no character of its own, but its text has one.
        (at(ARGUMENTS, None), None, (arguments('{"a":1}'), arguments('{"a":1')), at(ARGUMENTS, 6)),
        # Both characters of an escape are written for its first.
        (at(ARGUMENTS, 6), at(ARGUMENTS, 6), (arguments(r'{"a":"\n"}'), arguments(r'{"a":"\t"}')),
         at(ARGUMENTS, 7)),
        # What the template trims is not shown, and parts no earlier than the texts themselves.
        (at(ONE, 2), None, (system("ab c"), system("ab ")), at(ONE, 3)),
        # A key that is gone: the object that held it is changed too, and says less.
        (at("tools[0].a", None), at("tools", None), ({"tools": [{"a": 1}]}, {"tools": [{}]}),
         at("tools[0].a", None)),
        (at("tools[0].a", None), at("tools[0].a", None), ({"tools": [{"a": 1}]}, {"tools": [{"a": 2}]}),
         at("tools[0].a", None)),
    ],
)  # fmt: skip
def test_the_field_that_changed_is_named(
    before: FieldPlace | None, after: FieldPlace | None, bodies: tuple[Any, Any], named: FieldPlace
) -> None:
    assert differing_field(before, after, bodies) == named


def test_a_place_is_the_run_that_holds_the_character() -> None:
    spans = [
        Span(char_start=3, char_end=6, path="a", path_char=2),
        Span(char_start=6, char_end=9, path="b", path_char=0, exact=False),
    ]
    assert [place_of(spans, char) for char in (2, 3, 5, 6, 9)] == [
        None, at("a", 2), at("a", 4), at("b", None), None,
    ]  # fmt: skip


def test_a_line_break_before_the_templates_own_belongs_to_its_field() -> None:
    # "ab" and "ab\n" before a line break of the template: the texts part only behind that.
    before = [Span(char_start=0, char_end=2, path=ONE, path_char=0)]
    after = [Span(char_start=0, char_end=3, path=ONE, path_char=0)]
    assert shifted_field(before, after, 3, (system("ab"), system("ab\n"))) == at(ONE, 2)
    assert shifted_field(before, before, 3, (system("ab"), system("ab"))) is None
