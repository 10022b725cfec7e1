"""Each label of a rewritten history against requests that have it and requests that only look like it.

The expected labels are the field's rules (field-faults, reports 15 to 26).
"""

# ruff: noqa: E501 (a row a case)
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from analyzer.causes import Example
from analyzer.causes._chats import assistant, call, chat, result, user
from analyzer.causes._templates import PRINTS_IDS
from tests.causes.pairs import Ground, grounds, parted_on

ASK, READ, LONG = user("Read a.txt."), call('{"path": "a.txt", "n": 5}'), result("a line of a.txt " * 40)
SAID, MORE, DONE, NEXT = (
    assistant("It holds x."),
    user("And b.txt?"),
    assistant("That holds y."),
    user("Delete it."),
)
TAIL = (assistant("It is gone."), user("Thank you."))
NOTE = "<note>build mode, ask before you write</note>"
FILES, FILES_NOW = "These files are in the chat:\na.txt\nx", "These files are in the chat:\na.txt\ny"
PROMISE = assistant("I will change no others.")
SUMMARY = "Summary of the conversation so far: a.txt holds x and b.txt holds y."
LOOP = (ASK, READ, LONG, SAID, MORE, DONE, NEXT)


def thought(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **more}


def look(arguments: str) -> dict[str, Any]:
    return call(arguments)


