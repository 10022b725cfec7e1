"""Block keys: small numbers that are equal exactly when two whole prefixes are equal.

No hashing and no eviction: a key stands for content, and whether that content is still in the
server's cache is `analyzer.pool`'s business. The rules are those of vLLM 0.32
`v1/core/kv_cache_utils.py`: a block's identity is its parent's identity, its token ids and its extra
keys (:695), only full blocks have one, and `hash_block_tokens` chains from the first block on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzer.core import TokenIds

type BlockKeys = NDArray[np.int64]
"""Shape (full blocks,): one key a block, from the first block on."""

_FIRST_CHUNK_TOKENS = 256
_LARGEST_CHUNK_TOKENS = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespace:
    """What keeps equal token ids apart: prompts of different namespaces share no block.

    vLLM puts the adapter into every block's extra keys and the salt into the first block's alone
    (`v1/core/kv_cache_utils.py:646-663`). Both reach every block through the chain, so that the pair
    can stand once, as the parent of the first block. An empty salt is no salt (:649).
    """

    adapter: str | None = None
    cache_salt: str | None = None


NO_NAMESPACE = Namespace()


class BlockTable:
    """Interns chained blocks, so that comparing two keys compares two prefixes token by token.

    The server compares 256-bit hashes; this table compares the content itself, and cannot collide.
    Keys count up from 0 in the order in which blocks are first seen, and are good for one table only.
    """

    __slots__ = ("_keys", "_roots", "block_size")

    def __init__(self, block_size: int) -> None:
        if block_size < 1:
            raise ValueError(f"block_size must be at least 1 token, not {block_size}")
        self.block_size = block_size
        # One bytes object a block, parent key first: a tuple of two would cost 60 bytes more each.
        self._keys: dict[bytes, int] = {}
        self._roots: dict[Namespace, int] = {}

    def __len__(self) -> int:
        """How many different blocks have been seen."""
        return len(self._keys)

    def keys(self, token_ids: TokenIds, namespace: Namespace = NO_NAMESPACE) -> BlockKeys:
        """The keys of the full blocks of `token_ids`; the tokens of a last, partial block have none."""
        return np.array(self._chain(self._root(namespace), token_ids), dtype=np.int64)

    def keys_after(
        self,
        previous: BlockKeys,
        common_tokens: int,
        token_ids: TokenIds,
        namespace: Namespace = NO_NAMESPACE,
    ) -> BlockKeys:
        """The same as `keys(token_ids, namespace)`, taking the blocks shared with `previous` from it.

        `previous` are the keys of a sequence of the same namespace that agrees with `token_ids` in its
        first `common_tokens` tokens. The caller vouches for that: it is not looked at again.
        """
        kept = min(common_tokens // self.block_size, len(previous), len(token_ids) // self.block_size)
        if kept == 0:
            return self.keys(token_ids, namespace)
        rest = self._chain(int(previous[kept - 1]), token_ids[kept * self.block_size :])
        return np.concatenate([previous[:kept], np.array(rest, dtype=np.int64)])

    def _root(self, namespace: Namespace) -> int:
        # Negative, so that no block key can be mistaken for the start of a chain.
        normal = Namespace(adapter=namespace.adapter or None, cache_salt=namespace.cache_salt or None)
        return self._roots.setdefault(normal, -1 - len(self._roots))

    def _chain(self, parent: int, token_ids: TokenIds) -> list[int]:
        content = np.ascontiguousarray(token_ids, dtype=np.int32).tobytes()
        width = 4 * self.block_size
        table = self._keys
        keys: list[int] = []
        for start in range(0, len(content) - width + 1, width):
            # Media, when it comes, belongs behind the token ids here: vLLM adds one extra key for each
            # item that overlaps the block (`v1/core/kv_cache_utils.py:643`).
            block = parent.to_bytes(8, "little", signed=True) + content[start : start + width]
            parent = table.setdefault(block, len(table))
            keys.append(parent)
        return keys


def common_prefix(a: TokenIds, b: TokenIds) -> int:
    """How many tokens `a` and `b` share from the start.

    Compares in growing chunks: prompts that part early cost little, and those that agree for hundreds
    of thousands of tokens are not compared one small piece at a time.
    """
    shorter = min(len(a), len(b))
    start, chunk = 0, _FIRST_CHUNK_TOKENS
    while start < shorter:
        end = min(start + chunk, shorter)
        differs = a[start:end] != b[start:end]
        if differs.any():
            return start + int(differs.argmax())
        start, chunk = end, min(2 * chunk, _LARGEST_CHUNK_TOKENS)
    return shorter


def full_blocks(tokens: int, block_size: int) -> int:
    """How many full blocks `tokens` tokens make; only these can be cached."""
    return tokens // block_size


def hit_tokens(common_tokens: int, prompt_tokens: int, block_size: int) -> int:
    """The cached tokens of a prompt that shares `common_tokens` with content still in the cache.

    The last token of a prompt is always computed, for its logits (`v1/core/kv_cache_manager.py:295`):
    a prompt that ends on a block boundary and is cached whole loses its last block.
    """
    return max(0, min(common_tokens, prompt_tokens - 1)) // block_size * block_size


def invalidated_blocks(parent_tokens: int, common_tokens: int, block_size: int) -> int:
    """How many of the parent's full blocks a child that leaves it after `common_tokens` cannot use."""
    return full_blocks(parent_tokens, block_size) - full_blocks(common_tokens, block_size)
