"""A keyed chain over tokens: two prompts have equal links as far as they are equal, in steps of 16 tokens.

Who has the key can compare captures; who has not cannot try a text on it. No token can be read off it.
"""

from __future__ import annotations

import hashlib
from collections import deque
from dataclasses import dataclass, field

from analyzer.blocks import common_prefix
from analyzer.core import TokenIds

STEP_TOKENS = 16
LINK_BYTES = 8
_LATEST = 16


@dataclass(slots=True)
class KeyedChain:
    """Makes chains with one key; what a prompt shares with one of the latest is not computed again."""

    key: bytes
    _latest: deque[tuple[TokenIds, bytes]] = field(default_factory=lambda: deque(maxlen=_LATEST))

    def links(self, token_ids: TokenIds) -> bytes:
        """One link of 8 bytes for each 16 tokens; what is left at the end has none."""
        known, shared = b"", 0
        for ids, links in self._latest:
            common = common_prefix(ids, token_ids) // STEP_TOKENS
            if common > shared:
                known, shared = links, common
        made = bytearray(known[: shared * LINK_BYTES])
        data = token_ids.tobytes()
        width = STEP_TOKENS * token_ids.itemsize
        for at in range(shared, len(token_ids) // STEP_TOKENS):
            before = bytes(made[-LINK_BYTES:])
            piece = data[at * width : (at + 1) * width]
            made += hashlib.blake2b(before + piece, key=self.key, digest_size=LINK_BYTES).digest()
        self._latest.appendleft((token_ids, bytes(made)))
        return bytes(made)


def common_tokens(a: bytes, b: bytes) -> int:
    """How many tokens, in steps of 16, two prompts share whose links these are."""
    shorter = min(len(a), len(b)) // LINK_BYTES
    equal = (
        at
        for at in range(shorter, 0, -1)
        if a[(at - 1) * LINK_BYTES : at * LINK_BYTES] == b[(at - 1) * LINK_BYTES : at * LINK_BYTES]
    )
    return next(equal, 0) * STEP_TOKENS
