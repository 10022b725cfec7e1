"""What costs nothing has no finding, and each of several causes gets the tokens that it alone costs.

The cases are those of the field's reports: eight in which bodies differ or grow and all is kept, and one
with four changes at once, on Qwen3's own template and on the samples'.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from analyzer.causes import Example
from tests.causes.pairs import Ground, grounds, parted_on

S = "Quays, tides and berths, in order. " * 12
TOOL_STEPS = 6


def _tool(name: str) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"p": {"type": "string"}, "n": {"type": "integer"}}}
    return {
        "type": "function",
        "function": {"name": name, "description": f"To {name}.", "parameters": parameters},
    }


def _loop(steps: int, *, reasoning: bool, ids: str = "call") -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for n in range(steps):
        call: dict[str, Any] = {"id": f"{ids}_{n}", "type": "function"}
        call |= {"function": {"name": "read", "arguments": f'{{"p": "{n}.txt", "n": 5}}'}}
        thought = {"reasoning_content": f"I need file {n}."} if reasoning else {}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]} | thought)
        messages.append(
            {"role": "tool", "tool_call_id": f"{ids}_{n}", "content": f"the text of file {n} " * 5}
        )
    return messages


def _body(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    head: list[Any] = [{"role": "system", "content": S}, {"role": "user", "content": "Read the files."}]
    return {"messages": [*head, *messages], "tools": [_tool("read"), _tool("glob"), _tool("shell")]} | more


THANKS = {"role": "user", "content": "Thanks. And now?"}
DONE = {"role": "assistant", "content": "All are read."}
LEFT = {"role": "system", "content": "left: 900"}
CONTROLS = {
    "tool step appended": (_body(*_loop(1, reasoning=False)), _body(*_loop(2, reasoning=False))),
    "reasoning echoed in the loop": (_body(*_loop(2, reasoning=True)), _body(*_loop(3, reasoning=True))),
    "reasoning not echoed": (_body(*_loop(2, reasoning=False)), _body(*_loop(3, reasoning=False))),
    "user turn, no reasoning": (
        _body(*_loop(TOOL_STEPS, reasoning=False)),
        _body(*_loop(TOOL_STEPS, reasoning=False), DONE, THANKS),
    ),
    "ids changed, not printed": (
        _body(*_loop(2, reasoning=False)),
        _body(*_loop(3, reasoning=False, ids="toolu_9f")),
    ),
    "system within the conversation": (
        _body(*_loop(1, reasoning=False), LEFT),
        _body(*_loop(1, reasoning=False), LEFT, *_loop(1, reasoning=False)),
    ),
    "thinking switched off": (
        _body(*_loop(2, reasoning=False)),
        _body(*_loop(2, reasoning=False), DONE, THANKS, chat_template_kwargs={"enable_thinking": False}),
    ),
    "text as a list": (
        {"messages": [{"role": "user", "content": "hello there"}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "hello there"}]}, DONE, THANKS]},
    ),
}


@pytest.fixture(scope="module", params=["plain", "sample", "qwen3"])
def ground(request: pytest.FixtureRequest) -> Ground:
    return grounds(request.param)


@pytest.mark.parametrize("name", CONTROLS)
def test_what_costs_nothing_has_no_finding(name: str, ground: Ground) -> None:
    before, after = CONTROLS[name]
    parting = parted_on(ground, Example(before=before, after=after))
    assert parting.problem is None
    assert parting.append
    assert parting.findings == ()


def _four_changes() -> tuple[dict[str, Any], list[Callable[[dict[str, Any]], None]]]:
    """A request, and what changes its successor: an id, the tools' order, a moved note, arguments' order."""
    before = _body(*_loop(1, reasoning=False))
    before["messages"][0]["content"] = f"x-attr: v=9; h=a1b2c;\n{S}"
    before["messages"][1]["content"] = "Read the files.\n<note>build mode</note>"

    def nonce(body: dict[str, Any]) -> None:
        body["messages"][0]["content"] = f"x-attr: v=9; h=9f00d;\n{S}"

    def order(body: dict[str, Any]) -> None:
        body["tools"].reverse()

    def note(body: dict[str, Any]) -> None:
        body["messages"][1]["content"] = "Read the files."
        body["messages"][-1]["content"] += "\n<note>build mode</note>"

    def arguments(body: dict[str, Any]) -> None:
        body["messages"][2]["tool_calls"][0]["function"]["arguments"] = '{"n": 5, "p": "0.txt"}'

    return before, [nonce, order, note, arguments]


LABELS = ["volatile.head_nonce", "tools.order", "history.moving_block", "history.reserialised"]


def test_four_changes_at_once_are_told_apart_in_order_of_their_position(ground: Ground) -> None:
    before, changes = _four_changes()
    labels = list(LABELS)
    if ground is grounds("plain"):  # tools stand in front of the system text there
        changes[:2], labels[:2] = changes[1::-1], labels[1::-1]
    after = copy.deepcopy(before)
    after["messages"] += [DONE, dict(THANKS)]
    tokens = []
    for undone in range(len(changes)):
        rest = copy.deepcopy(after)
        for change in changes[undone:]:
            change(rest)
        divergence = parted_on(ground, Example(before=before, after=rest)).divergence
        assert divergence is not None
        tokens.append(divergence.token)
        if not undone:
            findings = parted_on(ground, Example(before=before, after=rest)).findings
    assert [finding.cause for finding in findings] == labels
    assert [finding.token for finding in findings] == tokens
    gains = [later - sooner for sooner, later in pairwise(tokens)]
    assert [finding.tokens for finding in findings[:-1]] == gains
