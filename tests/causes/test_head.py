"""Each label of the head against texts that have it and texts that only look like it, on three grounds.

The expected labels are the field's rules (field-faults, reports 1 to 14); each pair is the line that differs.
"""

from __future__ import annotations

from typing import Any

import pytest

from analyzer.causes import Example
from analyzer.core import Finding
from tests.causes.pairs import Ground, grounds, parted_on

RULES = "Look before you change anything.\nSay what you found in one sentence.\n"

SYSTEM = [
    # volatile.head_nonce (report 1)
    ("x-attr: v=9; h=a1b2c;", "x-attr: v=9; h=9f00d;", "volatile.head_nonce", None),
    ("id 2f1c6e0a-93b1-4d5e-8a77-0c1d2e3f4a5b", "id 7d3b9a41-02c8-4f6a-9b1e-55aa66bb77cc", "volatile.head_nonce", None),
    ("trace: pQ9x+Lk2/Zt0aGw1==", "trace: b7RyT3u8Wm4sNc6v==", "volatile.head_nonce", None),
    ("Scratch: /tmp/box-4f3a9c21/work", "Scratch: /tmp/box-b81d07e5/work", "volatile.head_nonce", None),
    ("Session 83920113.", "Session 12093455.", "volatile.head_nonce", None),
    # and words, names and versions, which are none
    ("You write decade reports.", "You write facade reports.", "system.changed", None),
    ("Your model is claude-opus-4-5-20251101.", "Your model is claude-sonnet-4-5-20250929.", "system.changed", None),
    ("This is version 3.1.4 of it.", "This is version 3.2.0 of it.", "system.changed", None),
    # volatile.clock (reports 2 and 3)
    ("It is 2031-05-06 14:03:22.", "It is 2031-05-06 14:03:41.", "volatile.clock", "second"),
    ("Now: Tue, 06 May 2031 14:03:22 +0000", "Now: Tue, 06 May 2031 14:04:01 +0000", "volatile.clock", "second"),
    ("ts=1936792922000", "ts=1936792941000", "volatile.clock", "second"),
    ("Local time 2:59 PM", "Local time 3:02 PM", "volatile.clock", "minute"),
    ("It is 14:00h, 2031-05-06 14:00", "It is 15:00h, 2031-05-06 15:00", "volatile.clock", "minute"),
    ("It is about 2 PM.", "It is about 3 PM.", "volatile.clock", "rollover"),
    ("Today is 2031-05-06.", "Today is 2031-05-07.", "volatile.clock", "rollover"),
    ("Today is Monday, 5 May.", "Today is Tuesday, 6 May.", "volatile.clock", "rollover"),
    ("Today is 31 December.", "Today is 1 January.", "volatile.clock", "rollover"),
    # and what is no clock that went on
    ("Today is 2031-05-07.", "Today is 2031-05-06.", "volatile.env_snapshot", None),
    ("Python 3.12.10 is used.", "Python 3.12.11 is used.", "system.changed", None),
    # volatile.env_snapshot (reports 5, 6 and 12)
    ("Repo:\nclean", "Repo:\n M a.txt", "volatile.env_snapshot", None),
    ("Working directory: /home/ann/quay", "Working directory: /home/ann/quay-b2", "volatile.env_snapshot", None),
    ("Memory is 49% full.", "Memory is 52% full.", "volatile.env_snapshot", None),
    ("You know:\n- it rains\n- tea is hot\n- go on", "You know:\n- go on\n- it rains\n- tea is hot", "volatile.env_snapshot", "reordered"),
    ("Facts: it rains; tea is hot", "Facts: tea is hot; it rains", "volatile.env_snapshot", "reordered"),
    ("<memory>\n- likes tea\n</memory>", "<memory>\n- likes tea\n- lives in Kiel\n</memory>", "volatile.env_snapshot", None),
    # and new rules, which are none (report 7)
    ("You are the planner.", "You are the builder.", "system.changed", None),
    ("Always answer in English.", "Answer in the user's language, and be polite.", "system.changed", None),
    ("Be brief.", "Be brief.\nNever touch the tests.", "system.changed", None),
    # spaces alone are another spelling (report 17)
    ("Be brief. Be kind.", "Be brief.  Be kind.", "history.reserialised", "whitespace"),
]  # fmt: skip


