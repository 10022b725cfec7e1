"""Bodies read with shared messages are what `json` reads, to the order of keys and the kind of numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer import shared_json
from analyzer.shared_json import SharedBodies, once

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(0, 2), st.just(1.0), st.text(max_size=4))


def objects(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.dictionaries(st.sampled_from(["role", "content", "a", "1"]), values, max_size=3)


VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=2) | objects(inner), max_leaves=5)
MESSAGES = st.lists(objects(VALUES) | SCALARS, max_size=4) | SCALARS
BODIES = st.dictionaries(st.sampled_from(["messages", "input", "model", "tools"]), MESSAGES, max_size=3)


@settings(max_examples=200, deadline=None)
@given(bodies=st.lists(BODIES, min_size=1, max_size=5), indent=st.sampled_from([None, 1]))
def test_every_body_is_read_as_json_reads_it(bodies: list[dict[str, Any]], indent: int | None) -> None:
    shared = SharedBodies()
    for body in bodies:
        content = json.dumps(body, indent=indent, ensure_ascii=False).encode("utf-8", "surrogatepass")
        assert repr(shared.loads(content)) == repr(json.loads(content))


@settings(max_examples=200, deadline=None)
@given(
    body=BODIES, at=st.integers(0, 60), put=st.sampled_from(["", "}", ",", '"', "{", " ", "]", "\x00", "1"])
)
def test_a_damaged_body_is_refused_in_json_s_words(body: dict[str, Any], at: int, put: str) -> None:
    shared = SharedBodies()
    whole = json.dumps(body)
    shared.loads(whole.encode())
    content = (whole[:at] + put + whole[at + 1 :]).encode()
    assert outcome(shared.loads, content) == outcome(json.loads, content)


def outcome(loads: Callable[[bytes], Any], content: bytes) -> str:
    try:
        return repr(loads(content))
    except (ValueError, RecursionError) as error:
        return repr(error)


@pytest.mark.parametrize(
    "content",
    [
        b'\xef\xbb\xbf{"a":1}',
        '{"messages":[{"a":1}]}'.encode("utf-16"),
        b'{"messages":[{"a":1}],"messages":[{"a":2}]}',
        b'{"messages":[{"a":1},]}',
        b'{"messages":[]}',
        b'{"messages":[{"a":1}]} x',
        b'{"a":"\xff"}',
        b"{" * 10_000,
        b'{"messages":[' + b'{"a":' * 200_000,
        b"{}",
        b"",
    ],
)
def test_what_is_unusual_is_left_to_json(content: bytes) -> None:
    assert outcome(SharedBodies().loads, content) == outcome(json.loads, content)


def test_a_repeated_message_is_the_same_object() -> None:
    shared = SharedBodies()
    first = shared.loads(b'{"messages":[{"role":"user"}]}')
    second = shared.loads(b'{"messages": [{"role":"user"}, {"role":"tool"}]}')
    assert second["messages"][0] is first["messages"][0]


def test_what_is_made_of_a_repeated_object_is_made_once_for_each_way_of_making_it() -> None:
    shared, made = SharedBodies(), []

    def make(item: Mapping[str, Any], mark: str) -> str:
        made.append(mark)
        return f"{mark}{item['a']}"

    for _ in range(2):
        (tool,) = shared.loads(b'{"tools":[{"a":1}]}')["tools"]
        assert [once(make, tool, mark) for mark in "xy"] == ["x1", "y1"]
        assert once(make, dict(tool), "z") == "z1"
    assert made == ["x", "y", "z", "z"]


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_json, "_KEPT_CHARS", 1000)
    shared = SharedBodies()
    for number in range(200):
        content = json.dumps(
            {"messages": [{"content": f"{number} {place}" * 9} for place in range(5)]}
        ).encode()
        assert shared.loads(content) == json.loads(content)
        assert sum(len(text) for place in shared._places.values() for text, _ in place) < 1200
