"""Replays token ids through the prefix cache: single requests, or a whole traffic in order of time.

No rules of its own: `analyzer.cache` has the server's, `analyzer.blocks` the keys.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from analyzer.blocks import NO_NAMESPACE, BlockKeys, BlockTable, Namespace, common_prefix
from analyzer.cache import Hit
from analyzer.core import TokenIds
from analyzer.grouped_cache import cache_for
from analyzer.kv_layout import KVLayout, full_attention

_LATEST = 16
_GLANCE_TOKENS = 16


@dataclass(slots=True)
class _Prompt:
    token_ids: TokenIds
    keys: BlockKeys
    namespace: Namespace


class TokenCache:
    """A prefix cache that is given token ids, and keeps the keys of what it has seen.

    The prompts of an agent mostly agree, so that each prompt's keys start from those of the latest
    prompts of the same namespace that shares most with it: several agents may take turns. `block_size` is
    that of the keys: a layout's `hash_block_size`, if given.
    """

    def __init__(self, block_size: int, capacity: int | None = None, layout: KVLayout | None = None) -> None:
        self.table = BlockTable(block_size)
        self.cache = cache_for(layout or full_attention(block_size), capacity)
        if self.cache.block_size != block_size:
            raise ValueError(f"keys of {block_size} tokens for a layout of {self.cache.block_size}")
        self._in_flight: dict[str, _Prompt] = {}
        self._latest: dict[Namespace, deque[_Prompt]] = {}

    def admit(
        self,
        request_id: str,
        token_ids: TokenIds,
        namespace: Namespace = NO_NAMESPACE,
        *,
        skip_reading: bool = False,
    ) -> Hit | None:
        """See `PrefixCache.admit`."""
        latest = self._latest.setdefault(namespace, deque(maxlen=_LATEST))
        nearest, common = _nearest(latest, token_ids)
        if nearest is None:
            keys = self.table.keys(token_ids, namespace)
        else:
            keys = self.table.keys_after(nearest.keys, common, token_ids, namespace)
        prompt = _Prompt(token_ids, keys, namespace)
        hit = self.cache.admit(request_id, keys, len(token_ids), skip_reading=skip_reading)
        latest.appendleft(prompt)
        if hit is not None:
            self._in_flight[request_id] = prompt
        return hit

    def finish(self, request_id: str, generated: Sequence[int] | int, *, ahead_tokens: int = 0) -> None:
        """See `PrefixCache.finish`; `generated` are the sampled ids, or their number if unknown."""
        prompt = self._in_flight.pop(request_id)
        if isinstance(generated, int):
            self.cache.finish(request_id, generated, ahead_tokens=ahead_tokens)
            return
        keys = self._keys_with(prompt, generated)
        self.cache.finish(request_id, len(generated), keys, ahead_tokens=ahead_tokens)

    def extend(self, request_id: str, generated: Sequence[int]) -> None:
        """See `PrefixCache.extend`; `generated` are the ids sampled so far."""
        prompt = self._in_flight[request_id]
        self.cache.extend(request_id, len(generated), self._keys_with(prompt, generated))

    def _keys_with(self, prompt: _Prompt, generated: Sequence[int]) -> BlockKeys:
        token_ids = np.concatenate([prompt.token_ids, np.asarray(generated, dtype=np.int32)])
        return self.table.keys_after(prompt.keys, len(prompt.token_ids), token_ids, prompt.namespace)

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._in_flight

    def reset(self) -> None:
        """See `PrefixCache.reset`."""
        self.cache.reset()
        self._in_flight.clear()


def _nearest(latest: Iterable[_Prompt], token_ids: TokenIds) -> tuple[_Prompt | None, int]:
    """The prompt that shares most with `token_ids`, newest first, and how many tokens it shares."""
    nearest, common = None, 0
    for prompt in latest:
        # Most cannot share more than the newest: a glance behind what it shares says so.
        glance = slice(common, common + _GLANCE_TOKENS)
        if np.array_equal(prompt.token_ids[glance], token_ids[glance]):
            found = common_prefix(prompt.token_ids, token_ids)
            if found > common:
                nearest, common = prompt, found
    return nearest, common


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A request reaches the server."""

    request_id: str
    token_ids: TokenIds
    namespace: Namespace = NO_NAMESPACE
    skip_reading: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Grow:
    """A request goes on: the ids that it has sampled so far."""

    request_id: str
    generated: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """A request ends, with its sampled ids or, where they are unknown, their number."""

    request_id: str
    generated: Sequence[int] | int
    ahead_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """The server starts anew, with an empty cache; requests in flight are lost."""


type Event = Start | Grow | Finish | Restart


class Simulation:
    """Events one after another, in order of time; `hits` has each request's, once it was admitted.

    A request that does not fit waits, and so do those behind it, until others end. None: the request
    never ran in the model (it was still waiting when its end came, when the server restarted, or when
    the events ran out), so that the model and the server disagree and there is nothing to predict.
    """

    def __init__(self, cache: TokenCache) -> None:
        self._cache = cache
        self._waiting: OrderedDict[str, Start] = OrderedDict()
        self.hits: dict[str, Hit | None] = {}

    def apply(self, event: Event) -> None:
        """The next event, no earlier than those before it."""
        cache, waiting = self._cache, self._waiting
        first, freed = next(iter(waiting), None), False
        match event:
            case Start():
                self.hits[event.request_id] = None
                waiting[event.request_id] = event
            case Grow():
                if freed := event.request_id in cache:  # it may put out another
                    cache.extend(event.request_id, event.generated)
            case Finish() if event.request_id in waiting:
                del waiting[event.request_id]
            case Finish():
                if freed := event.request_id in cache:  # else it was lost in a restart
                    cache.finish(event.request_id, event.generated, ahead_tokens=event.ahead_tokens)
            case Restart():
                waiting.clear()
                cache.reset()
        # Who waits first waits on until blocks come free: to try at every event takes the square of them.
        if freed or next(iter(waiting), None) != first:
            _admit_waiting(waiting, self.hits, cache)


def simulate(events: Iterable[Event], cache: TokenCache) -> dict[str, Hit | None]:
    """Each request's hit, for events in order of time."""
    simulation = Simulation(cache)
    for event in events:
        simulation.apply(event)
    return simulation.hits


def _admit_waiting(waiting: OrderedDict[str, Start], hits: dict[str, Hit | None], cache: TokenCache) -> None:
    while waiting:
        start = next(iter(waiting.values()))
        hit = cache.admit(start.request_id, start.token_ids, start.namespace, skip_reading=start.skip_reading)
        if hit is None:
            return
        hits[start.request_id] = hit
        del waiting[start.request_id]
