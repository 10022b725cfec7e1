"""Cuts prompts into the blocks of a format and numbers them: equal numbers stand for equal prefixes.

It knows no server's block size. A number says nothing of the tokens: blocks are compared by a hash under a
key that lives as long as the numbering, each with all that stands before it, and then counted as they come.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator

import numpy as np

from analyzer.core import TokenIds

_DIGEST_BYTES = 16
_KEY_BYTES = 32


class BlockNumbers:
    """Numbers the blocks of one export, from `first` on, in the order in which they are first seen."""

    def __init__(self, block_size: int, *, first: int) -> None:
        self._block_size = block_size
        self._first = first
        self._key = secrets.token_bytes(_KEY_BYTES)
        self._numbers: dict[bytes, int] = {}

    def full(self, token_ids: TokenIds, namespace: tuple[str | None, ...]) -> list[int]:
        """The numbers of a prompt's full blocks."""
        whole = len(token_ids) - len(token_ids) % self._block_size
        return list(self._chain(token_ids[:whole], namespace))

    def covering(self, token_ids: TokenIds, namespace: tuple[str | None, ...]) -> list[int]:
        """The numbers of blocks that cover a prompt: the last may hold fewer tokens than the others."""
        return list(self._chain(token_ids, namespace))

    def _chain(self, token_ids: TokenIds, namespace: tuple[str | None, ...]) -> Iterator[int]:
        ids = np.ascontiguousarray(token_ids, dtype="<i4").tobytes()
        step = 4 * self._block_size
        digest = self._hash(json.dumps(namespace).encode())
        for start in range(0, len(ids), step):
            digest = self._hash(digest + ids[start : start + step])
            yield self._numbers.setdefault(digest, self._first + len(self._numbers))

    def _hash(self, data: bytes) -> bytes:
        return hashlib.blake2b(data, key=self._key, digest_size=_DIGEST_BYTES).digest()
