"""Asks vLLM's own scheduler, without a model or a server, for the cache hits of made-up traffic.

Run by vLLM's Python, which has nothing of this project. It reads layouts and requests as
`tests/group_traffic.py` writes them, one JSON object a line, and adds to each the tokens cached (`cached`)
and the blocks that hold content afterwards (`contents`), one number a request. MODEL is the folder of any
model's config.json and tokenizer: nothing of it is loaded.

    python -m tests.group_traffic FIRST LAST > traffic.jsonl    # seeds
    .venv-vllm/bin/python -m tests.oracle.groups_vllm MODEL < traffic.jsonl > answers.jsonl
    python -m tests.oracle.compare_groups answers.jsonl
"""

from __future__ import annotations

import json
import sys
from collections import deque
from types import SimpleNamespace
from typing import Any

import torch
from vllm.engine.arg_utils import EngineArgs
from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import (
    get_request_block_hasher,
    init_none_hash,
    resolve_kv_cache_block_sizes,
)
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.kv_cache_interface import (
    FullAttentionSpec,
    KVCacheConfig,
    KVCacheGroupSpec,
    MambaSpec,
    SlidingWindowSpec,
)
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request
from vllm.v1.structured_output import StructuredOutputManager

from tests.group_traffic import expand

HEADS: dict[str, Any] = {"num_kv_heads": 1, "head_size": 1, "dtype": torch.float32}


def groups_of(layout: dict[str, Any]) -> list[KVCacheGroupSpec]:
    """The groups as vLLM describes them; sizes in bytes do not matter here."""
    made = []
    for number, group in enumerate(layout["groups"]):
        size = group["block_size"]
        spec: Any
        if group["kind"] == "full":
            spec = FullAttentionSpec(block_size=size, **HEADS)
        elif group["kind"] == "sliding":
            spec = SlidingWindowSpec(block_size=size, sliding_window=group["window"], **HEADS)
        else:
            spec = MambaSpec(
                block_size=size,
                shapes=((1,),),
                dtypes=(torch.float32,),
                mamba_cache_mode="align" if layout["mamba_align"] else "all",
                num_speculative_blocks=layout["speculative_tokens"],
            )
        drops = group["drops_last_block"]
        made.append(KVCacheGroupSpec([f"layer.{number}"], spec, is_eagle_group=drops))
    return made


def scheduler_for(model: str, layout: dict[str, Any], num_gpu_blocks: int) -> tuple[Any, int]:
    """A scheduler whose model has this layout, and the tokens a block hash."""
    config = EngineArgs(model=model, max_model_len=16384, enable_prefix_caching=True).create_engine_config()
    groups = groups_of(layout)
    config.scheduler_config.max_num_batched_tokens = layout["batch_tokens"]
    config.scheduler_config.max_num_scheduled_tokens = layout["batch_tokens"]
    config.scheduler_config.async_scheduling = bool(layout["steps_ahead"])
    config.cache_config.num_gpu_blocks = num_gpu_blocks
    config.cache_config.prefix_match_unit = None
    config.cache_config.block_size = min(group["block_size"] for group in layout["groups"])
    config.cache_config.mamba_cache_mode = "align" if layout["mamba_align"] else "all"
    if any(group["drops_last_block"] for group in layout["groups"]):
        config.speculative_config = drafter()
    cache = KVCacheConfig(
        num_blocks=num_gpu_blocks,
        kv_cache_tensors=[],
        kv_cache_groups=groups,
        prefix_cache_retention_interval=layout["retention_interval"],
    )
    scheduler_size, hash_size = resolve_kv_cache_block_sizes(cache, config)
    kind = AsyncScheduler if layout["steps_ahead"] else Scheduler
    made = kind(
        vllm_config=config,
        kv_cache_config=cache,
        structured_output_manager=StructuredOutputManager(config),
        block_size=scheduler_size,
        hash_block_size=hash_size,
        log_stats=False,
    )
    # As a CPU's server sets it back when it has started (v1/engine/core.py:1311).
    made.cache_config.block_size = layout["cut_tokens"] or made.cache_config.block_size
    return made, hash_size


def drafter() -> Any:
    """A drafter that reads the last block again and never drafts."""
    return SimpleNamespace(
        num_speculative_tokens=0,
        num_speculative_tokens_per_batch_size=None,
        max_num_new_slots_for_drafting=0,
        method="mtp",
        use_eagle=lambda: True,
        use_eagle_block_drop=lambda: True,
        use_multi_module_mtp=lambda: False,
        use_dspark=lambda: False,
        use_dflash=lambda: False,
        uses_draft_model=lambda: False,
    )


def run(scheduler: Any, hash_size: int, number: int, row: dict[str, Any]) -> int:
    """One request from its arrival to its end; the tokens it found cached."""
    prompt, generated = expand(row["prompt"]), expand(row["generated"])
    request = Request(
        request_id=str(number),
        prompt_token_ids=prompt,
        sampling_params=SamplingParams(max_tokens=len(generated), ignore_eos=True),
        pooling_params=None,
        block_hasher=get_request_block_hasher(hash_size, sha256),
        cache_salt=row.get("salt"),
    )
    scheduler.add_request(request)
    left, cached, waiting = list(generated), None, deque[tuple[Any, list[int]]]()
    for _ in range(100000):
        output = scheduler.schedule()
        if cached is None and output.scheduled_new_reqs:
            cached = output.scheduled_new_reqs[0].num_computed_tokens
        if output.num_scheduled_tokens:
            done = request.num_computed_tokens >= len(prompt)
            waiting.append((output, [left.pop(0)] if done else []))
        ahead = 1 if isinstance(scheduler, AsyncScheduler) and output.num_scheduled_tokens else 0
        if len(waiting) > ahead:
            settled, sampled = waiting.popleft()
            scheduler.update_from_output(
                settled, ModelRunnerOutput([str(number)], {str(number): 0}, [sampled] if sampled else [[]])
            )
        if request.is_finished() and not waiting:
            assert not left
            return int(cached or 0)
    raise RuntimeError("the request never ended")


def main() -> None:
    model = sys.argv[1]
    init_none_hash(sha256)
    for line in sys.stdin:
        case = json.loads(line)
        scheduler, hash_size = scheduler_for(model, case["layout"], case["num_gpu_blocks"])
        cached, contents = [], []
        for number, row in enumerate(case["requests"]):
            cached.append(run(scheduler, hash_size, number, row))
            pool = scheduler.kv_cache_manager.block_pool
            contents.append(sum(block.block_hash is not None for block in pool.blocks))
        print(json.dumps({**case, "cached": cached, "contents": contents}), flush=True)


if __name__ == "__main__":
    main()
