"""Traces made by hand, for tests of formats that need no capture."""

from __future__ import annotations

from typing import Any

import numpy as np

from analyzer.exports import Row, Trace
from tests.analyzer.rows import row as turn

SECOND = 10**9


def made(number: int, tokens: list[int] | None, **known: Any) -> Row:
    """Prompt `number` of conversation 1, a second after the one before it; its answer took half a second."""
    of_turn = {
        "id": number,
        "conversation": 1,
        "turn": number,
        "started_at_ns": number * SECOND,
        "duration_ns": SECOND // 2,
        "model": "tiny",
        "prompt_tokens": None if tokens is None else len(tokens),
    }
    of_turn |= {
        name: known.pop(name) for name in list(known) if name in (*of_turn, "status", "outcome", "ttft_ns")
    }
    usual = {
        "key": (number, 0),
        "parent": None,
        "namespace": (None, None),
        "model": "tiny",
        "streams": False,
        "media": False,
        "output_tokens": 3,
        "output_retokenized": False,
        "finish": None,
    }
    ids = None if tokens is None else np.array(tokens, dtype=np.int32)
    return Row(turn=turn(**of_turn), token_ids=ids, **(usual | known))


def trace(*rows: Row) -> Trace:
    """A trace of these rows."""
    return Trace(rows=rows, engine="vllm")
