"""Tools came or went between two turns: those behind the first of them, and all messages, are computed anew.

A list that is gone as a whole is another cause's.
"""

from __future__ import annotations

from typing import Any

from analyzer.body_paths import Edit, restored
from analyzer.causes import Example, Found
from analyzer.causes._tools import Lists, before_tools_end, in_another_field, tool_lists, tools_in
from analyzer.causes._toys import TOOLS, asked
from analyzer.change import Change


class ToolsSetChanged:
    """Tools were added or removed"""

    name = "tools.set_changed"
    rank = 50
    example = Example(before=asked(TOOLS[:2]), after=asked(TOOLS))

    def find(self, change: Change) -> Found | None:
        """Names on one side only, and another tool at the divergence than before."""
        if not tools_in(change.before):
            return _first_tools(change)
        lists = tool_lists(change)
        if lists is None or lists.same_tool or (lists.named_alike and lists.unique):
            return None
        added = [name for name in lists.names_after if name not in lists.names_before]
        removed = [name for name in lists.names_before if name not in lists.names_after]
        told = [
            f"{word} {', '.join(names)}" for word, names in (("added", added), ("removed", removed)) if names
        ]
        return Found(
            evidence=f"tools {' and '.join(told) or 'doubled'}",
            advice="send one list in tools for the whole session, and refuse at run time what is not allowed",
            path=f"tools[{lists.at}]" if change.in_template else None,
            restore=(Edit(kind="set", path="tools", value=_given_back(lists)),),
        )


def _given_back(lists: Lists) -> list[Any]:
    """The child's tools without the new ones, and the parent's that are gone in their places."""
    if not lists.unique:
        return lists.before
    kept = [
        (name, tool)
        for name, tool in zip(lists.names_after, lists.after, strict=True)
        if name in lists.names_before
    ]
    for at, (name, tool) in enumerate(zip(lists.names_before, lists.before, strict=True)):
        if name not in lists.names_after:
            names = [each for each, _ in kept]
            kept.insert(names.index(lists.names_before[at - 1]) + 1 if at else 0, (name, tool))
    return [tool for _, tool in kept]


def _first_tools(change: Change) -> Found | None:
    if not tools_in(change.after) or in_another_field(change) or not before_tools_end(change.after):
        return None
    return Found(
        evidence=f"the parent had no tools, and this request has {len(tools_in(change.after))}",
        advice="send tools from the first turn of a session on",
        path="tools[0]" if change.in_template else None,
        restore=(restored("tools", change.before.body),),
    )


CAUSE = ToolsSetChanged()
