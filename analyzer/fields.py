"""Which field of the request two prompts differ in, where both sides of the difference are known.

It says where, not why. A place is where a rendering shows a field; what the bodies hold decides between two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from analyzer.body_paths import parse_path, value_at
from analyzer.compare import TEMPLATE, FieldPlace, common_chars
from analyzer.core import Span

_LONGEST_ESCAPE = len(r"\ud83d\ude00")


def differing_field(
    before: FieldPlace | None, after: FieldPlace | None, bodies: tuple[Any, Any]
) -> FieldPlace:
    """The field at a difference: the child's (`after`), or the parent's where that is the one that changed.

    Where the child goes on with another field, equal in both `bodies` (parent's, child's), the parent's field
    was cut short and is the one that says where. Of two changed fields the inner one is named.
    """
    places = [place for place in (after, before) if place is not None]
    if not places:
        return TEMPLATE
    if before is not None and after is not None and before.path != after.path:
        places = [place for place in places if _differs(place.path, bodies)] or places
        paths = [place.path for place in places]
        places = sorted(places, key=lambda place: not _is_inside(place.path, paths))
    path = places[0].path
    known = [place.char for place in places if place.path == path and place.char is not None]
    alone = all(place.path == path for place in (before, after) if place is not None)
    return FieldPlace(path=path, char=_char(path, known[0] if known else None, bodies, alone=alone))


def shifted_field(
    before: Sequence[Span], after: Sequence[Span], char: int, bodies: tuple[Any, Any]
) -> FieldPlace | None:
    """The changed field in front of a difference, where what it gained or lost reads like what follows it.

    A line break more before the template's own line break shows only behind both; `before` and `after` tell
    where each text comes from, and part where the field does.
    """
    for one, other in zip(before, after, strict=False):
        if one == other:
            continue
        path = one.path if one.char_start <= other.char_start else other.path
        texts = [value_at(body, path) for body in bodies]
        if min(one.char_start, other.char_start) < char and all(isinstance(text, str) for text in texts):
            return FieldPlace(path=path, char=common_chars(*texts)) if texts[0] != texts[1] else None
        return None
    return None


def differs(place: FieldPlace, bodies: tuple[Any, Any]) -> bool:
    """Whether a place is a field that the two bodies hold differently."""
    return place != TEMPLATE and _differs(place.path, bodies)


def _differs(path: str, bodies: tuple[Any, Any]) -> bool:
    before, after = (value_at(body, path) for body in bodies)
    return bool(before != after) or type(before) is not type(after)


def _is_inside(path: str, others: list[str]) -> bool:
    steps = parse_path(path)
    return any(len(steps) > len(outer) and steps[: len(outer)] == outer for outer in map(parse_path, others))


def _char(path: str, char: int | None, bodies: tuple[Any, Any], *, alone: bool) -> int | None:
    """The character at which a field's two strings part, where a rendering shows it too early or not at all.

    It shows too early what a template trims, and inside an escape of JSON text: both characters of `\\n` are
    written for its first. It cannot show at all the character of JSON text that was written anew.
    """
    before, after = (value_at(body, path) for body in bodies)
    if not alone or not isinstance(before, str) or not isinstance(after, str) or before == after:
        return char
    parts = common_chars(before, after)
    if char is None:
        return parts
    skipped = before[char:parts]
    in_escape = skipped.startswith("\\") and len(skipped) < _LONGEST_ESCAPE
    return parts if skipped.isspace() or in_escape else char
