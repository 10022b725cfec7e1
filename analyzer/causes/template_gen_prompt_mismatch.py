"""The parent's prompt ended in a way in which the template does not begin an answer of the past.

All that was sent is still there; only the few tokens that opened the answer are lost.
"""

from __future__ import annotations

from analyzer.causes import Example, Found
from analyzer.causes._bodies import new_items, role
from analyzer.causes._templates import OPENS_WITH_THINK
from analyzer.change import Change

_FIRST = [{"role": "user", "content": "List the files."}]


class TemplateGenPromptMismatch:
    """The template opens an answer otherwise than it prints one of the past"""

    name = "template.gen_prompt_mismatch"
    rank = 22
    example = Example(
        before={"messages": _FIRST},
        after={
            "messages": [
                *_FIRST,
                {"role": "assistant", "content": "There are two."},
                {"role": "user", "content": "Name them."},
            ]
        },
        template=OPENS_WITH_THINK,
    )

    def find(self, change: Change) -> Found | None:
        """A difference between the end of what was sent and the end of the parent's prompt."""
        before = change.before
        if not change.in_generation_prompt or before.char >= len(before.text):
            return None
        added = new_items(change)
        if not added or role(added[0]) != "assistant":
            return Found(
                evidence="the parent's answer is not in this request, so its opening is not either",
                advice="nothing to do: no answer was sent back, and all that was sent before is kept",
                kind="unanswered",
                expected=True,
            )
        return Found(
            evidence=f"the parent's prompt opened its answer with {_opening(change)!r}, and history does not",
            advice="use a chat template that prints an answer of the past with the opening it was generated"
            " behind (an empty think block, most often)",
        )


def _opening(change: Change) -> str:
    return change.before.text[change.history_end :][:80]


CAUSE = TemplateGenPromptMismatch()
