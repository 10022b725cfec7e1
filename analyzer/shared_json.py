"""Parses request bodies, whose messages are mostly those of the body before, without parsing these again.

Each body repeats its history and its tools: what is spelled as one before it at its place is the same object.
Stdlib `json` decides what is valid and what a body means; this file only skips text it has seen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

_SHARED = ("messages", "input", "tools")
"""The members that are long lists of objects, and repeated."""

_ALTERNATIVES = 16
_KEPT_CHARS = 32 << 20
_scan = json.JSONDecoder().raw_decode
_blank = re.compile(r"[ \t\n\r]*").match


class Shared(dict[str, Any]):
    """A message or tool that several bodies may hold; `once` keeps with it what was made of it."""

    __slots__ = ("made",)

    def __init__(self, members: Mapping[str, Any]) -> None:
        super().__init__(members)
        self.made: dict[Any, Any] = {}


def once[T](make: Callable[..., T], item: Mapping[str, Any], *arguments: Any) -> T:
    """`make(item, *arguments)`, made only once of an object that bodies share: it must not be changed."""
    if type(item) is not Shared:
        return make(item, *arguments)
    key = (make, *arguments) if arguments else make
    made: T | None = item.made.get(key)
    if made is None:
        made = item.made[key] = make(item, *arguments)
    return made


def shared_like(item: Mapping[str, Any], made: Mapping[str, Any]) -> Mapping[str, Any]:
    """`made`, which was made of `item` by `once`: an object that bodies share, if `item` is one."""
    return Shared(made) if type(item) is Shared else made


class SharedBodies:
    """Remembers objects by list and place: the last 16 spellings of each, 32 M characters in all."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, int], list[tuple[str, Shared]]] = {}
        self._chars = 0

    def loads(self, content: bytes) -> Any:
        """What `json.loads` gives, which may hold objects of earlier bodies; so it must not be changed.

        Raises what `json.loads` raises.
        """
        try:
            text = content.decode("utf-8")
            if text.startswith("{"):
                return self._body(text)
        except (ValueError, IndexError, RecursionError):
            pass  # `json` says what is wrong with it, or reads what is unusual
        return json.loads(content)

    def _body(self, text: str) -> dict[str, Any]:
        """The members of an object, one by one. Raises ValueError or IndexError where it is none."""
        body: dict[str, Any] = {}
        at = _after_blank(text, 1)
        while True:
            key, at = _scan(text, at)
            if not isinstance(key, str):
                raise ValueError("a key is a string")
            at = _after_blank(text, _expect(text, _after_blank(text, at), ":"))
            shared = key in _SHARED and text[at] == "["
            body[key], at = self._list(key, text, at) if shared else _scan(text, at)
            at = _after_blank(text, at)
            if text[at] == "}":
                break
            at = _after_blank(text, _expect(text, at, ","))
        if _after_blank(text, at + 1) != len(text):
            raise ValueError("something follows the object")
        return body

    def _list(self, key: str, text: str, at: int) -> tuple[list[Any], int]:
        """The items of a list of objects, and where it ends."""
        items: list[Any] = []
        at = _after_blank(text, at + 1)
        while True:
            for spelling, known in self._places.get((key, len(items)), ()):
                if text.startswith(spelling, at):
                    item, at = known, at + len(spelling)
                    break
            else:
                item, at = self._item((key, len(items)), text, at)
            items.append(item)
            if text[at] != ",":
                at = _after_blank(text, at)
                if text[at] == "]":
                    return items, at + 1
            at = _expect(text, at, ",")
            if text[at] != "{":
                at = _after_blank(text, at)

    def _item(self, place: tuple[str, int], text: str, at: int) -> tuple[Shared, int]:
        if text[at] != "{":
            raise ValueError("an item is an object")  # else its text would not end by itself
        item, end = _scan(text, at)
        if self._chars > _KEPT_CHARS:
            self._places, self._chars = {}, 0
        known = self._places.setdefault(place, [])
        known.insert(0, (text[at:end], shared := Shared(item)))
        self._chars += end - at
        if len(known) > _ALTERNATIVES:
            self._chars -= len(known.pop()[0])
        return shared, end


def _after_blank(text: str, at: int) -> int:
    found = _blank(text, at)
    return at if found is None else found.end()


def _expect(text: str, at: int, mark: str) -> int:
    if text[at] != mark:
        raise ValueError(f"{mark} expected")
    return at + 1
