"""The policy `secrets`: credentials leave a body as placeholders, everything else stays byte for byte.

It decides nothing about headers and URLs (`heads` does) and writes nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from store import literals, patterns, places
from store.vault import Vault

_MEMO_CHARS = 64 << 20
_WORTH_READING = re.compile(r"[\w+/=.~-]{8}")
_MIN_KNOWN = 8
# A streamed answer is cut anywhere, so a secret may be spread over the fragments under these keys.
# fmt: off
_STREAMED = frozenset(
    {
        '"content"', '"text"', '"delta"', '"reasoning"', '"reasoning_content"',
        '"thinking"', '"arguments"', '"partial_json"', '"output"', '"generated_text"',
    }
)
# fmt: on


@dataclass(frozen=True, slots=True)
class _Edit:
    """Replace characters from `start` to `end`; an empty `kind` only removes them."""

    start: int
    end: int
    secret: str
    kind: str


@dataclass(frozen=True, slots=True)
class _Piece:
    """A fragment of a streamed text: where it starts in the joined text, and where it was written."""

    joined_start: int
    length: int
    written_start: int
    decoded: literals.Decoded


class Redactor:
    """Replaces secrets in text and bodies, remembering what it found in each JSON string.

    Bodies are handled as Latin-1 text, which every byte string is, so nothing is lost on the way.
    """

    def __init__(self, vault: Vault) -> None:
        self.vault = vault
        self._known: dict[str, None] = {}
        self._known_list: list[str] = []
        self._memo: dict[str, tuple[int, tuple[_Edit, ...]]] = {}
        self._memo_chars = 0

    def learn(self, value: str) -> None:
        """Look for `value` in everything from now on; values under 8 characters are too common for it."""
        if len(value) < _MIN_KNOWN:
            return
        # A header's value is Latin-1 or UTF-8 on the wire; bodies are searched as Latin-1.
        for form in (value, value.encode("utf-8", "surrogateescape").decode("latin-1")):
            if form not in self._known:
                self._known[form] = None
                self._known_list.append(form)

    def text(self, text: str) -> str:
        """Return a header's value, a path or a message without its secrets."""
        edits = self._search(text, with_written=True)
        return self._apply(text, edits)[0] if edits else text

    def body(self, content: bytes) -> tuple[bytes, dict[tuple[str, str], int]]:
        """Return a body without its secrets, and how many were replaced of each kind at each JSON path."""
        text = content.decode("latin-1")
        start = text[:64].lstrip()[:1]
        streamed = re.match(r"\s*(?:data|event|id|retry|):", text) is not None
        if start not in ("{", "[", '"') and not streamed:
            edits = self._search(text, with_written=True)
        else:
            edits = sorted(self._json_edits(text, streamed), key=lambda edit: (edit.start, -edit.end))
        if not edits:
            return content, {}
        clean, replaced = self._apply(text, edits)
        # In the clean text, so that no path names a key that is a secret itself.
        paths = places.paths_of(clean, [at for at, _ in replaced], streamed=streamed)
        counts = Counter((kind, path) for (_, kind), path in zip(replaced, paths, strict=True))
        return clean.encode("latin-1"), dict(counts)

    def _json_edits(self, text: str, streamed: bool) -> list[_Edit]:
        edits: list[_Edit] = []
        fragments: dict[str, list[tuple[int, str]]] = {}
        last = 0
        for match in literals.UNIT.finditer(text):
            start, end = match.span()
            if start - last >= _MIN_KNOWN:
                edits.extend(self._in_gap(text, last, start))
            last = end
            if end - start < _MIN_KNOWN + 2:
                if not streamed:
                    continue
            else:
                found = self._remembered(match[0])
                if found:
                    edits.extend(_moved(edit, start) for edit in found)
            if streamed and match[1] in _STREAMED and match[3]:
                fragments.setdefault(match[1], []).append((match.start(3) + 1, match[3][1:-1]))
        if len(text) - last >= _MIN_KNOWN:
            edits.extend(self._in_gap(text, last, len(text)))
        for pieces in fragments.values():
            edits.extend(self._across(pieces))
        return edits

    def _in_gap(self, text: str, start: int, end: int) -> Iterator[_Edit]:
        gap = text[start:end]
        if _WORTH_READING.search(gap):
            for edit in self._search(gap, with_written=True):
                yield _moved(edit, start)

    def _remembered(self, unit: str) -> tuple[_Edit, ...]:
        known_count = len(self._known_list)
        entry = self._memo.get(unit)
        if entry is not None and entry[0] == known_count:
            return entry[1]
        edits = tuple(_inside(self._search(unit, with_written=False), unit))
        if entry is None:
            self._memo_chars += len(unit)
            if self._memo_chars > _MEMO_CHARS:
                self._memo.clear()
                self._memo_chars = len(unit)
        self._memo[unit] = (known_count, edits)
        return edits

    def _search(self, text: str, *, with_written: bool) -> list[_Edit]:
        found = self._findings(text, with_written=with_written or "\\" not in text)
        edits = [_Edit(item.char_start, item.char_end, item.read(text), item.kind) for item in found]
        return sorted(edits, key=lambda edit: (edit.start, -edit.end))

    def _findings(self, text: str, level: int = 0, *, with_written: bool = True) -> list[patterns.Finding]:
        """Search a text, and what becomes of it when its escapes are undone, once or more.

        A tool's arguments are JSON inside a JSON string, and may hold JSON themselves. The deepest level
        comes first: among equal ranges it names the secret, so that escaping does not matter.
        """
        found: list[patterns.Finding] = []
        if level < literals.MAX_LEVELS:
            for start, end in literals.escaped(text):
                decoded = literals.decode(text[start:end])
                for item in self._findings(decoded.text, level + 1):
                    low, high = decoded.written(item.char_start), decoded.written(item.char_end)
                    secret = item.read(decoded.text)
                    found.append(patterns.Finding(start + low, start + high, item.kind, secret))
        if with_written:
            found += patterns.find(text, self._known_list)
        return found

    def _across(self, fragments: list[tuple[int, str]]) -> Iterator[_Edit]:
        pieces: list[_Piece] = []
        length = 0
        for written_start, text in fragments:
            decoded = literals.decode(text) if "\\" in text else literals.Decoded(text)
            pieces.append(_Piece(length, len(decoded.text), written_start, decoded))
            length += len(decoded.text)
        joined = "".join(piece.decoded.text for piece in pieces)
        for item in self._findings(joined):
            yield from _spread(pieces, item.char_start, item.char_end, item.read(joined), item.kind)

    def _apply(self, text: str, edits: list[_Edit]) -> tuple[str, list[tuple[int, str]]]:
        """Return the text with its edits made, and where in it which kind of secret was replaced."""
        parts: list[str] = []
        replaced: list[tuple[int, str]] = []
        last = length = 0
        for edit in edits:
            if edit.end <= last:
                continue
            if edit.start < last:
                # Overlaps what was just replaced: only its remainder is left to hide.
                last = edit.end
                continue
            parts.append(text[last : edit.start])
            length += edit.start - last
            if edit.kind:
                fingerprint = self.vault.identify(edit.secret, edit.kind)
                parts.append(fingerprint.placeholder)
                replaced.append((length, fingerprint.kind))
                length += len(fingerprint.placeholder)
            last = edit.end
        parts.append(text[last:])
        return "".join(parts), replaced


