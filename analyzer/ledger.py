"""The ledger: what the simulated cache would hit, beside what the server reported.

It replays this capture alone, from its first request; what the server had cached before is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from analyzer.blocks import Namespace
from analyzer.core import CacheVerdict, TokenIds
from analyzer.replay import Finish, Start, TokenCache, simulate


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheRequest:
    """One prompt as the cache sees it. Times are wall-clock nanoseconds; `ended_ns` None: not seen.

    `generated` are the sampled ids, or how many there were.
    """

    key: str
    started_ns: int
    ended_ns: int | None
    token_ids: TokenIds
    namespace: Namespace
    skip_reading: bool
    generated: tuple[int, ...] | int


def predict(
    requests: Iterable[CacheRequest], block_size: int, pool_blocks: int | None
) -> dict[str, int | None]:
    """Cached tokens predicted for each request; None where the model says it never ran.

    A count of generated tokens for which the whole pool has no room is taken for no count.
    """
    # One block of the server's pool is its null block (vLLM 0.32 v1/core/block_pool.py).
    capacity = None if pool_blocks is None else pool_blocks - 1
    moments: list[tuple[int, int, Start | Finish]] = []
    for request in requests:
        start = Start(
            request_id=request.key,
            token_ids=request.token_ids,
            namespace=request.namespace,
            skip_reading=request.skip_reading,
        )
        moments.append((request.started_ns, 1, start))
        if request.ended_ns is not None:
            # At the same moment an end comes first: its blocks are free for whoever starts.
            generated = request.generated
            tokens = len(request.token_ids) + (generated if isinstance(generated, int) else len(generated))
            if capacity is not None and tokens > capacity * block_size:
                generated = 0
            moments.append((request.ended_ns, 0, Finish(request_id=request.key, generated=generated)))
    moments.sort(key=lambda moment: moment[:2])
    cache = TokenCache(block_size, capacity)
    hits = simulate((event for _, _, event in moments), cache)
    return {key: None if hit is None else hit.tokens for key, hit in hits.items()}


def verdict(predicted: int | None, reported: int | None) -> CacheVerdict | None:
    """How the server's count stands to the prediction; None where nothing was predicted."""
    if reported is None:
        return "not_reported"
    if predicted is None:
        return None
    if reported == predicted:
        return "exact"
    return "server_less" if reported < predicted else "server_more"
