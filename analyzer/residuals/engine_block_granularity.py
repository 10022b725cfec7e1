"""Only whole blocks are reused, and only the server knows how long they are."""

from __future__ import annotations

from analyzer.residuals import Evidence


class BlockGranularity:
    """The difference is less than a block, or the hit no multiple of the block size"""

    name = "engine.block_granularity"
    rank = 50
    meaning = (
        "the server's hit is no multiple of the block size taken here, or the difference is less than a block"
    )
    advice = "give the server's own --block-size; less than one of a hybrid model's large ones never hits"
    expected = True
    example = Evidence(predicted=128, reported=112, block_size=32)

    def holds(self, evidence: Evidence) -> bool:
        """See the meaning."""
        if evidence.predicted is None or evidence.reported is None:
            return False
        return bool(evidence.reported % evidence.block_size) or abs(evidence.difference) < evidence.block_size


RESIDUAL = BlockGranularity()