CASES: list[tuple[str, str | None, Sequence[Any], Sequence[Any]]] = [
    # reports 15 and 16
    ("history.moving_block", None, (user(f"Do it.\n{NOTE}"),), (user("Do it."), SAID, user(f"Thanks.\n{NOTE}"))),
    ("history.moving_block", None, (ASK, SAID, user(f"{NOTE}\nGo on.")), (ASK, SAID, user("Go on."), DONE, user(f"{NOTE}\nStop."))),
    ("history.moving_block", None, (ASK, SAID, user("Go on.\n[left: 900]")), (ASK, SAID, user("Go on."), DONE, user("Stop.\n[left: 850]"))),
    ("history.moving_block", None, (ASK, user(NOTE), SAID, MORE), (ASK, SAID, MORE, user(NOTE), DONE, NEXT)),
    ("history.moving_block", None, (ASK, SAID, MORE, user(NOTE)), (ASK, SAID, MORE, DONE, NEXT, user(NOTE))),
    ("history.moving_block", None, (user(FILES), PROMISE, user(f"Do it.\n{NOTE}")), (user("Do it."), DONE, user(FILES_NOW), PROMISE, user(f"Go on.\n{NOTE}"))),
    # near: the text went nowhere; a text that stands in both was there before
    ("history.edited", None, (user(f"Do it.\n{NOTE}"), SAID, MORE), (user("Do it."), SAID, MORE, DONE, NEXT)),
    ("history.edited", None, (user("Do it well."), SAID, MORE), (user("Do it badly."), SAID, MORE, DONE, user("Do it well."))),
    # reports 17 and 19
    ("history.reserialised", "whitespace", (user("<note>x</note>\n"), SAID, MORE), (user("<note>x</note>"), SAID, MORE, DONE, NEXT)),
    ("history.reserialised", "whitespace", (ASK, READ, result("1\r\n2\r\n"), *TAIL), (ASK, READ, result("1\n2\n"), *TAIL, DONE, NEXT)),
    ("history.reserialised", "whitespace", (ASK, assistant("It  holds x."), MORE), (ASK, SAID, MORE, DONE, NEXT)),
    ("history.reserialised", "tool_args", (ASK, READ, LONG), (ASK, look('{"n": 5, "path": "a.txt"}'), LONG, SAID, MORE)),
    ("history.reserialised", "tool_args", (ASK, READ, LONG), (ASK, look('{"n":5,"path":"a.txt"}'), LONG, SAID, MORE)),
    ("history.reserialised", "whitespace", (ASK, READ, result('{"a": 1}'), *TAIL), (ASK, READ, result('{\n  "a": 1\n}'), *TAIL, DONE, NEXT)),
    ("history.reserialised", "shape", (ASK, READ, result('{"a": 1, "b": 2}'), *TAIL), (ASK, READ, result('{"b": 2, "a": 1}'), *TAIL, DONE, NEXT)),
    ("history.reserialised", "shape", (user("One."), user("Two."), SAID, MORE), (user("One.\nTwo."), SAID, MORE, DONE, NEXT)),
    # near: another argument, another word
    ("history.edited", None, (ASK, READ, LONG), (ASK, look('{"path": "a.txt", "n": 6}'), LONG, SAID, MORE)),
    ("history.edited", None, (ASK, SAID, MORE), (ASK, assistant("It held x."), MORE, DONE, NEXT)),
    # report 21
    ("history.tool_result_edited", "placeholder", LOOP, (ASK, READ, result("[cleared]"), *LOOP[3:], *TAIL)),
    ("history.tool_result_edited", "truncated", LOOP, (ASK, READ, result("a line of a.txt a line of… (cut)"), *LOOP[3:], *TAIL)),
    ("history.tool_result_edited", None, LOOP[:3], (ASK, READ, result("another file " * 60), SAID, MORE)),
    ("history.tool_result_edited", "placeholder", LOOP, (ASK, READ, result(""), *LOOP[3:], *TAIL)),
    # report 23
    ("history.compacted", None, LOOP, (user(SUMMARY), *TAIL[1:])),
    ("history.compacted", None, LOOP, (user(SUMMARY),)),
    ("history.compacted", None, LOOP, (ASK, assistant(SUMMARY), NEXT)),
    ("history.compacted", None, LOOP, (user("# What was done\n" + "The files a.txt and b.txt were read. " * 12), NEXT)),
    # report 24
    ("history.front_truncated", None, LOOP, (MORE, DONE, NEXT, *TAIL)),
    ("history.front_truncated", None, LOOP, (NEXT, *TAIL)),
    ("history.front_truncated", None, (ASK, *LOOP[1:]), (ASK, MORE, DONE, NEXT, *TAIL)),
    ("history.front_truncated", None, LOOP, (user("[12 earlier messages were omitted]"), MORE, DONE, NEXT, *TAIL)),
    # report 25
    ("history.message_dropped", None, (*LOOP[:4], user("keep going")), (*LOOP[:4], DONE, user("keep going"))),
    ("history.message_dropped", None, (*LOOP[:4], user("Keep going.")), (*LOOP[:4], DONE, MORE)),
    ("history.message_dropped", None, LOOP, (*LOOP[:4], DONE, NEXT, *TAIL)),
    ("history.message_dropped", None, LOOP, (*LOOP[:3], MORE, DONE, NEXT, *TAIL)),
    # a user who edits, retries or goes back
    ("history.branch", "edited", LOOP, (*LOOP[:6], user("Keep it."))),
    ("history.branch", "edited", LOOP, (*LOOP[:4], user("And c.txt?"))),
    ("history.branch", "edited", (user(FILES), PROMISE, MORE), (user("Leave that."), SAID, user(FILES_NOW))),
    ("history.branch", "rewound", LOOP, LOOP[:5]),
    ("history.branch", "retried", LOOP[:5], (*LOOP[:3], assistant("There is an x in it."), user("Good."))),
    # near: the same edit, with all that followed still there
    ("history.edited", None, LOOP, (*LOOP[:4], user("And c.txt?"), *LOOP[5:], *TAIL)),
]  # fmt: skip


@pytest.fixture(scope="module", params=["sample", "qwen3"])
def ground(request: pytest.FixtureRequest) -> Ground:
    return grounds(request.param)


def _id(case: tuple[str, str | None, Sequence[Any], Sequence[Any]]) -> str:
    return f"{case[0]}-{case[1]}"


@pytest.mark.parametrize("case", CASES, ids=_id)
def test_a_rewritten_history_is_told_by_how_it_changed(case: Any, ground: Ground) -> None:
    cause, kind, before, after = case
    parting = parted_on(ground, Example(before=chat(*before), after=chat(*after)))
    assert parting.problem is None
    first = parting.findings[0]
    assert (first.cause, first.kind) == (cause, kind), [finding.cause for finding in parting.findings]
    assert first.expected == (cause in ("history.compacted", "history.branch"))
    assert (first.tokens or 0) > 0
    assert len(parting.findings) == 1


THOUGHT = {"reasoning_content": "I have to count the files first."}
REASONED = (ASK, thought("I look.", **THOUGHT), MORE, thought("Two.", **THOUGHT), NEXT)


