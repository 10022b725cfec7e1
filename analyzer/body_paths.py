"""JSON paths into a request body, as spans spell them: reading them, and a body with edits applied.

A path is `messages[3].content[0].text`, with `["a key"]` for a key that is no plain name
(`analyzer.sourced_json.member_path` writes them). Bodies given are never changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

type Step = str | int

_STEP = re.compile(r'\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|\.?([^.\[\]]+)')

MISSING = object()
"""What `value_at` gives where there is nothing; None is a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One change of a body. `insert` and `remove` move what follows in an array; `set` needs no old value."""

    kind: Literal["set", "insert", "remove"]
    path: str
    value: Any = None


def parse_path(path: str) -> tuple[Step, ...]:
    """The keys and indices of a path. Raises ValueError for what is none."""
    steps: list[Step] = []
    at = 0
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            raise ValueError(f"not a path: {path!r}")
        index, key, name = found.groups()
        steps.append(int(index) if index else json.loads(key) if key else name)
        at = found.end()
    return tuple(steps)


def value_at(body: Any, path: str) -> Any:
    """What a body holds at a path, or MISSING."""
    for step in parse_path(path):
        try:
            body = body[step]
        except (KeyError, IndexError, TypeError):
            return MISSING
    return body


def restored(path: str, earlier: Any) -> Edit:
    """The edit that gives a body what an earlier one held at a path: its value, or nothing."""
    value = value_at(earlier, path)
    return Edit(kind="remove", path=path) if value is MISSING else Edit(kind="set", path=path, value=value)


def edited(body: Any, edits: Iterable[Edit]) -> Any:
    """A body with edits applied, one after another; what they do not touch is shared with the given one.

    Raises LookupError where the body has no place for one.
    """
    for edit in edits:
        body = _edited(body, parse_path(edit.path), edit)
    return body


def _edited(value: Any, steps: tuple[Step, ...], edit: Edit) -> Any:
    step, rest = steps[0], steps[1:]
    if isinstance(value, dict) and isinstance(step, str):
        return _in_object(value, step, rest, edit)
    if isinstance(value, list) and isinstance(step, int):
        return _in_array(value, step, rest, edit)
    raise LookupError(f"no place for {edit.path}")


def _in_object(value: dict[str, Any], key: str, rest: tuple[Step, ...], edit: Edit) -> dict[str, Any]:
    if rest:
        return value | {key: _edited(value[key], rest, edit)}
    if edit.kind == "remove":
        return {name: item for name, item in value.items() if name != key}
    return value | {key: edit.value}


def _in_array(value: list[Any], at: int, rest: tuple[Step, ...], edit: Edit) -> list[Any]:
    if rest:
        return [*value[:at], _edited(value[at], rest, edit), *value[at + 1 :]]
    if at > len(value) or (at == len(value) and edit.kind != "insert"):
        raise LookupError(f"no place for {edit.path}")
    if edit.kind == "insert":
        return [*value[:at], edit.value, *value[at:]]
    return [*value[:at], *([edit.value] if edit.kind == "set" else []), *value[at + 1 :]]
