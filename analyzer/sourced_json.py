"""JSON read and written without losing where each piece of it stands in the request body.

It holds no JSON grammar of its own: `json` decides what is valid and what the text is, and this file
only finds the places. Stdlib `json` of Python 3.12 is the rule for both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from analyzer.sourced import Run, Sourced, concat, covered, plain, sourced, substituted

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_TOKEN = re.compile(r'[ \t\n\r]*([{}\[\],:]|"[^"\\]*(?:\\.[^"\\]*)*"|[^ \t\n\r,\]}]+)', re.DOTALL)
_ESCAPED = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|u....|.)", re.DOTALL)
_TO_ESCAPE = re.compile(r'[\x00-\x1f"\\]')
_TO_ESCAPE_ASCII = re.compile(r"[^ !#-\[\]-~]")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a number, boolean or null stands: its field, the offset there, and its spelling if known."""

    path: str
    path_char: int = 0
    spelling: str | None = None


class SourcedDict(dict[str, Any]):
    """A JSON object that knows its own path and the places of its members that are no strings."""

    __slots__ = ("_path", "_places")

    def __init__(self, path: str, members: Mapping[str, Any], places: Mapping[str, Place]) -> None:
        super().__init__(members)
        self._path = path
        self._places = places

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._path, dict(self), self._places)


class SourcedList(list[Any]):
    """A JSON array that knows its own path and the places of its items that are no strings."""

    __slots__ = ("_path", "_places")

    def __init__(self, path: str, items: list[Any], places: Mapping[int, Place]) -> None:
        super().__init__(items)
        self._path = path
        self._places = places

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._path, list(self), self._places)


def path_of(value: object) -> str | None:
    """The path of a wrapped object or array; None for anything else."""
    return value._path if isinstance(value, SourcedDict | SourcedList) else None


def member_path(path: str, key: str) -> str:
    """The path of a member: `a.b`, or `a["b.c"]` where the key is no plain name."""
    if not _NAME.fullmatch(key):
        return f"{path}[{json.dumps(plain(key), ensure_ascii=False)}]"
    return f"{path}.{key}" if path else plain(key)


def wrap(value: Any, path: str = "") -> Any:
    """A copy of parsed JSON in which every string, key and scalar knows its path.

    A string leaf is exact from its first character; a key carries its member's path, inexactly, since
    no value of the body holds its characters. Strings that are sourced already stay as they are.
    """
    if isinstance(value, str):
        return value if isinstance(value, Sourced) else sourced(value, path)
    if isinstance(value, Mapping):
        members: dict[str, Any] = {}
        places: dict[str, Place] = {}
        for key, item in value.items():
            there = member_path(path, key)
            named = key if isinstance(key, Sourced) else Sourced(key, _inexact(key, there))
            members[named] = wrap(item, there)
            if _is_scalar(item):
                places[named] = place_in(value, key) or Place(there)
        return SourcedDict(path, members, places)
    if isinstance(value, list | tuple):
        items = [wrap(item, f"{path}[{at}]") for at, item in enumerate(value)]
        spots = {
            at: place_in(value, at) or Place(f"{path}[{at}]")
            for at, item in enumerate(value)
            if _is_scalar(item)
        }
        return SourcedList(path, items, spots)
    return value


def with_members(
    value: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]
) -> dict[str, Any]:
    """`{**before, **value, **after}`, keeping what `value` knows of its own members."""
    return like(value, {**before, **value, **after})


def like(value: Mapping[str, Any], members: dict[str, Any]) -> dict[str, Any]:
    """`members`, some of which are `value`'s own, with what `value` knows of those."""
    return SourcedDict(value._path, members, value._places) if isinstance(value, SourcedDict) else members


def loads(text: str) -> Any:
    """`json.loads(text)`; on sourced text, what it returns points into the field that held the text.

    An escape such as `\\n` gives one character that points at its backslash. Raises what `json.loads`
    raises. Where the text nests too deep to be walked, or holds no known run, values come back plain.
    """
    value = json.loads(plain(text))
    if not isinstance(text, Sourced) or not text._runs:
        return value
    reader = _Reader(text)
    try:
        return reader.value()[0]
    except RecursionError:
        return value


def dumps(
    value: Any,
    *,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """`json.dumps` with these arguments, in which each character points at the field it was written for.

    Every character of an escape points at the one it stands for. A scalar is exact where it is spelt as
    it was in the field. What nests too deep to be walked comes back plain. Raises what `json.dumps` raises.
    """
    text = json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )
    commas, colon = separators or (", " if indent is None else ",", ": ")
    step = " " * indent if isinstance(indent, int) else indent
    writer = _Writer(ensure_ascii=ensure_ascii, step=step, comma=commas, colon=colon, sort_keys=sort_keys)
    try:
        written = concat(writer.pieces(value, "\n"))
    except RecursionError:
        return text
    return written if written == text else text


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, int | float)


