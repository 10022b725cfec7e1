"""Two chat bodies, one after the other: what the analysis finds where the second leaves the first."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from analyzer.causes import Example
from analyzer.causes._templates import PLAIN
from analyzer.core import Reply, TokenIds
from analyzer.divergences import DivergenceFinder, Pair, Parting, PromptKey
from analyzer.media_texts import with_media_as_texts
from analyzer.reading import read_request
from analyzer.renderers import Job
from analyzer.rendering import render
from analyzer.settings import UNTOLD, ServerSettings
from analyzer.tokens import Tokenizer
from samples.tokenizer import TEMPLATE, make_tokenizer_folder, package_folder
from store.records import Body, Exchange
from tests.tokenizers import folder_of, reason_missing

PATHS = {
    "chat": "/v1/chat/completions",
    "completions": "/v1/completions",
    "messages": "/v1/messages",
    "responses": "/v1/responses",
}
START = datetime(2026, 3, 2, 12, tzinfo=UTC)
BLOCK_SIZE = 16


def parted(example: Example, tokenizer: Tokenizer, settings: ServerSettings = UNTOLD) -> Parting:
    """How the second body of an example stands to the first, rendered with its template."""
    bodies = example.before, example.after
    clocks = START, START + timedelta(hours=example.hours)
    settings = replace(settings, chat_template=example.template or PLAIN, **example.settings)

    def read_again(key: PromptKey, body: Any) -> tuple[Job, Any]:
        read = bodies[key[0]] if body is None else body
        return job(example.dialect, read, clocks[key[0]], tokenizer, settings), read

    ids = [_ids(read_again((at, 0), None)[0]) for at in range(2)]
    answer = None if example.answer is None else tokenizer.encode(example.answer)
    pair = Pair(parent=(0, 0), child=(1, 0), parent_ids=ids[0], child_ids=ids[1], answer_ids=answer)
    return DivergenceFinder(read_again, BLOCK_SIZE).find(pair)


@dataclass(frozen=True, kw_only=True)
class Ground:
    """A tokenizer and the template that an example without one of its own is printed with."""

    tokenizer: Tokenizer
    template: str | None


@cache
def grounds(name: str) -> Ground:
    """One of four.

    `plain` prints all that is sent, `sample` is the samples' template, `deepseek_v4` that model's own
    encoder, and `qwen3` the real template, whose tests are skipped where it is not.
    """
    if name == "qwen3":
        if reason := reason_missing(name):
            pytest.skip(reason)
        config = json.loads((folder_of(name) / "tokenizer_config.json").read_text(encoding="utf-8"))
        return Ground(tokenizer=Tokenizer(folder_of(name)), template=config["chat_template"])
    if name == "deepseek_v4":  # without a template in its folder
        return Ground(tokenizer=Tokenizer(package_folder()), template=PLAIN)
    template = TEMPLATE.read_text(encoding="utf-8") if name == "sample" else PLAIN
    folder = make_tokenizer_folder(Path(tempfile.mkdtemp(prefix="locality-")))
    return Ground(tokenizer=Tokenizer(folder), template=template)


def parted_on(ground: Ground, example: Example) -> Parting:
    """The same on one of the grounds."""
    return parted(replace(example, template=example.template or ground.template), ground.tokenizer)


def _ids(asked: Job) -> TokenIds:
    """The ids a server would have given; for media, those of some text take their place."""
    shown = with_media_as_texts(asked.conversation)
    return render(asked if shown is None else replace(asked, conversation=shown)).token_ids


def job(
    dialect: str, body: Mapping[str, Any], clock: datetime, tokenizer: Tokenizer, settings: ServerSettings
) -> Job:
    sent = exchange(PATHS[dialect], json.dumps(body).encode())
    request = read_request(sent, sourced=True)
    assert request.problem is None, request.problem
    return Job(
        conversation=request.conversations[0],
        reply=Reply(outcome="done"),
        clock=clock,
        tokenizer=tokenizer,
        sourced=True,
        settings=settings,
    )


def exchange(path: str, content: bytes) -> Exchange:
    return Exchange(
        id=1,
        started_at_ns=0,
        method="POST",
        path=path,
        query="",
        request_headers=(),
        request=Body(content=content, wire_length=len(content)),
        status=200,
        response_headers=(),
        response=Body(),
        chunks=(),
        ttft_ns=None,
        duration_ns=None,
        ended="complete",
        error=None,
    )
