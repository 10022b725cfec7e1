"""vLLM 0.32 config/speculative.py:1944-1952."""

from __future__ import annotations

from analyzer.residuals import Evidence


class SpecDrop:
    """Speculative decoding gives up the last block of a hit"""

    name = "engine.spec_drop"
    rank = 60
    meaning = "one block less, which speculative decoding gives up at the end of a hit"
    advice = "expected with this drafter: it costs one block at every turn"
    expected = True
    example = Evidence(predicted=128, reported=96, block_size=32, speculation=True)

    def holds(self, evidence: Evidence) -> bool:
        """See the meaning."""
        return evidence.speculation and evidence.difference == -evidence.block_size


RESIDUAL = SpecDrop()
