"""The count of the server lies far below the rendering's."""

from __future__ import annotations

from analyzer.mismatch import FAR_BELOW
from analyzer.residuals import Evidence


class ServerTruncated:
    """The server counted far fewer prompt tokens than were rendered"""

    name = "server.truncated"
    rank = 20
    meaning = "the server counted far fewer prompt tokens than this prompt has: it did not see all of it"
    advice = (
        "raise the server's context (--max-model-len), or send shorter prompts: what is cut off at the front"
        " takes the cache with it"
    )
    expected = False
    example = Evidence(
        predicted=128, reported=64, block_size=32, suspect=True, prompt_tokens=400, reported_prompt_tokens=160
    )

    def holds(self, evidence: Evidence) -> bool:
        """See the meaning."""
        told, rendered = evidence.reported_prompt_tokens, evidence.prompt_tokens
        return told is not None and rendered is not None and told * FAR_BELOW < rendered


RESIDUAL = ServerTruncated()
