"""A server's KV layout, from its model's config.json, its cache's labels and its start line.

What none of them says is assumed, and said in a sentence. The rules are those of vLLM 0.32
`v1/core/kv_cache_utils.py:1362` (grouping), `:2029` (drafters), `config/cache.py`, `platforms/cpu.py:293`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from analyzer.kv_layout import DEFAULT_BATCH_TOKENS, KVGroup, KVLayout
from analyzer.model_layers import FULL, MAMBA, LayerKind, layers_of
from analyzer.settings import UNTOLD, ServerSettings

EAGLE_METHODS = ("eagle", "eagle3", "mtp", "dflash", "dspark")
"""Drafters that read the target's hidden states (config/speculative.py:1944)."""

CPU_BLOCK_SIZE = 128
"""A server on the CPU sets its block size to this where no `--block-size` is given (platforms/cpu.py:293)."""


def read_layout(
    config: Mapping[str, Any] | None, labels: Mapping[str, str], settings: ServerSettings, block_size: int
) -> tuple[KVLayout, tuple[str, ...]]:
    """The layout, and a sentence for everything about it that is an assumption.

    `labels` are those of `vllm:cache_config_info`. `block_size` is what the groups have, in tokens.
    """
    layers, assumed = _layers(config, labels, settings)
    drops, drafts = _drafter(settings)
    if settings.disable_hybrid_kv_cache_manager and any(layer.kind == "full" for layer in layers):
        # Windows are still computed, but everything is kept (kv_cache_utils.py:1799).
        layers = [FULL if layer.kind == "sliding" else layer for layer in layers]
    groups = _groups(layers, block_size, _method(settings) if drops else None)
    layout = KVLayout(
        groups=groups,
        caching=_caching(labels, settings),
        retention_interval=_retention(labels, settings),
        batch_tokens=_batch_tokens(settings),
        steps_ahead=int(bool(settings.async_scheduling)),
        speculative_tokens=drafts if any(layer.kind == "mamba" for layer in layers) else 0,
        mamba_align=(settings.mamba_cache_mode or labels.get("mamba_cache_mode")) != "all",
        cut_tokens=CPU_BLOCK_SIZE if _on_the_cpu(labels, settings) else None,
    )
    return layout, (*assumed, *_assumptions(layout, labels, settings))


def _layers(
    config: Mapping[str, Any] | None, labels: Mapping[str, str], settings: ServerSettings
) -> tuple[list[LayerKind], list[str]]:
    """Each layer's kind. Without a config.json the labels still tell a model of windows or states alone."""
    if config is not None:
        layers, unsure = layers_of(config)
        if layers and unsure is None:
            return layers, []
        missing = f"{unsure or 'no layer'} in the model's config.json"
    else:
        layers, missing = [], "the model's config.json is not at hand"
    window = labels.get("sliding_window", "")
    mode = settings.mamba_cache_mode or labels.get("mamba_cache_mode", "none")
    if layers:
        taken = "blocks of one size for all of them"
    elif window.isdigit() and int(window) > 0:
        layers, taken = [LayerKind(kind="sliding", window=int(window))], f"a window of {window} in all layers"
    elif mode not in ("none", "None"):
        layers, taken = [MAMBA, FULL], "one group of state layers and one of full attention"
    else:
        layers, taken = [FULL], "full attention in all layers"
    return layers, [f"KV layout: {taken}; {missing}"]


def _groups(layers: Sequence[LayerKind], block_size: int, drafter: str | None) -> tuple[KVGroup, ...]:
    """Layers of a kind, split so that all groups have about as many (kv_cache_utils.py:1430-1500)."""
    kinds = dict.fromkeys(layers)
    counts = {kind: sum(layer == kind for layer in layers) for kind in kinds}
    if drafter == "mtp" and FULL in counts:
        counts[FULL] += 1  # the drafter's own layer is the last, and attends to everything
    fewest, most = min(counts.values()), max(counts.values())
    size = most if most < fewest * 1.5 else fewest
    groups = []
    for kind, count in counts.items():
        # An MTP drafter's layer is known by its place; other drafters are not, and all groups drop (:2029).
        drops = drafter is not None and (drafter != "mtp" or len(counts) == 1 or kind == FULL)
        group = KVGroup(kind=kind.kind, block_size=block_size, window=kind.window, drops_last_block=drops)
        groups += [group] * -(-count // size)
    return tuple(groups)


def _method(settings: ServerSettings) -> str | None:
    config = settings.speculative_config or {}
    method = config.get("method")
    if method is None and "eagle3" in str(config.get("model", "")).lower():
        return "eagle3"
    if method is None and "eagle" in str(config.get("model", "")).lower():
        return "eagle"
    return "mtp" if isinstance(method, str) and method.endswith("mtp") else method


def _drafter(settings: ServerSettings) -> tuple[bool, int]:
    """Whether hits lose their last block, and how many tokens are drafted a step."""
    config = settings.speculative_config or {}
    drops = _method(settings) in EAGLE_METHODS and not config.get("disable_eagle_block_drop")
    drafts = config.get("num_speculative_tokens")
    return drops, drafts if isinstance(drafts, int) else 0


def _caching(labels: Mapping[str, str], settings: ServerSettings) -> bool:
    said = labels.get("enable_prefix_caching")
    return said == "True" if said in ("True", "False") else settings.enable_prefix_caching is not False


def _retention(labels: Mapping[str, str], settings: ServerSettings) -> int | None:
    said = labels.get("prefix_cache_retention_interval")
    if said is None:
        return settings.prefix_cache_retention_interval
    return int(said) if said.isdigit() else None


def _batch_tokens(settings: ServerSettings) -> int:
    said = settings.max_num_batched_tokens or DEFAULT_BATCH_TOKENS
    if settings.enable_chunked_prefill is False:
        return max(said, settings.max_model_len or 0)  # a prompt is one step (arg_utils.py:3140)
    return said


def _on_the_cpu(labels: Mapping[str, str], settings: ServerSettings) -> bool:
    """Whether this is a server on the CPU that chose its block size itself; nothing says it outright.

    When it has started it sets its scheduler's block size back to 128 (v1/engine/core.py:1311), while the
    groups keep theirs. What shows: its cache has a size in bytes, and the block of states a label that was
    not brought up to date, because another process had made it.
    """
    if settings.block_size is not None or labels.get("user_specified_block_size") == "True":
        return False
    if any(name.startswith("VLLM_CPU_") for name in settings.environment):
        return True
    mode, states, block = map(labels.get, ("mamba_cache_mode", "mamba_block_size", "block_size"))
    return mode == "align" and states != block and labels.get("kv_cache_memory_bytes", "None") != "None"


def _assumptions(layout: KVLayout, labels: Mapping[str, str], settings: ServerSettings) -> list[str]:
    if layout.only_full_attention or not layout.caching:
        return []
    assumed = []
    if settings.max_num_batched_tokens is None:
        assumed.append(f"steps of {layout.batch_tokens} tokens: --max-num-batched-tokens was not told")
    if settings.prefix_match_unit or labels.get("prefix_match_unit", "None") != "None":
        assumed.append("hits end at block boundaries: --prefix-match-unit is not modelled")
    if labels.get("prefix_cache_retention_interval") is None and settings == UNTOLD:
        assumed.append("--prefix-cache-retention-interval 0: the server did not say")
    return assumed
