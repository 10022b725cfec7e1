"""Change one field of a request by one character: the divergence names that field and that character."""

from __future__ import annotations

import os
import random
from collections import Counter
from functools import cache
from typing import Any

import pytest

from analyzer.divergences import DivergenceFinder, Pair, PromptKey
from analyzer.renderers import Job
from analyzer.rendering import render
from analyzer.settings import UNTOLD
from analyzer.tokens import Tokenizer
from tests.attribution.bodies import DIALECTS, Maker, Mutation, mutated
from tests.causes.pairs import BLOCK_SIZE, START, job
from tests.tokenizers import folder_of, reason_missing

MODELS = ("qwen3", "deepseek_v4")


@cache
def tokenizer(model: str) -> Tokenizer:
    return Tokenizer(folder_of(model))


def verdict(model: str, dialect: str, made: Mutation, *, explain: bool) -> str:
    """`silent`, `exact`, `no character`, or how the divergence is wrong."""
    bodies = made.before, made.after

    def read_again(key: PromptKey, body: Any) -> tuple[Job, Any]:
        read = bodies[key[0]] if body is None else body
        return job(dialect, read, START, tokenizer(model), UNTOLD), read

    ids = [render(read_again((at, 0), None)[0]).token_ids for at in range(2)]
    pair = Pair(parent=(0, 0), child=(1, 0), parent_ids=ids[0], child_ids=ids[1])
    parting = DivergenceFinder(read_again, BLOCK_SIZE, explain=explain).find(pair)
    assert parting.problem is None
    if ids[0].tolist() == ids[1].tolist():
        assert parting.divergence is None
        return "silent"
    found = parting.divergence
    if found is None:
        return "silent"  # the child goes on where the parent ends
    if found.path not in made.paths:
        return f"wrong path: {made.kind} {made.paths} named {found}"
    if found.char == made.char:
        return "exact"
    return "no character" if found.char is None else f"wrong character: {made.paths} {made.char}: {found}"


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_single_change_is_named_with_its_field_and_character(model: str, dialect: str) -> None:
    if (reason := reason_missing(model)) is not None:
        pytest.skip(reason)
    times, seed = int(os.environ.get("MUTATIONS", "60")), os.environ.get("SEED", "1")
    dice = random.Random(f"{model} {dialect} {seed}")
    seen: Counter[str] = Counter()
    for _ in range(times):
        made = mutated(DIALECTS[dialect](Maker(dice)), dice)
        seen[verdict(model, dialect, made, explain=True)] += 1
    print(model, dialect, {key: count for key, count in seen.items() if ":" not in key})
    assert [text for text in seen if ":" in text] == []
    assert seen["exact"] > times / 4
    assert seen["no character"] == 0
