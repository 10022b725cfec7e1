"""Makes what the test servers serve: tiny models with random weights, and folders to render with.

Run by vLLM's own Python, from the project's folder: `python -m tests.vllm.models`. Only prompts and cache
hits matter, so weights may be random; a server that only renders needs no weights at all.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from tests.corpus.setups import CACHED, MODELS, ROOT, SETUPS, copy_tokenizer
from tests.tokenizers import folder_of, reason_missing

SMALL = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 64,
    "num_hidden_layers": 2,
    "torch_dtype": "bfloat16",
}
QWEN3 = {
    **SMALL,
    "model_type": "qwen3",
    "architectures": ["Qwen3ForCausalLM"],
    "vocab_size": 151936,
    "max_position_embeddings": 40960,
    "tie_word_embeddings": True,
}
CONFIGS: dict[str, dict[str, Any]] = {
    "tiny-qwen3": QWEN3,
    "qwen3-named": QWEN3,
    "gemma3": {
        **SMALL,
        "model_type": "gemma3_text",
        "architectures": ["Gemma3ForCausalLM"],
        "vocab_size": 262208,
        "sliding_window": 256,
        "max_position_embeddings": 32768,
        "query_pre_attn_scalar": 64,
    },
    "gemma3-window": {
        **SMALL,
        "model_type": "gemma3_text",
        "architectures": ["Gemma3ForCausalLM"],
        "vocab_size": 262208,
        "num_hidden_layers": 6,
        "sliding_window": 256,
        "sliding_window_pattern": 6,
        "max_position_embeddings": 32768,
        "query_pre_attn_scalar": 64,
    },
    "qwen3-next": {
        **QWEN3,
        "model_type": "qwen3_next",
        "architectures": ["Qwen3NextForCausalLM"],
        "num_hidden_layers": 4,
        "full_attention_interval": 4,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 64,
        "shared_expert_intermediate_size": 64,
        # Few heads, for a block of 1,152 tokens; the sizes are the only ones that the CPU's kernel takes.
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
    },
    "llama3_1": {
        **SMALL,
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": 128256,
        "max_position_embeddings": 131072,
        "bos_token_id": 128000,
        "eos_token_id": 128009,
    },
    "gpt-oss": {
        **SMALL,
        "model_type": "gpt_oss",
        "architectures": ["GptOssForCausalLM"],
        "vocab_size": 201088,
        "max_position_embeddings": 131072,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "eos_token_id": 200002,
    },
    "mistral": {
        **SMALL,
        "model_type": "mistral",
        "architectures": ["MistralForCausalLM"],
        "vocab_size": 131072,
        "max_position_embeddings": 131072,
        "sliding_window": None,
    },
    "deepseek_v32": {
        **SMALL,
        "num_key_value_heads": 2,
        "model_type": "deepseek_v32",
        "architectures": ["DeepseekV32ForCausalLM"],
        "vocab_size": 129280,
        "moe_intermediate_size": 64,
        "n_routed_experts": 8,
        "n_group": 1,
        "topk_group": 1,
        "num_experts_per_tok": 2,
        "max_position_embeddings": 163840,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "index_topk": 2048,
        "index_n_heads": 2,
        "index_head_dim": 64,
    },
    "deepseek_v4": {
        **SMALL,
        "num_key_value_heads": 2,
        "model_type": "deepseek_v4",
        "architectures": ["DeepseekV4ForCausalLM"],
        "vocab_size": 129280,
        "moe_intermediate_size": 64,
        "n_routed_experts": 8,
        "n_group": 1,
        "topk_group": 1,
        "num_experts_per_tok": 2,
        "max_position_embeddings": 1048576,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "sliding_window": 128,
        "compress_ratios": [0, 4],
        "qk_rope_head_dim": 32,
        "q_lora_rank": 32,
        "o_lora_rank": 32,
        "index_topk": 512,
        "index_n_heads": 2,
        "index_head_dim": 64,
    },
}
WITH_WEIGHTS = ("tiny-qwen3", *(setup.model for setup in CACHED.values()))


def main() -> None:
    """Make what is missing."""
    for name, config in CONFIGS.items():
        setup = next(item for item in (*SETUPS.values(), *CACHED.values()) if item.model == name)
        folder = ROOT / MODELS / name
        if reason_missing(setup.tokenizer) or (folder / "ready").exists():
            continue
        copy_tokenizer(setup.tokenizer, folder, setup.templates)
        (folder / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")
        if name in WITH_WEIGHTS:
            _random_weights(folder)
        (folder / "ready").touch()
    if not reason_missing("gptoss"):
        _harmony_vocabulary()


def _random_weights(folder: Path) -> None:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    config = AutoConfig.from_pretrained(folder)
    AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).save_pretrained(folder)


def _harmony_vocabulary() -> None:
    """The harmony library reads `o200k_base.tiktoken`, or fetches it: rebuild it from the tokenizer."""
    target = ROOT / MODELS / "tiktoken" / "o200k_base.tiktoken"
    if target.exists():
        return
    vocabulary = json.loads((folder_of("gptoss") / "tokenizer.json").read_text(encoding="utf-8"))
    tokens = sorted(vocabulary["model"]["vocab"].items(), key=lambda item: item[1])
    alphabet = _byte_alphabet()
    lines = [
        base64.b64encode(bytes(alphabet[char] for char in token)) + b" %d\n" % number
        for token, number in tokens
    ]
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(b"".join(lines))


def _byte_alphabet() -> dict[str, int]:
    """The printable characters that byte-level BPE writes for the 256 bytes (as GPT-2 does)."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + index): byte for index, byte in enumerate(others)}


if __name__ == "__main__":
    main()
