"""Which way of rendering a served model asks for: as its start line says, or told by the model's files.

The rule is vLLM's own (vLLM 0.32 config/model.py:736-758).
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from analyzer.tokens import Tokenizer

_MODES = {
    "MoonshotKimiaForCausalLM": "kimi_audio",
    "KimiK3ForConditionalGeneration": "kimi_k3",
    "DeepseekV32ForCausalLM": "deepseek_v32",
    "DeepseekV4ForCausalLM": "deepseek_v4",
    "DeepseekV4ForConditionalGeneration": "deepseek_v4",
    "DeepseekV41ForCausalLM": "deepseek_v41",
    "InklingForCausalLM": "inkling",
    "InklingForConditionalGeneration": "inkling",
}
_V4_TOKENS = ("<｜latest_reminder｜>", "<｜action｜>", "｜DSML｜")
"""Special tokens of DeepSeek V4's vocabulary that V3's has not (deepseek_v4_encoding.py:18-43)."""


TEMPLATED = ("hf", "kimi_audio")
"""The modes whose prompts a chat template makes."""


@lru_cache(maxsize=8)
def tokenizer_mode_of(tokenizer: Tokenizer, told: str = "auto") -> str:
    """vLLM's name of the mode; `hf` is the chat template, `harmony` the encoder of gpt-oss.

    `told` is the server's `--tokenizer-mode`. gpt-oss has its encoder in every mode
    (renderers/online_renderer.py:178).

    A folder that holds no config.json tells by what else is in it: Mistral's tekken.json
    (tokenizers/registry.py:145), or DeepSeek V4's special tokens and no chat template.
    """
    config = tokenizer.model_config
    if config.get("model_type") == "gpt_oss":
        return "harmony"
    if told != "auto":
        return "hf" if told == "slow" else told
    named = config.get("architectures")
    for architecture in named if isinstance(named, list) else []:
        if architecture in _MODES:
            return _MODES[architecture]
    if tokenizer.backend == "mistral-common" or _is_mistral_repository(tokenizer.directory):
        return "mistral"
    if not config and not tokenizer.chat_templates and _has_v4_tokens(tokenizer):
        return "deepseek_v4"
    return "hf"


def _is_mistral_repository(directory: Path) -> bool:
    """Mistral's names of weights beside its tokenizer: otherwise vLLM takes the Hugging Face files."""
    return (directory / "tekken.json").is_file() and any(directory.glob("consolidated*.safetensors"))


def _has_v4_tokens(tokenizer: Tokenizer) -> bool:
    return all(len(tokenizer.encode(token)) == 1 for token in _V4_TOKENS)
