"""What an analysis found: the shapes that reports and exports print. Field names are the contract's.

Nothing is computed here. `None` is "not known".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from analyzer.core import (
    CacheVerdict,
    CountersVerdict,
    Divergence,
    Finding,
    GeneratedSource,
    Outcome,
    Verdict,
)
from analyzer.kv_layout import KVLayout


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something to know of a row that is no loss: a label of the field's, and one sentence."""

    label: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One prompt of one exchange, and how it stands to its parent. Counts are tokens or whole blocks.

    `problem` says in one sentence why something about this row is missing or not to be trusted, or None;
    `reason` is the part of it that was told from counts alone, and so quotes nothing.
    `conversation_rendering` is the worst `rendering` of its conversation: what its numbers rest on.
    `generated_source` says where the ids of its answer come from, None where they are not known.
    `residual` is what the difference between predicted and reported cached tokens is put down to
    (`analyzer.residuals`), None where there is none.
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
    notes: tuple[Note, ...] = ()
    first_token_ns: int | None = None
    reason: str | None = None
    generated_source: GeneratedSource | None = None
    residual: str | None = None

    @property
    def name(self) -> str:
        """Exchange id and prompt index as one word."""
        return f"{self.id}.{self.prompt_index}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """The server's own counters between the first and the last look at them, beside this capture's sums.

    All are prompt tokens: looked up in the cache (`queries`) and found there (`hits`). `verdict` is None
    where they cannot be compared: too few looks, a restart between them, or requests outside of them.
    `cached_before` says whether the server had served anything before the first request of the capture.
    """

    looks: int
    restarts: int
    queries: int | None
    hits: int | None
    captured_queries: int | None
    predicted_hits: int | None
    reported_hits: int | None
    verdict: CountersVerdict | None
    cached_before: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """What is known of the server, and how.

    `engine` names the kind of server whose rules predict, `engine_title` as its makers write it, and
    `engine_exact` says whether the tests hold these rules against a running one. `slots` are the prompts a
    server without a pool of blocks keeps. `tokenizer` is the folder that prompts were tokenized with, and
    `tokenizer_backend` the library. `assumed` is what was not told and what was taken instead, and what the
    rules leave out. `metrics` are None where nobody looked at the server's counters, `layout` where its kind
    has no groups of layers.
    """

    engine: str
    engine_title: str
    engine_exact: bool
    version: str | None
    model: str | None
    block_size: int
    pool_blocks: int | None
    slots: int | None
    max_model_len: int | None
    tokenizer: str | None
    tokenizer_backend: str | None
    assumed: tuple[str, ...]
    metrics: Counters | None = None
    layout: KVLayout | None = None


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
class PoolSize:
    """What the capture hits in a pool of this size; both None where its largest request does not fit."""

    pool_blocks: int
    hit_tokens: int | None
    hit_pct: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSweep:
    """The capture's hits at several sizes of the pool, smallest first; percentages are of `prompt_tokens`.

    `smallest_pool_blocks` is the size in which every request fits, `saturated_pool_blocks` the one beyond
    which nothing is gained. `unlimited` is what a pool without limit gives, `append` what it would give if
    every turn kept all of its parent's prompt. `assumed` is what all this rests on.
    """

    sizes: tuple[PoolSize, ...]
    prompt_tokens: int
    smallest_pool_blocks: int
    saturated_pool_blocks: int
    unlimited_hit_tokens: int
    unlimited_hit_pct: float | None
    append_hit_tokens: int
    append_hit_pct: float | None
    assumed: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretCount:
    """How often a secret of a kind was replaced in one place of the capture's exchanges.

    `side` is request or response, `part` headers, query, path, body or error; `path` the name of the
    header or parameter, or the JSON path in the body, '' where there is none.
    """

    kind: str
    side: str
    part: str
    path: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Completeness:
    """Exchanges that could not be kept in whole or in part (`lost`), those without an end, in words too.

    `lost` is None where nobody counted, or a count is gone.
    """

    lost: int | None = None
    unfinished: int = 0
    sentences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One capture, analysed: rows in the order in which their exchanges began.

    `pool_sweep` is None where nobody asked for it, or the server has no pool of blocks.
    `missing` is the one of the `problems` that says which tokenizer is missing, where one is.
    `secrets` counts what was replaced before it was written, None where the capture does not tell.
    `completeness` is what the proxy could not keep; its sentences are among the `problems`.
    `quotes` is False where nothing in it is, or may be, text of a prompt or an answer.
    """

    exchanges: int
    redaction: str
    server: Server
    summary: Summary
    turns: tuple[Turn, ...]
    problems: tuple[str, ...]
    pool_sweep: PoolSweep | None = None
    missing: str | None = None
    secrets: tuple[SecretCount, ...] | None = ()
    completeness: Completeness = Completeness()
    quotes: bool = True
