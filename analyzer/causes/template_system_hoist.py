"""A system message that was appended is printed at the head, before all that was there already.

The template may do it, or the server where its template takes system messages at the head only
(vLLM 0.32 entrypoints/anthropic/serving.py:352-404). A changed system message is another cause's.
"""

from __future__ import annotations

from analyzer.body_paths import value_at
from analyzer.causes import Example, Found
from analyzer.causes._bodies import appends, item_index, item_path, items, shown_next
from analyzer.causes._templates import HOISTS_SYSTEM
from analyzer.change import Change

_FIRST = [
    {"role": "system", "content": "You keep the files."},
    {"role": "user", "content": "List the files."},
    {"role": "assistant", "content": "There are two."},
]
_MORE = [{"role": "system", "content": "left: 900"}, {"role": "user", "content": "Name them."}]


class TemplateSystemHoist:
    """A system message from within the conversation is printed at the head"""

    name = "template.system_hoist"
    rank = 32
    example = Example(
        before={"messages": _FIRST}, after={"messages": [*_FIRST, *_MORE]}, template=HOISTS_SYSTEM
    )

    def find(self, change: Change) -> Found | None:
        """New system text at the divergence, in front of the text of an earlier message."""
        shown = shown_next(change.after)
        at = item_index(shown.path) if shown else None
        if shown is None or at is None or at < len(items(change.before.body)):
            return None
        item = value_at(change.after.body, item_path(shown.path) or "")
        if item.get("role") not in ("system", "developer") or not appends(change):
            return None
        behind = (item_index(span.path) for span in change.after.spans if span.char_start > shown.char_start)
        if not any(index is not None and index < at for index in behind):
            return None
        return Found(
            evidence="a system message that was appended is printed before the conversation",
            advice=f"send {item_path(shown.path)} as text of the user or in a tool result, switch the"
            " reminder off (Claude Code: CLAUDE_CODE_TOTAL_TOKENS_REMINDER=off), or serve with a template"
            " that takes system messages in place",
            path=shown.path,
            char=shown.path_char if shown.exact else None,
        )


CAUSE = TemplateSystemHoist()
