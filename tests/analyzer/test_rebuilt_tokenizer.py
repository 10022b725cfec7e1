"""Tokenizers that transformers makes anew are those of the server."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from analyzer.tokens import Tokenizer
from tests.tokenizers import folder_of, reason_missing

TEXTS = (
    " Hello  world\n\n it's 12345 naïve 日本語 🙂 <|im_end|> def f(x):\n    return x\t<bos>",
    "a<new_tok>b <|im_start|>user\nx",
    "<NEW2> and <|endoftext|>",
)


@pytest.mark.parametrize(
    ("tokenizer_class", "model_type", "config", "text", "ids"),
    [
        # Qwen3's tokenizer.json under other configurations, as vLLM 0.32 (transformers 5.19) loads it.
        ("LlamaTokenizerFast", "llama", {}, TEXTS[1], [64, 27, 931, 76162, 51407, 151644, 872, 87]),
        (
            "Qwen2Tokenizer",
            "qwen3",
            {"additional_special_tokens": ["<new_tok>"]},
            TEXTS[1],
            [64, 151669, 65, 220, 151644, 872, 198, 87],
        ),
        ("PreTrainedTokenizerFast", "llama", {"pad_token": "<NEW2>"}, TEXTS[2], [151669, 323, 220, 151643]),
        (
            "Qwen2Tokenizer",
            "qwen3",
            {"bos_token": "Hello"},
            TEXTS[0],
            [
                220,
                9707,
                220,
                1879,
                271,
                432,
                594,
                220,
                16,
                17,
                18,
                19,
                20,
                94880,
                586,
                75402,
                21894,
                102819,
                27484,
                220,
                151645,
                707,
                282,
                2075,
                982,
                262,
                470,
                856,
                197,
                33177,
                436,
                29,
            ],
        ),
    ],
)
def test_ids_are_those_of_the_servers_loader(
    tokenizer_class: str, model_type: str, config: dict[str, Any], text: str, ids: list[int], tmp_path: Path
) -> None:
    if reason := reason_missing("qwen3"):
        pytest.skip(reason)
    own = json.loads((folder_of("qwen3") / "tokenizer_config.json").read_text(encoding="utf-8"))
    shutil.copy(folder_of("qwen3") / "tokenizer.json", tmp_path)
    said = own | {"tokenizer_class": tokenizer_class} | config
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(said), encoding="utf-8")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}), encoding="utf-8")
    assert Tokenizer(tmp_path).encode(text).tolist() == ids


def test_a_tokenizer_that_names_what_its_file_holds_is_taken_as_it_stands() -> None:
    if reason := reason_missing("qwen3"):
        pytest.skip(reason)
    assert Tokenizer(folder_of("qwen3")).backend == "fastokens"
