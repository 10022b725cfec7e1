"""How fast this capture's server computed prompts, read off its answers, and what lost tokens cost in time.

No constant stands in for a rate that the capture does not show: then nothing has a price in seconds.
Fitted is seconds to the first token over tokens that were not cached, as the median of the slopes between
turns (Theil 1950, Sen 1968), each slope weighted by the tokens between its turns (Sievers 1978): what every
request takes besides, and the odd one that waited in a queue, leave the slope as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from analyzer.core import Finding
from analyzer.report import PrefillRate, Turn

FEWEST_TURNS = 6
"""Turns below which the slopes between them are too few for quartiles to mean something."""

MOST_TURNS = 800
"""Turns that are compared with each other: each with each, so that ten thousand would take minutes."""

WIDEST_SPREAD = 10
"""A rate whose upper quartile is more times its lower one is none: busy neighbours, or a cold start."""

_QUARTILES = (0.25, 0.5, 0.75)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    uncached_tokens: int
    seconds: float
    source: Literal["reported", "predicted"]


def prefill_rate(turns: Iterable[Turn]) -> PrefillRate:
    """The rate that these turns show; without one, why not."""
    samples = [sample for turn in turns if (sample := _sample(turn)) is not None]
    sources = {sample.source for sample in samples}
    found = PrefillRate(turns=len(samples), source=sources.pop() if len(sources) == 1 else "mixed")
    if not samples:
        return replace(found, source=None, problem="no streamed answer tells when its first token came")
    if len(samples) < FEWEST_TURNS:
        few = (
            f"only {len(samples)} of the {FEWEST_TURNS} turns that it takes tell when their first token came"
        )
        return replace(found, problem=few)
    slopes = _slopes(samples)
    if slopes is None:
        return replace(found, problem="all turns computed equally many tokens")
    low, middle, high = slopes
    if low <= 0:
        return replace(found, problem="the time to the first token does not grow with the tokens computed")
    if high > WIDEST_SPREAD * low:
        return replace(found, problem=f"the turns differ more than {WIDEST_SPREAD}-fold about it")
    return replace(found, tokens_per_second=1 / middle, spread=(1 / high, 1 / low))


def with_seconds(turns: Sequence[Turn], rate: PrefillRate) -> tuple[Turn, ...]:
    """The same turns, each finding with the time its tokens took; None where there is no rate."""
    return tuple(
        replace(turn, findings=tuple(_timed(finding, rate) for finding in turn.findings))
        if turn.findings
        else turn
        for turn in turns
    )


def _timed(finding: Finding, rate: PrefillRate) -> Finding:
    if finding.tokens is None or rate.tokens_per_second is None:
        return finding
    return replace(finding, seconds=finding.tokens / rate.tokens_per_second)


def _sample(turn: Turn) -> _Sample | None:
    """A turn as a point of the fit, where its first token's time and its computed tokens are known."""
    prompt = turn.reported_prompt_tokens
    if turn.first_token_ns is None or prompt is None:
        return None
    seconds = turn.first_token_ns / 1e9
    if turn.reported_cached_tokens is not None:
        uncached = max(0, prompt - turn.reported_cached_tokens)
        return _Sample(uncached_tokens=uncached, seconds=seconds, source="reported")
    if turn.predicted_cached_tokens is None or turn.rendering != "exact":
        return None
    uncached = max(0, prompt - turn.predicted_cached_tokens)
    return _Sample(uncached_tokens=uncached, seconds=seconds, source="predicted")


def _slopes(samples: Sequence[_Sample]) -> tuple[float, float, float] | None:
    """Seconds a token: the weighted quartiles over all pairs; None where no two turns differ in tokens."""
    ordered = sorted(samples, key=lambda sample: (sample.uncached_tokens, sample.seconds))
    if len(ordered) > MOST_TURNS:
        kept = np.linspace(0, len(ordered) - 1, MOST_TURNS).round().astype(int)
        ordered = [ordered[at] for at in kept]
    tokens = np.array([sample.uncached_tokens for sample in ordered], dtype=np.float64)
    seconds = np.array([sample.seconds for sample in ordered], dtype=np.float64)
    first, second = np.triu_indices(len(ordered), k=1)
    apart = tokens[second] - tokens[first]
    differ = apart > 0
    if not differ.any():
        return None
    slopes = (seconds[second] - seconds[first])[differ] / apart[differ]
    low, middle, high = _weighted_quartiles(slopes, apart[differ])
    return low, middle, high


def _weighted_quartiles(values: NDArray[np.float64], weights: NDArray[np.float64]) -> list[float]:
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return [float(values[order][np.searchsorted(reached, share * reached[-1])]) for share in _QUARTILES]
