"""What an analysis found: the shapes that reports and exports print. Field names are the contract's.

Nothing is computed here. `None` is "not known".
"""

from __future__ import annotations

from dataclasses import dataclass

from analyzer.core import CacheVerdict, Divergence, Finding, Outcome, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something to know of a row that is no loss: a label of the field's, and one sentence."""

    label: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One prompt of one exchange, and how it stands to its parent. Counts are tokens or whole blocks.

    `problem` says in one sentence why something about this row is missing or not to be trusted, or None.
    `conversation_rendering` is the worst `rendering` of its conversation: what its numbers rest on.
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
    """

    cause: str | None
    turns: int
    tokens: int
    blocks: int
    expected: bool


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One capture, analysed: rows in the order in which their exchanges began."""

    exchanges: int
    redaction: str
    server: Server
    summary: Summary
    turns: tuple[Turn, ...]
    problems: tuple[str, ...]
