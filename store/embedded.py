"""What is written in another spelling inside a text: percent escapes and base64, also of each other.

It knows no credential: whoever calls it searches what is decoded here. JSON's escapes are `literals`' business.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass

from store.literals import Decoded

MAX_DEPTH = 3
"""How often a spelling may stand inside another: percent escapes in base64 in a data URL."""

_PERCENT = re.compile(r"%[0-9A-Fa-f]{2}")
_ESCAPED_WORD = re.compile(r"[^\s\"'<>\\]*%[0-9A-Fa-f]{2}[^\s\"'<>\\]*")
_BASE64 = re.compile(
    r"(?:[A-Za-z0-9+/]{60,80}\r?\n){1,100000}+[A-Za-z0-9+/]{1,80}={0,2}"
    r"|(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}+(?:={1,2}|(?:%3[Dd]){1,2})?"
)
_BREAK = re.compile(r"\r?\n")
_HEAD_CHARS = 32
# A file in base64: searched even where it is not text, since text may begin anywhere in it.
_LONG = 512
_UNPRINTABLE = re.compile(rb"[^\t\n\r\x20-\x7e\x80-\xff]")
_URL_SAFE = str.maketrans("-_", "+/")


@dataclass(frozen=True, slots=True)
class Embedded:
    """A decoded part of a text, and how to say where its characters were written."""

    start: int
    text: str
    spelling: Decoded
    quads: bool

    def written(self, start: int, end: int) -> tuple[int, int]:
        """Return the written range that holds the decoded one, whole groups of four of base64."""
        if self.quads:
            start, end = start // 3 * 4, -(-end // 3) * 4
        written_end = self.spelling.written(end)
        return self.start + self.spelling.written(start), self.start + written_end


def parts(text: str) -> Iterator[Embedded]:
    """Yield what is written in percent escapes or in base64."""
    if _PERCENT.search(text):
        for match in _ESCAPED_WORD.finditer(text):
            decoded = _without(_PERCENT, match[0])
            yield Embedded(match.start(), decoded.text, decoded, quads=False)
    for match in _BASE64.finditer(text):
        found = _decoded(match[0])
        if found is not None:
            yield Embedded(match.start(), *found, quads=True)


def _decoded(run: str) -> tuple[str, Decoded] | None:
    spelling = _without(_BREAK, run) if "\n" in run else Decoded(run)
    digits = spelling.text.rstrip("=").partition("%")[0].translate(_URL_SAFE)
    if len(digits) < _LONG:
        head = _bytes(digits[:_HEAD_CHARS])
        if head is None or _UNPRINTABLE.search(head):
            return None
    content = _bytes(digits)
    if content is None or (len(digits) < _LONG and _UNPRINTABLE.search(content)):
        return None
    return content.decode("latin-1"), spelling


def _bytes(digits: str) -> bytes | None:
    left = len(digits) % 4
    if left == 1:
        digits, left = digits[:-1], 0
    try:
        return binascii.a2b_base64(digits + "=" * (-left % 4))
    except binascii.Error:
        return None


def _without(escape: re.Pattern[str], text: str) -> Decoded:
    """Undo percent escapes, or take line breaks out, and remember where each was."""
    pieces: list[str] = []
    ends: list[int] = []
    shifts: list[int] = []
    length = last = 0
    for match in escape.finditer(text):
        character = chr(int(match[0][1:], 16)) if match[0][0] == "%" else ""
        pieces += (text[last : match.start()], character)
        length += match.start() - last + len(character)
        last = match.end()
        ends.append(length)
        shifts.append(last - length)
    pieces.append(text[last:])
    return Decoded("".join(pieces), tuple(ends), tuple(shifts))
