"""The ledger: what the simulated cache would hit, beside what the server reported.

It replays this capture alone, from its first request; what the server had cached before is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from analyzer.core import CacheVerdict, Generated
from analyzer.counters import Look, Span, restarts_ns
from analyzer.engines import CacheRequest, Engine, Traffic
from analyzer.prompts import Prompt
from analyzer.registry import plugins
from analyzer.report import Server
from analyzer.servers import ServerProfile

AUTO = "auto"
VLLM = "vllm"


def engine_of(profile: ServerProfile, choice: str = AUTO) -> Engine:
    """The kind of server: the one chosen, else the one it said it is, else vLLM.

    Raises ValueError for a name that is none.
    """
    known: Mapping[str, Engine] = plugins("engines")
    if choice != AUTO:
        if choice not in known:
            raise ValueError(f"unknown engine {choice!r}; there are: {AUTO}, {', '.join(known)}")
        return known[choice]
    return next((engine for engine in known.values() if engine.serves(profile)), known[VLLM])


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The requests that were simulated, and their cached tokens by key and part (`CacheRequest.part`)."""

    requests: tuple[CacheRequest, ...] = ()
    cached_tokens: Mapping[str, int | None] = field(default_factory=dict)


def traffic_of(prompts: Iterable[Prompt], adapters: frozenset[str], looks: Sequence[Look] = ()) -> Traffic:
    """What the cache saw of a capture; `looks` at the counters tell when the server began anew."""
    requests = tuple(request_of(prompt, adapters) for prompt in prompts if prompt.rendering is not None)
    return Traffic(requests=requests, restarts_ns=restarts_ns(looks, busy_spans(requests)))


def busy_spans(requests: Iterable[CacheRequest]) -> Iterator[Span]:
    """When the server was answering, as far as the ends of requests are known."""
    return ((request.started_ns, request.ended_ns) for request in requests if request.ended_ns is not None)


def predict(engine: Engine, traffic: Traffic, server: Server) -> Prediction:
    """Cached tokens predicted for each request."""
    return Prediction(requests=traffic.requests, cached_tokens=engine.predict(traffic, server))


def verdict(predicted: int | None, reported: int | None) -> CacheVerdict | None:
    """How the server's count stands to the prediction; None where nothing was predicted."""
    if reported is None:
        return "not_reported"
    if predicted is None:
        return None
    if reported == predicted:
        return "exact"
    return "server_less" if reported < predicted else "server_more"


def request_of(prompt: Prompt, adapters: frozenset[str]) -> CacheRequest:
    """A rendered prompt as the cache sees it."""
    exchange, rendering = prompt.source.exchange, prompt.rendering
    assert rendering is not None
    answered = prompt.source.answered_ns
    ended = None if answered is None else exchange.started_at_ns + answered
    first, *others = prompt.generated or (Generated(),)
    return CacheRequest(
        key=prompt.name,
        started_ns=exchange.started_at_ns,
        ended_ns=ended,
        token_ids=rendering.token_ids,
        namespace=prompt.source.request.namespace(adapters),
        skip_reading=prompt.source.request.skip_reading,
        generated=first.token_ids,
        finish=first.finish,
        others=tuple(others),
        streams=prompt.source.request.streams,
    )
