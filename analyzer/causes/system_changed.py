"""The system text is another one, and not by a clock, an id or a picture of the surroundings.

Whatever has a label of its own is asked first.
"""

from __future__ import annotations

from analyzer.causes import Example, Found
from analyzer.causes._heads import anything_else, head_of, short
from analyzer.change import Change
from analyzer.text_changes import line_around, text_changes

_REST = [{"role": "user", "content": "Which files are there?"}]


class SystemChanged:
    """The system text is another one, and not by a clock, an id or a picture of the surroundings"""

    name = "system.changed"
    rank = 180
    example = Example(
        before={"messages": [{"role": "system", "content": "You are the planner. Be brief."}, *_REST]},
        after={"messages": [{"role": "system", "content": "You are the builder. Be brief."}, *_REST]},
    )

    def find(self, change: Change) -> Found | None:
        """A system text on either side that differs."""
        head = head_of(change)
        if head is None or head.raw:
            return None
        first = head.first
        before = line_around(head.before, first.before_start, first.before_end)
        after = line_around(head.after, first.after_start, first.after_end)
        alone = len(text_changes(head.before, head.after)) == 1
        rest = "; the rest of it is identical" if alone else ""
        return Found(
            evidence=f"the system text was changed: {short(before)} became {short(after)}{rest}",
            advice=f"send the same {head.path or change.after.next_path or 'system'} at every turn",
            restore=head.put_back(anything_else),
        )


CAUSE = SystemChanged()
