"""Rows, findings and reports made by hand: all that is not given is unknown."""

from __future__ import annotations

from typing import Any

from analyzer.core import Divergence, Finding
from analyzer.prefill_rate import prefill_rate, with_seconds
from analyzer.report import Report, Server, Turn
from analyzer.turns import summarise

_UNKNOWN = dict.fromkeys(
    (
        "conversation",
        "turn",
        "parent",
        "model",
        "ttft_ns",
        "duration_ns",
        "prompt_tokens",
        "reported_prompt_tokens",
        "token_source",
        "rendering",
        "conversation_rendering",
        "common_prefix_tokens",
        "reusable_tokens",
        "reusable_prefix_pct",
        "block_size",
        "prompt_blocks",
        "reusable_blocks",
        "invalidated_blocks",
        "predicted_cached_tokens",
        "reported_cached_tokens",
        "cache",
        "append",
        "divergence",
        "problem",
    )
)


def row(**known: Any) -> Turn:
    """One turn."""
    path = "/v1/chat/completions"
    start = {"id": 1, "prompt_index": 0, "dialect": "chat", "path": path, "status": 200, "outcome": "done"}
    return Turn(**{**_UNKNOWN, **start, "started_at_ns": 0, **known})


def finding(**known: Any) -> Finding:
    """One finding: a clock in the system text."""
    usual = {
        "cause": "volatile.clock",
        "kind": None,
        "path": "messages[0].content",
        "char": 14,
        "token": 17,
        "tokens": 700,
        "blocks": 43,
        "expected": False,
        "before": "09:00:47\n\nYou are a coding agent with four tools.",
        "after": "09:01:34\n\nYou are a coding agent with four tools.",
        "evidence": "the clock went on by 47 seconds",
        "advice": "print the date alone in messages[0].content",
    }
    return Finding(**{**usual, **known})


def later(number: int, *findings: Finding, **known: Any) -> Turn:
    """Turn `number` of one conversation: it appends, or leaves its parent as its findings say."""
    tokens = 1000 + 100 * number
    lost = sum(each.tokens or 0 for each in findings)
    blocks = (tokens - 100) // 16 - (tokens - 100 - lost) // 16
    first = findings[0] if findings else None
    parted = first and Divergence(
        token=first.token,
        block=first.token // 16,
        path=first.path,
        char=first.char,
        before=first.before,
        after=first.after,
    )
    usual = {
        "id": number,
        "conversation": 1,
        "turn": number,
        "parent": number - 1 if number > 1 else None,
        "prompt_tokens": tokens,
        "reported_prompt_tokens": tokens,
        "token_source": "jinja",
        "rendering": "exact",
        "conversation_rendering": "exact",
        "common_prefix_tokens": tokens - 100 - lost,
        "reusable_tokens": (tokens - 100 - lost) // 16 * 16 if number > 1 else None,
        "reusable_prefix_pct": round(100 * ((tokens - 100 - lost) // 16 * 16) / tokens, 1),
        "block_size": 16,
        "prompt_blocks": tokens // 16,
        "invalidated_blocks": blocks if number > 1 else None,
        "predicted_cached_tokens": 512,
        "reported_cached_tokens": 512,
        "cache": "exact",
        "append": not findings if number > 1 else None,
        "divergence": parted,
        "findings": findings,
        "first_token_ns": round(1e9 * (0.2 + (tokens - 512) / 4000)),
    }
    return row(**{**usual, **known})


def report(*turns: Turn, problems: tuple[str, ...] = (), **server: Any) -> Report:
    """A report of these rows, totals and all."""
    rate = prefill_rate(turns)
    priced = with_seconds(turns, rate)
    known = {
        "engine": "vllm",
        "version": "0.32.0",
        "model": "tiny",
        "block_size": 16,
        "pool_blocks": 4096,
        "max_model_len": 32768,
        "tokenizer": None,
        "tokenizer_backend": None,
        "assumed": (),
    }
    return Report(
        exchanges=len({turn.id for turn in turns}),
        redaction="secrets",
        server=Server(**{**known, **server}),
        summary=summarise(priced, rate),
        turns=priced,
        problems=problems,
    )
