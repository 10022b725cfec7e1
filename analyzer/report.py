"""What an analysis found: the shapes that reports and exports print. Field names are the contract's.

Nothing is computed here. `None` is "not known".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from analyzer.core import CacheVerdict, Divergence, Finding, Outcome, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One prompt of one exchange, and how it stands to its parent. Counts are tokens or whole blocks.

    `problem` says in one sentence why something about this row is missing or not to be trusted, or None;
    `reason` is the part of it that was told from counts alone, and so quotes nothing.
    `conversation_rendering` is the worst `rendering` of its conversation: what its numbers rest on.
    `ttft_ns` is when the first byte of a body came, `first_token_ns` the first token of one that streamed.
    """

    id: int
    prompt_index: int
    conversation: int | None
    turn: int | None
    parent: int | None
    dialect: str
    path: str
    model: str | None
    status: int | None
    outcome: Outcome
    started_at_ns: int
    ttft_ns: int | None
    duration_ns: int | None
    prompt_tokens: int | None
    reported_prompt_tokens: int | None
    token_source: str | None
    rendering: Verdict | None
    conversation_rendering: Verdict | None
    common_prefix_tokens: int | None
    reusable_tokens: int | None
    reusable_prefix_pct: float | None
    block_size: int | None
    prompt_blocks: int | None
    reusable_blocks: int | None
    invalidated_blocks: int | None
    predicted_cached_tokens: int | None
    reported_cached_tokens: int | None
    cache: CacheVerdict | None
    append: bool | None
    divergence: Divergence | None
    problem: str | None
    findings: tuple[Finding, ...] = ()
    first_token_ns: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """What is known of the server, and how.

    `engine` names the kind of server whose rules predict; `assumed` what was not told and what was taken
    instead.
    """

    engine: str
    version: str | None
    model: str | None
    block_size: int
    pool_blocks: int | None
    max_model_len: int | None
    tokenizer: str | None
    tokenizer_backend: str | None
    assumed: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseTotal:
    """What one cause cost over a capture: in how many turns, and the tokens and blocks that were lost to it.

    `cause` is None for differences that no cause claims. `expected`: always the price of something wanted.
    `seconds` is None where the capture shows no rate.
    """

    cause: str | None
    turns: int
    tokens: int
    blocks: int
    expected: bool
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillRate:
    """How many prompt tokens the server computed in a second, as this capture shows it.

    `spread` are the quartiles around it, lower and upper; `turns` how many it rests on; `source` where the
    counts of cached tokens came from. `problem` says why there is no rate, where there is none.
    """

    tokens_per_second: float | None = None
    spread: tuple[float, float] | None = None
    turns: int = 0
    source: Literal["reported", "predicted", "mixed"] | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Totals over a capture; percentages are weighted by tokens, over turns that have a parent.

    `conversations_mismatch` counts those in which the server contradicts a rendering.
    """

    conversations: int
    turns: int
    rendered: int
    rendering_exact: int
    rendering_mismatch: int
    conversations_mismatch: int
    cache_reported: int
    cache_exact: int
    reusable_prefix_pct: float | None
    prompt_tokens: int | None
    recomputed_tokens: int | None
    invalidated_blocks: int | None
    causes: tuple[CauseTotal, ...] = ()
    prefill_rate: PrefillRate = PrefillRate()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One capture, analysed: rows in the order in which their exchanges began.

    `missing` is the one of the `problems` that says which tokenizer is missing, where one is.
    """

    exchanges: int
    redaction: str
    server: Server
    summary: Summary
    turns: tuple[Turn, ...]
    problems: tuple[str, ...]
    missing: str | None = None
