"""A body cut at its JSON strings, and the way from decoded characters back to written ones.

It parses no JSON: strings are found wherever they stand, in events and in broken bodies too.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

_STRING = r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
UNIT = re.compile(rf"({_STRING})(?:(\s*:\s*)({_STRING}))?")
"""A string, or a key with its string: group 1, and group 3 after the separator in group 2."""

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_SHORT = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_MAX_LEVELS = 3


@dataclass(frozen=True, slots=True)
class Decoded:
    """A text without its escapes, and where each of its characters was written.

    `ends` are positions in `text` right after each escape; `shifts` how much further to the right the
    same place is in the written text.
    """

    text: str
    ends: tuple[int, ...] = ()
    shifts: tuple[int, ...] = ()

    def written(self, char: int) -> int:
        """Return the written position of the decoded position `char`."""
        index = bisect_right(self.ends, char) - 1
        return char + (self.shifts[index] if index >= 0 else 0)


def decode(text: str) -> Decoded:
    """Undo one level of JSON escapes, including the unnecessary ones (`\\/`, `\\u0041`)."""
    parts: list[str] = []
    ends: list[int] = []
    shifts: list[int] = []
    length = last = 0
    for match in _ESCAPE.finditer(text):
        code, short = match.groups()
        character = chr(int(code, 16)) if code else _SHORT.get(short, short)
        parts += (text[last : match.start()], character)
        length += match.start() - last + 1
        last = match.end()
        ends.append(length)
        shifts.append(last - length)
    parts.append(text[last:])
    return Decoded("".join(parts), tuple(ends), tuple(shifts))


@dataclass(frozen=True, slots=True)
class Layers:
    """A text and what it becomes when its escapes are undone once, twice, three times.

    A tool's arguments are JSON inside a JSON string, and may hold JSON themselves.
    """

    levels: tuple[Decoded, ...]

    def written(self, level: int, char: int) -> int:
        """Return the position in the original text of position `char` at `level`."""
        for decoded in reversed(self.levels[: level + 1]):
            char = decoded.written(char)
        return char


def layers(text: str, *, with_written: bool) -> Layers:
    """Return the texts to search; the written one itself too where it is not a JSON string."""
    levels: list[Decoded] = [Decoded(text)] if with_written or "\\" not in text else []
    current = text
    while "\\" in current and len(levels) < _MAX_LEVELS:
        decoded = decode(current)
        levels.append(decoded)
        current = decoded.text
    return Layers(tuple(levels))
