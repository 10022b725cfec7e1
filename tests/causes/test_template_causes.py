"""Each cause that a chat template makes: what triggers it, and what is so near to it that it must not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from analyzer.causes import Example
from analyzer.causes import _templates as own
from analyzer.tokens import Tokenizer
from tests.causes.chats import (
    SYSTEM,
    TOOLS,
    answered,
    anthropic,
    blocks,
    called,
    chat,
    loop,
    responses,
    result,
    said,
    step,
    text,
    thinking,
    thought,
    use,
    user,
)
from tests.causes.models import tokenizer_of
from tests.causes.pairs import parted

NOTE = {"role": "system", "content": "left: 900"}
LESS = {"role": "system", "content": "left: 850"}
OFF: dict[str, Any] = {"chat_template_kwargs": {"enable_thinking": False}}
LAST_TOOLS = own.TOOLS_BEFORE_LAST_USER.replace("<|tools|>", "[AVAILABLE_TOOLS]")
HOUR = own.PRINTS_TODAY.replace("%d %b %Y", "%Y-%m-%dT%H:%M")
TAGGED = own.MARKS_PARTS.replace("<part>", "- ").replace("</part>", "\n")
# As Llama 3.2 and gpt-oss print it.
DATED = own.PLAIN.replace("{% if tools %}", "Today Date: {{ strftime_now('%d %B %Y') }}{% if tools %}")
REFUSES = own.PLAIN.replace(
    "{% for m in messages %}",
    "{% for m in messages %}"
    "{% if m.role == 'system' and not loop.first %}{{ raise_exception('no') }}{% endif %}",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Two bodies under a template of our own, or of a `model`; `path` is looked at where it is given."""

    before: dict[str, Any]
    after: dict[str, Any]
    template: str | None = None
    model: str | None = None
    dialect: str = "chat"
    hours: float = 0
    answer: str | None = None
    kind: str | None = None
    path: str | None = None


def open_loop(*more: Any, key: str = "reasoning_content", tools: bool = True) -> dict[str, Any]:
    first = said("", "I look for it.", key) | {"tool_calls": step(0)[0]["tool_calls"]}
    return chat(user(), first, step(0)[1], *more, tools=tools)


def boundary(prompt: str) -> dict[str, Any]:
    return {"prompt": prompt}


IN_CONTENT = "<think>\nI count.\n</think>\n\nThere are two."
CLAUDE = (user(), blocks(thinking("I count."), use(1)), blocks(result(1), role="user"))

