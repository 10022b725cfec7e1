"""The chat template prints earlier reasoning no more: it keeps it only behind the last message of a user.

Both bodies hold the reasoning; a client that stopped sending it is another cause's.
"""

from __future__ import annotations

from analyzer.body_paths import MISSING, value_at
from analyzer.causes import Example, Found
from analyzer.causes._templates import STRIPS_REASONING
from analyzer.change import Change

_FIRST = [
    {"role": "user", "content": "List the files."},
    {"role": "assistant", "content": "There are two.", "reasoning_content": "I counted them."},
]


class TemplateThinkStrip:
    """The template drops reasoning of earlier turns once a new user message arrives"""

    name = "template.think_strip"
    rank = 300
    example = Example(
        before={"messages": [*_FIRST, {"role": "assistant", "content": "Anything else?"}]},
        after={
            "messages": [
                *_FIRST,
                {"role": "assistant", "content": "Anything else?"},
                {"role": "user", "content": "No."},
            ]
        },
        template=STRIPS_REASONING,
    )

    def find(self, change: Change) -> Found | None:
        """Reasoning that both bodies hold, at the divergence in the parent's text and not in the child's."""
        path = _reasoning_behind(change)
        if path is None or value_at(change.before.body, path) != value_at(change.after.body, path):
            return None
        return Found(
            evidence="the chat template no longer prints the reasoning of an earlier answer",
            advice="by design of the template; if it has a switch that keeps reasoning (preserve or clear"
            f" thinking), set it in chat_template_kwargs, and go on sending {path}",
            path=path,
            char=0,
            expected=True,
        )


def _reasoning_behind(change: Change) -> str | None:
    """The path of the reasoning that the parent's text shows next, and the child's does not show there."""
    before, after = change.before, change.after
    span = next((each for each in before.spans if each.char_end > before.char), None)
    if span is None or not _is_reasoning(span.path) or value_at(after.body, span.path) is MISSING:
        return None
    following = next((each for each in after.spans if each.char_end > after.char), None)
    return None if following is not None and following.path == span.path else span.path


def _is_reasoning(path: str) -> bool:
    return path.rpartition(".")[2] in ("reasoning", "reasoning_content", "thinking")


CAUSE = TemplateThinkStrip()
