"""llama.cpp's server: each slot keeps the tokens it saw last, and a prompt reuses what it shares with them.

The prompts that the server keeps in the host's memory (`--cache-ram`) are not followed. The rules are those
of llama.cpp `tools/server/server-context.cpp` (commit 001d906a), named by function.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.blocks import common_prefix
from analyzer.core import TokenIds
from analyzer.engines import CacheRequest, FirstCome, Replay, Traffic, first_come_first_served
from analyzer.report import Server
from analyzer.servers import ServerProfile

_NEVER = -1
MOST_SLOTS = 1024
"""More than requests are ever in flight at once, where it is not known how many will come."""


@dataclass(slots=True)
class _Slot:
    """What one slot holds; `running` is the key of the request that it works on."""

    token_ids: TokenIds
    used: int = _NEVER
    running: str | None = None


class LlamaCppEngine:
    """llama.cpp: one prompt a slot, reused as far as the next one agrees with it"""

    name = "llama_cpp"
    title = "llama.cpp"
    exact = False
    block_pool = False
    groups_layers = False
    usual_block_size = 1
    # `-np` left to itself (tools/server/server.cpp: 4 slots over one unified cache).
    usual_slots: int | None = 4
    left_out: tuple[str, ...] = (
        "llama.cpp's prompt cache in host memory (--cache-ram, on by default) is not simulated: a prompt"
        " whose slot was taken meanwhile may hit more than predicted",
        "neither are --cache-reuse, cache_prompt: false, a chosen id_slot, and the checkpoints that sliding"
        " windows and recurrent layers need, without which they compute again from the start",
    )

    def serves(self, profile: ServerProfile) -> bool:
        """Whether it names itself as owner (tools/server, /v1/models), or told of its slots."""
        return profile.owner == "llamacpp" or (profile.owner is None and profile.slots is not None)

    def predict(self, traffic: Traffic, server: Server) -> dict[str, int | None]:
        """Cached tokens of each request; None where it was still waiting for a slot when it ended."""
        assert server.slots is not None, "settle() gives this kind its slots"
        # A request takes one slot: those beyond their number are never touched, however many are claimed.
        slots = _Slots(min(server.slots, len(traffic.requests) or 1))
        return first_come_first_served(traffic, slots)

    def replay(self, server: Server) -> Replay:
        """The same for requests one after another."""
        assert server.slots is not None, "settle() gives this kind its slots"
        return FirstCome(_Slots(min(server.slots, MOST_SLOTS)))


class _Slots:
    """All slots of a server, in the order of their ids."""

    def __init__(self, count: int) -> None:
        self._slots = [_Slot(np.empty(0, dtype=np.int32)) for _ in range(count)]
        self._clock = 0

    def can_ever_fit(self, request: CacheRequest) -> bool:
        """Whether it may have a slot: how long a prompt a slot takes is not known here."""
        return True

    def start(self, request: CacheRequest) -> int | None:
        """Give it a slot, whose content it replaces; returns what it reuses, None where no slot is idle."""
        idle = [slot for slot in self._slots if slot.running is None]
        if not idle:
            return None
        slot = _most_similar(idle, request.token_ids) or _least_recent(idle)
        # The last token is evaluated whatever is there, for its logits (update_slots, TAG_PROMPT_LOGITS).
        common = common_prefix(slot.token_ids, request.token_ids)
        slot.token_ids, slot.running = request.token_ids, request.key
        return max(0, min(common, len(request.token_ids) - 1)) if not request.skip_reading else 0

    def end(self, request: CacheRequest) -> None:
        """The slot keeps prompt and answer, but for the token sampled last, which was never computed."""
        slot = next(slot for slot in self._slots if slot.running == request.key)
        self._clock += 1
        slot.used, slot.running = self._clock, None
        # Of an answer that was only counted, nothing can be shared.
        answer = () if isinstance(request.generated, int) else request.generated[:-1]
        slot.token_ids = np.concatenate([slot.token_ids, np.array(answer, dtype=np.int32)])


def _most_similar(idle: list[_Slot], token_ids: TokenIds) -> _Slot | None:
    """The first slot of those that share most, if that is more than a tenth of the prompt (`-sps` 0.10)."""
    shared = [common_prefix(slot.token_ids, token_ids) for slot in idle]
    most = max(shared)
    return idle[shared.index(most)] if 10 * most > len(token_ids) else None


def _least_recent(idle: list[_Slot]) -> _Slot:
    """The slot that ended longest ago; of those never used, the last one (get_available_slot)."""
    return min(reversed(idle), key=lambda slot: slot.used)


ENGINE = LlamaCppEngine()