@pytest.mark.parametrize(("before", "after", "causes"), [
    (REASONED, (ASK, thought("I look."), *REASONED[2:], *TAIL), ["history.reasoning_dropped"]),
    (REASONED, (ASK, thought("I look."), MORE, thought("Two."), NEXT, *TAIL), ["history.reasoning_dropped"]),
    (REASONED, (*REASONED[:3], thought("Two."), NEXT, *TAIL), ["history.reasoning_dropped"]),
    (REASONED, (ASK, thought("I look.", reasoning=THOUGHT["reasoning_content"]), *REASONED[2:], *TAIL), []),
    (REASONED, (ASK, thought("I look.", reasoning_content="No."), *REASONED[2:], *TAIL), ["history.edited"]),
])  # fmt: skip
def test_reasoning_that_is_not_sent_any_more_is_named(
    before: Sequence[Any], after: Sequence[Any], causes: list[str]
) -> None:
    """Report 32, on a template that prints all reasoning."""
    findings = parted_on(grounds("plain"), Example(before=chat(*before), after=chat(*after))).findings
    assert [finding.cause for finding in findings] == causes


def _looked(made: str, text: str = "x = 1", dialect: str = "chat") -> list[dict[str, Any]]:
    if dialect == "messages":
        use = {"type": "tool_use", "id": made, "name": "read", "input": {"path": "a.txt"}}
        back = {"type": "tool_result", "tool_use_id": made, "content": text}
        return [ASK, {"role": "assistant", "content": [use]}, {"role": "user", "content": [back]}]
    if dialect == "responses":
        used = {"type": "function_call", "call_id": made, "name": "read", "arguments": '{"path": "a.txt"}'}
        return [ASK, used, {"type": "function_call_output", "call_id": made, "output": text}]
    return [ASK, call('{"path": "a.txt"}', made), result(text, made)]


@pytest.mark.parametrize("dialect", ["chat", "messages", "responses"])
@pytest.mark.parametrize(("other", "text", "template", "cause"), [
    ("call_9f", "x = 1", PRINTS_IDS, "history.ids_reminted"),
    ("functions.read:1", "x = 1", PRINTS_IDS, "history.ids_reminted"),
    ("call_9f", "x = 1", None, None),
    ("functions.read:0", "x = 2", PRINTS_IDS, "history.tool_result_edited"),
])  # fmt: skip
def test_new_ids_are_named_where_the_template_prints_them(
    dialect: str, other: str, text: str, template: str | None, cause: str | None
) -> None:
    """Report 37."""
    key = "input" if dialect == "responses" else "messages"
    before = {key: _looked("functions.read:0", dialect=dialect)}
    after = {key: [*_looked(other, text, dialect), *TAIL]}
    example = Example(before=before, after=after, template=template, dialect=dialect)
    findings = parted_on(grounds("plain"), example).findings
    assert [finding.cause for finding in findings] == ([cause] if cause else [])


IMAGE, OTHER = (
    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}} for data in ("iVB", "iVC")
)


def _seen(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "content": [*parts, {"type": "text", "text": "What is this?"}]}


@pytest.mark.parametrize(("before", "after", "cause"), [
    (_seen(IMAGE), _seen(), "history.media_evicted"),
    (_seen(IMAGE, OTHER), _seen(OTHER), "history.media_evicted"),
    (_seen(IMAGE), _seen({"type": "text", "text": "[image removed]"}), "history.media_evicted"),
    (_seen(IMAGE), _seen(OTHER), "media.changed"),
    (_seen(IMAGE, OTHER), _seen(IMAGE, IMAGE), "media.changed"),
    (_seen(OTHER, IMAGE), _seen(IMAGE, IMAGE), "media.changed"),
    (_seen(IMAGE), _seen(IMAGE), None),
    (_seen(), _seen(IMAGE), "history.edited"),
])  # fmt: skip
def test_media_that_went_or_changed_are_named(
    before: dict[str, Any], after: dict[str, Any], cause: str | None, ground: Ground
) -> None:
    """Report 22; how many tokens they take is not known here, and is not guessed."""
    example = Example(before=chat(before, SAID, MORE), after=chat(after, SAID, MORE, *TAIL))
    findings = parted_on(ground, example).findings
    assert [finding.cause for finding in findings] == ([cause] if cause else [])
    counted = len(before["content"]) == 1  # a prompt without media, as the child is once restored
    assert all((finding.tokens is not None) == counted for finding in findings)
