"""What is written in another spelling inside a text: percent escapes and base64, also of each other.

It knows no credential: its caller searches what is decoded here. JSON's escapes are `literals`' business.
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
_END_OF_WORD = re.compile(r"[\s\"'<>\\]")
_MAX_WORD = 4000
# Bytes of base64's alphabets become `a`, all others stay apart: long runs are then found at memchr's speed.
_DIGITS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_"
_RUNS = bytes(97 if byte in _DIGITS else 10 if byte == 10 else 0 for byte in range(256))
_END_OF_RUN = re.compile(rb"[\0\n]")
_SHORTEST = 16
_RUN = b"a" * _SHORTEST
_WRAPPED = range(60, 81)
_BREAK = re.compile(r"\n")
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
    for start, end in _escaped_words(text):
        decoded = _without(_PERCENT, text[start:end])
        yield Embedded(start, decoded.text, decoded, quads=False)
    for start, end in _base64_runs(text):
        found = _decoded(text[start:end])
        if found is not None:
            yield Embedded(start, *found, quads=True)


def _escaped_words(text: str) -> Iterator[tuple[int, int]]:
    end = 0
    while match := _PERCENT.search(text, end):
        start = max(end, match.start() - _MAX_WORD)
        for stop in _END_OF_WORD.finditer(text, start, match.start()):
            start = stop.end()
        stopped = _END_OF_WORD.search(text, match.end())
        end = stopped.start() if stopped else len(text)
        yield start, end


def _base64_runs(text: str) -> Iterator[tuple[int, int]]:
    runs = text.encode("latin-1", "replace").translate(_RUNS)
    end = 0
    while (start := runs.find(_RUN, end)) >= 0:
        end = _end_of_run(runs, start)
        # Lines of a fixed width are one run: what stands in them may go on in the next.
        line = end - start
        while line in _WRAPPED and runs[end : end + 1] == b"\n" and runs[end + 1 : end + 2] == b"a":
            line, end = _end_of_run(runs, end + 1) - end - 1, _end_of_run(runs, end + 1)
        yield start, end


def _end_of_run(runs: bytes, start: int) -> int:
    stop = _END_OF_RUN.search(runs, start)
    return stop.start() if stop else len(runs)


def _decoded(run: str) -> tuple[str, Decoded] | None:
    spelling = _without(_BREAK, run) if "\n" in run else Decoded(run)
    digits = spelling.text.translate(_URL_SAFE)
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