TRIGGERS: dict[str, list[Case]] = {
    "template.system_hoist": [
        Case(before=chat(user(), NOTE), after=chat(user(), NOTE, said(), LESS, user("on")),
             template=own.HOISTS_SYSTEM, path="messages[4].content"),
        Case(before=chat(user(), NOTE), after=chat(user(), NOTE, said(), NOTE, user("on")),
             template=own.HOISTS_SYSTEM, path="messages[4].content"),
        Case(before=anthropic(*CLAUDE, NOTE), after=anthropic(*CLAUDE, NOTE, said(), LESS, user("on")),
             template=REFUSES, dialect="messages", path="messages[5].content"),
        Case(before=anthropic(user()), after=anthropic(user(), said(), NOTE, user("on")),
             model="deepseek_v4", template=REFUSES, dialect="messages", path="messages[2].content"),
        Case(before=responses(user()), after=responses(user(), answered("Two."), NOTE, user("on")),
             template=own.HOISTS_SYSTEM, dialect="responses", path="input[2].content"),
    ],
    "template.think_strip": [
        Case(before=chat(user(), *loop(6, reasoning=True)),
             after=chat(user(), *loop(6, reasoning=True), said("Done.", "All six."), user("thanks")),
             model="qwen3", path="messages[2].reasoning_content"),
        Case(before=open_loop(), after=open_loop(user("stop")), model="qwen3",
             path="messages[2].reasoning_content"),
        Case(before=open_loop(key="reasoning"),
             after=open_loop(user("<note>be brief</note>"), key="reasoning"),
             model="qwen3", path="messages[2].reasoning"),
        Case(before=chat(user(), said(IN_CONTENT), tools=False),
             after=chat(user(), said(IN_CONTENT), user("on"), tools=False), model="qwen3",
             path="messages[2].content"),
        Case(before=chat(user(), said("Two.", "I count."), tools=False),
             after=chat(user(), said("Two.", "I count."), user("on"), tools=False),
             model="deepseek_v4", path="messages[2].reasoning_content"),
        Case(before=anthropic(*CLAUDE), after=anthropic(*CLAUDE, said(), user("on")), model="qwen3",
             dialect="messages", path="messages[1].content[0].thinking"),
        Case(before=responses(user(), thought("I count."), *called(1)),
             after=responses(user(), thought("I count."), *called(1), answered("Two."), user("on")),
             model="qwen3", dialect="responses", path="input[1].content[0].text"),
        Case(before=chat(user(), said(), *step(0)), after=chat(user(), said(), *step(0), user("on")),
             template=own.DROPS_THINKING, kind="empty_wrapper", path="template"),
        Case(before=chat(user(), said()), after=chat(user(), said(), user("on")), model="qwen3",
             kind="empty_wrapper", path="template"),
    ],
    "template.gen_prompt_mismatch": [
        Case(before=chat(user()), after=chat(user(), said(), user("on")), template=own.OPENS_WITH_THINK),
        Case(before=chat(user(), **OFF), after=chat(user(), said(), user("on"), **OFF), model="qwen3"),
        Case(before=chat(user(), tools=False), after=chat(user(), said(), user("on"), tools=False),
             model="deepseek_v4"),
        Case(before=responses(user(), **OFF), after=responses(user(), answered("Two."), user("on"), **OFF),
             model="qwen3", dialect="responses"),
        Case(before=chat(user()), after=chat(user(), user("on")), model="qwen3", kind="unanswered"),
    ],
    "template.tools_float": [
        Case(before=chat(user()), after=chat(user(), said(), user("on")), template=template, path="tools[0]")
        for template in (own.TOOLS_BEFORE_LAST_USER, LAST_TOOLS)
    ] + [
        Case(before=chat(user(), said(), user("on")),
             after=chat(user(), said(), user("on"), said(), user("x")),
             template=LAST_TOOLS, path="tools[0]"),
    ],
    "template.clock": [
        Case(before=chat(user()), after=chat(user(), said(), user("on")), template=own.PRINTS_TODAY, hours=24,
             kind="rollover"),
        Case(before=chat(user()), after=chat(user(), said(), user("on")), template=HOUR, hours=1),
        Case(before=chat(user()), after=chat(user(), said(), user("on")), model="qwen3",
             template=DATED, hours=48,
             kind="rollover"),
        Case(before=responses(user()), after=responses(user(), answered("Two."), user("on")),
             template=own.PRINTS_TODAY, dialect="responses", hours=24 * 40, kind="rollover"),
    ],
    "template.content_shape": [
        Case(before=chat(user([text("one"), text("two")])), after=chat(user("one\ntwo")), template=TAGGED,
             path="messages[1].content"),
        Case(before=chat(user("onetwo")), after=chat(user([text("one"), text("two")])), model="qwen3",
             path="messages[1].content"),
        Case(before=chat(user([text("one "), text("two")]), tools=False),
             after=chat(user("one two"), tools=False),
             model="gemma3", path="messages[1].content"),
        Case(before=anthropic(user([text("one"), text("two")])), after=anthropic(user("onetwo")),
             model="qwen3", dialect="messages", path="messages[0].content"),
        Case(before=chat(user(), step(0)[0], step(0)[1] | {"content": [text("a"), text("b")]}),
             after=chat(user(), step(0)[0], step(0)[1] | {"content": "ab"}, said()), model="deepseek_v4",
             path="messages[3].content"),
    ],
    "template.reasoning_ignored": [
        Case(before=open_loop(), after=open_loop(*step(1), key="thinking"), model="qwen3",
             path="messages[2].thinking"),
        Case(before=open_loop(), after=open_loop(*step(1), key="reasoning_text"), model="deepseek_v4",
             path="messages[2].reasoning_text"),
        Case(before=open_loop(), after=open_loop(*step(1), key="thoughts"), template=own.PLAIN,
             path="messages[2].thoughts"),
    ],
    "template.roundtrip": [
        Case(before=chat(user()), after=chat(user(), said("Two files."), user("on")), template=own.PLAIN,
             answer="\nTwo files.<|end|>"),
        Case(before=chat(user()), after=chat(user(), said("Two.", "I count."), user("on")), model="qwen3",
             answer="<think>\nI count.\n</think>\n\nTwo.<|im_end|>"),
        Case(before=chat(user()), after=chat(user(), *step(0)), model="qwen3",
             answer='\n<tool_call>\n{"name": "read", "arguments": {"p": "file-0.txt"}}\n'
             '</tool_call><|im_end|>'),
    ],
    "token.boundary_merge": [
        Case(before=boundary("Count the boat"), after=boundary("Count the boats."), model="qwen3",
             dialect="completions"),
        Case(before=boundary("They said:\n"), after=boundary("They said:\n\nNo."), model="deepseek_v4",
             dialect="completions"),
        Case(before=chat(user(), tools=False), after=chat(user(), said("\n\nTwo."), user("on"), tools=False),
             model="qwen3"),
    ],
}  # fmt: skip

