"""Gathers what speaks for a reason where the server's hits are not the predicted ones, and sums both up.

The rules that weigh it are `analyzer.residuals`'. It looks closely at differing requests alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from analyzer.blocks import common_prefix
from analyzer.core import CountersVerdict
from analyzer.counters import Look, restarts_ns
from analyzer.engines import CacheRequest
from analyzer.ledger import Prediction
from analyzer.registry import plugins
from analyzer.report import Counters, Server, Turn
from analyzer.residuals import Evidence, Residual

_NEIGHBOURS = 128
"""Requests before a differing one, and after it, that it is held against: the nearest explain most."""

_SEEN_AT_ONCE = ("server.truncated", "render.suspect", "engine.block_granularity", "engine.spec_drop")
"""Labels for which the other requests need not be looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What holds for the whole capture; `speculation` says that a drafter takes the last block of a hit."""

    server: Server
    speculation: bool = False
    engines: int = 1


def label(evidence: Evidence) -> str | None:
    """The label that explains the residual; None where there is none."""
    if evidence.reported is not None and evidence.predicted == evidence.reported:
        return None
    return next(residual.name for residual in _residuals() if residual.holds(evidence))


@cache
def _residuals() -> list[Residual]:
    return sorted(plugins("residuals").values(), key=lambda residual: residual.rank)


def with_residuals(
    turns: Sequence[Turn], prediction: Prediction, circumstances: Circumstances
) -> tuple[Turn, ...]:
    """The same rows, each with the reason for its residual."""
    case = _Case(turns, prediction, circumstances)
    return tuple(replace(turn, residual=case.residual(turn)) for turn in turns)


def reconcile(seen: Sequence[Look], prediction: Prediction, turns: Sequence[Turn]) -> Counters | None:
    """The counters between the first look and the last, beside the capture's own sums; None without looks."""
    if not seen:
        return None
    restarts = len(restarts_ns(seen))
    first, last = seen[0], seen[-1]
    whole = len(seen) > 1 and not restarts
    queries, hits = (last.queries - first.queries, last.hits - first.hits) if whole else (None, None)
    captured, predicted = _sums(prediction)
    began = min((request.started_ns for request in prediction.requests), default=first.at_ns)
    ended = max((request.ended_ns or last.at_ns + 1 for request in prediction.requests), default=0)
    comparable = whole and first.at_ns <= began and ended <= last.at_ns and _all_known(turns)
    return Counters(
        looks=len(seen),
        restarts=restarts,
        queries=queries,
        hits=hits,
        captured_queries=captured,
        predicted_hits=predicted,
        reported_hits=_reported(turns, prediction),
        verdict=_verdict((queries, hits), (captured, predicted)) if comparable else None,
        cached_before=first.queries > 0 if first.at_ns <= began else None,
    )


def _verdict(server: tuple[int | None, int | None], capture: tuple[int, int | None]) -> CountersVerdict:
    if server == capture:
        return "agree"
    queries = server[0]
    return "other_traffic" if queries is not None and queries > capture[0] else "differ"


def _all_known(turns: Sequence[Turn]) -> bool:
    """Whether all prompts that the server can have looked up were rendered."""
    return all(turn.prompt_tokens is not None for turn in turns if turn.status is None or turn.status < 400)


def _sums(prediction: Prediction) -> tuple[int, int | None]:
    """Tokens looked up and hit in the simulated cache. Those that skip reading are not counted
    (vLLM 0.32 v1/core/kv_cache_manager.py:286-321)."""
    queries, hits = 0, 0
    known = True
    for request in prediction.requests:
        if request.skip_reading:
            continue
        for choice in range(1 + len(request.others)):
            hit = prediction.cached_tokens.get(request.part(choice))
            queries += len(request.token_ids)
            hits += hit or 0
            known = known and hit is not None
    return queries, hits if known else None


def _reported(turns: Sequence[Turn], prediction: Prediction) -> int | None:
    """What the answers' usage adds up to; None where one of them says nothing, or only of a part."""
    if any(request.others for request in prediction.requests):
        return None
    counts = [turn.reported_cached_tokens for turn in turns if turn.prompt_tokens is not None]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


