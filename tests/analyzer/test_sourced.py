from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.sourced import Sourced, concat, covered, join, sourced, spans_of, substituted

TEXT = st.text(alphabet=" \n\tabAB,.%{}'\"\\ßİΣé<", max_size=12)
SHORT = st.text(alphabet=" ab,.", max_size=2)

OPERATIONS: dict[str, Callable[[str, str, str], object]] = {
    "add": lambda s, a, b: s + a,
    "radd": lambda s, a, b: a + s,
    "times": lambda s, a, b: s * 3,
    "rtimes": lambda s, a, b: 2 * s,
    "slice": lambda s, a, b: s[1:-1],
    "step": lambda s, a, b: s[::-2],
    "characters": lambda s, a, b: list(s),
    "last": lambda s, a, b: s[-1],
    "strip": lambda s, a, b: s.strip(),
    "strip_chars": lambda s, a, b: s.strip(a),
    "lstrip": lambda s, a, b: s.lstrip(a),
    "rstrip": lambda s, a, b: s.rstrip(),
    "split": lambda s, a, b: s.split(),
    "split_sep": lambda s, a, b: s.split(a, 2),
    "split_once": lambda s, a, b: s.split(None, 1),
    "rsplit": lambda s, a, b: s.rsplit(None, 1),
    "rsplit_sep": lambda s, a, b: s.rsplit(a, 1),
    "lines": lambda s, a, b: s.splitlines(),
    "lines_kept": lambda s, a, b: s.splitlines(True),
    "partition": lambda s, a, b: s.partition(a),
    "rpartition": lambda s, a, b: s.rpartition(a),
    "replace": lambda s, a, b: s.replace(a, b),
    "replace_some": lambda s, a, b: s.replace(a, b, 2),
    "prefix": lambda s, a, b: s.removeprefix(a),
    "suffix": lambda s, a, b: s.removesuffix(a),
    "join": lambda s, a, b: s.join([a, b, s]),
    "upper": lambda s, a, b: s.upper(),
    "lower": lambda s, a, b: s.lower(),
    "title": lambda s, a, b: s.title(),
    "capitalize": lambda s, a, b: s.capitalize(),
    "printf": lambda s, a, b: "%s-%5s%%%d" % (s, a, 3),  # noqa: UP031
    "printf_self": lambda s, a, b: s % (),
    "printf_key": lambda s, a, b: "%(x)s" % {"x": s},  # noqa: UP031
    "str_format": lambda s, a, b: s.format(a, a=b),
    "interpolated": lambda s, a, b: f"{s}{s:>5}",
}


def outcome(work: Callable[[], object]) -> object:
    try:
        return work()
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        return type(error)


@pytest.mark.parametrize("name", OPERATIONS)
@given(text=TEXT, one=SHORT, two=SHORT)
def test_every_operation_gives_the_text_or_the_error_that_str_gives(
    name: str, text: str, one: str, two: str
) -> None:
    work = OPERATIONS[name]
    wanted = outcome(lambda: work(text, one, two))
    assert outcome(lambda: work(sourced(text, "p"), one, two)) == wanted
    assert outcome(lambda: work(sourced(text, "p"), sourced(one, "q"), sourced(two, "r"))) == wanted


COPYING = [name for name in OPERATIONS if name not in ("upper", "lower", "title", "capitalize")]


@pytest.mark.parametrize("name", COPYING)
@given(text=TEXT, one=SHORT, two=SHORT)
def test_an_exact_span_names_the_very_character_that_it_covers(
    name: str, text: str, one: str, two: str
) -> None:
    fields = {"p": text, "q": one, "r": two}
    made = outcome(lambda: OPERATIONS[name](*(sourced(fields[path], path) for path in fields)))
    for piece in made if isinstance(made, list | tuple) else [made]:
        if isinstance(piece, Sourced):
            for span in spans_of(piece):
                came = fields[span.path][span.path_char : span.path_char + span.char_end - span.char_start]
                assert not span.exact or piece[span.char_start : span.char_end] == came


@given(parts=st.lists(st.tuples(st.sampled_from(["", "p", "q"]), TEXT), max_size=6))
def test_spans_are_sorted_apart_and_cover_all_sourced_characters_of_a_concatenation(
    parts: list[tuple[str, str]],
) -> None:
    made = concat(sourced(text, path) if path else text for path, text in parts)
    spans = spans_of(made)
    assert made == "".join(text for _, text in parts)
    assert all(left.char_end <= right.char_start for left, right in pairwise(spans))
    assert sum(span.char_end - span.char_start for span in spans) == sum(
        len(text) for path, text in parts if path
    )


def covers(text: str) -> list[tuple[int, int, str, int, bool]]:
    return [(s.char_start, s.char_end, s.path, s.path_char, s.exact) for s in spans_of(text)]


def test_pieces_that_belong_together_become_one_span_again() -> None:
    text = sourced("one two three", "p")
    assert covers(text[:4] + text[4:]) == [(0, 13, "p", 0, True)]
    assert covers(" ".join(text.split()[:0]) + text.split()[1]) == [(0, 3, "p", 4, True)]


def test_stripping_and_replacing_keep_the_count_in_the_field() -> None:
    text = sourced("  say hi hi ", "p")
    assert covers(text.strip()) == [(0, 9, "p", 2, True)]
    assert covers(text.strip().replace("hi", "X")) == [(0, 4, "p", 2, True), (5, 6, "p", 8, True)]


def test_a_plain_separator_joined_by_hand_keeps_the_spans_of_the_parts() -> None:
    assert covers(join(", ", [sourced("a", "p"), "b", sourced("c", "q")])) == [
        (0, 1, "p", 0, True),
        (6, 7, "q", 0, True),
    ]


def test_a_letter_that_grows_in_upper_case_points_twice_at_the_same_character() -> None:
    # a S S b: the second S and the b count on from the ß, one after the other.
    assert covers(sourced("aßb", "p").upper()) == [(0, 2, "p", 0, True), (2, 4, "p", 1, True)]


def test_a_rewritten_character_points_at_the_one_it_stands_for() -> None:
    made = substituted(sourced("a&b", "p"), re.compile("&"), lambda _: "&amp;")
    assert made == "a&amp;b"
    places = [span.path_char + at for span in spans_of(made) for at in range(span.char_end - span.char_start)]
    assert places == [0, 1, 1, 1, 1, 1, 2]


def test_a_text_that_cannot_be_followed_is_inexact_as_a_whole() -> None:
    assert covers(covered("xyz", ["none", sourced("abc", "p")[1:]])) == [(0, 3, "p", 1, False)]


def test_a_sourced_text_is_the_same_dictionary_key_and_survives_pickling() -> None:
    text = sourced("role", "p")
    assert {"role": 1}[text] == 1
    assert str(text) is text
    assert covers(pickle.loads(pickle.dumps(text))) == [(0, 4, "p", 0, True)]


def test_joining_something_that_is_no_string_fails_as_in_str() -> None:
    with pytest.raises(TypeError, match="sequence item 1: expected str instance, int found"):
        sourced(",", "p").join(["a", 1])  # type: ignore[list-item]
