"""The chat template prints the time itself: same bodies, other moment, other prompt.

A date that the client writes is another cause's.
"""

from __future__ import annotations

import re
from datetime import datetime

from analyzer.causes import Example, Found
from analyzer.causes._bodies import appends
from analyzer.causes._templates import PRINTS_TODAY
from analyzer.change import Change, View

_FIRST = [{"role": "user", "content": "List the files."}]
_DAYS = (
    *("%d", "%j", "%a", "%A", "%m", "%b", "%B", "%y", "%Y", "%U", "%W", "%u", "%w"),
    *("%Y%m%d", "%y%m%d", "%d%m%Y", "%m%d%Y"),
)
_TIMES = ("%H", "%I", "%M", "%S", "%p", "%s", "%H%M", "%H%M%S", "%Y%m%d%H%M", "%Y%m%d%H%M%S")
_RUN = re.compile(r"\d+|[^\W\d_]+")


class TemplateClock:
    """The chat template prints the date or the time of the request"""

    name = "template.clock"
    rank = 42
    example = Example(
        before={"messages": _FIRST},
        after={"messages": [*_FIRST, {"role": "assistant", "content": "There are two."}]},
        template=PRINTS_TODAY,
        hours=24,
    )

    def find(self, change: Change) -> Found | None:
        """Template text that reads each request's own clock on its side, in bodies that append."""
        before, after = change.before, change.after
        if before.place or after.place or before.clock == after.clock or not appends(change):
            return None
        for formats, kind in ((_DAYS, "rollover"), (_TIMES, None)):
            if _reads_clock(before, formats) and _reads_clock(after, formats):
                once = "; it happens once a day" if kind else ""
                return Found(
                    evidence="the chat template prints the moment of the request",
                    advice="pin the date: give it in chat_template_kwargs if the template takes one"
                    f" (date_string in some), or serve a template that prints none{once}",
                    kind=kind,
                    path="template",
                )
        return None


def _reads_clock(view: View, formats: tuple[str, ...]) -> bool:
    """Whether the word or number at the divergence is a part of the request's moment."""
    return _part_at(view) in {text for each in formats for text in _spellings(view.clock, each)}


def _spellings(clock: datetime, form: str) -> tuple[str, str]:
    text = clock.strftime(form)
    return text, text.lstrip("0")


def _part_at(view: View) -> str:
    start = max(0, view.char - 20)
    found = (run for run in _RUN.finditer(view.text, start, view.char + 20) if run.end() > view.char)
    run = next(found, None)
    return run[0] if run is not None and run.start() <= view.char else ""


CAUSE = TemplateClock()