@pytest.fixture(scope="module", params=["plain", "qwen3"])
def ground(request: pytest.FixtureRequest) -> Ground:
    return grounds(request.param)


def _first(ground: Ground, before: dict[str, Any], after: dict[str, Any], dialect: str = "chat") -> Finding:
    parting = parted_on(ground, Example(before=before, after=after, dialect=dialect))
    assert parting.problem is None
    assert len(parting.findings) == 1, [finding.cause for finding in parting.findings]
    assert (parting.findings[0].tokens or 0) > 0
    return parting.findings[0]


def _in_dialect(dialect: str, system: str, more: list[dict[str, Any]]) -> dict[str, Any]:
    messages = [{"role": "user", "content": "Which files are there?"}, *more]
    if dialect == "chat":
        return {"messages": [{"role": "system", "content": system}, *messages]}
    if dialect == "messages":
        return {"system": [{"type": "text", "text": system}], "messages": messages}
    return {"instructions": system, "input": messages}


NEXT = [{"role": "assistant", "content": "None."}, {"role": "user", "content": "Make one."}]
PATHS = {"chat": "messages[0].content", "messages": "system[0].text", "responses": "instructions"}


@pytest.mark.parametrize(("before", "after", "cause", "kind"), SYSTEM)
def test_a_line_of_the_system_text_is_told_by_how_it_changed(
    before: str, after: str, cause: str, kind: str | None, ground: Ground
) -> None:
    dialect = list(PATHS)[len(before) % 3]
    one, other = (f"{RULES}{line}\n{RULES}" for line in (before, after))
    found = _first(ground, _in_dialect(dialect, one, []), _in_dialect(dialect, other, NEXT), dialect)
    assert (found.cause, found.kind) == (cause, kind)
    assert found.path == PATHS[dialect]
    assert found.char is not None
    assert one[: found.char] == other[: found.char]
    assert found.path in found.advice


def test_a_date_that_the_user_wrote_is_no_clock_of_the_head(ground: Ground) -> None:
    before, after = (
        {"messages": [{"role": "user", "content": f"Today is 2031-05-0{day}."}, *more]}
        for day, more in ((6, NEXT), (7, NEXT * 2))
    )
    assert _first(ground, before, after).cause == "history.edited"


def test_a_clock_and_an_id_in_one_text_are_two_findings(ground: Ground) -> None:
    before, after = (
        _in_dialect("chat", f"id: {made}\n{RULES}It is {hour}:30.\nStill {hour}:30.\n{RULES}", [])
        for made, hour in (("a1b2c3", 13), ("0f9e8d", 14))
    )
    findings = parted_on(ground, Example(before=before, after=after)).findings
    assert [finding.cause for finding in findings] == ["volatile.head_nonce", "volatile.clock"]


def _tool(name: str, description: str = "", parameters: dict[str, Any] | None = None) -> dict[str, Any]:
    given = parameters or {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    function = {"name": name, "description": description or f"To {name} things.", "parameters": given}
    return {"type": "function", "function": function}


GLOB, READ, SHELL = _tool("glob"), _tool("read"), _tool("shell")
TURNED = {"required": ["path"], "properties": {"path": {"type": "string"}}, "type": "object"}
WIDER = {"type": "object", "properties": {"path": {"type": "string"}, "n": {"type": "integer"}}}
BOX = "Run in /tmp/box-{}.sock only."
TOOLS = [
    # tools.order (report 8)
    ([GLOB, READ, SHELL], [SHELL, READ, GLOB], "tools.order", None),
    ([GLOB, READ, SHELL], [GLOB, SHELL, READ], "tools.order", None),
    ([READ, GLOB], [GLOB, READ], "tools.order", None),
    # tools.schema_drift (reports 9 and 10)
    ([GLOB, READ], [GLOB, _tool("read", "", TURNED)], "tools.schema_drift", "key_order"),
    ([_tool("read", BOX.format("a1b2c3d4"))], [_tool("read", BOX.format("99f0e1d2"))], "tools.schema_drift", "nonce"),
    ([GLOB, READ], [_tool("glob", "Find by a pattern."), READ], "tools.schema_drift", "description"),
    ([GLOB, READ], [GLOB, _tool("read", "", WIDER)], "tools.schema_drift", "schema"),
    # tools.set_changed (reports 11 and 12)
    ([GLOB, READ], [GLOB, READ, SHELL], "tools.set_changed", None),
    ([GLOB, READ, SHELL], [GLOB, SHELL], "tools.set_changed", None),
    ([GLOB, READ], [GLOB, _tool("read_file")], "tools.set_changed", None),
    ([], [GLOB], "tools.set_changed", None),
    # tools.dropped (report 13)
    ([GLOB, READ], [], "tools.dropped", None),
    ([GLOB], [], "tools.dropped", None),
    ([SHELL, GLOB, READ], [], "tools.dropped", None),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "cause", "kind"), TOOLS)
