"""The child's text begins with all of the parent's and its tokens do not: the last ones merged on.

It asks only for the parent's end; where texts differ, tokens may merge there too, and that is nobody's fault.
"""

from __future__ import annotations

from analyzer.causes import Example, Found
from analyzer.change import Change

MOST_TOKENS = 4
"""How many tokens of the parent a merge can take (field rule); more are another rendering's."""


class TokenBoundaryMerge:
    """The last tokens of the parent's prompt merged with the text that follows"""

    name = "token.boundary_merge"
    rank = 10
    example = Example(
        before={"prompt": "Count the boat"}, after={"prompt": "Count the boats."}, dialect="completions"
    )

    def find(self, change: Change) -> Found | None:
        """The whole parent text in front of the child's, and a difference within its last tokens."""
        whole = change.before.char >= len(change.before.text)
        if not whole or change.answer is not None or not 0 < change.lost_tokens <= MOST_TOKENS:
            return None
        return Found(
            evidence="the text goes on unchanged; its last tokens are others together with what follows",
            advice="harmless, except on an engine that reuses all of a prompt or nothing",
            expected=True,
        )


CAUSE = TokenBoundaryMerge()
