"""Token ids of the sample tokenizer, held against the library that wrote the file format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Reference

from analyzer.tokens import Tokenizer, TokenizerError

PIECES = [
    "<｜User｜>",
    "<｜Assistant｜>",
    "def f(x):\n",
    "    ",
    "漢字",
    "🐍",
    "\u2028",
    "é",
    "<",
    "｜",
    "1234567",
    "\r\n\r\n",
]


@pytest.fixture(scope="module")
def tokenizer(sample_tokenizer: Path) -> Tokenizer:
    return Tokenizer(sample_tokenizer)


@pytest.fixture(scope="module")
def reference(sample_tokenizer: Path) -> Reference:
    return Reference.from_file(str(sample_tokenizer / "tokenizer.json"))


@settings(max_examples=200, deadline=None)
@given(text=st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=20)), max_size=12).map("".join))
def test_ids_are_those_of_the_reference_library(
    tokenizer: Tokenizer, reference: Reference, text: str
) -> None:
    for special in (False, True):
        ids = tokenizer.encode(text, add_special_tokens=special)
        assert ids.tolist() == reference.encode(text, add_special_tokens=special).ids


def test_the_fast_back_end_is_used_where_it_can_load_the_file(tokenizer: Tokenizer) -> None:
    assert tokenizer.backend == "fastokens"


def test_special_tokens_are_read_from_both_spellings(tmp_path: Path, sample_tokenizer: Path) -> None:
    (tmp_path / "tokenizer.json").symlink_to(sample_tokenizer / "tokenizer.json")
    config = {"bos_token": "<s>", "eos_token": {"content": "</s>"}, "unk_token": None, "add_bos_token": False}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert Tokenizer(tmp_path).special_tokens(["bos_token", "eos_token", "unk_token"]) == {
        "bos_token": "<s>",
        "eos_token": "</s>",
    }


def test_the_template_file_comes_before_the_configurations(tmp_path: Path, sample_tokenizer: Path) -> None:
    (tmp_path / "tokenizer.json").symlink_to(sample_tokenizer / "tokenizer.json")
    given = [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": given}))
    assert Tokenizer(tmp_path).chat_templates == {"default": "d", "tool_use": "t"}
    (tmp_path / "chat_template.jinja").write_text("file")
    assert Tokenizer(tmp_path).chat_templates == {"default": "file"}


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "holds no tokenizer.json"),
        ({"tokenizer.json": "{}"}, "is not a tokenizer file"),
        (
            {"tokenizer.json": "{}", "tokenizer_config.json": "not json"},
            "tokenizer_config.json cannot be read",
        ),
        ({"tokenizer.json": "{}", "tokenizer_config.json": "[]"}, "does not hold a JSON object"),
    ],
)
def test_a_folder_that_cannot_be_used_says_which_file_is_wrong(
    tmp_path: Path, files: dict[str, str], said: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(TokenizerError, match=said):
        Tokenizer(tmp_path)
