"""A tokenizer whose tokens are bytes, small enough to be made by a test, with templates to choose from.

Ids and text stand one to one for each other, so that a golden file can hold the text of a server's ids.
"""

from __future__ import annotations

import json
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

DEFAULT = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<e>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
TOOL_USE = "{{ bos_token }}{{ tools|tojson if tools else 0 }}" + DEFAULT
SPECIAL = {"bos_token": "<b>", "eos_token": "<e>"}


def make_folder(folder: Path, *, model_type: str = "qwen3") -> Path:
    """A model's folder without weights: vLLM can render with it."""
    folder.mkdir(parents=True, exist_ok=True)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE(vocab={char: at for at, char in enumerate(alphabet)}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([*SPECIAL.values(), "<img>", "<think>"])
    made.post_processor = processors.TemplateProcessing(
        single="<b> $A", pair="<b> $A $B", special_tokens=[("<b>", made.token_to_id("<b>"))]
    )
    made.save(str(folder / "tokenizer.json"))
    templates = [{"name": "default", "template": DEFAULT}, {"name": "tool_use", "template": TOOL_USE}]
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "chat_template": templates,
        "pad_token": None,
        "image_token": "<img>",
        "extra_special_tokens": {"think_token": "<think>"},
        **SPECIAL,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "config.json").write_text(json.dumps(_model(model_type)), encoding="utf-8")
    return folder


def text_of(folder: Path, ids: list[int]) -> str:
    """The text of ids, special tokens included."""
    return str(Tokenizer.from_file(str(folder / "tokenizer.json")).decode(ids, skip_special_tokens=False))


def _model(model_type: str) -> dict[str, object]:
    return {
        "model_type": model_type,
        "architectures": ["Qwen3ForCausalLM"],
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "num_hidden_layers": 2,
        "head_dim": 16,
        "vocab_size": 320,
        "max_position_embeddings": 4096,
        "torch_dtype": "float32",
    }
