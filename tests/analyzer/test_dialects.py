"""Every endpoint's bodies, against the token ids that vLLM made of them (tests/oracle/dialects_vllm.py)."""

from __future__ import annotations

import copy
import json
import os
import shutil
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from analyzer import sourced_json
from analyzer.core import Conversation, Reply
from analyzer.reading import dialect_of
from analyzer.renderers import Job, RenderFailed
from analyzer.rendering import render, render_text
from analyzer.sourced import plain
from analyzer.tokens import Tokenizer

GOLDEN = Path(__file__).parent.parent / "golden" / "dialects"
TOKENIZERS = os.environ.get("LOCALITY_TEST_TOKENIZERS")
REFUSED = (ValueError, KeyError, TypeError, AttributeError, RenderFailed)
"""What `reading` turns into a sentence on the row, and what a renderer raises."""


@cache
def golden(name: str) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    return kept


def cases() -> list[Any]:
    return [
        pytest.param(path.stem, case, id=f"{path.stem}: {case['rule']}")
        for path in sorted(GOLDEN.glob("*.json"))
        for case in golden(path.stem)["cases"]
    ]


@pytest.fixture(scope="session")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tokenizer]:
    """The tokenizer of each golden file, with the file's own chat template where it has one."""
    if not TOKENIZERS:
        pytest.skip(
            "real tokenizers are not here: set LOCALITY_TEST_TOKENIZERS to the folder that holds them"
        )
    found = {}
    for path in GOLDEN.glob("*.json"):
        folder = Path(TOKENIZERS) / golden(path.stem)["tokenizer"]
        if not folder.is_dir():
            continue
        if template := golden(path.stem).get("chat_template"):
            copied = tmp_path_factory.mktemp(path.stem)
            for name in ("tokenizer.json", "tokenizer_config.json"):
                shutil.copy(folder / name, copied)
            (copied / "chat_template.jinja").write_text(template, encoding="utf-8")
            folder = copied
        found[path.stem] = Tokenizer(folder)
    return found


def conversations(path: str, body: dict[str, Any]) -> tuple[Conversation, ...]:
    dialect = dialect_of(path)
    assert dialect is not None
    return dialect.conversations(body)


def job(conversation: Conversation, tokenizer: Tokenizer | None, *, sourced: bool = False) -> Job:
    clock = datetime(2026, 3, 2, tzinfo=UTC)
    reply = Reply(outcome="done")
    return Job(conversation=conversation, reply=reply, clock=clock, tokenizer=tokenizer, sourced=sourced)


@pytest.mark.parametrize(("name", "case"), cases())
def test_a_body_gives_the_ids_that_the_server_gives(
    name: str, case: dict[str, Any], tokenizers: dict[str, Tokenizer]
) -> None:
    if name not in tokenizers:
        pytest.skip(f"{golden(name)['tokenizer']} is not in LOCALITY_TEST_TOKENIZERS")
    tokenizer, path = tokenizers[name], case["path"]
    if "refused" in case:
        with pytest.raises(REFUSED):
            for item in conversations(path, case["body"]):
                render(job(item, tokenizer))
        return
    asked = conversations(path, case["body"])
    assert [render(job(item, tokenizer)).token_ids.tolist() for item in asked] == case["ids"]


@pytest.mark.parametrize(("name", "case"), cases())
def test_text_that_knows_its_fields_renders_to_the_same(
    name: str, case: dict[str, Any], tokenizers: dict[str, Tokenizer]
) -> None:
    if "refused" in case or name not in tokenizers:
        return
    wrapped = conversations(case["path"], sourced_json.wrap(case["body"]))
    for item, known in zip(conversations(case["path"], case["body"]), wrapped, strict=True):
        if item.token_ids is None:
            text = render_text(job(known, tokenizers[name], sourced=True))
            assert plain(text) == render_text(job(item, tokenizers[name]))


@pytest.mark.parametrize(("name", "case"), cases())
def test_reading_a_body_leaves_it_as_it_was(name: str, case: dict[str, Any]) -> None:
    before = copy.deepcopy(case["body"])
    try:
        first = conversations(case["path"], case["body"])
    except REFUSED:
        assert "refused" in case
    else:
        assert conversations(case["path"], case["body"]) == first
    assert case["body"] == before


def test_a_call_that_joins_an_item_with_calls_leaves_the_body_as_it_was() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "get", "arguments": "{}"}}
    item = {"role": "assistant", "content": [], "tool_calls": [call]}
    body = {"input": [item, {"type": "function_call", "call_id": "b", "name": "get", "arguments": "{}"}]}
    before = copy.deepcopy(body)
    (made,) = conversations("/v1/responses", body)
    assert [each["id"] for each in made.messages[-1]["tool_calls"]] == ["a", "b"]
    assert body == before


def test_each_dialect_has_forty_bodies_and_more() -> None:
    for name in ("messages", "responses", "completions"):
        assert sum("ids" in case for case in golden(name)["cases"]) >= 40
