"""Requests to a cache, made by hand for tests: each alone in time, of no namespace but the usual."""

from __future__ import annotations

import numpy as np

from analyzer.blocks import Namespace
from analyzer.engines import CacheRequest

APART_NS = 10
"""From one request's start to the next one's; each ends half-way."""


def request(
    number: int, prompt: list[int], generated: tuple[int, ...] | int = 1, **said: object
) -> CacheRequest:
    """A request that has ended when the next begins; `said` replaces what is usual."""
    usual: dict[str, object] = {
        "key": str(number),
        "started_ns": APART_NS * number,
        "ended_ns": APART_NS * number + APART_NS // 2,
        "token_ids": np.array(prompt, dtype=np.int32),
        "namespace": Namespace(),
        "skip_reading": False,
        "generated": generated,
    }
    return CacheRequest(**(usual | said))  # type: ignore[arg-type]
