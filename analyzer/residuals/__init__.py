"""What a hit that is not the predicted one is put down to, one label a file; a file's RESIDUAL is found here.

No prompt left its parent's here, and still the server reused less or more. It gathers no evidence
(`analyzer.evidence` does), and a label says what explains the difference, not that nothing else was at work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known about one request whose hit was predicted. Counts are tokens.

    `answer_ids`, `in_flight` and `namespace` say that such a thing covers the whole difference;
    `client_gone` that only prompts of clients that left before an answer would have been hit there;
    `cached_before` that the server had served others before, and nothing sent since shares as much;
    `full_pool` that more was written by then than the pool holds, None that its size is not known;
    `slots` that the server keeps one prompt for each of its slots.
    """

    predicted: int | None
    reported: int | None
    block_size: int
    prompt_tokens: int | None = None
    reported_prompt_tokens: int | None = None
    suspect: bool = False
    namespace: bool = False
    client_gone: bool = False
    answer_ids: bool = False
    in_flight: bool = False
    full_pool: bool | None = False
    speculation: bool = False
    slots: bool = False
    several_engines: bool = False
    cached_before: bool = False
    other_traffic: bool = False

    @property
    def difference(self) -> int:
        """How much more the server hit than was predicted; 0 where one of the two is not known."""
        if self.predicted is None or self.reported is None:
            return 0
        return self.reported - self.predicted


class Residual(Protocol):
    """One label. Where several hold, the one of lowest `rank` counts: the surest evidence first.

    `meaning` says what explains the difference, `advice` what to do, naming the setting. `expected` is for
    what no setting of the user's can better. `example` is its test.
    """

    name: str
    rank: int
    meaning: str
    advice: str
    expected: bool
    example: Evidence

    def holds(self, evidence: Evidence) -> bool:
        """Whether the rule of this label is met, given that the counts differ or one is not known."""
