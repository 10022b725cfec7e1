"""Made-up layouts and requests for the cache's group rules, small enough to be kept in a file.

Token ids are written as runs `[first, count]` of consecutive numbers. Read by vLLM's Python as well as the
project's, so that it imports neither. `python -m tests.group_traffic FIRST LAST` prints a case a seed.
"""

from __future__ import annotations

import json
import random
import sys
from typing import Any

Runs = list[list[int]]


def expand(runs: Runs) -> list[int]:
    """The token ids that the runs stand for."""
    return [token for first, count in runs for token in range(first, first + count)]


def layouts(dice: random.Random) -> dict[str, Any]:
    """A layout as `KVLayout` takes it, of one of the shapes that models have."""
    size = dice.choice([4, 16, 32])
    window = dice.choice([size, size + 1, 2 * size, 3 * size + 5, 8 * size, 100])
    full: dict[str, Any] = {"kind": "full", "block_size": size, "window": None}
    sliding: dict[str, Any] = {"kind": "sliding", "block_size": size, "window": window}
    mamba: dict[str, Any] = {"kind": "mamba", "block_size": size, "window": None}
    shapes = [
        [sliding] * dice.randint(1, 5) + [full],
        [full] + [sliding] * dice.randint(1, 3),
        [sliding],
        [mamba] * dice.randint(1, 3) + [full],
        [mamba, full, mamba],
        [{**sliding, "block_size": 2 * size}, full],
        [sliding, {**full, "block_size": 2 * size}],
        [sliding, {**sliding, "window": window + size}, full],
        [sliding, mamba, full],
        [full],
    ]
    groups = [dict(group) for group in dice.choice(shapes)]
    # A drafter's group beside larger blocks registers parts of blocks: a rule that is left out here.
    mixed = len({group["block_size"] for group in groups}) > 1
    drops = dice.choice(["none"] if mixed else ["none", "none", "all", "full"])
    for group in groups:
        group["drops_last_block"] = drops == "all" or (drops == "full" and group["kind"] == "full")
    states = any(group["kind"] == "mamba" for group in groups)
    drafts = dice.choice([0, 1, 3]) if drops != "none" and states else 0
    steps = max(group["block_size"] for group in groups)
    sparse = any(group["kind"] != "full" for group in groups)
    return {
        "groups": groups,
        "retention_interval": dice.choice([0, 0, 0, None, 2 * steps, 4 * steps]) if sparse else 0,
        "batch_tokens": dice.choice([steps - 1, steps * 2, steps * 3 + 7, 512]),
        "steps_ahead": dice.choice([0, 0, 1]),
        "speculative_tokens": drafts,
        "mamba_align": dice.random() < 0.8,
        "cut_tokens": dice.choice([None, None, 4, 2 * steps]),
    }


def requests(dice: random.Random, count: int, longest: int) -> list[dict[str, Any]]:
    """Conversations that grow, branch, share a beginning, and are sent again."""
    past: list[Runs] = []
    made = []
    for number in range(count):
        fresh = 100_000 * (number + 1)
        base = [list(run) for run in dice.choice(past[-12:])] if past and dice.random() < 0.85 else []
        pick = dice.random()
        if base and pick < 0.3:  # leave it in the middle
            base = cut(base, dice.randrange(1, 1 + sum(count for _, count in base)))
        prompt = base if base and pick > 0.85 else [*base, [fresh, dice.randrange(1, longest // 4)]]
        prompt = cut(prompt, longest)
        if dice.random() < 0.2:  # end where blocks do
            length = sum(count for _, count in prompt)
            prompt = cut(prompt, max(1, length // 32 * 32))
        generated = [[fresh + 50_000, dice.choice([1, 2, 3, 17, 40, 90])]]
        made.append({"prompt": prompt, "generated": generated})
        past.append([*prompt, *generated] if dice.random() < 0.7 else prompt)
    return made


def cut(runs: Runs, tokens: int) -> Runs:
    """The first `tokens` tokens of the runs."""
    kept: Runs = []
    for first, count in runs:
        take = min(count, tokens)
        if take:
            kept.append([first, take])
        tokens -= take
    return kept


def case(seed: int) -> dict[str, Any]:
    """A layout, a pool and its traffic."""
    dice = random.Random(seed)
    layout = layouts(dice)
    longest = dice.choice([200, 600])
    smallest = min(group["block_size"] for group in layout["groups"])
    room = len(layout["groups"]) * (-(-(longest + 100) // smallest) + 4) + 2
    blocks = dice.choice([room, room + room // 2, 3 * room, 10_000])
    return {
        "seed": seed,
        "layout": layout,
        "num_gpu_blocks": blocks,
        "requests": requests(dice, 40, longest),
    }


if __name__ == "__main__":
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        print(json.dumps(case(seed), separators=(",", ":")))
