"""A date or time in the system text went on: what is behind it is computed anew at every tick.

The formats are `analyzer.moments`'. A date that a chat template prints is another cause's.
"""

from __future__ import annotations

from dataclasses import replace

from analyzer.causes import Example, Found
from analyzer.causes._heads import clock_at, clocks, found_by, head_of
from analyzer.change import Change

_REST = [{"role": "user", "content": "Which files are there?"}]


class VolatileClock:
    """A date or time in the system text went on"""

    name = "volatile.clock"
    rank = 120
    example = Example(
        before={"messages": [{"role": "system", "content": "It is 2031-05-06 14:03:22. Be brief."}, *_REST]},
        after={"messages": [{"role": "system", "content": "It is 2031-05-06 14:03:41. Be brief."}, *_REST]},
    )

    def find(self, change: Change) -> Found | None:
        """Two readings of one format in one place of the system text, the child's later."""
        head = head_of(change)
        ticks = None if head is None else clock_at(head.before, head.after, head.first)
        if ticks is None:
            return None
        grain = ticks[0].grain
        if grain in ("second", "minute"):
            advice = "print the date alone in {path}, or move the time to the newest message"
            return found_by(change, clocks, advice, kind=grain)
        advice = (
            "a one-off, the next turn should hit; keep the date in {path} as it was at the session's start"
        )
        found = found_by(change, clocks, advice, kind="rollover")
        return found and replace(found, evidence=f"a new {grain} began: {found.evidence}")


CAUSE = VolatileClock()
