"""The server's start line for a sealed capture: what its cache depends on, and no text of a template."""

from __future__ import annotations

import json

from analyzer.serve_command import CommandLine, Flag, write_flags
from analyzer.settings import parse_settings, start_line

_OF_THE_CACHE = frozenset(
    "served_model_name max_model_len enable_prefix_caching enable_lora disable_hybrid_kv_cache_manager"  # noqa: SIM905
    " enable_chunked_prefill async_scheduling block_size num_gpu_blocks_override"
    " prefix_cache_retention_interval prefix_match_unit mamba_cache_mode max_num_batched_tokens".split()
)


def only_for_the_cache(command: str) -> str:
    """A start line with what the cache and its report depend on: no path, no template, no default of one.

    Raises as `parse_settings` does.
    """
    line = start_line(command)
    said = parse_settings(command)
    flags = [flag for flag in line.flags if flag.name in _OF_THE_CACHE]
    if said.lora_modules:
        flags.append(Flag(name="lora_modules", values=said.lora_modules))
    drafter = {
        key: value
        for key, value in (said.speculative_config or {}).items()
        if key in ("method", "num_speculative_tokens")
    }
    if drafter:
        flags.append(Flag(name="speculative_config", values=(json.dumps(drafter),)))
    environment = {name: "1" for name in line.environment if name.startswith("VLLM_CPU_")}
    model = None if said.served_model_name else said.model
    return write_flags(CommandLine(model=model, flags=tuple(flags), environment=environment))