def _inexact(text: str, path: str) -> tuple[Run, ...]:
    return ((0, len(text), path, 0, False),) if text else ()


def place_in(container: object, key: Any) -> Place | None:
    """Where the scalar `container[key]` stands, if the container knows it."""
    return container._places.get(key) if isinstance(container, SourcedDict | SourcedList) else None


def scalar_text(text: str, place: Place | None) -> str:
    """A scalar's `text`, attributed to its place: exact where it is spelt as it is there."""
    if place is None:
        return text
    return Sourced(text, ((0, len(text), place.path, place.path_char, text == place.spelling),))


class _Reader:
    """Walks JSON text that is known to be valid, one token at a time."""

    def __init__(self, text: Sourced) -> None:
        self.text = text
        self.plain = plain(text)
        self.path = text._runs[0][2]
        self.at = 0

    def token(self) -> str:
        found = _TOKEN.match(self.plain, self.at)
        assert found is not None, "the text was parsed before"
        self.start, self.at = found.span(1)
        return found[1]

    def value(self) -> tuple[Any, Place | None]:
        token = self.token()
        match token[0]:
            case '"':
                return self.string(token), None
            case "{":
                return self.object(), None
            case "[":
                return self.array(), None
        here = self.text[self.start : self.at]
        runs = here._runs if isinstance(here, Sourced) else ()
        place = (
            Place(runs[0][2], runs[0][3], token if len(runs) == 1 and runs[0][4] else None) if runs else None
        )
        return json.loads(token), place

    def string(self, token: str) -> str:
        inside = self.text[self.start + 1 : self.at - 1]
        return substituted(inside, _ESCAPED, _unescaped) if "\\" in token else inside

    def object(self) -> SourcedDict:
        members: dict[str, Any] = {}
        places: dict[str, Place] = {}
        while (token := self.token()) != "}":
            if token == ",":
                continue
            key = self.string(token)
            self.token()  # the colon
            members[key], place = self.value()
            places.pop(key, None)  # of a doubled key the last value counts
            if place is not None:
                places[key] = place
        return SourcedDict(self.path, members, places)

    def array(self) -> SourcedList:
        items: list[Any] = []
        places: dict[int, Place] = {}
        while not self.closes():
            item, place = self.value()
            if place is not None:
                places[len(items)] = place
            items.append(item)
        return SourcedList(self.path, items, places)

    def closes(self) -> bool:
        before = self.at
        token = self.token()
        if token not in ("]", ","):
            self.at = before
        return token == "]"


def _unescaped(escape: str) -> str:
    return str(json.loads(f'"{escape}"'))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Writer:
    ensure_ascii: bool
    step: str | None
    comma: str
    colon: str
    sort_keys: bool

    def pieces(self, value: Any, margin: str, place: Place | None = None) -> Iterator[str]:
        if isinstance(value, str):
            yield self.string(value)
        elif isinstance(value, dict):
            items = sorted(value.items()) if self.sort_keys else value.items()
            rows = ((self.head(key), item, place_in(value, key)) for key, item in items)
            yield from self.rows(rows, "{}", margin)
        elif isinstance(value, list | tuple):
            plain_rows = (("", item, place_in(value, at)) for at, item in enumerate(value))
            yield from self.rows(plain_rows, "[]", margin)
        else:
            yield scalar_text(json.dumps(value), place)

    def rows(self, rows: Iterator[tuple[str, Any, Place | None]], ends: str, margin: str) -> Iterator[str]:
        inner = "" if self.step is None else margin + self.step
        lead = ends[0] + inner
        for head, item, place in rows:
            # A comma is there for the member behind it, which is the field that was added or is gone.
            yield lead if lead[0] == ends[0] else _written_for(head or item, lead, place)
            yield head
            yield from self.pieces(item, inner, place)
            lead = self.comma + inner
        if lead == ends[0] + inner:
            yield ends
        else:
            yield ("" if self.step is None else margin) + ends[1]

    def string(self, text: str) -> str:
        pattern = _TO_ESCAPE_ASCII if self.ensure_ascii else _TO_ESCAPE
        quote = _written_for(text, '"')
        return concat((quote, substituted(text, pattern, self.escaped), quote))

    def escaped(self, char: str) -> str:
        return json.dumps(char, ensure_ascii=self.ensure_ascii)[1:-1]

    def head(self, key: object) -> str:
        named = self.string(key) if isinstance(key, str) else f'"{json.dumps(key)}"'
        return concat((named, _written_for(key, self.colon)))


def _written_for(value: object, text: str, place: Place | None = None) -> str:
    """Punctuation that stands there for a string, or for a scalar at a place."""
    if place is not None:
        return Sourced(text, _inexact(text, place.path))
    return covered(text, [value])
