"""A wrapped body is the same whether its messages were wrapped before or not."""

from __future__ import annotations

from typing import Any

import pytest

from analyzer.shared_wraps import SharedWraps
from analyzer.sourced import spans_of
from analyzer.sourced_json import dumps, wrap

FIRST = {"role": "user", "content": "one"}
SECOND = {"role": "assistant", "content": [{"type": "text", "text": "two"}], "n": 1}
TOOL = {"type": "function", "function": {"name": "read", "strict": None}}


@pytest.mark.parametrize(
    "bodies",
    [
        [{"messages": [FIRST]}, {"messages": [FIRST, SECOND], "tools": [TOOL]}],
        [{"messages": [FIRST, SECOND]}, {"messages": [SECOND, FIRST]}, {"messages": [FIRST, SECOND]}],
        [{"input": "text", "x": 1}, {"input": [FIRST], "instructions": "be brief"}],
        [{"messages": ["no object", None]}, {"messages": {"a": 1}}, {"prompt": [1, 2]}],
    ],
)  # fmt: skip
def test_every_field_is_known_as_if_the_body_were_wrapped_alone(bodies: list[dict[str, Any]]) -> None:
    wraps = SharedWraps()
    for body in bodies:
        shared, alone = wraps.wrap(body), wrap(body)
        assert shared == alone == body
        for key in body:
            assert spans_of(dumps(shared[key])) == spans_of(dumps(alone[key]))


def test_a_message_at_its_place_is_wrapped_once() -> None:
    wraps = SharedWraps()
    first = wraps.wrap({"messages": [FIRST]})["messages"][0]
    assert wraps.wrap({"messages": [FIRST, SECOND]})["messages"][0] is first
    assert wraps.wrap({"messages": [SECOND, FIRST]})["messages"][1] is not first
