"""How a model's layers share the block pool: its KV groups, their block sizes, and which states are kept.

No configuration files (`analyzer.model_layers` reads those) and no blocks (`analyzer.group_tables`). The
rules are those of vLLM 0.32: `v1/core/kv_cache_utils.py:804` (sizes), `v1/core/kv_cache_coordinator.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

type GroupKind = Literal["full", "sliding", "mamba"]
"""What a group's layers look back on: every token, a window of them, or one state (Mamba, GDN, ...)."""

DEFAULT_BATCH_TOKENS = 2048
"""vLLM's own default for a server on the CPU and on smaller GPUs (engine/arg_utils.py:2954-2982)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KVGroup:
    """Layers that share one block table: one block of the pool holds so many tokens of all of them.

    `window` is the sliding window in tokens. `drops_last_block`: a drafter of the EAGLE family or MTP
    reads from this group, and gives up the last block of a hit.
    """

    kind: GroupKind
    block_size: int
    window: int | None = None
    drops_last_block: bool = False

    def __post_init__(self) -> None:
        if self.block_size < 1:
            raise ValueError(f"block_size must be at least 1 token, not {self.block_size}")
        if (self.kind == "sliding") != (self.window is not None):
            raise ValueError(f"a window of {self.window} tokens does not go with {self.kind} attention")

    @property
    def blocks_of_a_hit(self) -> int:
        """How many blocks before a position must be there to go on from it (full attention: all)."""
        if self.window is None:
            return 1
        return -(-(self.window - 1) // self.block_size) + self.drops_last_block


@dataclass(frozen=True, slots=True, kw_only=True)
class KVLayout:
    """All groups of one model, in the order in which they take blocks, and the server's settings on them.

    `retention_interval` (`--prefix-cache-retention-interval`): 0 keeps the states and windows at which a
    prompt can be taken up again, None all of them, N also those at every N tokens. `batch_tokens`
    (`--max-num-batched-tokens`) is how much of a prompt one step computes. `steps_ahead` is 1 where a step
    is scheduled before the one before it has ended (`--async-scheduling`). `speculative_tokens` counts the
    drafts a step checks. `mamba_align`: states are kept at block boundaries alone (`--mamba-cache-mode`),
    so that prompts are cut at multiples of `cut_tokens`, mostly the block.

    `hash_block_size` is the tokens a block key: the greatest size that divides every group's
    (kv_cache_utils.py:872). Hits end on multiples of `alignment`, the least that each divides (:845).
    """

    groups: tuple[KVGroup, ...]
    caching: bool = True
    retention_interval: int | None = 0
    batch_tokens: int = DEFAULT_BATCH_TOKENS
    steps_ahead: int = 0
    speculative_tokens: int = 0
    mamba_align: bool = True
    cut_tokens: int | None = None
    hash_block_size: int = field(init=False)
    alignment: int = field(init=False)

    def __post_init__(self) -> None:
        if not self.groups:
            raise ValueError("a layout needs at least one group")
        sizes = [group.block_size for group in self.groups]
        object.__setattr__(self, "hash_block_size", math.gcd(*sizes))
        object.__setattr__(self, "alignment", math.lcm(*sizes))

    @property
    def only_full_attention(self) -> bool:
        """Whether one group holds everything, so that nothing is ever dropped or lags behind."""
        return len(self.groups) == 1 and self.groups[0].kind == "full"

    @property
    def aligned_prefill(self) -> bool:
        """Whether prompts are cut where states must be kept."""
        return self.mamba_align and any(group.kind == "mamba" for group in self.groups)

    def replay_boundaries(self, prompt_tokens: int) -> tuple[int, ...]:
        """Where a later request that repeats or continues this prompt can take it up.

        At most before the last token, which is always computed; a drafter needs a block more
        (kv_cache_coordinator.py:65).
        """
        if not any(group.drops_last_block for group in self.groups):
            return (prompt_tokens - 1,)
        size = self.alignment
        again, longer = (prompt_tokens - 1) // size * size, prompt_tokens // size * size
        return (max(again - size, 0), max(longer - size, 0))

    def fits(self, tokens: int, capacity: int | None) -> bool:
        """Whether a pool of `capacity` blocks holds a sequence of so many tokens, alone."""
        return capacity is None or self._blocks(tokens) <= capacity

    def _blocks(self, tokens: int) -> int:
        held = 0
        for group in self.groups:
            blocks = -(-tokens // group.block_size)
            if group.window is not None:
                blocks = min(blocks, self.admission_blocks(group))
            elif group.kind == "mamba" and self.mamba_align:
                blocks = min(blocks, 2 + self.speculative_tokens)
            held += blocks
        return held

    def admission_blocks(self, group: KVGroup) -> int:
        """The most blocks that one request holds of a sliding window's group (kv_cache_interface.py:859)."""
        assert group.window is not None
        in_flight = (1 + self.steps_ahead) * self.batch_tokens
        return -(-(group.window - 1 + in_flight) // group.block_size) + 1


def full_attention(block_size: int, *, drops_last_block: bool = False, caching: bool = True) -> KVLayout:
    """The layout of a model whose layers all attend to the whole sequence."""
    group = KVGroup(kind="full", block_size=block_size, drops_last_block=drops_last_block)
    return KVLayout(groups=(group,), caching=caching)
