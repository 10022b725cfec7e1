"""An id in the system text is made anew for every request: a hash, a session id, a random folder name.

Shapes are `analyzer.volatile_shapes`'. Words, numbers and versions are no ids.
"""

from __future__ import annotations

from analyzer.causes import Example, Found
from analyzer.causes._heads import found_by, head_of, ids_made_anew
from analyzer.change import Change

_REST = [{"role": "user", "content": "Which files are there?"}]
_BILLING = "x-anthropic-billing-header"


class VolatileHeadNonce:
    """An id in the system text is another one at every request"""

    name = "volatile.head_nonce"
    rank = 130
    example = Example(
        before={"messages": [{"role": "system", "content": "x-attr: v=9; h=a1b2c;\nBe brief."}, *_REST]},
        after={"messages": [{"role": "system", "content": "x-attr: v=9; h=9f00d;\nBe brief."}, *_REST]},
    )

    def find(self, change: Change) -> Found | None:
        """Two ids of one shape in one place of the system text."""
        head = head_of(change)
        advice = "leave the id out of {path}, or keep it for the whole session"
        if head is not None and _BILLING in head.after[: len(_BILLING) + 16]:
            advice += (
                "; the line is Claude Code's: CLAUDE_CODE_ATTRIBUTION_HEADER=0 in its settings turns it off,"
                " and vLLM drops it where it begins its block"
            )
        return found_by(change, ids_made_anew, advice)


CAUSE = VolatileHeadNonce()
