"""The tools are gone: a summary or title call was sent without them, and nothing behind them is kept.

Tools that are in the request but not in the prompt are another cause's.
"""

from __future__ import annotations

from analyzer.body_paths import restored
from analyzer.causes import Example, Found
from analyzer.causes._tools import before_tools_end, in_another_field, tools_in
from analyzer.causes._toys import TOOLS, asked
from analyzer.change import Change


class ToolsDropped:
    """The request has no tools any more"""

    name = "tools.dropped"
    rank = 30
    example = Example(before=asked(TOOLS), after=asked(None))

    def find(self, change: Change) -> Found | None:
        """Tools that the parent's prompt shows at or behind the divergence, and none in the child's body."""
        before, after = change.before, change.after
        if not tools_in(before) or tools_in(after) or in_another_field(change):
            return None
        if not before_tools_end(before):
            return None
        return Found(
            evidence=f"the parent had {len(tools_in(before))} tools, and this request has none",
            advice="send tools in side calls too (summaries, titles), with tool_choice none if the server"
            " then keeps them in the prompt",
            path="tools[0]" if change.in_template else None,
            restore=(restored("tools", before.body),),
        )


CAUSE = ToolsDropped()
