"""The longest cached prefix that every KV group can go on from, where groups remember different parts.

It changes nothing in the pool. The rules are those of vLLM 0.32 `v1/core/kv_cache_coordinator.py:796` and
of each kind's lookup in `v1/core/single_type_kv_cache_manager.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analyzer.group_tables import NO_BLOCK
from analyzer.kv_layout import KVGroup, KVLayout
from analyzer.pool import BlockPool


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHits:
    """The blocks to start from, a list a group; how many tokens they stand for; where to keep a state.

    `junction_tokens` is where the groups that keep everything would have gone on, if that is further: a
    prefix seen twice, at which the others keep their state from now on (`kv_cache_manager.py:322`). 0: none.
    """

    blocks: tuple[list[int], ...]
    tokens: int
    junction_tokens: int = 0


@dataclass(slots=True)
class _Alike:
    """Groups of one kind, size and window: they are looked up together."""

    group: KVGroup
    members: list[int]


def find_hits(pool: BlockPool, layout: KVLayout, keys: Sequence[Sequence[int]], max_tokens: int) -> GroupHits:
    """The longest hit of at most `max_tokens`; `keys` are each group's own, from the first block on."""
    alike = _alike(layout)
    found: dict[int, tuple[list[list[int]], int]] = {}
    checked: set[int] = set()
    hit, longest = max_tokens, 0
    known = min(len(own) * group.block_size for own, group in zip(keys, layout.groups, strict=True))
    while True:
        current = hit
        for number, item in enumerate(alike):
            if item.group.kind == "full" and number in found:
                # Whatever full attention has it has from the start: a shorter hit needs no lookup (:842).
                current = min(current, found[number][1])
                continue
            drop = item.group.drops_last_block and number not in checked
            most = current
            if drop and item.group.kind != "mamba" and len(layout.groups) > 1:
                # It is found one block longer, to be where the others are once that is dropped (:857).
                most = min(current + item.group.block_size, known)
            found[number] = _find(pool, layout, item, keys, most, drop)
            if drop:
                checked.add(number)
            elif found[number][1] < current:
                checked.clear()
            current = found[number][1]
            longest = max(longest, current)
        if current >= hit or len(layout.groups) == 1:
            hit = current
            break
        hit = current
        if len(alike) == 2 and alike[0].group.kind == "full":
            break  # the second has shortened it to what the first has for sure (:813)
    blocks: list[list[int]] = [[] for _ in layout.groups]
    for number, item in enumerate(alike):
        for member, own in zip(item.members, found[number][0], strict=True):
            full = item.group.kind == "full"
            blocks[member] = own[: -(-hit // item.group.block_size)] if full else own
    return GroupHits(blocks=tuple(blocks), tokens=hit, junction_tokens=longest if longest > hit else 0)


def _alike(layout: KVLayout) -> list[_Alike]:
    """Full attention first: its run bounds the others' searches (:752)."""
    found: list[_Alike] = []
    for at, group in enumerate(layout.groups):
        shape = (group.kind, group.block_size, group.window)
        for item in found:
            if (item.group.kind, item.group.block_size, item.group.window) == shape:
                item.members.append(at)
                break
        else:
            found.append(_Alike(group, [at]))
    return sorted(found, key=lambda item: item.group.kind != "full")


def _find(
    pool: BlockPool, layout: KVLayout, item: _Alike, keys: Sequence[Sequence[int]], most: int, drop: bool
) -> tuple[list[list[int]], int]:
    own = [keys[member] for member in item.members]
    count = min(most // item.group.block_size, len(own[0]))
    if item.group.kind == "full":
        return _find_run(pool, layout, item.group, own, count, drop)
    if item.group.kind == "sliding":
        return _find_window(pool, layout, item.group, own, count, drop)
    return _find_state(pool, layout, item.group, own, count)


def _at(pool: BlockPool, own: Sequence[Sequence[int]], at: int) -> list[int] | None:
    """Each member's block there; None where one of them has none."""
    found = [pool.holder(keys[at]) for keys in own]
    return None if None in found else found  # type: ignore[return-value]


def _find_run(
    pool: BlockPool, layout: KVLayout, group: KVGroup, own: Sequence[Sequence[int]], count: int, drop: bool
) -> tuple[list[list[int]], int]:
    """The longest run from the start (single_type_kv_cache_manager.py:784)."""
    runs = [pool.find(keys[:count]) for keys in own]
    blocks = min(map(len, runs))
    hit = blocks * group.block_size - (group.block_size if drop and blocks else 0)
    hit -= hit % layout.alignment
    return [run[: hit // group.block_size] for run in runs], hit


def _find_window(
    pool: BlockPool, layout: KVLayout, group: KVGroup, own: Sequence[Sequence[int]], count: int, drop: bool
) -> tuple[list[list[int]], int]:
    """The last run as long as the window, or a shorter one from the start (:943)."""
    size, alignment = group.block_size, layout.alignment
    need = -(-((group.window or 1) - 1) // size) + drop
    tables = [[NO_BLOCK] * count for _ in own]
    run = 0
    end = 0
    for at in range(count - 1, -1, -1):
        blocks = _at(pool, own, at)
        if blocks is None:
            run = 0
            continue
        if run == 0 and (at + (not drop)) * size % alignment:
            continue  # a run that ends here would not end where hits may
        for table, block in zip(tables, blocks, strict=True):
            table[at] = block
        run += 1
        if run >= need:
            end = at + run
            break
    else:
        end = run
        while end * size % alignment:
            end -= 1
    if drop and end:
        end -= 1
        while end * size % alignment:
            end -= 1
    return [table[:end] for table in tables], end * size


def _find_state(
    pool: BlockPool, layout: KVLayout, group: KVGroup, own: Sequence[Sequence[int]], count: int
) -> tuple[list[list[int]], int]:
    """The last state that stands where hits may end (:1454); draft models have no states of their own."""
    for at in range(count - 1, -1, -1):
        tokens = (at + 1) * group.block_size
        if tokens % layout.alignment == 0 and (blocks := _at(pool, own, at)) is not None:
            return [[NO_BLOCK] * at + [block] for block in blocks], tokens
    return [[] for _ in own], 0
