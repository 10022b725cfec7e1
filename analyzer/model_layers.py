"""What each layer of a model remembers, read off its config.json: every token, a window of them, or a state.

No grouping (`analyzer.kv_groups`) and no file is read. The keys are those of the models' configurations in
transformers 5 and of vLLM 0.32 `model_executor/models`; a layer without a cache of its own is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analyzer.kv_layout import GroupKind


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerKind:
    """What one layer's attention looks back on."""

    kind: GroupKind
    window: int | None = None


FULL = LayerKind(kind="full")
MAMBA = LayerKind(kind="mamba")

_NAMES: dict[str, GroupKind] = {
    **dict.fromkeys(("full_attention", "attention", "full", "*", "sparse_attention"), "full"),
    **dict.fromkeys(("sliding_attention", "sliding", "swa"), "sliding"),
    **dict.fromkeys(("linear_attention", "mamba", "mamba2", "conv", "short_conv", "M"), "mamba"),
    # Taken for full attention unless an environment variable says otherwise (config/vllm.py:2141).
    "chunked_attention": "full",
}
_WITHOUT_CACHE = ("mlp", "moe", "-", "E")

_EVERY_NTH_FULL: dict[str, tuple[str, int, GroupKind]] = {
    "gemma2": ("", 2, "sliding"),
    "gemma3_text": ("sliding_window_pattern", 6, "sliding"),
    "gemma3n_text": ("", 5, "sliding"),
    "gemma4_text": ("", 6, "sliding"),
    "gpt_oss": ("", 2, "sliding"),
    "cohere2": ("sliding_window_pattern", 4, "sliding"),
    "exaone4": ("sliding_window_pattern", 4, "sliding"),
    "olmo3": ("", 4, "sliding"),
    "qwen3_next": ("full_attention_interval", 4, "mamba"),
    "qwen3_5_text": ("full_attention_interval", 4, "mamba"),
    "qwen3_5_moe_text": ("full_attention_interval", 4, "mamba"),
}
"""model_type: which key holds N where every Nth layer attends to everything, N without it, the others."""

_WINDOWS = {"gemma2": 4096, "gemma3_text": 4096, "gemma3n_text": 512, "gemma4_text": 512, "gpt_oss": 128}
_DEFAULT_WINDOW = 4096
_SHARED_LAYERS = {"gemma3n_text": 15}
"""How many of the last layers use an earlier layer's cache, where the configuration does not say."""

_NO_WINDOW_UNLESS_SAID = ("qwen2", "qwen3", "qwen2_moe", "qwen3_moe", "smollm3")
_SIGNS = ("sliding", "window", "mamba", "ssm", "linear_", "conv_", "recurrent", "attention_chunk", "compress")


def text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part that describes the language model, in a configuration that also describes others."""
    for key in ("text_config", "language_config", "llm_config", "thinker_config"):
        inner = config.get(key)
        if isinstance(inner, Mapping):
            return text_config(inner)
    return config


def layers_of(config: Mapping[str, Any]) -> tuple[list[LayerKind], str | None]:
    """A kind for each layer with a cache, in order; and what is not known about them, if anything is not."""
    text = text_config(config)
    names, unsure = _names(text)
    if names is None:
        return [], unsure
    count = len(names) - int(text.get("num_kv_shared_layers") or _SHARED_LAYERS.get(_type(text), 0))
    layers: list[LayerKind] = []
    for name in names[: max(1, count)]:
        if name == "hybrid":
            layers += [MAMBA, FULL]
        elif name in _NAMES:
            layers.append(_layer(_NAMES[name], text))
        elif name not in _WITHOUT_CACHE:
            return [], f"a layer of type {name!r}"
    return layers, unsure


def _layer(kind: GroupKind, text: Mapping[str, Any]) -> LayerKind:
    window = _window(text) if kind == "sliding" else None
    return FULL if kind == "sliding" and window is None else LayerKind(kind=kind, window=window)


def _type(text: Mapping[str, Any]) -> str:
    named = text.get("model_type")
    return named if isinstance(named, str) else ""


def _window(text: Mapping[str, Any]) -> int | None:
    if text.get("use_sliding_window") is False:
        return None
    window = text.get("sliding_window", _WINDOWS.get(_type(text), _DEFAULT_WINDOW))
    if isinstance(window, int) and text.get("use_bidirectional_attention"):
        window = window // 2 + 1
    return window if isinstance(window, int) and window > 0 else None


def _names(text: Mapping[str, Any]) -> tuple[list[str] | None, str | None]:
    count = text.get("num_hidden_layers")
    layers = count if isinstance(count, int) and count > 0 else 1
    if "deepseek_v4" in _type(text):
        return None, "DeepSeek V4's compressed and sliding layers"
    for key in ("layer_types", "layers_block_type"):
        if isinstance(text.get(key), list) and text[key]:
            return [str(name) for name in text[key]], _other_sizes(text)
    if isinstance(text.get("hybrid_override_pattern"), str):
        return list(text["hybrid_override_pattern"]), None
    if isinstance(text.get("attn_type_list"), list):
        return ["full" if item == 1 else "mamba" for item in text["attn_type_list"]], None
    for key in ("attn_layer_indices", "full_attn_idxs"):
        if isinstance(text.get(key), list):
            return ["full" if at in text[key] else "mamba" for at in range(layers)], None
    if isinstance(text.get("attn_layer_period"), int):
        period, offset = text["attn_layer_period"], int(text.get("attn_layer_offset") or 0)
        return ["full" if at % period == offset else "mamba" for at in range(layers)], None
    if _type(text) == "falcon_h1":
        return ["hybrid"] * layers, None
    if _type(text) in _EVERY_NTH_FULL:
        return _every_nth(text, layers), _other_sizes(text)
    return _uniform(text, layers)


def _other_sizes(text: Mapping[str, Any]) -> str | None:
    if text.get("global_head_dim") not in (None, text.get("head_dim")):
        return "layers whose keys and values differ in size"
    return None


def _every_nth(text: Mapping[str, Any], layers: int) -> list[str]:
    key, default, other = _EVERY_NTH_FULL[_type(text)]
    said = text.get(key) or text.get("_" + key) or default
    step = len(said) if isinstance(said, str) else int(said)
    return ["full" if (at + 1) % step == 0 else other for at in range(layers)]


def _uniform(text: Mapping[str, Any], layers: int) -> tuple[list[str] | None, str | None]:
    """All layers alike: a window of its own for each (Mistral), or none; other signs are not understood."""
    if _type(text) in _NO_WINDOW_UNLESS_SAID:
        windowed = bool(text.get("use_sliding_window"))
        # Qwen's windows begin at a layer that vLLM does not serve unless it is the first (qwen2.py:351).
        return ["sliding" if windowed and not text.get("max_window_layers") else "full"] * layers, None
    if isinstance(text.get("sliding_window"), int) and text.get("use_sliding_window") is not False:
        return ["sliding"] * layers, None
    signs = [key for key, value in text.items() if value and any(sign in key for sign in _SIGNS)]
    if signs:
        return None, f"what {signs[0]!r} means for the cache"
    return ["full"] * layers, None
