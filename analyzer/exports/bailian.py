"""Writes a trace as Alibaba published Qwen-Bailian's: JSON lines of chats, blocks of 16 tokens.

It writes no prompt of anything but text. Fields as AIPerf 0.13's dataset/loader/models.py (BailianTrace) and
vLLM 0.32's benchmarks/datasets/datasets.py:1417 (TimedTrace) read them.
"""

from __future__ import annotations

from analyzer.exports import Exported, Key, Trace
from analyzer.exports._blocks import BlockNumbers
from analyzer.exports._rows import ancestors, answered, line, rendered, seconds

BLOCK_SIZE = 16
ROOT = -1


class Bailian:
    """JSON lines of chats, 16 tokens a block number, with times in seconds.

    Blocks are compared under a key made for each export, and numbered as they come.
    """

    name = "bailian"

    def export(self, trace: Trace) -> Exported:
        """One line a prompt; a parent that is left out is replaced by its own."""
        notes: list[str] = []
        rows = answered(rendered(trace.rows, notes), notes)
        everyone = {row.key: row for row in trace.rows}
        chats = {row.key: number for number, row in enumerate(rows)}
        turns: dict[Key, int] = {}
        numbers = BlockNumbers(BLOCK_SIZE, first=0)
        parts = []
        for row in rows:
            parent = next((item.key for item in ancestors(row, everyone) if item.key in chats), None)
            turns[row.key] = 1 if parent is None else turns[parent] + 1
            assert row.token_ids is not None
            shape = {
                "chat_id": chats[row.key],
                "parent_chat_id": ROOT if parent is None else chats[parent],
                "timestamp": seconds(row, rows[0].turn.started_at_ns),
                "input_length": len(row.token_ids),
                "output_length": row.output_tokens,
                "type": "text",  # prompts of anything else are left out
                "turn": turns[row.key],
                "hash_ids": numbers.covering(row.token_ids, row.namespace),
            }
            parts.append(line(shape))
        return Exported(parts=tuple(parts), rows=len(rows), notes=tuple(notes))


EXPORT = Bailian()
