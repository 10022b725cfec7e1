"""With --no-text nothing of a prompt leaves the program: canaries stand in every field, and in no output."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from analyzer.no_text import without_text
from tests.analyzer.rows import finding, later, report
from tests.captures import Sent, tokenizer_with, usage, write_capture
from tests.conftest import locality

ALL = """{% if tools %}{{ tools|tojson }}{% endif %}{% for m in messages %}
{{ m|tojson }}{% endfor %}{% if add_generation_prompt %}<answer>{% endif %}"""
"""A template that prints all that it is given."""

CANARY = "canary"
SCHEMA = {
    "type": "object",
    "properties": {
        "canary_key": {"type": "string", "description": "canary one", "enum": ["canary two"]},
        "name": {
            "type": "object",
            "properties": {"canary deep": {"default": {"canary_default": "canary 3"}}},
        },
    },
    "required": ["canary_key"],
    "$defs": {"canary_def": {"const": "canary four"}},
    "canary_word": "canary five",
}
CHAT = {
    "model": "canary-model",
    "user": "canary user",
    "tools": [
        {
            "type": "function",
            "canary_extra": "canary six",
            "function": {"name": "canary_tool", "description": "canary seven", "parameters": SCHEMA},
        }
    ],
    "chat_template_kwargs": {"canary_kwarg": "canary eight"},
    "messages": [
        {"role": "system", "content": "canary nine"},
        {"role": "user", "name": "canary_name", "content": [{"type": "text", "text": "canary ten"}]},
        {
            "role": "assistant",
            "content": "canary eleven",
            "reasoning": "canary twelve",
            "tool_calls": [
                {
                    "id": "canary_id",
                    "type": "function",
                    "function": {"name": "canary_tool", "arguments": '{"canary_argument": {"canary_b": 1}}'},
                }
            ],
        },
        {
            "role": "tool",
            "tool_call_id": "canary_id",
            "content": "canary thirteen",
            "canary_field": "canary 14",
        },
        {"role": "user", "content": "canary fifteen"},
    ],
}
MESSAGES = {
    "model": "canary-model",
    "max_tokens": 5,
    "system": [{"type": "text", "text": "canary one"}],
    "tools": [{"name": "canary_tool", "description": "canary two", "input_schema": SCHEMA}],
    "messages": [
        {"role": "user", "content": "canary three"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "canary four", "signature": "canary"},
                {
                    "type": "tool_use",
                    "id": "canary_id",
                    "name": "canary_tool",
                    "input": {"canary_key": "canary 5"},
                },
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "canary_id", "content": "canary six"}],
        },
    ],
}
RESPONSES = {
    "model": "canary-model",
    "instructions": "canary one",
    "tools": [{"type": "function", "name": "canary_tool", "parameters": SCHEMA}],
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "canary two"}]},
        {
            "type": "function_call",
            "call_id": "canary_id",
            "name": "canary_tool",
            "arguments": '{"canary": 1}',
        },
        {"type": "function_call_output", "call_id": "canary_id", "output": "canary three"},
    ],
}
COMPLETIONS = {"model": "canary-model", "prompt": "canary one, canary two and all the others"}


def changed(value: Any) -> Iterator[Any]:
    """The value once for each string and key in it that holds a canary, with that one changed."""
    if isinstance(value, str) and CANARY in value:
        yield value.replace(CANARY, "canary-changed", 1)
    elif isinstance(value, dict):
        for at, (key, item) in enumerate(value.items()):
            if CANARY in key:
                yield {f"{k}_changed" if i == at else k: v for i, (k, v) in enumerate(value.items())}
            for other in changed(item):
                yield {**value, key: other}
    elif isinstance(value, list):
        for at, item in enumerate(value):
            for other in changed(item):
                yield [*value[:at], other, *value[at + 1 :]]


def every_change() -> Iterator[Sent]:
    bodies = (
        ("/v1/chat/completions", CHAT),
        ("/v1/messages", MESSAGES),
        ("/v1/responses", RESPONSES),
        ("/v1/completions", COMPLETIONS),
    )
    for path, body in bodies:
        for other in changed(body):
            yield Sent(path=path, body=body, usage=usage(100, 0), ttft_ms=40)
            yield Sent(path=path, body=other, usage=usage(100, 0), ttft_ms=50)


def every_failure() -> Iterator[Sent]:
    """What makes somebody quote: the server, the JSON parser, the dialect, the chat template."""
    yield Sent(body=CHAT, status=400, answer={"error": {"message": "bad message: 'canary nine'"}})
    yield Sent(body=CHAT, status=500, answer=b"canary in plain text")
    yield Sent(body=b'{"messages": canary')
    yield Sent(body={"messages": [{"role": "canary_role", "content": {"canary": "canary"}}]})
    yield Sent(body={"messages": "canary"})
    yield Sent(body={"messages": [{"role": "user", "content": "raise canary"}]})


@pytest.fixture(scope="module")
def folder(sample_tokenizer: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    template = (
        "{% if 'raise' in messages[0].content %}{{ raise_exception(messages[0].content) }}{% endif %}" + ALL
    )
    return tokenizer_with(tmp_path_factory.mktemp("own") / "tokenizer", sample_tokenizer, template)


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("canaries") / "c.sqlite"
    return write_capture(made, [*every_change(), *every_failure()])


def test_the_canaries_do_sing_without_the_option(capture: Path, folder: Path) -> None:
    made = locality("report", str(capture), "--tokenizer", str(folder), "--format", "json")
    turns = json.loads(made.stdout)["turns"]
    paths = {turn["divergence"]["path"] for turn in turns if turn["divergence"]}
    assert len(paths) > 30  # as many fields differ in some turn
    assert any(CANARY in str(path) for path in paths)
    assert sum(CANARY in str(turn["problem"]) for turn in turns) >= 3
    assert sum(bool(turn["findings"]) for turn in turns) > 30


@pytest.mark.parametrize("form", ["text", "json", "html"])
@pytest.mark.parametrize("options", [(), ("--renderer", "jinja")], ids=["auto", "named"])
def test_no_canary_is_in_a_report_without_text(
    capture: Path, folder: Path, form: str, options: tuple[str, ...]
) -> None:
    made = locality(
        "report", str(capture), "--no-text", "--tokenizer", str(folder), "--format", form, *options
    )
    assert CANARY not in (made.stdout + made.stderr).lower()
    assert made.returncode == (1 if options else 0), made.stderr


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_canary_is_in_a_turn_without_text(capture: Path, folder: Path, form: str) -> None:
    from store.db import Capture

    with Capture.open(str(capture)) as opened:
        exchanges = opened.counts().exchanges
    for number in (2, 4, 12, 20, exchanges - 4, exchanges):
        made = locality(
            "show", str(capture), str(number), "--no-text", "--tokenizer", str(folder), "--format", form
        )
        assert made.returncode == 0, made.stderr
        assert CANARY not in (made.stdout + made.stderr).lower()
        if form == "json":
            assert json.loads(made.stdout)["tokens"] == []  # an id is text, spelt as a number


def test_no_canary_is_in_a_comparison(capture: Path, folder: Path) -> None:
    for form in ("text", "json"):
        made = locality("compare", str(capture), str(capture), "--tokenizer", str(folder), "--format", form)
        assert made.returncode == 0, made.stderr
        assert CANARY not in (made.stdout + made.stderr).lower()


PARAMETERS = "tools[0].function.parameters"


def shown(path: str) -> str | None:
    told = without_text(report(later(1), later(2, finding(path=path))))
    return told.turns[1].findings[0].path


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("messages[3].content[0].text", "messages[3].content[0].text"),
        ("messages[3].tool_calls[1].function.arguments", "messages[3].tool_calls[1].function.arguments"),
        (f"{PARAMETERS}.properties.name.type", f"{PARAMETERS}.properties.<key1>.type"),
        (f'{PARAMETERS}.properties["my key"].enum[2]', f"{PARAMETERS}.properties.<key1>.enum[2]"),
        (f"{PARAMETERS}.properties.properties.items", f"{PARAMETERS}.properties.<key1>.items"),
        ("tools[1].input_schema.properties.path.type", "tools[1].input_schema.properties.<key1>.type"),
        ("messages[1].content[0].input.path", "messages[1].content[0].input.<key1>"),
        ("messages[1].content[0].input.text.id", "messages[1].content[0].input.<key1>.<key2>"),
        ("input[0].content[0].text", "input[0].content[0].text"),
        ("chat_template_kwargs.enable_thinking", "chat_template_kwargs.enable_thinking"),
        ("chat_template_kwargs.project", "chat_template_kwargs.<key1>"),
        ("template", "template"),
        ("mine.yours.mine", "<key1>.<key2>.<key1>"),
    ],
)
def test_a_path_keeps_the_endpoints_words_and_hides_the_clients(path: str, told: str) -> None:
    assert shown(path) == told


def test_what_can_be_told_without_text_is_told() -> None:
    told = without_text(
        report(later(1), later(2, finding(kind="rollover")), later(3, finding(kind="Jane Doe")))
    )
    first, second = told.turns[1].findings[0], told.turns[2].findings[0]
    assert (first.cause, first.kind, first.tokens, first.blocks) == ("volatile.clock", "rollover", 700, 43)
    assert second.kind is None
    assert (first.before, first.after, first.evidence, first.advice) == (None, None, None, None)
    assert told.summary == report(*told.turns).summary


def test_why_a_count_is_not_the_servers_is_told_since_it_quotes_nothing() -> None:
    reason = "the server counted 3 tokens more; locality verify --server URL finds the token"
    quoting = later(3, problem=f"canary; {reason}", reason=reason)
    told = without_text(report(later(1), later(2, problem=reason, reason=reason), quoting))
    assert told.turns[1].problem == reason
    assert told.turns[2].problem == f"withheld: 6 characters that may quote the prompt; {reason}"


def test_a_missing_tokenizer_is_told_without_text_too(capture: Path) -> None:
    made = locality("report", str(capture), "--no-text")
    assert made.returncode == 1
    assert "give --tokenizer DIR" in made.stdout
