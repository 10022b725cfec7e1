"""A body cut at its JSON strings, and the way from decoded characters back to written ones.

It parses no JSON: strings are found wherever they stand, in events and in broken bodies too.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

_STRING = r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
UNIT = re.compile(rf"({_STRING})(?:(\s*:\s*)({_STRING}))?")
"""A string, or a key with its string: group 1, and group 3 after the separator in group 2."""

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_SHORT = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
MAX_LEVELS = 8
"""How often escapes are undone. A quote that deep is written with 255 backslashes."""


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


def escaped(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of whole lines that hold escapes, neighbours together.

    What touches none of them reads the same with the escapes undone, and need not be searched again.
    """
    end = 0
    at = text.find("\\")
    while at >= 0:
        start = text.rfind("\n", end, at) + 1 or end
        end = _line_end(text, at)
        while (at := text.find("\\", end)) >= 0 and "\n" not in text[end + 1 : at]:
            end = _line_end(text, at)
        yield start, end


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end
