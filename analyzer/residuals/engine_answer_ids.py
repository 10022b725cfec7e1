"""An answer tokenized again need not be what was sampled."""

from __future__ import annotations

from analyzer.residuals import Evidence


class AnswerIds:
    """It lies within an earlier answer whose token ids the server did not send"""

    name = "engine.answer_ids"
    rank = 80
    meaning = "it lies within an earlier answer whose token ids the server did not send"
    advice = "ask for return_token_ids, and the ids of answers are known"
    expected = False
    example = Evidence(predicted=128, reported=160, block_size=32, answer_ids=True)

    def holds(self, evidence: Evidence) -> bool:
        """See the meaning."""
        return evidence.answer_ids


RESIDUAL = AnswerIds()
