"""vLLM's prefix cache: whole blocks of one pool, least recently used first out.

The rules are those of `analyzer.cache`; here a capture's requests become its events.
"""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.engines import CacheRequest, Traffic
from analyzer.replay import Finish, Start, TokenCache, simulate
from analyzer.report import Server
from analyzer.servers import ServerProfile

type _Moment = tuple[int, int, Start | Finish]
"""When, what comes first at the same moment, and what happens."""


class VllmEngine:
    """vLLM: chained blocks of tokens in one pool"""

    name = "vllm"
    title = "vLLM"
    exact = True
    block_pool = True
    # vLLM's own default where no attention backend asks for more (vLLM 0.32 config/cache.py:72).
    usual_block_size = 16
    usual_slots: int | None = None
    left_out: tuple[str, ...] = ()

    def serves(self, profile: ServerProfile) -> bool:
        """Whether the models listed are vLLM's own (vLLM 0.32 entrypoints/openai/models)."""
        return profile.owner == "vllm"

    def predict(self, traffic: Traffic, server: Server) -> dict[str, int | None]:
        """Cached tokens of each request; a count of generated tokens beyond the whole pool is taken for 0."""
        # One block of the server's pool is its null block (vLLM 0.32 v1/core/block_pool.py).
        capacity = None if server.pool_blocks is None else server.pool_blocks - 1
        most = None if capacity is None else capacity * server.block_size
        moments = [moment for request in traffic.requests for moment in _moments(request, most)]
        moments.sort(key=lambda moment: moment[:2])
        hits = simulate((event for _, _, event in moments), TokenCache(server.block_size, capacity))
        return {key: None if hit is None else hit.tokens for key, hit in hits.items()}


def _moments(request: CacheRequest, most_tokens: int | None) -> Iterator[_Moment]:
    start = Start(
        request_id=request.key,
        token_ids=request.token_ids,
        namespace=request.namespace,
        skip_reading=request.skip_reading,
    )
    yield request.started_ns, 1, start
    if request.ended_ns is None:
        return
    generated = request.generated
    tokens = len(request.token_ids) + (generated if isinstance(generated, int) else len(generated))
    if most_tokens is not None and tokens > most_tokens:
        generated = 0
    # At the same moment an end comes first: its blocks are free for whoever starts.
    yield request.ended_ns, 0, Finish(request_id=request.key, generated=generated)


ENGINE = VllmEngine()
