"""The system text holds a picture of the surroundings that was taken anew: git status, files, facts.

Shapes are `analyzer.volatile_shapes`'.
"""

from __future__ import annotations

from analyzer.body_paths import Edit
from analyzer.causes import Example, Found
from analyzer.causes._heads import Head, found_by, head_of, short, snapshots
from analyzer.change import Change
from analyzer.text_changes import line_around
from analyzer.volatile_shapes import is_reordered

_REST = [{"role": "user", "content": "Which files are there?"}]
_ADVICE = "take the picture of the surroundings in {path} once per session, without counters and sorted, or send it in the newest message"  # noqa: E501


class VolatileEnvSnapshot:
    """Paths, git status, counters or listed facts in the system text are others, or in another order"""

    name = "volatile.env_snapshot"
    rank = 140
    example = Example(
        before={"messages": [{"role": "system", "content": "Be brief.\nRepo:\nclean\n"}, *_REST]},
        after={"messages": [{"role": "system", "content": "Be brief.\nRepo:\n M a.txt\n"}, *_REST]},
    )

    def find(self, change: Change) -> Found | None:
        """The same lines in another order, or differing lines that all look like a state of things."""
        head = head_of(change)
        if head is None or not is_reordered(head.before, head.after):
            return found_by(change, snapshots, _ADVICE)
        return _reordered(head, head.path or change.after.next_path or "system")


def _reordered(head: Head, path: str) -> Found:
    first = head.first
    line = line_around(head.after, first.after_start, first.after_start)
    whole = (Edit(kind="set", path=head.path, value=head.before),) if head.path else head.restore
    return Found(
        evidence=f"the system text has the same lines in another order, from {short(line)} on",
        advice=_ADVICE.format(path=path),
        kind="reordered",
        restore=whole,
    )


CAUSE = VolatileEnvSnapshot()
