"""Writes a trace as Mooncake published its own (FAST '25): JSON lines, blocks of 512 tokens.

There are no sessions in it: every line holds a whole prompt, and AIPerf 0.13 sends lines of one `session_id`
as one growing conversation. Fields as its dataset/loader/models.py (MooncakeTrace) and vLLM 0.32's
benchmarks/datasets/datasets.py:1417 (TimedTrace) read them.
"""

from __future__ import annotations

from typing import Any

from analyzer.exports import Exported, Row, Trace
from analyzer.exports._blocks import BlockNumbers
from analyzer.exports._rows import line, rendered

BLOCK_SIZE = 512


class Mooncake:
    """JSON lines of block numbers, 512 tokens each, with times in milliseconds.

    N numbers stand for more than (N-1) * 512 and at most N * 512 tokens.
    """

    name = "mooncake"

    def export(self, trace: Trace) -> Exported:
        """One line a prompt; without `output_length` where nobody counted the answer."""
        notes: list[str] = []
        rows = rendered(trace.rows, notes)
        numbers = BlockNumbers(BLOCK_SIZE, first=0)
        parts = tuple(line(_shape(row, rows[0].turn.started_at_ns, numbers)) for row in rows)
        if unknown := sum(row.output_tokens is None for row in rows):
            notes.append(
                f"{unknown} of {len(rows)} lines have no output_length: nobody counted the answer's tokens"
                " (vllm bench refuses such a line, AIPerf sends no limit)"
            )
        return Exported(parts=parts, rows=len(rows), notes=tuple(notes))


def _shape(row: Row, start_ns: int, numbers: BlockNumbers) -> dict[str, Any]:
    assert row.token_ids is not None
    output = {} if row.output_tokens is None else {"output_length": row.output_tokens}
    return {
        "timestamp": (row.turn.started_at_ns - start_ns) // 1_000_000,
        "input_length": len(row.token_ids),
        **output,
        "hash_ids": numbers.covering(row.token_ids, row.namespace),
    }


EXPORT = Mooncake()
