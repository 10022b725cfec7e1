"""Which of two comes first is decided within the server."""

from __future__ import annotations

from analyzer.residuals import Evidence


class InFlight:
    """A request that shares more was in flight at the same time"""

    name = "engine.in_flight"
    rank = 100
    meaning = "a request that shares more was in flight at the same time"
    advice = (
        "let the first of several requests with a common head begin its answer before the others are sent"
    )
    expected = True
    example = Evidence(predicted=128, reported=0, block_size=32, in_flight=True)

    def holds(self, evidence: Evidence) -> bool:
        """See the meaning."""
        return evidence.in_flight


RESIDUAL = InFlight()
