"""Once one request went another way, a full pool gives up other blocks than here: more or less is hit."""

from __future__ import annotations

from analyzer.residuals import Evidence


class Evicted:
    """The pool was full, or is of unknown size"""

    name = "engine.evicted"
    rank = 130
    meaning = "the pool was full, or is of unknown size: what was taken for cached may be gone"
    advice = (
        "give the cache more memory (--gpu-memory-utilization), or run fewer sessions; --pool-sweep tells"
        " what more would bring"
    )
    expected = False
    example = Evidence(predicted=128, reported=96, block_size=32, full_pool=True)

    def holds(self, evidence: Evidence) -> bool:
        """See the meaning."""
        less = evidence.difference < 0
        return bool(evidence.full_pool or (less and (evidence.full_pool is None or evidence.other_traffic)))


RESIDUAL = Evicted()
