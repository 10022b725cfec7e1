"""For causes in the list of tools: the two lists at a divergence, and whether it lies in them.

It reads the bodies' lists in all dialects' forms; what tools the messages add is not in them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analyzer.change import Change, View
from analyzer.sourced import plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Lists:
    """Both lists of tools, their names, and the index of the tool at the divergence in each."""

    before: list[Any]
    after: list[Any]
    names_before: list[str]
    names_after: list[str]
    at: int

    @property
    def named_alike(self) -> bool:
        """Whether both lists hold tools of the same names, each once, in whatever order."""
        return sorted(self.names_before) == sorted(self.names_after) and self.unique

    @property
    def unique(self) -> bool:
        """Whether no name stands twice in a list."""
        return all(len(set(names)) == len(names) for names in (self.names_before, self.names_after))

    @property
    def same_tool(self) -> bool:
        """Whether the tool at the divergence has the same name on both sides."""
        at = self.at
        if at >= min(len(self.names_before), len(self.names_after)):
            return False
        return self.names_before[at] == self.names_after[at]


def tool_lists(change: Change) -> Lists | None:
    """The lists, where both bodies have one, they differ, and the divergence lies in them."""
    before, after = tools_in(change.before), tools_in(change.after)
    if not before or not after or json.dumps(before) == json.dumps(after) or not _lies_in_tools(change):
        return None
    indices = [view.next_tool for view in (change.before, change.after)]
    return Lists(
        before=before,
        after=after,
        names_before=[_name(tool) for tool in before],
        names_after=[_name(tool) for tool in after],
        at=min(at for at in indices if at is not None),
    )


def tools_in(view: View) -> list[Any]:
    """The body's list of tools; empty where it has none."""
    tools = view.body.get("tools") if isinstance(view.body, Mapping) else None
    return tools if isinstance(tools, list) else []


def prints_tools(view: View) -> bool:
    """Whether any of the prompt's text came from the list of tools."""
    return any(_is_tool(span.path) for span in view.spans)


def before_tools_end(view: View) -> bool:
    """Whether the divergence lies in front of the end of the printed tools."""
    return any(_is_tool(span.path) and span.char_end > view.char for span in view.spans)


def in_another_field(change: Change) -> bool:
    """Whether the divergence lies in a field that is none of the tools', and goes on in front of it."""
    return any(
        view.place is not None and not _is_tool(view.place.path) and view.place.path == view.last_path
        for view in (change.before, change.after)
    )


def _lies_in_tools(change: Change) -> bool:
    if in_another_field(change):
        return False
    return any(_is_tool(view.next_path) for view in (change.before, change.after))


def _is_tool(path: str | None) -> bool:
    return path is not None and path.startswith("tools[")


def _name(tool: Any) -> str:
    function = tool.get("function", tool) if isinstance(tool, Mapping) else {}
    name = function.get("name") if isinstance(function, Mapping) else None
    return plain(name) if isinstance(name, str) else json.dumps(tool, default=str)
