"""Exchanges as the proxy hands them over: in time, some in flight together, the last one never ended."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator

from store.records import RequestSeen, ResponseSeen, ServerFact
from tests.captures import METRICS, MODELS, START_NS, Sent, answer_of

FACTS = (
    ServerFact(at_ns=1, path="/v1/models", status=200, body=json.dumps(MODELS).encode()),
    ServerFact(at_ns=1, path="/metrics", status=200, body=METRICS.encode()),
    ServerFact(at_ns=1, path="/version", status=200, body=b'{"version": "0.32.0"}'),
)


def records_of(
    sent: Iterable[Sent], *, dice: random.Random | None = None
) -> Iterator[RequestSeen | ResponseSeen | tuple[ServerFact, ...]]:
    """The records of some exchanges; with `dice`, responses come late, and one not at all."""
    yield FACTS
    late: list[ResponseSeen] = []
    for number, one in enumerate(sent, start=1):
        body = one.body if isinstance(one.body, bytes) else json.dumps(one.body).encode()
        yield RequestSeen(
            key=f"k{number}",
            started_at_ns=START_NS + number * 10**9,
            method="POST",
            path=one.path,
            query="",
            headers=(),
            body=body,
        )
        late.append(_response(number, one))
        while late and (dice is None or dice.random() < 0.6):
            yield late.pop(0 if dice is None else dice.randrange(len(late)))
    yield from late[1:] if dice else late


def _response(number: int, sent: Sent) -> ResponseSeen:
    answer, kind = answer_of(sent)
    first_ns = 5_000_000 if sent.ttft_ms is None else round(sent.ttft_ms * 1e6)
    return ResponseSeen(
        key=f"k{number}",
        status=sent.status,
        headers=(("content-type", kind),),
        body=answer,
        chunks=(),
        ttft_ns=first_ns,
        duration_ns=first_ns + 1_000_000,
        ended="complete",
        error=None,
    )
