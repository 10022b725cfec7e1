"""Prompts of two sealed captures can be laid side by side where both were sealed with one key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analyzer.blocks import common_prefix
from analyzer.keyed_chain import KeyedChain, links_in, shared_tokens
from analyzer.pipeline import Options, analyze
from analyzer.seal import seal_capture
from store.db import Capture
from tests.captures import Sent, usage, write_capture
from tests.conftest import locality
from tests.sealed.made import KEY

SYSTEM = "It sings of a quay, a crane and a tide that is late. " * 9
ASKED = ("When does it sing?", "Where is the crane now?", "Who keeps the quay when the tide is late?")


def bodies(*questions: str) -> list[Sent]:
    """Each question in a conversation of its own, behind the same system text."""
    head = {"role": "system", "content": SYSTEM}
    sent = [{"model": "tiny", "messages": [head, {"role": "user", "content": text}]} for text in questions]
    return [Sent(body=body, usage=usage(100, 0)) for body in sent]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("overlap")
    return (
        write_capture(folder / "a.sqlite", bodies(*ASKED[:2])),
        write_capture(folder / "b.sqlite", bodies(*ASKED[1:])),
    )


def sealed(source: Path, target: Path, options: Options, key: bytes) -> str:
    with (
        Capture.open(str(source)) as read,
        Capture.create_or_open(str(target), redaction="sealed") as copy,
    ):
        seal_capture(read, copy, options, key)
    return str(target)


def compared(a: str, b: str) -> dict[str, Any]:
    made = locality("compare", a, b, "--format", "json")
    assert made.returncode == 0, made.stderr
    found: dict[str, Any] = json.loads(made.stdout)
    return found


def test_with_one_key_it_is_told_how_far_prompts_begin_alike(
    opened: tuple[Path, Path], sample_tokenizer: Path, tmp_path: Path
) -> None:
    options = Options(tokenizer=str(sample_tokenizer))
    pair = [sealed(path, tmp_path / f"{path.stem}.s.sqlite", options, KEY) for path in opened]
    ids = []
    for path in opened:
        with Capture.open(str(path)) as capture:
            placed = analyze(capture, options).placed
        ids.append([item.prompt.rendering.token_ids for item in placed if item.prompt.rendering])
    tokens = [len(one) // 16 * 16 for one in ids[1]]
    shared = [max(common_prefix(one, other) for other in ids[0]) // 16 * 16 for one in ids[1]]
    found = compared(*pair)["shared_prompts"]
    assert found == {"prompts": 2, "whole": 1, "tokens": sum(tokens), "shared_tokens": sum(shared)}
    assert 0 < shared[1] < tokens[1]
    said = locality("compare", *pair).stdout
    assert (
        f"{sum(shared)} of {sum(tokens)} tokens in B's prompts, in steps of 16, begin as a prompt of A"
        in said
    )


def test_with_two_keys_nothing_is_told_and_it_is_said_why(
    opened: tuple[Path, Path], sample_tokenizer: Path, tmp_path: Path
) -> None:
    options = Options(tokenizer=str(sample_tokenizer))
    a = sealed(opened[0], tmp_path / "a.sqlite", options, KEY)
    b = sealed(opened[1], tmp_path / "b.sqlite", options, KEY[::-1])
    found = compared(a, b)
    assert found["shared_prompts"] is None
    assert any("not sealed with the same key" in caution for caution in found["cautions"])
    assert "not sealed with the same key" in locality("compare", a, b).stdout


def test_chains_of_one_key_tell_how_far_two_prompts_agree() -> None:
    a = np.arange(100, dtype=np.int32)
    b = a.copy()
    b[70] = 7
    one, other = KeyedChain(bytes(32)), KeyedChain(bytes(32))
    links = set(links_in(one.links(a)))
    assert shared_tokens(other.links(b), links) == 64
    assert shared_tokens(other.links(a), links) == 96
    assert shared_tokens(KeyedChain(bytes([1] * 32)).links(a), links) == 0
    assert one.links(b) == KeyedChain(bytes(32)).links(b)  # what was known is what is computed
