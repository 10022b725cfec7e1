"""A prompt whose client left may have waited in the server's queue, and never have been computed."""

from __future__ import annotations

from analyzer.residuals import Evidence


class ClientGone:
    """What would have been hit is of a client that left before any answer"""

    name = "engine.client_gone"
    rank = 75
    meaning = (
        "what would have been hit is of a client that left before any answer: the server may never have"
        " computed it"
    )
    advice = "nothing is wrong with the prompt; a longer timeout of the client's keeps what is computed"
    expected = True
    example = Evidence(predicted=128, reported=0, block_size=32, client_gone=True)

    def holds(self, evidence: Evidence) -> bool:
        """See the meaning."""
        return evidence.client_gone


RESIDUAL = ClientGone()
