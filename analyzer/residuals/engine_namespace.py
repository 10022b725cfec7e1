"""vLLM 0.32 v1/core/kv_cache_utils.py:646-663."""

from __future__ import annotations

from analyzer.residuals import Evidence


class OtherNamespace:
    """What would have been hit was cached under another model name"""

    name = "engine.namespace"
    rank = 70
    meaning = "what would have been hit was cached under another model name"
    advice = (
        "by design: adapters and salts share nothing; send one model and one cache_salt for what shall share"
    )
    expected = True
    example = Evidence(predicted=128, reported=0, block_size=32, namespace=True)

    def holds(self, evidence: Evidence) -> bool:
        """See the meaning."""
        return evidence.namespace


RESIDUAL = OtherNamespace()
