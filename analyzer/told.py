"""Reads JSON objects and sizes that a server or a file tells: anybody's text, so anything may stand there.

What cannot be what it should be is None. It says nothing about what a value means.
"""

from __future__ import annotations

import json
import re
from typing import Any

MOST_EXACT = 1 << 53
"""JSON numbers are exact below it (RFC 8259 section 6); a count beyond it counts nothing."""

_DIGITS = re.compile(r"[0-9]{1,16}")


def json_object(content: str | bytes) -> dict[str, Any] | None:
    """The JSON object that a text holds; None for all else, be it nested however deep."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def size_of(value: object) -> int | None:
    """A positive whole number, also one that is written as text: a label's value is."""
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)
    return value if type(value) is int and 0 < value < MOST_EXACT else None
