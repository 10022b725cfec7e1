"""Replays what vLLM's scheduler answered, and tells where the simulation differs; see groups_vllm.py.

python -m tests.oracle.compare_groups answers.jsonl
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from analyzer.kv_layout import KVGroup, KVLayout
from analyzer.replay import TokenCache
from tests.group_traffic import expand


def layout_of(written: dict[str, Any]) -> KVLayout:
    """The layout that a case describes."""
    return KVLayout(**{**written, "groups": tuple(KVGroup(**group) for group in written["groups"])})


def replayed(case: dict[str, Any]) -> Iterator[tuple[int | None, int]]:
    """For each request of a case: the tokens it hits, and the blocks that hold content after it."""
    layout = layout_of(case["layout"])
    cache = TokenCache(layout.hash_block_size, case["num_gpu_blocks"] - 1, layout)
    for number, row in enumerate(case["requests"]):
        hit = cache.admit(str(number), np.array(expand(row["prompt"]), dtype=np.int32))
        cache.cache.check_integrity()
        if hit is not None:
            cache.finish(str(number), expand(row["generated"]))
            cache.cache.check_integrity()
        yield None if hit is None else hit.tokens, cache.cache.pool.filled


def main() -> None:
    requests = right = 0
    for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        theirs = list(zip(case["cached"], case["contents"], strict=True))
        ours = list(replayed(case))
        requests, right = requests + len(ours), right + sum(map(tuple.__eq__, ours, theirs))
        if ours != theirs:
            at = next(at for at, pair in enumerate(ours) if pair != theirs[at])
            print(f"seed {case['seed']}, request {at}: {ours[at]}, by vLLM {theirs[at]}: {case['layout']}")
    print(f"{right} of {requests} requests with the same hit and as many blocks of content")


if __name__ == "__main__":
    main()
