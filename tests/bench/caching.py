"""The simulated cache and the sweep of pool sizes, at three sizes of traffic: time a request, and memory.

Requests are block keys only: making keys out of tokens is part of what `report` is measured with.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from analyzer.blocks import BlockKeys
from analyzer.cache import PrefixCache
from analyzer.pool_sweep import ReuseDistances
from tests.bench.rounds import Line
from tests.conftest import environment

SIZES = (10_000, 100_000, 1_000_000)
KEYS = 16
BLOCK_SIZE = 16
POOL_BLOCKS = 8_000
CONVERSATIONS = 1_000
"""Held at a time, twice what the pool holds: there are hits and evictions at every size of traffic."""
CHUNK = 10_000

type Work = Callable[[BlockKeys], None]


def caching() -> list[Line]:
    """Both works, each size in a process of its own."""
    lines = []
    for name, target in (("simulator", "<= 60 s"), ("pool sweep", "")):
        cost = {size: _measured(name, size) for size in SIZES}
        seconds, cpu, memory = cost[SIZES[-1]]
        each = {size: 1e6 * cost[size][1] / size for size in SIZES}
        others = ", ".join(
            f"{each[SIZES[-1]] / each[size]:.2f} times that of {size:,}" for size in SIZES[:-1]
        )
        lines.append(
            Line(
                f"{name}, {SIZES[-1]:,} requests",
                f"{seconds:.1f} s",
                target,
                f"{KEYS} block keys each; {cpu:.1f} s of processor time, {each[SIZES[-1]]:.1f} µs a request:"
                f" {others}",
            )
        )
        lines.append(Line(f"{name}, memory", f"{memory} MB", "< 1000 MB", "largest resident set"))
    return lines


def _measured(name: str, size: int) -> tuple[float, float, int]:
    command = [sys.executable, "-m", "tests.bench.caching", name, str(size)]
    root = Path(__file__).parents[2]
    made = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=root, env=environment())
    seconds, cpu, memory = made.stdout.split()
    return float(seconds), float(cpu), int(memory)


def traffic(count: int) -> Iterator[list[BlockKeys]]:
    """Requests in chunks: nine in ten go on with a conversation, leaving it somewhere; the tenth is new."""
    dice = np.random.default_rng(7)
    held = [np.arange(n * KEYS, (n + 1) * KEYS, dtype=np.int64) for n in range(CONVERSATIONS)]
    fresh = CONVERSATIONS * KEYS
    for start in range(0, count, CHUNK):
        size = min(CHUNK, count - start)
        which = dice.integers(CONVERSATIONS, size=size).tolist()
        kept = np.where(dice.random(size) < 0.1, 0, dice.integers(1, KEYS, size=size)).tolist()
        chunk = []
        for conversation, keep in zip(which, kept, strict=True):
            new = np.arange(fresh, fresh + KEYS - keep, dtype=np.int64)
            fresh += KEYS - keep
            held[conversation] = np.concatenate([held[conversation][:keep], new])
            chunk.append(held[conversation])
        yield chunk


def _simulator() -> Work:
    cache = PrefixCache(BLOCK_SIZE, POOL_BLOCKS)

    def work(keys: BlockKeys) -> None:
        cache.admit("r", keys, KEYS * BLOCK_SIZE)
        cache.finish("r", 1)

    return work


def _pool_sweep() -> Work:
    stack = ReuseDistances()

    def work(keys: BlockKeys) -> None:
        stack.add(keys, lookup_blocks=KEYS - 1, blocks=KEYS)

    return work


def main(name: str, count: int) -> None:
    """One work at one size, in this process: seconds, processor seconds and MB.

    The making of the traffic does not count.
    """
    work = {"simulator": _simulator, "pool sweep": _pool_sweep}[name]()
    seconds = cpu = 0.0
    for chunk in traffic(count):
        begin, cpu_begin = time.perf_counter(), time.process_time()
        for keys in chunk:
            work(keys)
        seconds += time.perf_counter() - begin
        cpu += time.process_time() - cpu_begin
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(seconds, cpu, memory * (1 if sys.platform == "darwin" else 1024) // 1_000_000)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
