"""The chat template prints earlier reasoning no more: it keeps it only behind the last message of a user.

Both bodies hold the reasoning; a client that stopped sending it is another cause's.
"""

from __future__ import annotations

import re

from analyzer.body_paths import value_at
from analyzer.causes import Example, Found
from analyzer.causes._bodies import (
    appends,
    is_reasoning,
    items,
    last_user,
    role,
    same_value,
    shown_next,
)
from analyzer.causes._templates import STRIPS_REASONING
from analyzer.change import Change, View

_EMPTY = re.compile(r"<(\w*think\w*|reasoning)>\s*</\1>|\[THINK\]\s*\[/THINK\]")
_ENDS = re.compile(r"</\w*think\w*>|</reasoning>|\[/THINK\]")
_NEAR = 40
_FIRST = [
    {"role": "user", "content": "List the files."},
    {"role": "assistant", "content": "There are two.", "reasoning_content": "I counted them."},
]


class TemplateThinkStrip:
    """The template drops reasoning of earlier turns once a new user message arrives"""

    name = "template.think_strip"
    rank = 70
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
        trigger = _trigger(change)
        if trigger is None or change.in_generation_prompt:
            return None
        field = _reasoning(change)
        if field is not None:
            path, char = field
            return Found(
                evidence=f"the chat template no longer prints the reasoning of an earlier answer: {trigger}",
                advice="by design of the template; if it has a switch that keeps reasoning (preserve or clear"
                f" thinking), set it in chat_template_kwargs, and go on sending {path}",
                path=path,
                char=char,
                expected=True,
            )
        if not _had_empty_block(change):
            return None
        return Found(
            evidence=f"the chat template no longer prints an empty block for reasoning: {trigger}",
            advice="serve with a chat template that always prints a block for reasoning, or only a full one",
            kind="empty_wrapper",
            path="template",
            expected=True,
        )


def _reasoning(change: Change) -> tuple[str, int] | None:
    """The field whose reasoning the parent shows next and the child does not, and where that begins."""
    shown, instead = shown_next(change.before), shown_next(change.after)
    if shown is None or not same_value(change, shown.path):
        return None
    again = instead is not None and instead.path == shown.path
    if is_reasoning(change.before.body, shown.path):
        return None if again else (shown.path, 0)
    if instead is None or not again or instead.path_char <= shown.path_char:
        return None
    text = value_at(change.before.body, shown.path)
    start = shown.path_char + max(0, change.before.char - shown.char_start)
    skipped = text[start : instead.path_char + max(0, change.after.char - instead.char_start)]
    return (shown.path, start) if isinstance(text, str) and _ENDS.search(skipped) else None


def _had_empty_block(change: Change) -> bool:
    """Whether the parent shows a block with nothing in it, where the child shows none."""
    before, after = change.before, change.after
    found = _EMPTY.finditer(before.text, max(0, before.char - _NEAR), before.char + 2 * _NEAR)
    block = next((each for each in found if each.end() > before.char), None)
    if block is None or before.text[before.char : block.start()].strip():
        return False
    return _EMPTY.match(after.text, block.start()) is None


def _trigger(change: Change) -> str | None:
    """What made the template look upon earlier answers as done with; None where nothing new did."""
    before, after = change.before, change.after
    newest = last_user(after.body)
    if newest > last_user(before.body):
        return _told(before, items(after.body)[newest])
    kwargs = [view.conversation.template_kwargs for view in (before, after)]
    return "a later answer followed" if appends(change) and kwargs[0] == kwargs[1] else None


def _told(before: View, message: object) -> str:
    said = items(before.body)
    content = message.get("content") if isinstance(message, dict) else None
    texts = [content] if isinstance(content, str) else content if isinstance(content, list) else []
    first = texts[0].get("text", "") if texts and isinstance(texts[0], dict) else texts[0] if texts else ""
    if str(first).lstrip().startswith("<"):
        return "a reminder came as a message of the user"
    if said and role(said[-1]) == "tool":
        return "a message of the user came after tool results"
    return "a new message of the user came"


CAUSE = TemplateThinkStrip()
