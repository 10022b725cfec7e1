"""SGLang's radix cache: a tree of token ids, reused to the token or to the page.

How the scheduler admits and retracts requests is not followed: one that fits runs. The rules are those of
SGLang `srt/mem_cache/radix_cache.py` (commit 006b0e3d), `srt/mem_cache/common.py` and
`srt/managers/schedule_batch.py`, named by function.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from analyzer.blocks import Namespace, common_prefix
from analyzer.core import TokenIds
from analyzer.engines import CacheRequest, FirstCome, Replay, Traffic, first_come_first_served
from analyzer.report import Server
from analyzer.servers import ServerProfile
from analyzer.unknown_ids import UnknownIds

type _Branch = tuple[Namespace | None, bytes]
"""How a node finds a child: by its first page of tokens and, from the root, by their namespace."""


@dataclass(slots=True, eq=False)
class _Node:
    """A run of tokens in the tree. `users` are the running requests whose prefix it is part of."""

    parent: _Node | None
    branch: _Branch
    token_ids: TokenIds
    used: int = 0
    users: int = 0
    children: dict[_Branch, _Node] = field(default_factory=dict)


@dataclass(slots=True)
class _Running:
    end: _Node
    held: int
    """Tokens it holds beside the tree: a last page that is not full, which is in no node."""


class SglangEngine:
    """SGLang: a radix tree of tokens or pages, whole leaves evicted"""

    name = "sglang"
    title = "SGLang"
    exact = False
    block_pool = False
    groups_layers = False
    usual_block_size = 1
    usual_slots: int | None = None
    left_out: tuple[str, ...] = (
        "SGLang's prompts are taken for cached from their start, not from the end of their prefill; its"
        " hierarchical cache, and what drafters, sliding windows and state spaces change, is not simulated",
    )

    def serves(self, profile: ServerProfile) -> bool:
        """Whether it names itself as owner (srt/entrypoints/openai/protocol.py, ModelCard)."""
        return profile.owner == "sglang"

    def predict(self, traffic: Traffic, server: Server) -> dict[str, int | None]:
        """Cached tokens of each request; None where it cannot fit, or was still waiting when it ended."""
        return first_come_first_served(traffic, RadixCache(server.block_size, server.pool_blocks))

    def replay(self, server: Server) -> Replay:
        """The same for requests one after another."""
        return FirstCome(RadixCache(server.block_size, server.pool_blocks))


class RadixCache:
    """The tree and the pool it shares with running requests; sizes are tokens, a pool of None has no end."""

    def __init__(self, page_size: int, pages: int | None) -> None:
        self._page = page_size
        self._capacity = None if pages is None else pages * page_size
        self._root = _Node(None, (None, b""), np.empty(0, dtype=np.int32), users=1)
        self._running: dict[str, _Running] = {}
        self._unknown = UnknownIds()
        self._clock = 0
        self._in_tree = 0
        self._beside = 0

    def can_ever_fit(self, request: CacheRequest) -> bool:
        """Whether the pool takes this prompt when nothing else runs."""
        return self._capacity is None or self._paged(len(request.token_ids)) <= self._capacity

    def start(self, request: CacheRequest) -> int | None:
        """Look up, allocate and insert one prompt; returns the tokens hit, None where it must wait."""
        prompt = request.token_ids
        # The last token is always computed, and prompt logprobs need them all (Req._compute_max_prefix_len).
        limit = 0 if request.skip_reading else self._whole_pages(len(prompt) - 1)
        node, hit = self._match(request.namespace, prompt[:limit], self._root, 0)
        self._use(node, 1)
        # A prompt asks for a page more than it may need (alloc_paged_token_slots_extend).
        asked = len(prompt) - hit + (self._page if self._page > 1 else 0)
        if not self._make_room(self._paged(len(prompt)) - hit, asked):
            self._use(node, -1)
            return None
        end = self._insert(request.namespace, prompt[: self._whole_pages(len(prompt))], node, hit)
        self._use(end, 1)
        self._use(node, -1)
        held = self._paged(len(prompt)) - self._whole_pages(len(prompt))
        self._beside += held
        self._running[request.key] = _Running(end, held)
        return hit

    def end(self, request: CacheRequest) -> None:
        """Insert what a request computed, all but the token sampled last, and let go of it."""
        running = self._running.pop(request.key)
        prompt, generated = request.token_ids, request.generated
        count = generated if isinstance(generated, int) else len(generated)
        room = self._paged(len(prompt) + max(0, count - 1)) - self._paged(len(prompt))
        # Where it does not fit, another request was retracted, or the count is wrong: the prompt alone stays.
        # Tokens that nobody knows matter for their room only.
        if self._make_room(room) and not (self._capacity is None and isinstance(generated, int)):
            content = np.concatenate([prompt, self._unknown.fill(generated)[:-1]])
            self._touch(running.end)
            whole = content[: self._whole_pages(len(content))]
            self._insert(request.namespace, whole, running.end, self._whole_pages(len(prompt)))
        self._beside -= running.held
        self._use(running.end, -1)

    def _whole_pages(self, tokens: int) -> int:
        return tokens // self._page * self._page

    def _paged(self, tokens: int) -> int:
        return -(-tokens // self._page) * self._page

    def _tick(self) -> int:
        self._clock += 1
        return self._clock

    def _branch(self, node: _Node, namespace: Namespace, token_ids: TokenIds) -> _Branch:
        return namespace if node is self._root else None, token_ids[: self._page].tobytes()

    def _match(
        self, namespace: Namespace, token_ids: TokenIds, node: _Node, matched: int
    ) -> tuple[_Node, int]:
        """The node where the longest known prefix ends, split there if need be, and its length.

        It is looked for below `node`, at which `matched` tokens end.
        """
        now = self._tick()
        while matched < len(token_ids):
            rest = token_ids[matched:]
            child = node.children.get(self._branch(node, namespace, rest))
            if child is None:
                break
            child.used = now
            common = self._whole_pages(common_prefix(child.token_ids, rest))
            matched += common
            if common < len(child.token_ids):
                return self._split(child, common), matched
            node = child
        return node, matched

    def _split(self, child: _Node, length: int) -> _Node:
        """A new node for the first tokens of one, which keeps the rest."""
        parent = child.parent
        assert parent is not None
        upper = _Node(parent, child.branch, child.token_ids[:length], used=self._tick(), users=child.users)
        parent.children[child.branch] = upper
        child.parent, child.token_ids = upper, child.token_ids[length:]
        child.branch = None, child.token_ids[: self._page].tobytes()
        upper.children[child.branch] = child
        return upper

    def _insert(self, namespace: Namespace, token_ids: TokenIds, node: _Node, matched: int) -> _Node:
        node, matched = self._match(namespace, token_ids, node, matched)
        rest = token_ids[matched:]
        if len(rest):
            branch = self._branch(node, namespace, rest)
            leaf = _Node(node, branch, rest, used=self._tick())
            node.children[branch] = leaf
            self._in_tree += len(rest)
            return leaf
        return node

    def _touch(self, node: _Node) -> None:
        """The whole path to a node was used just now."""
        now = self._tick()
        step: _Node | None = node
        while step is not None:
            step.used = now
            step = step.parent

    def _use(self, node: _Node, users: int) -> None:
        """Lock or unlock the whole path to a node (inc_lock_ref, dec_lock_ref)."""
        step: _Node | None = node
        while step is not None:
            step.users += users
            step = step.parent

    def _make_room(self, tokens: int, asked: int | None = None) -> bool:
        """Evict until so many tokens are free; False, and nothing evicted, where that cannot be.

        `asked` is what is asked for at once: then as many tokens go, not only as many as are missing
        (evict_from_tree_cache). An answer asks token by token.
        """
        if self._capacity is None or self._free() >= max(tokens, asked or 0):
            return True
        if self._free() + sum(len(node.token_ids) for node in self._nodes() if not node.users) < tokens:
            return False
        self._evict(tokens - self._free() if asked is None else asked)
        return True

    def _evict(self, tokens: int) -> None:
        """Give up whole leaves, least recently used first, until so many tokens are gone or none is left."""
        leaves = [node for node in self._nodes() if not node.users and not node.children]
        heap = [(node.used, number, node) for number, node in enumerate(leaves)]
        heapq.heapify(heap)
        evicted, number = 0, len(heap)
        while heap and evicted < tokens:
            leaf = heapq.heappop(heap)[2]
            evicted += len(leaf.token_ids)
            self._in_tree -= len(leaf.token_ids)
            parent = leaf.parent
            assert parent is not None
            del parent.children[leaf.branch]
            if not parent.users and not parent.children:
                number += 1
                heapq.heappush(heap, (parent.used, number, parent))

    def _free(self) -> int:
        assert self._capacity is not None
        return self._capacity - self._in_tree - self._beside

    def _nodes(self) -> Iterator[_Node]:
        waiting = list(self._root.children.values())
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(node.children.values())


ENGINE = SglangEngine()