def find_in_message(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and kind of each secret in a text that belongs to no capture, in order."""
    for edit in Redactor(Vault(b""))._search(text, with_written=True):
        yield edit.start, edit.end, edit.kind


def _moved(edit: _Edit, by: int) -> _Edit:
    return _Edit(edit.start + by, edit.end + by, edit.secret, edit.kind)


def _inside(edits: list[_Edit], unit: str) -> Iterator[_Edit]:
    """Clip edits to the insides of the unit's strings: the quotes and the colon are not a secret's."""
    match = literals.UNIT.fullmatch(unit)
    assert match is not None
    spans = [match.span(group) for group in (1, 3) if match[group] is not None]
    for edit in edits:
        kind = edit.kind
        for start, end in spans:
            low, high = max(edit.start, start + 1), min(edit.end, end - 1)
            if low < high:
                yield _Edit(low, high, edit.secret, kind)
                kind = ""


def _spread(pieces: list[_Piece], start: int, end: int, secret: str, kind: str) -> Iterator[_Edit]:
    touched = [
        piece for piece in pieces if piece.joined_start < end and start < piece.joined_start + piece.length
    ]
    if len(touched) < 2:
        return  # Within one fragment it was found there.
    for piece in touched:
        low = max(start - piece.joined_start, 0)
        high = min(end - piece.joined_start, piece.length)
        written_low = piece.written_start + piece.decoded.written(low)
        yield _Edit(written_low, piece.written_start + piece.decoded.written(high), secret, kind)
        kind = ""
