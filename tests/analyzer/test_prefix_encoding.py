"""What a text shares with earlier ones is not tokenized again, and the ids are those of a fresh tokenizer."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken
from tokenizers import Tokenizer as Reference
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import Metaspace
from tokenizers.trainers import BpeTrainer

from analyzer.chat_template import compile_template
from analyzer.prefix_encoding import PrefixEncoder, cut_tokens
from analyzer.tokens import Tokenizer
from tests.analyzer.own_templates import CHATML, CLOCK, TOOLS
from tests.analyzer.random_sessions import WORDS

REAL = ("qwen3-tok", "gemma3-tok", "llama3_1-tok", "deepseek_v4-tok")
MARKS = {
    "sample": ("<｜begin▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", "</think>", "<think>"),
    "qwen3-tok": ("<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>"),
    "gemma3-tok": ("<bos>", "<start_of_turn>", "<end_of_turn>", "\n\n", "<td>", "   "),
    "llama3_1-tok": ("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
    "deepseek_v4-tok": ("<｜begin▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", "</think>", "｜DSML｜"),
    "metaspace": ("<s>", "</s>", "[INST]", "[/INST]"),
}
TEMPLATES = {"chatml": CHATML, "tools": TOOLS}


@cache
def folder_of(name: str, sample: Path) -> Path:
    if name == "sample":
        return sample
    folder = Path(os.environ.get("LOCALITY_TEST_TOKENIZERS") or "nowhere") / name
    if not folder.is_dir():
        pytest.skip(f"LOCALITY_TEST_TOKENIZERS holds no {name}")
    return folder


@pytest.fixture(scope="module", params=["sample", "metaspace", *REAL])
def named(
    request: pytest.FixtureRequest, sample_tokenizer: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path, Tokenizer]:
    name = str(request.param)
    if name == "metaspace":
        folder = metaspace_folder(tmp_path_factory.mktemp("metaspace"))
    else:
        folder = folder_of(name, sample_tokenizer)
    return name, folder, Tokenizer(folder)


def metaspace_folder(folder: Path) -> Path:
    """A small tokenizer whose first piece alone is given a blank in front, as Llama 2's is."""
    made = Reference(BPE(unk_token="<unk>"))
    made.pre_tokenizer = Metaspace(prepend_scheme="first", split=False)
    marks = [AddedToken(mark, normalized=False, special=True) for mark in ("<unk>", *MARKS["metaspace"])]
    made.train_from_iterator(["a token in a text 's 12345 _"] * 9, BpeTrainer(special_tokens=marks))
    made.save(str(folder / "tokenizer.json"))
    return folder


def fresh_encode(folder: Path, tokenizer: Tokenizer) -> Callable[[str], list[int]]:
    """The same back end with nothing kept: each text whole, in one call."""
    return lambda text: tokenizer._encode([text], False)[0].tolist()


def texts(marks: tuple[str, ...]) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(marks + WORDS), max_size=24).map("".join)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_texts_that_share_prefixes_have_the_ids_of_a_fresh_tokenization(
    named: tuple[str, Path, Tokenizer], data: st.DataObject
) -> None:
    name, folder, tokenizer = named
    fresh = fresh_encode(folder, tokenizer)
    text = ""
    for step in data.draw(st.lists(texts(MARKS[name]), min_size=2, max_size=6)):
        kept = data.draw(st.integers(0, len(text)))
        text = text[:kept] + step
        assert tokenizer.encode(text).tolist() == fresh(text)


@settings(max_examples=25, deadline=None)
@given(data=st.data(), template=st.sampled_from(sorted(TEMPLATES)))
def test_a_session_s_prompts_have_the_ids_of_rendering_each_afresh(
    named: tuple[str, Path, Tokenizer], data: st.DataObject, template: str
) -> None:
    name, folder, tokenizer = named
    compiled = compile_template(tokenizer.chat_templates.get("default", TEMPLATES[template]))
    own = compile_template(TEMPLATES[template])
    fresh = fresh_encode(folder, tokenizer)
    messages: list[dict[str, Any]] = []
    for turn in range(data.draw(st.integers(2, 5))):
        messages.append({"role": "user", "content": data.draw(texts(MARKS[name]))})
        for each in (own, compiled):
            text = each.render(
                messages=messages,
                add_generation_prompt=True,
                clock=CLOCK,
                kwargs=tokenizer.special_tokens(each.template_variables()),
            )
            assert tokenizer.encode(text).tolist() == fresh(text)
        messages.append({"role": "assistant", "content": data.draw(texts(MARKS[name]))})
        if data.draw(st.booleans()):
            messages[0] = {"role": "user", "content": f"turn {turn}"}


def test_a_prefix_is_not_tokenized_again(named: tuple[str, Path, Tokenizer]) -> None:
    name, folder, tokenizer = named
    file = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    normalizes = file["normalizer"] not in (None, {"type": "Sequence", "normalizers": []})
    asked: list[str] = []

    def encode(parts: Any) -> Any:
        asked.extend(parts)
        return tokenizer._encode(parts, False)

    encoder = PrefixEncoder(encode, cut_tokens(file["added_tokens"], normalizes=normalizes))
    mark = MARKS[name][1]
    turns = [f"{mark}turn {turn} " + "word " * 50 for turn in range(6)]
    for count in range(1, 7):
        ids = encoder.encode("".join(turns[:count]))
        assert ids.tolist() == fresh_encode(folder, tokenizer)("".join(turns[:count]))
    assert len(asked[-1]) < 2 * len(turns[0])
    assert sum(map(len, asked)) < 20 * len(turns[0])


def token(content: str, number: int = 0, **flags: bool) -> dict[str, Any]:
    plain = dict.fromkeys(("lstrip", "rstrip", "single_word", "normalized"), False)
    return {"id": number, "content": content} | plain | flags


@pytest.mark.parametrize(
    ("added", "cuts"),
    [
        ([token("<a>"), token("<b>", 1)], {0: "<a>", 1: "<b>"}),
        ([token("<a>"), token("<b>", 1, normalized=True)], {0: "<a>"}),
        ([token("<a>"), token("<a>b", 1)], {1: "<a>b"}),
        ([token("<a>"), token("x<", 1)], {1: "x<"}),
        ([token("aba")], {}),
        ([token("<a>"), token("<b>", 1, lstrip=True)], {}),
        ([token("<a>"), token("<b>", 1, rstrip=True)], {}),
        ([token("<a>"), token("<b>", 1, single_word=True)], {}),
        ([token("<a>"), token("", 1)], {0: "<a>"}),
    ],
)
def test_a_text_is_cut_only_at_tokens_that_nothing_reaches_over(
    added: list[dict[str, Any]], cuts: dict[int, str]
) -> None:
    assert cut_tokens(added, normalizes=True) == cuts


@pytest.mark.parametrize(
    ("first", "cuts"), [("<b>", {0: "<a>", 1: "<b>"}), ("<", {}), ("a>b", {}), ("<a", {})]
)
def test_a_token_looked_for_later_is_a_cut_unless_one_that_comes_first_begins_in_it(
    first: str, cuts: dict[int, str]
) -> None:
    found = cut_tokens([token("<a>", normalized=True), token(first, 1)], normalizes=False)
    assert found == cuts


def test_kept_texts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analyzer.prefix_encoding._KEPT_CHARS", 100)
    encoder = PrefixEncoder(lambda parts: [np.zeros(len(p), dtype=np.int32) for p in parts], {0: "<a>"})
    for turn in range(50):
        encoder.encode(f"{turn} " * 10)
    assert sum(len(kept.text) for kept in encoder._kept) <= 100
