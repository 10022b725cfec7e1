"""The same tools in another order: nothing behind the first that moved is kept.

A tool that is new or gone is another cause's, as is one whose text changed.
"""

from __future__ import annotations

from analyzer.body_paths import Edit
from analyzer.causes import Example, Found
from analyzer.causes._tools import Lists, tool_lists
from analyzer.causes._toys import TOOLS, asked
from analyzer.change import Change


class ToolsOrder:
    """The same tools in another order"""

    name = "tools.order"
    rank = 40
    example = Example(before=asked(TOOLS), after=asked([*reversed(TOOLS)]))

    def find(self, change: Change) -> Found | None:
        """Tools at the divergence that both lists have, in another place."""
        lists = tool_lists(change)
        if lists is None or not _moved(lists):
            return None
        position = {name: at for at, name in enumerate(lists.names_before)}
        common = [name for name in lists.names_after if name in position]
        sorted_names = iter(sorted(common, key=position.__getitem__))
        tool = dict(zip(lists.names_after, lists.after, strict=True))
        restored = [
            tool[next(sorted_names)] if name in position else tool[name] for name in lists.names_after
        ]
        at = lists.at
        return Found(
            evidence=f"the tool {lists.names_after[at]} stands where {lists.names_before[at]} stood",
            advice="send tools sorted by server and name, in one order for the whole session",
            path=f"tools[{at}]" if change.in_template else None,
            restore=(Edit(kind="set", path="tools", value=restored),),
        )


def _moved(lists: Lists) -> bool:
    at = lists.at
    if not lists.unique or at >= min(len(lists.before), len(lists.after)):
        return False
    before, after = lists.names_before[at], lists.names_after[at]
    if before == after or before not in lists.names_after or after not in lists.names_before:
        return False
    common = [name for name in lists.names_before if name in lists.names_after]
    return common != [name for name in lists.names_after if name in lists.names_before]


CAUSE = ToolsOrder()