class _Case:
    """The evidence on one request after another."""

    def __init__(self, turns: Sequence[Turn], prediction: Prediction, circumstances: Circumstances) -> None:
        self._about = circumstances
        self._prediction = prediction
        self._places = {request.key: at for at, request in enumerate(prediction.requests)}
        self._turns = {turn.name: turn for turn in turns}
        self._full = _full_pool(prediction, circumstances.server)
        self._models = {turn.model for turn in turns if turn.prompt_tokens is not None}

    def residual(self, turn: Turn) -> str | None:
        """The label, or None where nothing was rendered or nothing differs."""
        at = self._places.get(turn.name)
        if at is None:
            return None
        plain = self._evidence(turn)
        predicted, reported = plain.predicted, plain.reported
        named = label(plain)
        if reported is None or predicted == reported or named in _SEEN_AT_ONCE:
            return named
        metrics = self._about.server.metrics
        low, high = sorted((predicted or 0, reported))
        less = high > reported
        return label(
            replace(
                plain,
                namespace=less and self._namespace(at, turn, reported),
                client_gone=less and self._client_gone(at, high),
                answer_ids=self._answer_ids(at, low, high),
                in_flight=self._in_flight(at, high),
                full_pool=self._full[at] if self._full is not None else None,
                several_engines=self._about.engines > 1,
                cached_before=bool(metrics and metrics.cached_before) and self._new(at, high),
                other_traffic=bool(metrics and metrics.verdict == "other_traffic"),
            )
        )

    def _evidence(self, turn: Turn) -> Evidence:
        return Evidence(
            predicted=turn.predicted_cached_tokens,
            reported=turn.reported_cached_tokens,
            block_size=self._about.server.block_size,
            suspect="mismatch" in (turn.rendering, turn.conversation_rendering),
            # Where the layout has the drafter's groups, the block is off the prediction already.
            speculation=self._about.speculation and not _takes_drops_off(self._about.server),
            slots=self._about.server.slots is not None,
            prompt_tokens=turn.prompt_tokens,
            reported_prompt_tokens=turn.reported_prompt_tokens,
        )

    def _earlier(self, at: int) -> Sequence[CacheRequest]:
        return self._prediction.requests[max(0, at - _NEIGHBOURS) : at]

    def _answer_ids(self, at: int, low: int, high: int) -> bool:
        """Whether an earlier prompt is all in this one, with an unsure answer that reaches over the
        difference."""
        size, ids = self._about.server.block_size, self._prediction.requests[at].token_ids
        for earlier in self._earlier(at):
            unsure = self._turns[earlier.key].generated_source != "wire"
            prompt = len(earlier.token_ids)
            longest = max(map(len, _answers(earlier)))
            within = low >= prompt // size * size and high <= prompt + longest
            if unsure and within and common_prefix(earlier.token_ids, ids) >= prompt // size * size:
                return True
        return False

    def _client_gone(self, at: int, high: int) -> bool:
        """Whether all earlier prompts that share as much are of clients that left before any answer."""
        ids = self._prediction.requests[at].token_ids
        sharing = [e for e in self._earlier(at) if common_prefix(e.token_ids, ids) >= high]
        return bool(sharing) and not any(self._answered(earlier) for earlier in sharing)

    def _answered(self, request: CacheRequest) -> bool:
        return self._turns[request.key].outcome != "client_gone" or any(_answers(request))

    def _new(self, at: int, high: int) -> bool:
        """Whether nothing that was sent earlier shares as much."""
        ids = self._prediction.requests[at].token_ids
        return all(common_prefix(earlier.token_ids, ids) < high for earlier in self._earlier(at))

    def _in_flight(self, at: int, high: int) -> bool:
        """Whether a request that was not over when this one began, or began before it was, shares the hit."""
        requests = self._prediction.requests
        request = requests[at]
        if request.others and high < len(request.token_ids):
            return True  # its own choices, of which any may be the one whose hit is told
        return any(
            common_prefix(other.token_ids, request.token_ids) >= high
            for other in (*self._earlier(at), *requests[at + 1 : at + 1 + _NEIGHBOURS])
            if (request.ended_ns is None or other.started_ns < request.ended_ns)
            and (other.ended_ns is None or other.ended_ns > request.started_ns)
        )

    def _namespace(self, at: int, turn: Turn, reported: int) -> bool:
        """Whether under this model name no more was ever sent than the server hit."""
        if len(self._models) < 2:
            return False
        ids, size = self._prediction.requests[at].token_ids, self._about.server.block_size
        own = (other for other in self._earlier(at) if self._turns[other.key].model == turn.model)
        return max((common_prefix(o.token_ids, ids) for o in own), default=0) // size * size <= reported


def _takes_drops_off(server: Server) -> bool:
    return server.layout is not None and any(group.drops_last_block for group in server.layout.groups)


def _answers(request: CacheRequest) -> list[tuple[int, ...]]:
    first = request.generated if isinstance(request.generated, tuple) else ()
    return [first, *(answer.token_ids for answer in request.others)]


def _full_pool(prediction: Prediction, server: Server) -> list[bool] | None:
    """For each request, whether more had been written by its start than the pool holds."""
    if server.pool_blocks is None:
        return None
    written, full = 0, []
    hits: Mapping[str, int | None] = prediction.cached_tokens
    for request in prediction.requests:
        for choice, answer in enumerate(_answers(request)):
            tokens = len(request.token_ids) + len(answer)
            written += (
                -(-tokens // server.block_size) - (hits.get(request.part(choice)) or 0) // server.block_size
            )
        full.append(written >= server.pool_blocks - 1)
    return full
