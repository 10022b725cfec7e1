"""vLLM's prefix cache: whole blocks of one pool, least recently used first out.

The rules are those of `analyzer.cache`; here a capture's requests become its events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from analyzer.core import UNKNOWN_ID, Generated
from analyzer.engines import CacheRequest, Moment, Traffic, in_order
from analyzer.kv_layout import KVLayout, full_attention
from analyzer.replay import Event, Grow, Restart, Simulation, Start, TokenCache
from analyzer.replay import Finish as End
from analyzer.report import Server
from analyzer.servers import ServerProfile

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
        replay = self.replay(server)
        moments = [moment for at_ns in traffic.restarts_ns for moment in replay.restarts(at_ns)]
        for request in traffic.requests:
            moments += (*replay.starts(request), *replay.ends(request))
        in_order(moments)
        return replay.found | {request.key: replay.hit(request) for request in traffic.requests}

    def replay(self, server: Server) -> VllmReplay:
        """The same for requests one after another."""
        # One block of the server's pool is its null block (vLLM 0.32 v1/core/block_pool.py).
        capacity = None if server.pool_blocks is None else server.pool_blocks - 1
        return VllmReplay(server.layout or full_attention(server.block_size), capacity)


class VllmReplay:
    """A `Replay` of the pool: one of `capacity` blocks, cached as `layout` has it."""

    def __init__(self, layout: KVLayout, capacity: int | None) -> None:
        self._layout = layout
        self._capacity = capacity
        self._simulation = Simulation(TokenCache(layout.hash_block_size, capacity, layout))

    @property
    def found(self) -> dict[str, int | None]:
        """The hit of every part that was looked up."""
        return {key: None if hit is None else hit.tokens for key, hit in self._simulation.hits.items()}

    def hit(self, request: CacheRequest) -> int | None:
        """See `Replay.hit`."""
        hit = self._simulation.hits.get(_reporting(request))
        return None if hit is None else hit.tokens

    def restarts(self, at_ns: int) -> Iterator[Moment]:
        """See `Replay.restarts`."""
        yield self._moment(at_ns, _RESTART, Restart())

    def starts(self, request: CacheRequest) -> Iterator[Moment]:
        """See `Replay.starts`."""
        answers = _answers(request)
        for choice in range(len(answers)):  # each is a request of its own (v1/engine/async_llm.py)
            yield self._moment(request.started_ns, _START, _start(request, request.part(choice)))
            if choice == 0 and _ends_alone(answers):
                end = End(request_id=request.part(0), generated=answers[0].token_ids)
                yield self._moment(request.started_ns, _START, end)

    def ends(self, request: CacheRequest) -> Iterator[Moment]:
        """See `Replay.ends`."""
        # An end that nobody saw is that of a proxy that was killed, and its request with it.
        ended = request.started_ns if request.ended_ns is None else request.ended_ns
        order = _END if ended > request.started_ns else _END_AT_ONCE
        fits = partial(self._layout.fits, capacity=self._capacity)
        for event in _ends(request, _answers(request), fits, self._layout.steps_ahead):
            yield self._moment(max(ended, request.started_ns), order, event)

    def _moment(self, at_ns: int, order: int, event: Event) -> Moment:
        return at_ns, order, partial(self._simulation.apply, event)


def _start(request: CacheRequest, part: str) -> Start:
    return Start(
        request_id=part,
        token_ids=request.token_ids,
        namespace=request.namespace,
        skip_reading=request.skip_reading,
    )


def _ends(
    request: CacheRequest, answers: Sequence[Generated], fits: Callable[[int], bool], steps_ahead: int
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
                    # A slot for a step scheduled before the end was seen; a length is seen coming.
                    ahead_tokens=0 if answer.finish == "length" else steps_ahead,
                )


def _ends_alone(answers: Sequence[Generated]) -> bool:
    """Whether the first answer is over before the others begin: it is scheduled as soon as it arrives, they
    one step later (seen on vLLM 0.32: with `n` > 1 and `max_tokens` 1 a block less was evicted)."""
    return len(answers) > 1 and answers[0].finish == "length" and len(answers[0].token_ids) == 1


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
