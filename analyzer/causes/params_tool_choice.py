"""The tools are in the request but not in the prompt: the server leaves them out for this tool_choice.

vLLM 0.32 does so for `none` where it was started with --exclude-tools-when-tool-choice-none.
"""

from __future__ import annotations

from analyzer.body_paths import restored
from analyzer.causes import Example, Found
from analyzer.causes._tools import prints_tools, tools_in
from analyzer.causes._toys import TOOLS, asked
from analyzer.change import Change


class ParamsToolChoice:
    """The server prints the tools or not, by tool_choice"""

    name = "params.tool_choice"
    rank = 20
    example = Example(
        before=asked(TOOLS),
        after=asked(TOOLS, tool_choice="none"),
        settings={"exclude_tools_when_tool_choice_none": True},
    )

    def find(self, change: Change) -> Found | None:
        """Tools in both bodies, in one of the prompts alone, and another choice."""
        before, after = change.before, change.after
        if not tools_in(before) or not tools_in(after) or prints_tools(before) == prints_tools(after):
            return None
        if before.body.get("tool_choice") == after.body.get("tool_choice"):
            return None
        return Found(
            evidence="both requests have tools, and only one prompt shows them",
            advice="start the server without --exclude-tools-when-tool-choice-none, or keep tool_choice"
            " for the whole session",
            path="tool_choice",
            char=0,
            restore=(restored("tool_choice", before.body),),
        )


CAUSE = ParamsToolChoice()
