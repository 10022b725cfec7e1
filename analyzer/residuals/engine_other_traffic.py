"""By the server's own counters."""

from __future__ import annotations

from analyzer.residuals import Evidence


class OtherTraffic:
    """The server looked up more tokens than were captured"""

    name = "engine.other_traffic"
    rank = 120
    meaning = "the server looked up more tokens than were captured: others talk to it too"
    advice = "capture all of them, by giving every client the proxy's URL"
    expected = True
    example = Evidence(predicted=128, reported=160, block_size=32, other_traffic=True)

    def holds(self, evidence: Evidence) -> bool:
        """See the meaning."""
        return evidence.other_traffic and evidence.difference > 0


RESIDUAL = OtherTraffic()
