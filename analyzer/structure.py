"""A request or answer without its text: JSON in which a string is its length, its tokens, a fingerprint.

Fingerprints are keyed: equal strings of one capture have equal ones, and without the key nobody can try
words on them. Kept as they are: the endpoints' own field names and settled values, counts and switches at
their own places. What a client chose, be it a key of a schema or a number in an argument, is sealed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from analyzer.structure_words import COUNTS, PLAIN_VALUES, is_free, is_own

FINGERPRINT_BYTES = 8
KEY_BYTES = 32

STRUCTURE = ("length", "tokens", "fingerprint", "number", "numbers")
"""What stands for a string, a number, or a list of numbers."""

type CountTokens = Callable[[str], int | None]


class Sealer:
    """Seals JSON values with one key; `count_tokens` may not know, and then the length stands alone."""

    def __init__(self, key: bytes, count_tokens: CountTokens) -> None:
        self._key = key
        self._count = count_tokens
        self._tokens: dict[str, int | None] = {}

    def fingerprint(self, text: str) -> str:
        """The keyed fingerprint of a text, in hex."""
        data = text.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(data, key=self._key, digest_size=FINGERPRINT_BYTES).hexdigest()

    def seal(self, value: Any) -> Any:
        """The value without its text."""
        return self._seal(value, field="", free=False)

    def _seal(self, value: Any, *, field: str, free: bool) -> Any:
        if isinstance(value, Mapping):
            return {
                (key if is_own(key, field) and not free else self.name(key)): self._seal(
                    item, field=key if is_own(key, field) else "?", free=free or is_free(field, key)
                )
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            if value and all(isinstance(item, int | float) for item in value):
                return {"numbers": len(value), "fingerprint": self.fingerprint(json.dumps(value))}
            return [self._seal(item, field=field, free=free) for item in value]
        if isinstance(value, str):
            return value if not free and value in PLAIN_VALUES.get(field, ()) else self._string(value)
        if value is None or (not free and (isinstance(value, bool) or field in COUNTS)):
            return value
        return {"number": self.fingerprint(json.dumps(value))}

    def _string(self, text: str) -> dict[str, Any]:
        fingerprint = self.fingerprint(text)
        if fingerprint not in self._tokens:
            self._tokens[fingerprint] = self._count(text)
        return {"length": len(text), "tokens": self._tokens[fingerprint], "fingerprint": fingerprint}

    def name(self, key: str) -> str:
        """What stands for a key of the client's, here as in paths."""
        return f"<{self.fingerprint(key)}>"
