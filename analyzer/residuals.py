"""What a difference between predicted and reported cached tokens is put down to: one label, by rule.

The first rule that holds decides, the surest evidence first. It gathers no evidence (`analyzer.evidence`
does), and a label says what explains the difference, not that nothing else was at work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LABELS: Mapping[str, str] = {
    "usage.unknown": "the server did not say how much of this prompt it had cached",
    "render.suspect": "the server contradicts a rendering that the prediction rests on",
    "engine.block_granularity": "the server's hit is no multiple of the block size taken here, or the"
    " difference is less than a block",
    "engine.spec_drop": "one block less, which speculative decoding gives up at the end of a hit",
    "engine.namespace": "what would have been hit was cached under another model name",
    "engine.answer_ids": "the difference lies within an earlier answer, whose token ids were not sent",
    "engine.in_flight": "a request that shares more was in flight at the same time",
    "engine.cached_before": "the server had served other prompts before this capture began",
    "engine.other_traffic": "the server looked up more tokens than were captured: others talk to it too",
    "engine.other_replica": "the server has several engines, each with a cache of its own",
    "engine.evicted": "the pool was full, or is of unknown size: what was taken for cached may be gone",
    "engine.unexplained": "unexplained: none of the known reasons fits",
}
"""Every label with its meaning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known about one request whose hit was predicted. Counts are tokens.

    `answer_ids`, `in_flight` and `namespace` say that such a thing covers the whole difference;
    `cached_before` that the server had served others before, and nothing sent since shares as much;
    `full_pool` that more was written by then than the pool holds, None that its size is not known.
    """

    predicted: int | None
    reported: int | None
    block_size: int
    suspect: bool = False
    namespace: bool = False
    answer_ids: bool = False
    in_flight: bool = False
    full_pool: bool | None = False
    speculation: bool = False
    several_engines: bool = False
    cached_before: bool = False
    other_traffic: bool = False


def label(evidence: Evidence) -> str | None:
    """The label of LABELS that explains the residual; None where there is none."""
    predicted, reported = evidence.predicted, evidence.reported
    if reported is None:
        return "usage.unknown"
    if predicted == reported:
        return None
    if evidence.suspect:
        return "render.suspect"
    if predicted is None:  # the simulated server never got to it, and the real one did
        return "engine.unexplained"
    difference = reported - predicted
    if reported % evidence.block_size or abs(difference) < evidence.block_size:
        return "engine.block_granularity"
    if evidence.speculation and difference == -evidence.block_size:
        return "engine.spec_drop"
    if evidence.namespace:
        return "engine.namespace"
    if evidence.answer_ids:
        return "engine.answer_ids"
    return _of_the_server(evidence, more=difference > 0)


def _of_the_server(evidence: Evidence, *, more: bool) -> str:
    if more and evidence.cached_before:
        return "engine.cached_before"
    if evidence.in_flight:
        return "engine.in_flight"
    if evidence.several_engines:
        return "engine.other_replica"
    if more and evidence.other_traffic:
        return "engine.other_traffic"
    # A full pool gives up other blocks than here once one request went another way: more or less is hit.
    if evidence.full_pool or (not more and (evidence.full_pool is None or evidence.other_traffic)):
        return "engine.evicted"
    return "engine.unexplained"
