from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.sourced import plain, sourced, spans_of
from analyzer.sourced_json import SourcedDict, dumps, loads, member_path, path_of, wrap
from analyzer.sourced_repr import repr_of

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
JSONISH = st.text(alphabet='{}[]",:\\/ \n019.eE+-truefalsnNaIity\x00é', max_size=16)


def alike(left: Any, right: Any) -> bool:
    """Equal, of equal kinds, with members in the same order and NaN equal to itself."""
    if isinstance(left, dict):
        return isinstance(right, dict) and alike(list(left.items()), list(right.items()))
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(alike, left, right))
    if isinstance(left, str):
        return isinstance(right, str) and plain(left) == plain(right)
    if isinstance(left, float) and math.isnan(left):
        return isinstance(right, float) and math.isnan(right)
    return type(left) is type(right) and bool(left == right)


@given(value=VALUES, ascii_only=st.booleans(), indent=st.sampled_from([None, 2]))
def test_a_sourced_document_parses_to_the_values_of_json(
    value: Any, ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert alike(loads(sourced(text, "p")), json.loads(text))


@given(text=JSONISH)
def test_any_text_is_accepted_or_refused_as_json_does(text: str) -> None:
    try:
        wanted = json.loads(text)
    except ValueError as error:
        with pytest.raises(type(error)) as caught:
            loads(sourced(text, "p"))
        assert str(caught.value) == str(error)
    else:
        assert alike(loads(sourced(text, "p")), wanted)


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":"x","b":2}',
        "[NaN,-Infinity,1e400,-0.0,1E2]",
        "123456789012345678901234567890",
        ' "\\ud800\\u0041" ',
    ],
)
def test_the_odd_documents_of_python_json_come_out_alike(text: str) -> None:
    assert alike(loads(sourced(text, "p")), json.loads(text))


def test_a_document_nested_too_deep_to_walk_still_parses() -> None:
    text = "[" * 900 + "1" + "]" * 900
    assert dumps(loads(sourced(text, "p"))) == text


def test_strings_keys_and_numbers_point_into_the_outer_text() -> None:
    text = '{"city": "a\\n\\ud83d\\ude00b", "n": 1.50, "m": 1.5}'
    value = loads(sourced(text, "args"))
    assert [(s.char_start, s.char_end, s.path_char) for s in spans_of(value["city"])] == [
        (0, 2, text.index("a\\n")),
        (2, 3, text.index("\\ud83d")),
        (3, 4, text.index("b")),
    ]
    (key,) = spans_of(next(iter(value)))
    assert (key.path, key.path_char, key.exact) == ("args", 2, True)
    numbers = [
        span for span in spans_of(dumps(value)) if span.path_char in (text.index("1.50"), text.index("1.5}"))
    ]
    assert [span.exact for span in numbers] == [False, True]


def test_a_string_that_is_not_sourced_parses_plainly() -> None:
    assert type(loads('{"a": 1}')) is dict


ARGUMENTS: list[dict[str, Any]] = [
    {},
    {"ensure_ascii": True},
    {"indent": 2},
    {"indent": 0},
    {"indent": "\t", "sort_keys": True},
    {"separators": (",", ":")},
    {"sort_keys": True, "indent": 1, "separators": (";", "=")},
]


@pytest.mark.parametrize("arguments", ARGUMENTS)
@given(value=VALUES)
def test_dumping_gives_the_text_of_json_and_exact_spans_tell_the_truth(
    arguments: dict[str, Any], value: Any
) -> None:
    text = dumps(wrap({"v": value}), **arguments)
    assert plain(text) == json.dumps({"v": value}, **{"ensure_ascii": False, **arguments})
    leaves = dict(strings_of(value, "v"))
    for span in spans_of(text):
        if span.exact and span.char_end - span.char_start > 1:
            came = leaves[span.path][span.path_char : span.path_char + span.char_end - span.char_start]
            # The characters at both ends may belong to an escape; the rest stands as it is in the field.
            assert text[span.char_start + 1 : span.char_end - 1] == came[1:-1]
    covered = {span.path for span in spans_of(text)}
    assert all(path in covered for path, leaf in leaves.items() if leaf)


def strings_of(value: Any, path: str) -> list[tuple[str, str]]:
    if isinstance(value, str):
        return [(path, value)]
    if isinstance(value, dict):
        return [leaf for key, item in value.items() for leaf in strings_of(item, member_path(path, key))]
    if isinstance(value, list):
        return [leaf for at, item in enumerate(value) for leaf in strings_of(item, f"{path}[{at}]")]
    return []


@given(value=VALUES)
def test_python_spelling_is_that_of_repr(value: Any) -> None:
    wrapped = wrap({"v": value, "t": 'it\'s "so"\n'})
    assert plain(repr_of(wrapped)) == repr({"v": value, "t": 'it\'s "so"\n'})
    assert "t" in {span.path for span in spans_of(repr_of(wrapped)) if span.exact}
    assert plain(repr_of((value,))) == repr((value,))


def test_what_json_cannot_dump_fails_with_its_message() -> None:
    with pytest.raises(TypeError, match="Object of type object is not JSON serializable"):
        dumps(wrap({"a": [object()]}))


def test_paths_are_written_as_in_the_request_body() -> None:
    body = wrap({"messages": [{"tool_calls": [{"function": {"arguments": "{}"}}]}], "a.b": {"x": "y"}})
    (span,) = spans_of(body["messages"][0]["tool_calls"][0]["function"]["arguments"])
    assert span.path == "messages[0].tool_calls[0].function.arguments"
    assert [span.path for span in spans_of(body["a.b"]["x"])] == ['["a.b"].x']
    assert path_of(body["messages"][0]) == "messages[0]"
    assert path_of({}) is None


def test_numbers_booleans_and_null_carry_their_members_path_when_dumped() -> None:
    body = wrap({"tools": [{"strict": True, "max": 3, "none": None}, 7]})
    text = dumps(body["tools"])
    for piece, path in {
        '"strict": true': "tools[0].strict",
        ', "none": null': "tools[0].none",
        ', "max": 3': "tools[0].max",
        ", 7": "tools[1]",
    }.items():
        start = text.index(piece)
        assert [(span.path, span.exact) for span in spans_of(text[start : start + len(piece)])] == [
            (path, False)
        ]


def test_quotes_and_commas_belong_to_the_member_they_are_written_for() -> None:
    text = dumps(wrap({"a": "x", "b": ["y", "z"]}))
    owners = {at: span.path for span in spans_of(text) for at in range(span.char_start, span.char_end)}
    assert text == '{"a": "x", "b": ["y", "z"]}'
    assert [owners.get(at) for at in (0, 1, 6, 9, 11, 16, 17, 20, 25)] == [
        None, "a", "a", "b", "b", None, "b[0]", "b[1]", None,
    ]  # fmt: skip


def test_wrapping_again_changes_nothing() -> None:
    inner = loads(sourced('{"n": 1, "s": "x"}', "args"))
    again = wrap({"arguments": inner}, "other")
    assert isinstance(again, SourcedDict)
    assert {span.path for span in spans_of(dumps(again["arguments"]))} == {"args"}
