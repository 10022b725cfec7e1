"""Models with windows or states go on from checkpoints alone (llama.cpp tools/server/README.md)."""

from __future__ import annotations

from analyzer.residuals import Evidence


class Checkpoint:
    """The slot was taken back to an earlier checkpoint"""

    name = "engine.checkpoint"
    rank = 105
    meaning = "the server went back to an earlier checkpoint of its slot than where the prompts part"
    advice = "let llama.cpp keep more checkpoints (--ctx-checkpoints, --checkpoint-min-step), and only append"
    expected = False
    example = Evidence(predicted=128, reported=64, block_size=32, slots=True)

    def holds(self, evidence: Evidence) -> bool:
        """See the meaning."""
        return evidence.slots and evidence.difference < 0 and (evidence.reported or 0) > 0


RESIDUAL = Checkpoint()
