"""Scalars of a request body as the server's models read them, in pydantic's lax mode.

It reads what the server accepts, and refuses the rest; the rules are those of pydantic 2's conversion table,
tried on vLLM 0.32.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TRUE, _FALSE = ("1", "on", "t", "true", "y", "yes"), ("0", "off", "f", "false", "n", "no")


def flag(body: Mapping[str, Any], key: str, *, default: bool = False) -> bool:
    """A boolean, by word or by number. Raises ValueError for anything else."""
    value = body.get(key, default)
    if isinstance(value, str) and value.lower() in (*_TRUE, *_FALSE):
        return value.lower() in _TRUE
    if value in (0, 1):
        return bool(value)
    raise ValueError(f"{key} is not a boolean")


def whole(body: Mapping[str, Any], key: str) -> int | None:
    """A whole number, whose digits may stand in quotes. Raises ValueError for anything else but null."""
    value = body.get(key)
    if value is None:
        return None
    try:
        number = float(value)
        if number == int(number):
            return int(value) if isinstance(value, int) else int(number)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"{key} is not a whole number")
