"""Lays text out for a person: a console that prints into memory, and lines with a label beside them.

It words nothing. Colour only repeats what a word or sign says already.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from analyzer.wording import one_line

PLAIN_WIDTH = 120
"""Columns where there is no terminal to ask."""

NARROWEST = 40
"""Columns below which nothing could be read; lines then run over."""


def console_of(width: int | None, *, color: bool) -> Console:
    """A console that prints into memory, and takes no text for markup: it may be anybody's."""
    return Console(
        file=io.StringIO(),
        width=max(width or PLAIN_WIDTH, NARROWEST),
        force_terminal=color,
        no_color=not color,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )


def printed(console: Console) -> str:
    """What was printed, without blanks at the end of lines."""
    text = console.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in text.split("\n"))


def labelled(rows: Sequence[tuple[str, str]]) -> RenderableType:
    """Lines whose text wraps beside its label."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for name, text in rows:
        table.add_row(name, Text(one_line(text)))
    return table
