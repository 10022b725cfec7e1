"""Reasoning is sent under a name that the template does not read, so its text is not in the prompt.

Reasoning that is not sent at all is another cause's; so is what the template drops by design.
"""

from __future__ import annotations

from analyzer.body_paths import MISSING, restored, value_at
from analyzer.causes import Example, Found
from analyzer.causes._bodies import is_reasoning, item_path, shown_next, strings
from analyzer.causes._templates import PLAIN
from analyzer.change import Change

_SAID = {"role": "assistant", "content": "There are two."}
_FIRST = {"role": "user", "content": "List the files."}
_NEXT = {"role": "user", "content": "Name them."}


class TemplateReasoningIgnored:
    """Reasoning is sent back under a name that is not read"""

    name = "template.reasoning_ignored"
    rank = 80
    example = Example(
        before={"messages": [_FIRST, _SAID | {"reasoning": "I counted them."}, _NEXT]},
        after={"messages": [_FIRST, _SAID | {"thinking": "I counted them."}, _NEXT]},
        template=PLAIN,
    )

    def find(self, change: Change) -> Found | None:
        """Reasoning that the parent shows next, and that the child's message holds under another name."""
        shown = shown_next(change.before)
        if shown is None or not is_reasoning(change.before.body, shown.path):
            return None
        after = change.after.body
        if value_at(after, shown.path) is not MISSING:
            return None
        text, message = value_at(change.before.body, shown.path), item_path(shown.path)
        if not text or message is None:
            return None
        found = [path for path, other in strings(value_at(after, message), message) if other == text]
        if not found or any(span.path in found for span in change.after.spans):
            return None
        return Found(
            evidence="the reasoning is still sent, under another name, and is not in the prompt",
            advice=f"send it as {shown.path} again: {found[0]} is read by nobody",
            path=found[0],
            char=0,
            restore=(restored(shown.path, change.before.body),),
        )


CAUSE = TemplateReasoningIgnored()
