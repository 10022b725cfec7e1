"""Where in a body something stands: the JSON path of a character, as the analyzer's reports spell paths.

It reads bodies that are cut off or broken as far as they go, and knows nothing of secrets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# A whole string is one token, so that what looks like structure inside it is not taken for it.
_TOKEN = re.compile(r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"|[\[\]{},:\n]')
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(slots=True)
class _Level:
    """An object or an array that is open: the step to where we are in it, None before the first key."""

    in_array: bool
    step: str | int | None
    expects_key: bool


def paths_of(text: str, positions: Sequence[int], *, streamed: bool) -> Iterator[str]:
    """Yield the path that holds each of `positions`, which are in order; '' where there is none.

    In a streamed body each line is a document of its own.
    """
    waiting = iter(positions)
    wanted = next(waiting, None)
    levels: list[_Level] = []
    for match in _TOKEN.finditer(text):
        while wanted is not None and wanted < match.end():
            yield _written(levels)
            wanted = next(waiting, None)
        if wanted is None:
            return
        _step(levels, match[0], streamed=streamed)
    while wanted is not None:  # in a string without an end, or after everything
        yield _written(levels)
        wanted = next(waiting, None)


def _step(levels: list[_Level], token: str, *, streamed: bool) -> None:
    if token in ("{", "["):
        in_array = token == "["
        levels.append(_Level(in_array=in_array, step=0 if in_array else None, expects_key=not in_array))
    elif token in ("}", "]"):
        if levels:
            levels.pop()
    elif token == "\n":
        if streamed:
            levels.clear()
    elif levels:
        _step_within(levels[-1], token)


def _step_within(level: _Level, token: str) -> None:
    if token == ",":
        if level.in_array and isinstance(level.step, int):
            level.step += 1
        else:
            level.step, level.expects_key = None, True
    elif token == ":":
        level.expects_key = False
    elif level.expects_key:
        level.step = _key(token)


def _key(written: str) -> str:
    raw = written.encode("latin-1", "replace").decode("utf-8", "replace")
    try:
        return str(json.loads(raw))
    except ValueError:
        return raw[1:-1]


def _written(levels: Sequence[_Level]) -> str:
    path = ""
    for level in levels:
        if isinstance(level.step, int):
            path += f"[{level.step}]"
        elif level.step is None:
            continue  # Before its key: the object itself is the place.
        elif _NAME.fullmatch(level.step):
            path += f".{level.step}" if path else level.step
        else:
            path += f"[{json.dumps(level.step, ensure_ascii=False)}]"
    return path
