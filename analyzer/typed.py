"""Makes dataclasses of values that a stranger's file gave, where each is of its field's type.

What values mean together is the reader's business; a type that is told by no class is not checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeAliasType, Union, get_args, get_origin, get_type_hints

_LARGEST = 1 << 63


def typed[T](shape: type[T], values: Mapping[str, Any]) -> T:
    """The dataclass; raises ValueError for a value of another type, TypeError for a field it has not."""
    hints = _hints(shape)  # type: ignore[arg-type]
    for name, value in values.items():
        if name in hints and not _fits(value, hints[name]):
            raise ValueError(f"{shape.__name__}.{name} is of another type")
    return shape(**values)


@cache
def _hints(shape: Any) -> dict[str, Any]:
    return get_type_hints(shape)


def _fits(value: Any, hint: Any) -> bool:
    while isinstance(hint, TypeAliasType):
        hint = hint.__value__
    if get_origin(hint) in (Union, UnionType):
        return any(_fits(value, one) for one in get_args(hint))
    if get_origin(hint) is Literal:
        return isinstance(value, str) and value in get_args(hint)
    if hint in (None, NoneType):
        return value is None
    if hint in (int, float):
        number = isinstance(value, int | hint) and not isinstance(value, bool)
        return number and -_LARGEST < value < _LARGEST
    return not isinstance(hint, type) or isinstance(value, hint)
