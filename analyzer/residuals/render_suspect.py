"""A prediction is worth no more than the renderings it is made from."""

from __future__ import annotations

from analyzer.residuals import Evidence


class RenderSuspect:
    """The server contradicts a rendering on which the prediction rests"""

    name = "render.suspect"
    rank = 30
    meaning = "the server contradicts a rendering that the prediction rests on"
    advice = "see the row for the likely reason; give --serve-command or --tokenizer, or ask --server"
    expected = False
    example = Evidence(predicted=128, reported=96, block_size=32, suspect=True)

    def holds(self, evidence: Evidence) -> bool:
        """See the meaning."""
        return evidence.suspect


RESIDUAL = RenderSuspect()
