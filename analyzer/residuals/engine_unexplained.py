"""Said plainly, rather than guessed."""

from __future__ import annotations

from analyzer.residuals import Evidence


class Unexplained:
    """None of the known reasons fits"""

    name = "engine.unexplained"
    rank = 900
    meaning = "unexplained: none of the known reasons fits"
    advice = (
        "compare both numbers; locality verify --server tells whether the renderings are the server's. A"
        " server without counters in /metrics may also have served these prompts before the capture began"
    )
    expected = False
    example = Evidence(predicted=128, reported=96, block_size=32)

    def holds(self, evidence: Evidence) -> bool:
        """See the meaning."""
        return True


RESIDUAL = Unexplained()
