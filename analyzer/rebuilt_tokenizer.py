"""Tokenizers that transformers does not take from `tokenizer.json` as it stands, and what it makes of them.

Two kinds: a class that builds its own normalizer and pre-tokenizer around the file's vocabulary, and special
tokens that only the configuration names. The server loads through transformers, and so its ids are those
(transformers 5.19 models/auto/tokenization_auto.py, tokenization_utils_tokenizers.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

_REBUILDING = ("LlamaTokenizer", "LlamaTokenizerFast")
_TAKEN_AS_THEY_ARE = ("deepseek",)
"""Beginnings of model types whose class transformers passes over, as the hub has it wrong for them."""

_BACKENDS = ("TokenizersBackend", "PythonBackend", "PreTrainedTokenizerFast", "MistralCommonBackend")
"""Where one of these is registered for a model's type, no other class counts (tokenization_auto.py:860)."""

_LISTS = ("additional_special_tokens", "extra_special_tokens")


def is_rebuilt(config: Mapping[str, Any], model_type: str | None, added: Collection[str]) -> bool:
    """Whether transformers makes another tokenizer of a folder; `added` are the file's added tokens.

    Without a model's type there is no saying what it would do.
    """
    if model_type is None:
        return False
    by_class = config.get("tokenizer_class") in _REBUILDING and not model_type.startswith(_TAKEN_AS_THEY_ARE)
    return by_class or any(token not in added for token in _named(config))


def rebuilt(directory: Path, config: Mapping[str, Any], model_type: str | None) -> Any:
    """The `tokenizers.Tokenizer` that transformers makes of a folder. Raises what it raises."""
    from transformers import AutoTokenizer, LlamaTokenizer
    from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING_NAMES

    # From 5.20 on, AutoTokenizer looks at the file first; vLLM 0.32 takes an older one, which does not.
    registered = TOKENIZER_MAPPING_NAMES.get(model_type or "")
    by_class = config.get("tokenizer_class") in _REBUILDING and registered not in _BACKENDS
    kind = LlamaTokenizer if by_class else AutoTokenizer
    made = kind.from_pretrained(str(directory), local_files_only=True, trust_remote_code=False)
    return made.backend_tokenizer


def _named(config: Mapping[str, Any]) -> Iterator[str]:
    """All tokens that a tokenizer's configuration names."""
    decoder = config.get("added_tokens_decoder")
    values = [value for key, value in config.items() if key.endswith("_token")]
    values += decoder.values() if isinstance(decoder, Mapping) else ()
    for key in _LISTS:
        listed = config.get(key)
        values += listed if isinstance(listed, list) else ()
    for value in values:
        text = value.get("content") if isinstance(value, Mapping) else value
        if isinstance(text, str):
            yield text
