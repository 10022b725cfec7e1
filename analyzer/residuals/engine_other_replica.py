"""The load balancer does not look at prefixes (vLLM 0.32 data parallel)."""

from __future__ import annotations

from analyzer.residuals import Evidence


class OtherReplica:
    """The server has several engines, each with a cache of its own"""

    name = "engine.other_replica"
    rank = 110
    meaning = "the server has several engines, each with a cache of its own"
    advice = "send a conversation always to the same one: session affinity, or a router that knows prefixes"
    expected = False
    example = Evidence(predicted=128, reported=96, block_size=32, several_engines=True)

    def holds(self, evidence: Evidence) -> bool:
        """See the meaning."""
        return evidence.several_engines


RESIDUAL = OtherReplica()
