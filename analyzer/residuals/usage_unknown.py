"""Where usage holds no count of cached tokens: unknown, and never shown as 0."""

from __future__ import annotations

from analyzer.residuals import Evidence


class UsageUnknown:
    """The server did not say how much of a prompt it had cached"""

    name = "usage.unknown"
    rank = 10
    meaning = "the server did not say how much of this prompt it had cached"
    advice = (
        "start vLLM with --enable-prompt-tokens-details, and ask streams for stream_options.include_usage"
    )
    expected = False
    example = Evidence(predicted=128, reported=None, block_size=32)

    def holds(self, evidence: Evidence) -> bool:
        """See the meaning."""
        return evidence.reported is None


RESIDUAL = UsageUnknown()
