"""Puts a prompt and its parent side by side: the numbers of one row of the report, and the totals.

Arithmetic only; the block rules are those of `analyzer.blocks`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from analyzer import ledger
from analyzer.blocks import full_blocks, hit_tokens, invalidated_blocks
from analyzer.cause_totals import cause_totals
from analyzer.divergences import Parting
from analyzer.lineage import Place
from analyzer.prompts import Prompt
from analyzer.report import PrefillRate, Summary, Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """How a prompt stands to its parent: both have been rendered. Counts are tokens."""

    parent: Prompt
    parent_tokens: int
    common_tokens: int
    parting: Parting


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A prompt with its place in the capture; None where it was not rendered."""

    prompt: Prompt
    place: Place | None = None
    relation: Relation | None = None


def make_turn(placed: Placed, block_size: int, predicted: int | None) -> Turn:
    """One row of the report. `predicted` is the simulated cache's hit in tokens."""
    prompt, place, relation = placed.prompt, placed.place, placed.relation
    source = prompt.source
    exchange, rendering = source.exchange, prompt.rendering
    tokens = len(rendering.token_ids) if rendering else None
    common = relation.common_tokens if relation else None
    reusable = None if common is None or tokens is None else hit_tokens(common, tokens, block_size)
    reported = source.reported_cached_tokens
    return Turn(
        id=exchange.id,
        prompt_index=prompt.index,
        conversation=place.conversation if place else None,
        turn=place.turn if place else None,
        parent=relation.parent.source.exchange.id if relation else None,
        dialect=source.request.dialect,
        path=exchange.path,
        model=source.request.model,
        status=exchange.status,
        outcome=source.reply.outcome,
        started_at_ns=exchange.started_at_ns,
        ttft_ns=exchange.ttft_ns,
        duration_ns=exchange.duration_ns,
        prompt_tokens=tokens,
        reported_prompt_tokens=source.reported_prompt_tokens,
        token_source=rendering.source if rendering else None,
        rendering=prompt.verdict,
        conversation_rendering=None,  # not before all rows are known
        common_prefix_tokens=common,
        reusable_tokens=reusable,
        reusable_prefix_pct=_percent(reusable, tokens),
        block_size=block_size,
        prompt_blocks=None if tokens is None else full_blocks(tokens, block_size),
        reusable_blocks=None if reusable is None else full_blocks(reusable, block_size),
        invalidated_blocks=_invalidated(relation, block_size),
        predicted_cached_tokens=predicted,
        reported_cached_tokens=reported,
        cache=ledger.verdict(predicted, reported) if rendering else None,
        append=relation.parting.append if relation else None,
        divergence=relation.parting.divergence if relation else None,
        problem=prompt.problem or (relation.parting.problem if relation else None),
        findings=relation.parting.findings if relation else (),
        generated_source=prompt.generated_source,
        first_token_ns=source.first_token_ns,
    )


def summarise(turns: Sequence[Turn], rate: PrefillRate) -> Summary:
    """Totals over rows; sums of nothing are None, not 0."""
    rendered = [turn for turn in turns if turn.prompt_tokens is not None]
    later = [turn for turn in rendered if turn.reusable_tokens is not None]
    reusable, prompts = _sum(t.reusable_tokens for t in later), _sum(t.prompt_tokens for t in later)
    recomputed = None if reusable is None or prompts is None else prompts - reusable
    return Summary(
        conversations=len({turn.conversation for turn in rendered}),
        turns=len(later),
        rendered=len(rendered),
        rendering_exact=sum(turn.rendering == "exact" for turn in turns),
        rendering_mismatch=sum(turn.rendering == "mismatch" for turn in turns),
        conversations_mismatch=len(
            {turn.conversation for turn in rendered if turn.conversation_rendering == "mismatch"}
        ),
        cache_reported=sum(turn.reported_cached_tokens is not None for turn in turns),
        cache_exact=sum(turn.cache == "exact" for turn in turns),
        reusable_prefix_pct=_percent(reusable, prompts),
        prompt_tokens=_sum(turn.prompt_tokens for turn in rendered),
        recomputed_tokens=recomputed,
        invalidated_blocks=_sum(turn.invalidated_blocks for turn in later),
        causes=cause_totals(turns),
        prefill_rate=rate,
    )


def _invalidated(relation: Relation | None, block_size: int) -> int | None:
    if relation is None:
        return None
    return invalidated_blocks(relation.parent_tokens, relation.common_tokens, block_size)


def _percent(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else round(100 * part / whole, 1)


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
