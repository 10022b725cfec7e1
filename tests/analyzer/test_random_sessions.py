"""What turns share is read, rendered and tokenized once, and their ids are those of each turn by itself."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from tokenizers import Tokenizer as Reference
from transformers.utils import chat_template_utils
from transformers.utils.chat_template_utils import render_jinja_template

from analyzer.prefix_encoding import PrefixEncoder
from analyzer.prompts import Prompt, PromptReader
from analyzer.tokens import Tokenizer
from store.records import Body, Exchange
from tests.analyzer.random_sessions import Json, Session, chat_body, messages_body, responses_body
from tests.tokenizers import folder_of, reason_missing

SESSIONS, TURNS = 5, 22
BODIES: dict[str, Callable[[list[Json], list[Json]], Json]] = {
    "/v1/chat/completions": chat_body,
    "/v1/messages": messages_body,
    "/v1/responses": responses_body,
}


@dataclass(frozen=True)
class Turn:
    """A request of a session, and the plain history behind it."""

    exchange: Exchange
    messages: list[Json]
    tools: list[Json]


@cache
def tokenizer_of(name: str) -> Tokenizer:
    if reason := reason_missing(name):
        pytest.skip(reason)
    return Tokenizer(folder_of(name))


def unshared(tokenizer: Tokenizer) -> Tokenizer:
    """The same back end, and every text whole: no part of it is known from another."""
    alone = copy.copy(tokenizer)
    alone._shared = PrefixEncoder(lambda texts: tokenizer._encode(texts, False), {})
    return alone


def played(seed: int, paths: Sequence[str], *, calls: bool) -> Iterator[Turn]:
    """The turns of several sessions, interleaved, each spelt in its own way."""
    dice = random.Random(seed)
    open_sessions = []
    for number in range(SESSIONS):
        spelling: Json = {"ensure_ascii": dice.random() < 0.5, "indent": dice.choice((None, None, 1))}
        turns = Session(dice, calls=calls).turns(TURNS)
        open_sessions.append((paths[number % len(paths)], spelling, turns))
    while open_sessions:
        chosen = dice.choice(open_sessions)
        path, spelling, turns = chosen
        try:
            messages, tools = next(turns)
        except StopIteration:
            open_sessions.remove(chosen)
            continue
        content = json.dumps(BODIES[path](messages, tools), **spelling).encode()
        yield Turn(exchange(path, content, dice.randrange(2**60)), messages, tools)


def exchange(path: str, content: bytes, at_ns: int) -> Exchange:
    return Exchange(
        id=1,
        started_at_ns=at_ns,
        method="POST",
        path=path,
        query="",
        request_headers=(),
        request=Body(content=content),
        status=200,
        response_headers=(),
        response=Body(content=b"{}"),
        chunks=(),
        ttft_ns=None,
        duration_ns=None,
        ended="complete",
        error=None,
    )


def outcome(prompts: list[Prompt]) -> list[Any]:
    return [
        item.problem if item.rendering is None else (item.rendering.source, item.rendering.token_ids.tolist())
        for item in prompts
    ]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", ["qwen3", "gemma3", "deepseek_v4"])
def test_a_session_s_ids_are_those_of_each_turn_read_afresh(name: str, seed: int) -> None:
    tokenizer = tokenizer_of(name)
    alone, reader = unshared(tokenizer), PromptReader(tokenizer)
    paths, calls = (list(BODIES), True) if name != "gemma3" else (list(BODIES)[:1], False)
    found = []
    for turn in played(seed, paths, calls=calls):
        ours = outcome(reader.read(turn.exchange))
        assert ours == outcome(PromptReader(alone).read(turn.exchange))
        found += ours
    assert sum(isinstance(item, tuple) for item in found) > 0.9 * SESSIONS * TURNS


@pytest.mark.parametrize("name", ["qwen3", "gemma3"])
def test_a_session_s_ids_are_those_of_transformers_and_tokenizers(name: str) -> None:
    reader, folder = PromptReader(tokenizer_of(name)), folder_of(name)
    reference = Reference.from_file(str(folder / "tokenizer.json"))
    kept = []
    for turn in played(7, ["/v1/chat/completions"], calls=name == "qwen3"):
        (prompt,) = reader.read(turn.exchange)
        assert prompt.rendering is not None, prompt.problem
        text = rendered_by_transformers(folder, turn.messages, turn.tools)
        kept.append((prompt.rendering.token_ids, reference.encode(text, add_special_tokens=False).ids))
    assert len(kept) == SESSIONS * TURNS
    for ours, theirs in kept:  # only now: ids of later turns were put behind those of earlier ones
        assert ours.tolist() == theirs


def rendered_by_transformers(folder: Path, messages: list[Json], tools: list[Json]) -> str:
    config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    # vLLM gives a template both names of the reasoning field, transformers would copy one of them.
    chat = [m | ({"reasoning_content": m["reasoning"]} if "reasoning" in m else {}) for m in messages]
    with patch.object(chat_template_utils, "_alias_reasoning_fields", lambda given: given):
        made: Any = render_jinja_template(
            [chat],
            tools=[*tools] or None,
            chat_template=config["chat_template"],
            add_generation_prompt=True,
            bos_token=config.get("bos_token"),
        )
    text: str = made[0][0]
    return text
