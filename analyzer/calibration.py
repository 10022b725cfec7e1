"""Weighs rows by their conversation: one rendering that the server contradicts lowers what all of it claims.

Rows of a conversation are compared with each other, so that a wrong rendering is in its neighbours' numbers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from analyzer.mismatch import Traits, likely_reason, worst
from analyzer.report import Turn


def calibrate(turns: Sequence[Turn], traits: Mapping[tuple[int, int], Traits]) -> tuple[Turn, ...]:
    """The same rows with what their conversation rests on, and a reason on each mismatch.

    `traits` are by exchange id and prompt index.
    """
    members: dict[int, list[Turn]] = defaultdict(list)
    for turn in turns:
        if turn.conversation is not None:
            members[turn.conversation].append(turn)
    weighed = []
    for turn in turns:
        others = [] if turn.conversation is None else members[turn.conversation]
        problem, reason = turn.problem, None
        if turn.rendering == "mismatch":
            reason = _reason(turn, traits[turn.id, turn.prompt_index], others)
            problem = reason if problem is None else f"{problem}; {reason}"
        rests_on = worst(other.rendering for other in others)
        weighed.append(replace(turn, problem=problem, reason=reason, conversation_rendering=rests_on))
    return tuple(weighed)


def _reason(turn: Turn, traits: Traits, others: Sequence[Turn]) -> str:
    assert turn.prompt_tokens is not None
    differences = [
        other.reported_prompt_tokens - other.prompt_tokens
        for other in others
        if other.reported_prompt_tokens is not None
        and other.prompt_tokens is not None
        and other.token_source == turn.token_source
    ]
    return likely_reason(traits, turn.prompt_tokens, turn.reported_prompt_tokens, differences)
