"""Python's spelling of a value, as a template prints it, with each character's field.

It follows `repr` of Python 3.12 for strings, lists, tuples and dicts; other values are spelt by `repr`
itself and are known only where their container knows their place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.sourced import as_sourced, concat, plain, stretched
from analyzer.sourced_json import Place, place_in, scalar_text


def repr_of(value: Any) -> str:
    """`repr(value)`, in which each character points at the field it was written for."""
    text = repr(value)
    written = concat(_pieces(value, None))
    return written if written == text else text


def _pieces(value: Any, place: Place | None) -> Iterator[str]:
    if isinstance(value, str):
        yield _quoted(value)
    elif isinstance(value, dict):
        for at, (key, item) in enumerate(value.items()):
            yield ", " if at else "{"
            yield from _pieces(key, None)
            yield ": "
            yield from _pieces(item, place_in(value, key))
        yield "}" if value else "{}"
    elif isinstance(value, list | tuple):
        start, end = "[]" if isinstance(value, list) else "()"
        yield start
        for at, item in enumerate(value):
            yield ", " if at else ""
            yield from _pieces(item, place_in(value, at))
        yield "," + end if isinstance(value, tuple) and len(value) == 1 else end
    else:
        yield scalar_text(repr(value), place)


def _quoted(text: str) -> str:
    whole = repr(plain(text))
    # With both kinds of quotes inside, repr escapes the single ones.
    both = "'" in text and '"' in text
    widths = [2 if char == "'" and both else len(repr(char)) - 2 for char in plain(text)]
    return concat((whole[0], stretched(as_sourced(text), whole[1:-1], widths), whole[-1]))
