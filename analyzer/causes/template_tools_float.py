"""The template prints the tools before the last message of the user, and so elsewhere at each new one.

Tools that changed are another cause's.
"""

from __future__ import annotations

from analyzer.causes import Example, Found
from analyzer.causes._bodies import item_path, same_value, shown_next
from analyzer.causes._templates import TOOLS_BEFORE_LAST_USER
from analyzer.change import Change, View

_FIRST = [{"role": "user", "content": "List the files."}]
_TOOLS = [
    {"type": "function", "function": {"name": "glob", "description": "Find files", "parameters": {}}},
]


class TemplateToolsFloat:
    """The template moves the tools to the newest message of the user"""

    name = "template.tools_float"
    rank = 52
    example = Example(
        before={"messages": _FIRST, "tools": _TOOLS},
        after={
            "messages": [
                *_FIRST,
                {"role": "assistant", "content": "There are two."},
                {"role": "user", "content": "Name them."},
            ],
            "tools": _TOOLS,
        },
        template=TOOLS_BEFORE_LAST_USER,
    )

    def find(self, change: Change) -> Found | None:
        """Equal tools, shown at the divergence by the parent and behind it by the child."""
        before, after = change.before, change.after
        shown, instead = shown_next(before), shown_next(after)
        if shown is None or instead is None or not shown.path.startswith("tools["):
            return None
        message = item_path(instead.path)
        same_tools = before.body.get("tools") == after.body.get("tools")
        if not same_tools or message is None or not same_value(change, message):
            return None
        if (moved := _tools_behind(after)) is None:
            return None
        return Found(
            evidence=f"the tools stood at character {shown.char_start} and now stand at {moved}",
            advice="serve with a chat template that prints tools once, at the head",
            path="tools[0]",
        )


def _tools_behind(view: View) -> int | None:
    return next((span.char_start for span in view.spans if span.path.startswith("tools[")), None)


CAUSE = TemplateToolsFloat()
