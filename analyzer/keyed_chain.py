"""A keyed chain over tokens: two prompts have equal links as far as they are equal, in steps of 16 tokens.

Who has the key can compare captures; who has not cannot try a text on it. No token can be read off it.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Set
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


def links_in(chain: bytes) -> list[bytes]:
    """The links of a chain, one by one."""
    return [chain[at : at + LINK_BYTES] for at in range(0, len(chain), LINK_BYTES)]


def shared_tokens(chain: bytes, others: Set[bytes]) -> int:
    """How many tokens, in steps of 16, a prompt shares with the nearest of those whose links are `others`."""
    links = links_in(chain)
    return next((at for at in range(len(links), 0, -1) if links[at - 1] in others), 0) * STEP_TOKENS


def key_name(key: bytes) -> str:
    """What tells that two captures have the same key, and nothing of the key."""
    return hashlib.blake2b(b"the key of a sealed capture", key=key, digest_size=LINK_BYTES).hexdigest()