NEAR_MISSES: dict[str, list[Case]] = {
    "template.system_hoist": [
        # The system text itself was changed, and nothing was added.
        Case(before=chat(user(), NOTE), after=chat(user(), LESS), template=own.HOISTS_SYSTEM),
        Case(before=chat(user(), NOTE), after=chat(user(), NOTE, said(), LESS), template=own.PLAIN),
        Case(before={"messages": [user()]}, after={"messages": [SYSTEM, user()]}, template=own.HOISTS_SYSTEM),
    ],
    "template.think_strip": [
        # The client dropped or changed it.
        Case(before=open_loop(), after=chat(user(), *step(0), user("on")), model="qwen3"),
        Case(before=chat(user(), said("Two.", "I count."), *step(1)),
             after=chat(user(), said("Two.", "I guess."), *step(1), *step(2)), template=own.STRIPS_REASONING),
        Case(before=open_loop(tools=True), after=open_loop(said(), user("on")), model="deepseek_v4"),
        Case(before=chat(user(), said("<b>\n</b>")), after=chat(user(), said("x"), user("on")),
             template=own.PLAIN),
    ],
    "template.gen_prompt_mismatch": [
        Case(before=chat(user()), after=chat(user(), said(), user("on")), model="qwen3"),
        Case(before=chat(user("a")), after=chat(user("b"), said(), user("on")),
             template=own.OPENS_WITH_THINK),
        Case(before=chat(user()), after=chat(user("Which files are there? Now."), said()), model="qwen3"),
    ],
    "template.tools_float": [
        Case(before=chat(user()), after=chat(user(), said(), user("on")), template=own.PLAIN),
        Case(before=chat(user()), after=chat(user(), said(), user("on")) | {"tools": TOOLS[:1]},
             template=own.TOOLS_BEFORE_LAST_USER),
        Case(before=chat(user()), after=chat(user(), said()), template=LAST_TOOLS),
    ],
    "template.clock": [
        # The same day; a date that the client wrote; another body too.
        Case(before=chat(user()), after=chat(user(), said(), user("on")), template=own.PRINTS_TODAY, hours=1),
        Case(before={"messages": [{"role": "system", "content": "Day 2"}, user()]},
             after={"messages": [{"role": "system", "content": "Day 3"}, user(), said()]},
             template=own.PLAIN, hours=24),
        Case(before=chat(user()), after=chat(user(), said(), user("on")), model="qwen3",
             template=DATED, hours=1),
    ],
    "template.content_shape": [
        Case(before=chat(user([text("one")])), after=chat(user("one"), said()), template=TAGGED),
        Case(before=chat(user([text("one"), text("two")])), after=chat(user("one\ntwo"), said()),
             model="qwen3"),
        Case(before=chat(user([text("one"), text("two")])), after=chat(user("one three")), template=TAGGED),
    ],
    "template.reasoning_ignored": [
        Case(before=open_loop(), after=open_loop(*step(1), key="reasoning"), model="qwen3"),
        Case(before=open_loop(), after=chat(user(), *step(0), *step(1)), model="qwen3"),
        Case(before=open_loop(), after=chat(user(), said("", "Other.") | step(0)[0], *step(1)),
             template=own.PLAIN),
    ],
    "template.roundtrip": [
        # Kept whole; changed by the client; an answer that is not in the history.
        Case(before=chat(user()), after=chat(user(), said("Two files."), user("on")), model="qwen3",
             answer="Two files.<|im_end|>"),
        Case(before=chat(user()), after=chat(user(), said("Two."), user("on")), model="qwen3",
             answer="<think>\nI count.\n</think>\n\nTwo.<|im_end|>"),
        Case(before=chat(user()), after=chat(user(), said("Three."), user("on")), template=own.PLAIN,
             answer="\nTwo.<|end|>"),
    ],
    "token.boundary_merge": [
        Case(before=boundary("Count the boat"), after=boundary("Count the ships."), model="qwen3",
             dialect="completions"),
        Case(before=boundary("Count the boats."), after=boundary("Count the boats. Then go."),
             model="deepseek_v4", dialect="completions"),
    ],
}  # fmt: skip


def cases(table: dict[str, list[Case]]) -> list[Any]:
    return [
        pytest.param(name, case, id=f"{name}-{at}")
        for name, found in table.items()
        for at, case in enumerate(found)
    ]


@pytest.fixture(scope="module")
def small(sample_tokenizer: Path) -> Tokenizer:
    return Tokenizer(sample_tokenizer)


def findings(case: Case, small: Tokenizer) -> Any:
    tokenizer, template = (small, None) if case.model is None else tokenizer_of(case.model)
    example = Example(
        before=case.before,
        after=case.after,
        template=case.template or template,
        dialect=case.dialect,
        hours=case.hours,
        answer=case.answer,
    )
    parting = parted(example, tokenizer)
    assert parting.problem is None
    return parting


@pytest.mark.parametrize(("name", "case"), cases(TRIGGERS))
def test_a_cause_is_named_first(name: str, case: Case, small: Tokenizer) -> None:
    parting = findings(case, small)
    assert [(found.cause, found.kind) for found in parting.findings[:1]] == [(name, case.kind)]
    if case.path is not None:
        assert parting.findings[0].path == case.path
    assert parting.findings[0].tokens is not None


@pytest.mark.parametrize(("name", "case"), cases(NEAR_MISSES))
def test_a_near_miss_is_not_this_cause(name: str, case: Case, small: Tokenizer) -> None:
    assert name not in [found.cause for found in findings(case, small).findings]


@pytest.mark.parametrize("name", TRIGGERS)
def test_there_are_enough_cases_over_two_templates(name: str) -> None:
    triggers, misses = TRIGGERS[name], NEAR_MISSES[name]
    assert len(triggers) >= 3
    assert len(misses) >= 2
    assert len({(case.model, case.template) for case in triggers}) >= 2
