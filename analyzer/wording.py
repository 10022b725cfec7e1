"""Words and signs that everything a person reads here has in common: counts, times, texts on one line.

Nothing is laid out here; what a number means is said where it is made.
"""

from __future__ import annotations

UNKNOWN = "?"

EQUAL_RUN = 12
"""Characters that must agree again before two texts count as equal behind their difference."""


def known(value: object) -> str:
    """A value, or the sign for one that is not known."""
    return UNKNOWN if value is None else str(value)


def counted(count: int, noun: str) -> str:
    """`1 turn`, `2 turns`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def counted_or_unknown(count: int | None, noun: str) -> str:
    """The same, or the sign for what is not known."""
    return UNKNOWN if count is None else counted(count, noun)


def duration(seconds: float | None) -> str:
    """Seconds in as many digits as mean something."""
    if seconds is None:
        return f"{UNKNOWN} s"
    if seconds >= 120:
        return f"{seconds / 60:.1f} min"
    if seconds >= 10:
        return f"{seconds:.0f} s"
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def quoted(text: str, limit: int) -> str:
    """A text on one line, in quotes, its control characters written out; `…` where more follows."""
    shown = "".join(char if char.isprintable() else _written_out(char) for char in text[: limit + 1])
    whole = len(text) <= limit and len(shown) <= limit
    return f'"{shown}"' if whole else f'"{shown[: limit - 1]}…"'


def side(text: str, limit: int) -> str:
    """One side of a difference: the text that stands there, or that there is none."""
    return quoted(text, limit) if text else "nothing"


def one_line(text: str) -> str:
    """A text of whoever wrote it, without what would move the cursor or end the line."""
    return "".join(char if char.isprintable() else " " for char in text)


def differing(before: str, after: str) -> tuple[str, str]:
    """Both texts without the run on which they agree again: what was there, and what is there now.

    They differ from their first character on. Where they do not come to agree, they are given whole.
    """
    for total in range(len(before) + len(after)):  # the least that differs, on both sides together
        for skipped in range(max(0, total - len(after)), min(total, len(before)) + 1):
            run = before[skipped : skipped + EQUAL_RUN]
            if len(run) == EQUAL_RUN and after.startswith(run, total - skipped):
                return f"{before[:skipped]}", f"{after[: total - skipped]}"
    return before, after


def _written_out(char: str) -> str:
    return char.encode("unicode_escape").decode()
