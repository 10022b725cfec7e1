"""The system text is another one, and not by a clock or a counter.

Whatever has a label of its own is asked first.
"""

from __future__ import annotations

from analyzer.body_paths import restored
from analyzer.causes import Example, Found
from analyzer.change import Change

_REST = [{"role": "user", "content": "Which files are there?"}]


class SystemChanged:
    """The system text is another one, and not by a clock or a counter"""

    name = "system.changed"
    rank = 180
    example = Example(
        before={"messages": [{"role": "system", "content": "You are the planner. Be brief."}, *_REST]},
        after={"messages": [{"role": "system", "content": "You are the builder. Be brief."}, *_REST]},
    )

    def find(self, change: Change) -> Found | None:
        """A system text on both sides that differs."""
        before, after = change.before, change.after
        if before.role != "system" or after.role != "system" or before.path != after.path:
            return None
        assert after.path is not None
        return Found(
            evidence="the system text was changed",
            advice=f"send the same {after.path} at every turn of a session",
            restore=(restored(after.path, before.body),),
        )


CAUSE = SystemChanged()
