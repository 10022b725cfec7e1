"""Reads and renders a case as the analyzer would, given what a user gives: a folder and a start line."""

from __future__ import annotations

import shlex
from functools import cache
from pathlib import Path

import numpy as np

from analyzer.core import TokenIds
from analyzer.prompts import Prompt, PromptReader
from analyzer.settings import parse_settings
from analyzer.tokens import Tokenizer
from store.records import Body, Exchange
from tests.corpus.cases import Case
from tests.corpus.setups import SETUPS

NO_ANSWER = Body(content=b"{}", wire_length=2)
"""A response that tells nothing, so that no renderer can take the ids from it."""


def reader(setup: str, folder: Path) -> PromptReader:
    """A reader for a set-up; a tokenizer with templates of its own is made in `folder`."""
    settings = parse_settings(shlex.join(("vllm", "serve", *SETUPS[setup].arguments)))
    return PromptReader(_tokenizer(setup, folder), settings=settings)


@cache
def _tokenizer(setup: str, folder: Path) -> Tokenizer:
    """Real tokenizers take a second to load: once for all cases of a set-up."""
    return Tokenizer(SETUPS[setup].make_tokenizer(folder / setup))


def exchange(case: Case, status: int, at_ns: int) -> Exchange:
    """The exchange of a case, whose answer tells nothing but its status."""
    return Exchange(
        id=1,
        started_at_ns=at_ns,
        method="POST",
        path=case.path,
        query="",
        request_headers=(("content-type", "application/json"),),
        request=Body(content=case.body, wire_length=len(case.body)),
        status=status,
        response_headers=(),
        response=NO_ANSWER,
        chunks=(),
        ttft_ns=None,
        duration_ns=None,
        ended="complete",
        error=None,
    )


def difference(prompts: list[Prompt], expected: list[TokenIds]) -> str | None:
    """What is wrong with the prompts of a body, in one line; None where all ids are equal.

    `expected` are the server's ids; empty means that it refused the body, which then has no rendering.
    """
    if not expected:
        rendered = [prompt for prompt in prompts if prompt.rendering is not None]
        return "the server refused this body, and it was rendered" if rendered else None
    if problems := [prompt.problem for prompt in prompts if prompt.rendering is None]:
        return f"not rendered: {problems[0]}"
    if len(prompts) != len(expected):
        return f"{len(prompts)} prompts, vLLM {len(expected)}"
    wrong = (_first_difference(prompt, ids) for prompt, ids in zip(prompts, expected, strict=True))
    return next((said for said in wrong if said), None)


def _first_difference(prompt: Prompt, expected: TokenIds) -> str | None:
    assert prompt.rendering is not None
    if prompt.rendering.source in ("wire", "server"):
        return f"the ids came from the server ({prompt.rendering.source})"
    found = prompt.rendering.token_ids
    shared = min(len(found), len(expected))
    unequal = np.flatnonzero(found[:shared] != expected[:shared])
    if len(found) == len(expected) and not unequal.size:
        return None
    first = int(unequal[0]) if unequal.size else shared
    ours, theirs = found[first : first + 8].tolist(), expected[first : first + 8].tolist()
    return f"token {first} of {len(found)}: {ours}, vLLM (of {len(expected)}): {theirs}"
