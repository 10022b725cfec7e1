"""vLLM's prefix cache: whole blocks of one pool, least recently used first out.

The rules are those of `analyzer.cache`; here a capture's requests become its events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from analyzer.core import UNKNOWN_ID, Finish, Generated
from analyzer.engines import CacheRequest, Traffic
from analyzer.kv_layout import full_attention
from analyzer.replay import Event, Grow, Restart, Start, TokenCache, simulate
from analyzer.replay import Finish as End
from analyzer.report import Server
from analyzer.servers import ServerProfile

type _Moment = tuple[int, int, Event]
"""When, what comes first at the same moment, and what happens."""

_RESTART, _END, _START, _END_AT_ONCE = range(4)
"""At the same moment an end comes before a start: its blocks are free for whoever starts."""


class VllmEngine:
    """vLLM: chained blocks of tokens in one pool"""

    name = "vllm"
    title = "vLLM"
    exact = True
    block_pool = True
    groups_layers = True
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
        layout = server.layout or full_attention(server.block_size)
        moments: list[_Moment] = [(at, _RESTART, Restart()) for at in traffic.restarts_ns]
        for request in traffic.requests:
            moments += _moments(request, partial(layout.fits, capacity=capacity))
        moments.sort(key=lambda moment: moment[:2])
        hits = simulate(
            (event for _, _, event in moments), TokenCache(layout.hash_block_size, capacity, layout)
        )
        found = {key: None if hit is None else hit.tokens for key, hit in hits.items()}
        return found | {request.key: found[_reporting(request)] for request in traffic.requests}


def _moments(request: CacheRequest, fits: Callable[[int], bool]) -> Iterator[_Moment]:
    answers = _answers(request)
    for choice in range(len(answers)):  # each is a request of its own (v1/engine/async_llm.py)
        yield request.started_ns, _START, _start(request, request.part(choice))
        if choice == 0 and _ends_alone(answers):
            end = End(request_id=request.part(0), generated=answers[0].token_ids)
            yield request.started_ns, _START, end
    # An end that nobody saw is that of a proxy that was killed, and its request with it: it holds nothing.
    ended = request.started_ns if request.ended_ns is None else request.ended_ns
    order = _END if ended > request.started_ns else _END_AT_ONCE
    for event in _ends(request, answers, fits):
        yield max(ended, request.started_ns), order, event


def _start(request: CacheRequest, part: str) -> Start:
    return Start(
        request_id=part,
        token_ids=request.token_ids,
        namespace=request.namespace,
        skip_reading=request.skip_reading,
    )


def _ends(
    request: CacheRequest, answers: Sequence[Generated], fits: Callable[[int], bool]
) -> Iterator[Grow | End]:
    """The ends of all answers to a prompt, the shortest first, the others having come as far by then."""
    prompt_tokens = len(request.token_ids)
    running = {
        choice: answer if fits(prompt_tokens + len(answer.token_ids)) else Generated()
        for choice, answer in enumerate(answers)
    }
    if _ends_alone(answers):
        del running[0]
    while running:
        shortest = min(len(answer.token_ids) for answer in running.values())
        if len(running) > 1:
            for choice, answer in running.items():
                yield Grow(request_id=request.part(choice), generated=answer.token_ids[:shortest])
        for choice, answer in list(running.items()):
            if len(answer.token_ids) == shortest:
                del running[choice]
                yield End(
                    request_id=request.part(choice),
                    generated=answer.token_ids,
                    ahead_tokens=_AHEAD[answer.finish],
                )


def _ends_alone(answers: Sequence[Generated]) -> bool:
    """Whether the first answer is over before the others begin: it is scheduled as soon as it arrives, they
    one step later (seen on vLLM 0.32: with `n` > 1 and `max_tokens` 1 a block less was evicted)."""
    return len(answers) > 1 and answers[0].finish == "length" and len(answers[0].token_ids) == 1


_AHEAD: dict[Finish | None, int] = {"length": 0, "stop": 1, "stop_string": 1, None: 1}
"""Slots taken for a step that was scheduled before the end was seen; a length is seen coming."""


def _answers(request: CacheRequest) -> tuple[Generated, ...]:
    ids = request.generated
    known = (UNKNOWN_ID,) * ids if isinstance(ids, int) else ids
    first = Generated(token_ids=known, finish=request.finish)
    return tuple(map(_with_what_followed, (first, *request.others)))


def _with_what_followed(answer: Generated) -> Generated:
    """A text to stop at is found outside the engine (v1/engine/output_processor.py:768-820), which has
    computed one more token by the time it is told. So it is with a client that left."""
    if answer.finish in ("stop", "length") or not answer.token_ids:
        return answer
    return replace(answer, token_ids=(*answer.token_ids, UNKNOWN_ID))


def _reporting(request: CacheRequest) -> str:
    """The part whose hit stands in the usage: a stream has the first result's (vLLM 0.32
    chat_completion/serving.py:538), else it is that of the answer that was finished last
    (v1/engine/parallel_sampling.py:97-115, v1/engine/output_processor.py:977)."""
    if request.streams:
        return request.part(0)
    answers = _answers(request)
    return request.part(max(range(len(answers)), key=lambda at: (len(answers[at].token_ids), at)))


ENGINE = VllmEngine()
