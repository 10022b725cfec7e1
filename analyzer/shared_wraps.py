"""Gives the strings of request bodies their fields, without doing so again for messages that came before.

Bodies repeat their history as the same objects (`analyzer.shared_json`), and a message that is the same
object at the same place has the same fields. It parses nothing, and changes nothing it is given.
"""

from __future__ import annotations

from typing import Any

from analyzer.sourced_json import SourcedDict, SourcedList, wrap

_SHARED = ("messages", "input", "tools")
_ALTERNATIVES = 2  # a prompt and its parent


class SharedWraps:
    """Remembers wrapped messages and tools by place: the last two of each."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, int], list[tuple[Any, Any]]] = {}

    def wrap(self, body: dict[str, Any]) -> SourcedDict:
        """What `sourced_json.wrap` gives; it may hold objects of earlier bodies, and must not be changed."""
        lists = {key: body[key] for key in _SHARED if _holds_objects(body.get(key))}
        made: SourcedDict = wrap({key: item for key, item in body.items() if key not in lists})
        for key, items in lists.items():
            wrapped = [self._item(key, at, item) for at, item in enumerate(items)]
            made[key] = SourcedList(key, wrapped, {})
        return made

    def _item(self, key: str, at: int, item: Any) -> Any:
        known = self._places.setdefault((key, at), [])
        for given, wrapped in known:
            if given is item:
                return wrapped
        made = wrap(item, f"{key}[{at}]")
        known.insert(0, (item, made))
        del known[_ALTERNATIVES:]
        return made


def _holds_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)
