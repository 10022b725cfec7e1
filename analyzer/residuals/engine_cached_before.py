"""The simulation begins with this capture, with an empty cache."""

from __future__ import annotations

from analyzer.residuals import Evidence


class CachedBefore:
    """The server had served other prompts before this capture began"""

    name = "engine.cached_before"
    rank = 90
    meaning = "the server had served other prompts before this capture began"
    advice = "start the capture with the server, or take the first turns for what they are"
    expected = True
    example = Evidence(predicted=128, reported=160, block_size=32, cached_before=True)

    def holds(self, evidence: Evidence) -> bool:
        """See the meaning."""
        return evidence.cached_before and evidence.difference > 0


RESIDUAL = CachedBefore()