def test_a_list_of_tools_is_told_by_how_it_changed(
    before: list[Any], after: list[Any], cause: str, kind: str | None, ground: Ground
) -> None:
    bodies = [
        _in_dialect("chat", RULES, more) | ({"tools": tools} if tools else {})
        for tools, more in ((before, []), (after, NEXT))
    ]
    found = _first(ground, *bodies)
    assert (found.cause, found.kind) == (cause, kind)


def test_tools_that_moved_and_drifted_are_two_findings(ground: Ground) -> None:
    before = _in_dialect("chat", RULES, []) | {"tools": [GLOB, READ, SHELL]}
    after = _in_dialect("chat", RULES, NEXT) | {"tools": [SHELL, _tool("read", "", TURNED), GLOB]}
    findings = parted_on(ground, Example(before=before, after=after)).findings
    assert [finding.cause for finding in findings] == ["tools.order", "tools.schema_drift"]


def test_tools_that_no_template_prints_are_no_finding(ground: Ground) -> None:
    template = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}<|assistant|>"
    before = _in_dialect("chat", RULES, []) | {"tools": [GLOB, READ]}
    after = _in_dialect("chat", RULES, NEXT) | {"tools": [READ, SHELL]}
    assert parted_on(ground, Example(before=before, after=after, template=template)).findings == ()


@pytest.mark.parametrize(("choices", "cause"), [
    ((None, "none"), "params.tool_choice"),
    (("auto", "none"), "params.tool_choice"),
    (("none", "auto"), "params.tool_choice"),
    (("auto", "required"), None),
    (("none", "none"), None),
])  # fmt: skip
def test_a_choice_that_takes_tools_out_of_the_prompt_is_named(
    choices: tuple[str | None, str], cause: str | None, ground: Ground
) -> None:
    """Report 13: the bodies have equal tools, and a server that leaves them out for none."""
    bodies = [
        _in_dialect("chat", RULES, more) | {"tools": [GLOB]} | ({"tool_choice": choice} if choice else {})
        for choice, more in zip(choices, ([], NEXT), strict=True)
    ]
    example = Example(
        before=bodies[0], after=bodies[1], settings={"exclude_tools_when_tool_choice_none": True}
    )
    findings = parted_on(ground, example).findings
    assert [finding.cause for finding in findings] == ([cause] if cause else [])


EFFORT = (
    "<|system|>Effort: {{ reasoning_effort or 'low' }}, {{ mode or 'plan' }}{% if enable_thinking %}, think{% endif %}"
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}<|assistant|>"
)


@pytest.mark.parametrize(("before", "after", "path"), [
    ({"reasoning_effort": "low"}, {"reasoning_effort": "high"}, "reasoning_effort"),
    ({}, {"chat_template_kwargs": {"mode": "build"}}, "chat_template_kwargs.mode"),
    ({"chat_template_kwargs": {"enable_thinking": True}}, {"chat_template_kwargs": {"enable_thinking": False}},
     "chat_template_kwargs.enable_thinking"),
    ({"chat_template_kwargs": {"color": "red"}}, {"chat_template_kwargs": {"color": "blue"}}, None),
    ({}, {"response_format": {"type": "json_object"}, "temperature": 0.1}, None),
])  # fmt: skip
def test_a_setting_is_named_where_the_template_prints_it(
    before: dict[str, Any], after: dict[str, Any], path: str | None, ground: Ground
) -> None:
    """Report 34: the template prints the level near its first token."""
    bodies = _in_dialect("chat", RULES, []) | before, _in_dialect("chat", RULES, NEXT) | after
    findings = parted_on(ground, Example(before=bodies[0], after=bodies[1], template=EFFORT)).findings
    assert [finding.cause for finding in findings] == (["params.template_kwargs"] if path else [])
    assert [finding.path for finding in findings] == ([path] if path else [])
